// What Highway 1.0.3 lacks and newer versions or the processor have, in one place.
//
// ByteDot: the sum of products of four bytes per 32-bit lane. Highway has
// SumOfMulQuadAccumulate from 1.0.6 on; here the instructions themselves where a target has them,
// and plain 32-bit arithmetic everywhere else, always with the exact integer result.
// Sibling: simd/product_bytes-inl.hpp, its user; tested through test/simd/product_test.cpp.

#if defined(QUIPU_SIMD_COMPAT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_COMPAT_INL_HPP_
#undef QUIPU_SIMD_COMPAT_INL_HPP_
#else
#define QUIPU_SIMD_COMPAT_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/shape/matrix.hpp"

// Loops over the registers of a tile are unrolled, so that arrays of vectors are registers. Not for
// the scalar target: 16 outputs are 16 variables there, and the compiler does better with the loop.
#undef QUIPU_UNROLL
#if HWY_TARGET == HWY_SCALAR
#define QUIPU_UNROLL
#else
#define QUIPU_UNROLL HWY_UNROLL(16)
#endif

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The vectors of a panel: 16 outputs are kVectors vectors of kLanes.
using FloatTag = hn::CappedTag<float, panel_outputs>;
using IntTag = hn::RebindToSigned<FloatTag>;
using WordTag = hn::RebindToUnsigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using WordVec = hn::Vec<WordTag>;

HWY_INLINE constexpr std::size_t LanesOfPanelVector() { return hn::MaxLanes(FloatTag()); }
static_assert(!HWY_HAVE_SCALABLE,
              "quipu keeps vectors in arrays: add HWY_SVE, HWY_SVE2 and HWY_RVV to "
              "QUIPU_DISABLED_TARGETS (NEON serves Arm)");

// Keeps a sum or a weight in its register at this point of the program: GCC otherwise gathers
// products first and adds them later from memory, adds into another register and copies back, or
// loads weights again for every row.
template <class V>
HWY_INLINE void PinRegister([[maybe_unused]] V& v) {
#if HWY_COMPILER_GCC && HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  asm("" : "+v"(v.raw));
#endif
}

// sum += w * x, rounded once, in the register of the sum: GCC 12 puts some products of an unrolled
// loop where the weight or x was and copies them back.
HWY_INLINE void AddProduct(FloatVec& sum, FloatVec w, FloatVec x) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
#else
  sum = hn::MulAdd(w, x, sum);
#endif
}

// Inputs of a turn of a tile's loop: a core shared with another thread gets half of the fetches
// of instructions, and the loop of one input needs more (AVX2, Zen 3: 0.83 to 0.89 of the rate of
// multiply-adds, 0.89 to 0.92 by fours, 0.90 to 0.92 by eights; alone, 0.98 all).
inline constexpr std::size_t kTileUnroll = 4;

// Asks for a cache line in the second-level cache, beside which the first keeps what is worked on.
HWY_INLINE void PrefetchNear([[maybe_unused]] const void* p) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(p, 0, 2);
#endif
}

// What the bytes of weights are.
enum class Levels { nibbles /* 0..15 */, small /* 0..63 */, bytes /* -128..127 */ };

// Sums over four bytes of each 32-bit lane: Begin(w, x, c) is c plus, Add(w, x) adds, the products
// of the bytes of w and the signed bytes of x (-127..127). Finish(c) gives the sums in int32; it
// takes the same c as Begin. At most 8 vectors of nibbles are added in all.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
// VNNI multiplies unsigned by signed bytes: signed weights come moved up by 128, which is part of
// their offset (kDotOffset). The correction is where the sum starts, so it costs no instruction.
inline constexpr bool kDotsAreUnsigned = true;
template <Levels>
struct ByteDot {
  IntVec sum;

  HWY_INLINE void Begin(WordVec w, WordVec x, IntVec correction) {
    sum = correction;
    Add(w, x);
  }
  HWY_INLINE void Add(WordVec w, WordVec x) {
#if defined(__AVX512VNNI__)
    sum.raw = _mm512_dpbusd_epi32(sum.raw, w.raw, x.raw);
#else
    // Highway 1.0.3 asks the processor for VNNI before it takes this target, but its target string
    // does not name it to the compiler, which then refuses the intrinsic.
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
#endif
  }
  HWY_INLINE IntVec Finish(IntVec) const { return sum; }
};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
// pmaddubsw adds two products of unsigned by signed bytes in 16 bits. Nibbles: 8 vectors give at
// most 16 * 15 * 127 = 30480, which fits, so they are added in 16 bits. Small levels: 2 * 63 * 127
// fits too. Signed bytes: |w| <= 128 as the unsigned factor and x with the sign of w give 2 * 128 *
// 127 = 32512: exact, where w + 128 would saturate.
inline constexpr bool kDotsAreUnsigned = false;
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE WordVec MulBytePairs(WordVec u, WordVec s) {
  return WordVec{_mm512_maddubs_epi16(u.raw, s.raw)};
}
HWY_INLINE WordVec AddPairs(WordVec a, WordVec b) {
  return WordVec{_mm512_add_epi16(a.raw, b.raw)};
}
HWY_INLINE IntVec WidenPairs(WordVec a) {
  return IntVec{_mm512_madd_epi16(a.raw, _mm512_set1_epi16(1))};
}
HWY_INLINE WordVec AbsBytes(WordVec a) { return WordVec{_mm512_abs_epi8(a.raw)}; }
HWY_INLINE WordVec SignBytes(WordVec x, WordVec w) {
  return WordVec{
      _mm512_mask_sub_epi8(x.raw, _mm512_movepi8_mask(w.raw), _mm512_setzero_si512(), x.raw)};
}
#elif HWY_TARGET <= HWY_AVX2
HWY_INLINE WordVec MulBytePairs(WordVec u, WordVec s) {
  return WordVec{_mm256_maddubs_epi16(u.raw, s.raw)};
}
HWY_INLINE WordVec AddPairs(WordVec a, WordVec b) {
  return WordVec{_mm256_add_epi16(a.raw, b.raw)};
}
HWY_INLINE IntVec WidenPairs(WordVec a) {
  return IntVec{_mm256_madd_epi16(a.raw, _mm256_set1_epi16(1))};
}
HWY_INLINE WordVec AbsBytes(WordVec a) { return WordVec{_mm256_abs_epi8(a.raw)}; }
HWY_INLINE WordVec SignBytes(WordVec x, WordVec w) {
  return WordVec{_mm256_sign_epi8(x.raw, w.raw)};
}
#else
HWY_INLINE WordVec MulBytePairs(WordVec u, WordVec s) {
  return WordVec{_mm_maddubs_epi16(u.raw, s.raw)};
}
HWY_INLINE WordVec AddPairs(WordVec a, WordVec b) { return WordVec{_mm_add_epi16(a.raw, b.raw)}; }
HWY_INLINE IntVec WidenPairs(WordVec a) { return IntVec{_mm_madd_epi16(a.raw, _mm_set1_epi16(1))}; }
HWY_INLINE WordVec AbsBytes(WordVec a) { return WordVec{_mm_abs_epi8(a.raw)}; }
HWY_INLINE WordVec SignBytes(WordVec x, WordVec w) { return WordVec{_mm_sign_epi8(x.raw, w.raw)}; }
#endif

template <Levels kLevels>
struct ByteDot {
  IntVec sum;

  HWY_INLINE void Begin(WordVec w, WordVec x, IntVec) { sum = Products(w, x); }
  HWY_INLINE void Add(WordVec w, WordVec x) { sum = hn::Add(sum, Products(w, x)); }
  HWY_INLINE IntVec Finish(IntVec correction) const { return hn::Add(sum, correction); }

 private:
  static HWY_INLINE IntVec Products(WordVec w, WordVec x) {
    if constexpr (kLevels == Levels::small) return WidenPairs(MulBytePairs(w, x));
    return WidenPairs(MulBytePairs(AbsBytes(w), SignBytes(x, w)));
  }
};

template <>
struct ByteDot<Levels::nibbles> {
  WordVec sum;

  HWY_INLINE void Begin(WordVec w, WordVec x, IntVec) { sum = MulBytePairs(w, x); }
  HWY_INLINE void Add(WordVec w, WordVec x) { sum = AddPairs(sum, MulBytePairs(w, x)); }
  HWY_INLINE IntVec Finish(IntVec correction) const { return hn::Add(WidenPairs(sum), correction); }
};
#else
inline constexpr bool kDotsAreUnsigned = false;
template <int kByte>
HWY_INLINE IntVec SignedByte(WordVec quads) {
  return hn::ShiftRight<24>(hn::BitCast(IntTag(), hn::ShiftLeft<24 - 8 * kByte>(quads)));
}
template <Levels>
struct ByteDot {
  IntVec sum;

  HWY_INLINE void Begin(WordVec w, WordVec x, IntVec correction) {
    sum = correction;
    Add(w, x);
  }
  HWY_INLINE void Add(WordVec w, WordVec x) {
    const IntVec a = hn::Add(hn::Mul(SignedByte<0>(w), SignedByte<0>(x)),
                             hn::Mul(SignedByte<1>(w), SignedByte<1>(x)));
    const IntVec b = hn::Add(hn::Mul(SignedByte<2>(w), SignedByte<2>(x)),
                             hn::Mul(SignedByte<3>(w), SignedByte<3>(x)));
    sum = hn::Add(sum, hn::Add(a, b));
  }
  HWY_INLINE IntVec Finish(IntVec) const { return sum; }
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
