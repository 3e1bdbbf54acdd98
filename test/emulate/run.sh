#!/bin/sh
# Runs the kernels of HWY_AVX3 and HWY_AVX3_DL on a machine that has no AVX-512: Bochs emulates an Ice
# Lake processor, Debian's kernel boots in it from a CD image, and /init runs the tests that the image
# holds. Correctness only: the emulator says nothing about speed. Debian 12, x86-64.
#   sh test/emulate/run.sh              tests of simd/ on all targets, golden data through an engine
#   sh test/emulate/run.sh reduce math  only these tests of simd/
#   sh test/emulate/run.sh engine       only the golden data
# QUIPU_KERNEL=FILE takes another bzImage with a serial console, QUIPU_EMULATE_SECONDS=N another limit.
# The output of everything stays in build/emulate. Exit status 0: every test passed.
set -eu
cd "$(dirname "$0")/../.."
case "${1:-}" in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' test/emulate/run.sh; exit 0 ;; esac
. cmake/dependencies.sh
quipu_need $quipu_build_packages libgtest-dev bochs bochsbios bochs-term isolinux syslinux-common genisoimage \
  busybox-static cpio

build=build/emulate
[ $# -gt 0 ] || set -- embedding kv_append math packing quantize reduce residual rms_norm rotary round \
  silu softmax engine product attention
mkdir -p "$build"
build=$(realpath "$build")

# ---- The kernel: not installed, only unpacked
kernel=${QUIPU_KERNEL:-$build/vmlinuz}
if [ ! -s "$kernel" ]; then
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  quipu_say "quipu: fetching $package"
  (cd "$build" && apt-get download "$package" >fetch.log 2>&1 && dpkg-deb -x "$package"_*.deb kernel) || {
    cat "$build/fetch.log" >&2
    exit 1
  }
  cp "$build"/kernel/boot/vmlinuz-* "$kernel"
  rm -rf "$build/kernel" "$build/$package"_*.deb
fi

# ---- The tests, with every target but those of before 2013; one model is enough for the emulator
quipu_say "quipu: building $*"
targets=
for test in "$@"; do
  case $test in
    engine) targets="$targets engine_golden_test" ;;
    *) targets="$targets simd_${test}_test" ;;
  esac
done
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUIPU_DISABLED_TARGETS='(HWY_SSSE3|HWY_SSE4)' \
  -DCMAKE_CXX_FLAGS_RELEASE="${QUIPU_EMULATE_FLAGS:--O2 -DNDEBUG}" -DQUIPU_TEST_FOLDERS='simd;engine' \
  -DQUIPU_TEST_MODELS=tiny::T1 -DQUIPU_BUILD_BENCH=OFF -DQUIPU_BUILD_PROGRAMS=OFF >"$build/build.log" 2>&1 &&
  cmake --build "$build" --target $targets >>"$build/build.log" 2>&1 || {
  grep -m 20 -E 'error|FAILED' "$build/build.log" >&2 || tail -n 20 "$build/build.log" >&2
  quipu_say "quipu: the build failed; all of its output is in $build/build.log"
  exit 1
}

# ---- The CD: /init, busybox, the tests and their libraries, golden data of the model
root=$build/root
rm -rf "$root" "$build/cd"
mkdir -p "$root/bin" "$root/test" "$build/cd/isolinux"
cp /bin/busybox "$root/bin"
for test in $targets; do
  program=$build/test/${test%%_*}/$test
  cp "$program" "$root/test"
  strip "$root/test/$test"
  ldd "$program" | grep -o '/lib[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
  # The slow ones of ProductTest: only what nothing else has run.
  case $test in
    simd_product_test) echo "$test --gtest_filter=*AVX3*:*OneRow*AVX2" ;;
    engine_golden_test) echo "$test --gtest_filter=Tiny/GoldenFloat32.*/0:Tiny/GoldenFloat32.*/5:Tiny/GoldenBf16.*/0" ;;
    *) echo "$test" ;;
  esac
done >"$root/list"
golden=${QUIPU_GOLDEN_DIR:-test/data/golden}
mkdir -p "$root/golden/models/T1"
for part in acts hf-f32 hf-bf16; do
  [ -d "$golden/models/T1/$part" ] && cp -r "$golden/models/T1/$part" "$root/golden/models/T1"
done
install -m 755 test/emulate/init "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$build/cd/initrd"
cp "$kernel" "$build/cd/linux"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$build/cd/isolinux"
# Bochs 2.7 reports a wrong size of the compacted XSAVE area, and the kernel dies of one of the rest: it
# is told to use none of them. Programs still see the processor's own features. No self-tests of ciphers.
cat >"$build/cd/isolinux/isolinux.cfg" <<END
serial 0 115200
default quipu
prompt 0
label quipu
 kernel /linux
 append initrd=/initrd console=ttyS0,115200 quiet nokaslr mitigations=off tsc_early_khz=20000 lpj=80000 nomodeset random.trust_cpu=on cryptomgr.notests initcall_blacklist=jent_mod_init clearcpuid=xsavec,xsaves,fsrm,erms,umip,pku,rdpid
END
genisoimage -quiet -o "$build/cd.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$build/cd"

# ---- Bochs: the serial port to a file
serial=$build/serial.log
rm -f "$serial" "$build/cd.iso.lock"
: >"$serial"
cat >"$build/bochsrc" <<END
config_interface: textconfig
display_library: term
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
megs: 512
cpu: model=corei7_icelake_u, count=1, ips=20000000, reset_on_triple_fault=0, ignore_bad_msrs=1
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=$build/cd.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$serial
clock: sync=none
log: $build/bochs.log
panic: action=fatal
error: action=report
info: action=ignore
END
echo c >"$build/commands"
quipu_say "quipu: booting (a minute or two on an idle core, then minutes per test)"
started=$(date +%s)
TERM=xterm timeout -k 5 "${QUIPU_EMULATE_SECONDS:-7200}" nice -n 19 bochs -q -f "$build/bochsrc" -rc "$build/commands" \
  >"$build/screen.log" 2>&1 </dev/null &
emulator=$!
trap 'kill "$emulator" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
# Its screen is a terminal that it opens itself, and it stops once that is full: somebody has to read it.
screen=
while [ -z "$screen" ] && kill -0 "$emulator" 2>/dev/null; do
  sleep 1
  screen=$(sed -n 's/.*connected to screen "\(.*\)".*/\1/p' "$build/screen.log" | head -n 1)
done
[ -z "$screen" ] || cat "$screen" >/dev/null 2>&1 &
tail -n +1 -f --pid="$emulator" "$serial" |
  grep --line-buffered -E '^(\[ *(OK|FAILED|SKIPPED) |==|T1/)|Failure|fault|panic' || true
wait "$emulator" || true
trap - EXIT

quipu_say "quipu: $(($(date +%s) - started)) s"
if ! grep -q '^== all tests ran' "$serial"; then
  tail -n 20 "$serial" >&2
  quipu_say "quipu: the emulated machine did not reach the end; see $serial and $build/bochs.log"
  exit 1
fi
if ! grep -q '^== features: .*avx512_vnni' "$serial"; then
  quipu_say "quipu: the emulated processor had no AVX-512 VNNI; see $serial"
  exit 1
fi
if grep '^== .* exit [^0]' "$serial" >&2; then exit 1; fi
quipu_say "quipu: all passed"
