#!/bin/sh
# Every figure of bench/RESULTS.md in one go, about ten minutes for a model of 135 million parameters:
#   sh bench/record.sh MODEL.gguf            measures; figures and pictures go to build/record
#   sh bench/record.sh MODEL.gguf --write    also puts them into bench/RESULTS.md and examples/pictures
# On a machine with nothing else to do. From the environment:
#   QUIPU_BUILD    a finished Release build to use instead of building build/release
#   QUIPU_PYTHON   a Python with llama-cpp-python, to compare with llama.cpp; without it that part is left out
#   QUIPU_THREADS  threads to measure with [1 and all processors]
#   QUIPU_PREDICT  tokens decoded [64], QUIPU_DEPTHS  positions before them [0,4096]
set -eu
cd "$(dirname "$0")/.."
model=${1:?a GGUF file is needed}
[ -f "$model" ] || { echo "record.sh: $model is not there" >&2; exit 1; }
build=${QUIPU_BUILD:-build/release}
if [ -z "${QUIPU_BUILD:-}" ]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target quipu-bench product_bench attention_bench elementwise_bench
fi
all=$(nproc)
threads=${QUIPU_THREADS:-$([ "$all" = 1 ] && echo 1 || echo "1,$all")}
predict=${QUIPU_PREDICT:-64}
depths=${QUIPU_DEPTHS:-0,4096}
out=build/record
mkdir -p "$out"
figures=$out/figures.md
: >"$figures"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")

bench=$build/examples/quipu-bench
# show TITLE COMMAND...: the command as a reader would type it, and what it printed.
show() {
  title=$1
  shift
  echo "record.sh: $title" >&2
  {
    printf '### %s\n\n`' "$title"
    for word in "$@"; do
      case $word in
        */quipu-bench | */*_bench) printf '%s' "${word##*/}" ;;
        "$model") printf ' %s' "${word##*/}" ;;
        "$out"/*) printf ' %s' "${word##*/}" ;;
        *) printf ' %s' "$word" ;;
      esac
    done
    printf '`\n\n'
    case $1 in
      */quipu-bench) "$@" ;;
      *) printf '```\n' && "$@" 2>/dev/null && printf '```\n' ;;
    esac
    printf '\n'
  } >>"$figures"
}

{
  printf '%s, %s processors, %s of memory; %s; %s; commit %s; %s\n\n' \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$all" \
    "$(awk '/MemTotal/ {printf "%.0f GB", $2 / 1e6}' /proc/meminfo)" \
    "$(uname -sr)" "$("$compiler" --version | head -n 1)" \
    "$(git rev-parse --short HEAD)" "$(date +%F)"
} >>"$figures"

against=
[ -n "${QUIPU_PYTHON:-}" ] && against="--against llama.cpp --python $QUIPU_PYTHON"
# shellcheck disable=SC2086
show "End to end" "$bench" -m "$model" -p 512 -n "$predict" -d "$depths" -t "$threads" \
  --activations f32,int8 $against
show "Decoding several sequences at once" "$bench" -m "$model" -p 0 -n 16 -b 1,2,4,8,16,32 -t "$all" \
  --activations f32,int8 --plot "$out/batch.svg"
show "The cache in bf16" "$bench" -m "$model" -p 0 -n 16 -d 8000 -t "$all" --cache f32,bf16
show "Matrix products at the shapes of Llama 3.1 8B" "$bench" roofline --model llama3_1_8b -t "$threads" \
  --plot "$out/roofline.svg"
show "Where the time of a token goes" "$bench" profile -m "$model" --depth 512 --out "$out/profile.json"
show "The same with int8 activations" "$bench" profile -m "$model" --depth 512 --activations int8
show "Where the time of a prompt goes" "$bench" profile -m "$model" --depth 0 -p 512 -r 7
show "What faster number formats cost" "$bench" accuracy -m "$model" -f bench/data/public_domain.txt
show "Products of other libraries" "$build/bench/product_bench" --benchmark_min_time=0.1 \
  --benchmark_filter='^ceiling|^peer/|^product/f32/f32/(4096x4096|14336x4096|4096x14336)/(1|512)/'
show "Attention" "$build/bench/attention_bench" --benchmark_min_time=0.05
show "Norms, rotary embedding, gate, residual" "$build/bench/elementwise_bench" --benchmark_min_time=0.05
echo "record.sh: written $figures and the pictures beside it" >&2

[ "${2:-}" = --write ] || exit 0
cp "$out/batch.svg" "$out/roofline.svg" examples/pictures/
awk -v figures="$figures" '
  /^<!-- figures of bench\/record.sh -->$/ { print; print ""; while ((getline line < figures) > 0) print line; inside = 1 }
  /^<!-- end of the figures -->$/ { inside = 0 }
  !inside && !/^<!-- figures of bench\/record.sh -->$/ { print }
' bench/RESULTS.md >"$out/RESULTS.md"
cp "$out/RESULTS.md" bench/RESULTS.md
echo "record.sh: bench/RESULTS.md and examples/pictures are up to date" >&2
