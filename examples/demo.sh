#!/bin/sh
# The main job, from nothing: installs what is missing, builds, fetches a small real model, accounts for
# Llama 3.1 8B, and generates text through the same types. Quick, and without network, the second time.
set -eu
cd "$(dirname "$0")/.."
. cmake/dependencies.sh

quipu_need $quipu_build_packages python3 python3-pip
build=build/demo
[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DQUIPU_BUILD_TESTS=OFF -DQUIPU_BUILD_BENCH=OFF >/dev/null
quipu_say "quipu: building (some minutes the first time)"
cmake --build "$build" --target account quipu-generate quipu-inspect quipu-atlas >"$build/log" 2>&1 || {
  grep -m 20 -E 'error|FAILED' "$build/log" >&2 || tail -n 20 "$build/log" >&2
  quipu_say "quipu: the build failed; all of its output is in $build/log"
  exit 1
}
quipu_fetch_model

printf '\n== Llama 3.1 8B, counted by the compiler\n\n'
"$build/examples/account"
printf '\n== Its vocabulary projection\n\n'
"$build/examples/quipu-atlas" --model llama3_1_8b --component output | head -n 24
printf '\n== A real checkpoint, counted from its tensors\n\n'
"$build/examples/quipu-inspect" "$quipu_model" | tail -n 5
printf '\n== and running\n\n'
"$build/examples/quipu-generate" -m "$quipu_model" --chat --temp 0 -n 120 \
  -p "${1:-What is the capital of France, and what is it known for?}"
