#!/bin/sh
# Every test: installs what is missing, builds, runs all of it with ctest; then the parts where memory
# and threads matter once more under AddressSanitizer with UBSan, and under ThreadSanitizer.
#   sh test/run.sh           everything
#   sh test/run.sh quick     without the sanitizers
#   sh test/run.sh long      AddressSanitizer and UBSan over kernels, readers and tokenizers too
# Tests that want a downloaded model or the full golden data use them if they are there and are reported
# as skipped, by name, if not. Longer checks: see test/README.md.
set -eu
cd "$(dirname "$0")/.."
. cmake/dependencies.sh

quipu_need $quipu_build_packages libgtest-dev libbenchmark-dev python3
clang=$(quipu_first_available clang-19 clang-18 clang-17 clang-16)
[ -n "$clang" ] && quipu_need "$clang"
# For the pages of the atlas; their test is skipped, by name, where a browser cannot be had.
(quipu_need python3-jsonschema python3-selenium "$(quipu_first_available chromium-driver chromium-chromedriver)" \
            "$(quipu_first_available chromium chromium-browser)") ||
  quipu_say "quipu: going on without a browser"

# For ranks that are processes; skipped likewise.
(quipu_need libopenmpi-dev openmpi-bin) || quipu_say "quipu: going on without MPI"

# -O1 throughout: tests judge results, not speed, and it halves the time of building them. Users' flags
# (Release, -O3) are what the demo builds with.
jobs=$(nproc 2>/dev/null || echo 2)
# Whatever comes first, the end of all tests or a failure, ends with what was not tested.
logs=''
list_skipped() {
  [ -n "$logs" ] && skipped=$(python3 test/list_skipped.py $logs) && [ -n "$skipped" ] || return 0
  quipu_say "quipu: tests that were skipped, and why"
  quipu_say "$skipped"
}
trap list_skipped EXIT
run() {
  build=$1
  shift
  quipu_say "quipu: building $build"
  cmake -S . -B "build/$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
    -DQUIPU_WERROR=ON "$@" >"build/$build.log" 2>&1 &&
    cmake --build "build/$build" >>"build/$build.log" 2>&1 || {
    grep -m 20 -E 'error|FAILED' "build/$build.log" >&2 || tail -n 20 "build/$build.log" >&2
    quipu_say "quipu: the build failed; all of its output is in build/$build.log"
    exit 1
  }
  logs="$logs build/$build/Testing/Temporary/LastTest.log"
  ctest --test-dir "build/$build" --output-on-failure -j "$jobs"
}
mkdir -p build
run test
[ "${1:-}" = quick ] && exit 0
# One SIMD target is enough there: memory and threads are handled alike in all of them. The first build
# judges warnings; sanitizers make GCC warn of their own code.
one_target='(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)'
slow='engine_wide_test|engine_smollm2_test'
sanitize() {
  build=$1 flags=$2 folders=$3 left_out=$4
  run "$build" -DQUIPU_WERROR=OFF -DQUIPU_SANITIZE="$flags" -DQUIPU_DISABLED_TARGETS="$one_target" \
    -DQUIPU_BUILD_BENCH=OFF -DQUIPU_BUILD_PROGRAMS=OFF -DQUIPU_TEST_FOLDERS="$folders" \
    -DQUIPU_TESTS_LEFT_OUT="$left_out"
}
folders='runtime;parallel;engine;generate'
[ "${1:-}" = long ] && folders='runtime;parallel;simd;checkpoint;text;engine;generate'
sanitize address address,undefined "$folders" "$slow"
# What runs by one thread, or by two along paths that the other tests take too, is left out.
one_thread='engine_(convert|gguf_load|model_choice|trace)_test|quipu_(distribution|sampling)_test'
sanitize thread thread 'runtime;parallel;engine;generate' "$slow|$one_thread"
