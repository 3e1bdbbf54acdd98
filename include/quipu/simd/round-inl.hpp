// Rounding to bf16, as values and as arrays.
//
// Siblings: dequantize.hpp (the scalar to_bf16 and to_float), test/simd/round_test.cpp,
// bench/elementwise_bench.cpp. All kernels take their rounding points of the bf16 mode from here.
#if defined(QUIPU_SIMD_ROUND_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ROUND_INL_HPP_
#undef QUIPU_SIMD_ROUND_INL_HPP_
#else
#define QUIPU_SIMD_ROUND_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "quipu/shape/element_type.hpp"
#include "quipu/simd/dequantize.hpp"
#include "quipu/simd/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The bits of the nearest bf16 (ties to even) in the upper half of each lane, anything in the
// lower; not of a NaN.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> NumberInUpperHalf(D, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  return hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
}

// The lanes that are NaN. Tested on the bits: a comparison of floats would be optimised away under
// -ffast-math. As signed numbers, which every target can compare.
template <class D>
HWY_INLINE hn::Mask<hn::RebindToSigned<D>> NanLanes(D, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto magnitude = hn::And(hn::BitCast(di, x), hn::Set(di, 0x7fffffff));
  return hn::Gt(magnitude, hn::Set(di, 0x7f800000));
}

// The same of any value: a NaN stays a quiet NaN; what rounds past the largest finite value becomes
// infinity.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> Bf16InUpperHalf(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto quiet = hn::Or(hn::BitCast(du, x), hn::Set(du, 0x00400000u));
  return hn::IfThenElse(hn::RebindMask(du, NanLanes(d, x)), quiet, NumberInUpperHalf(d, x));
}

// The same of several vectors, which saves four instructions of nine each: a NaN among them is
// looked for in their sum, which it makes a NaN (as infinities of both signs do, needlessly).
template <class D, std::size_t kCount>
HWY_INLINE void AllBf16InUpperHalf(D d, const hn::Vec<D> (&x)[kCount],
                                   hn::Vec<hn::RebindToUnsigned<D>> (&y)[kCount]) {
  auto sum = x[0];
  QUIPU_UNROLL
  for (std::size_t i = 1; i < kCount; ++i) sum = hn::Add(sum, x[i]);
  const bool numbers = hn::AllFalse(hn::RebindToSigned<D>(), NanLanes(d, sum));
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) y[i] = NumberInUpperHalf(d, x[i]);
  if (HWY_UNLIKELY(!numbers)) {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) y[i] = Bf16InUpperHalf(d, x[i]);
  }
}

// The nearest bf16 as float32.
template <class D>
HWY_INLINE hn::Vec<D> RoundBf16(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::And(Bf16InUpperHalf(d, x), hn::Set(du, 0xffff0000u)));
}
template <class D, std::size_t kCount>
HWY_INLINE void RoundAllBf16(D d, hn::Vec<D> (&x)[kCount]) {
  const hn::RebindToUnsigned<D> du;
  hn::Vec<hn::RebindToUnsigned<D>> y[kCount];
  AllBf16InUpperHalf(d, x, y);
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i)
    x[i] = hn::BitCast(d, hn::And(y[i], hn::Set(du, 0xffff0000u)));
}

// Vectors that are rounded or converted together.
inline constexpr std::size_t kRoundVectors = 4;

// Float32 lanes from float32 or from the bits of bf16 in memory, unaligned.
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const std::uint16_t* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> dh;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, p))));
}

// Rounds n values in place.
inline void RoundToBf16(float* x, std::size_t n) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; n - i >= kRoundVectors * lanes; i += kRoundVectors * lanes) {
    hn::Vec<LaneTag> v[kRoundVectors];
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kRoundVectors; ++k) v[k] = hn::LoadU(d, x + i + k * lanes);
    RoundAllBf16(d, v);
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kRoundVectors; ++k) hn::StoreU(v[k], d, x + i + k * lanes);
  }
  for (; i < n; ++i) x[i] = to_float(to_bf16(x[i]));
}

// n float32 to bf16, nearest even.
inline void ConvertToBf16(const float* x, std::size_t n, bf16* y) {
  static_assert(sizeof(bf16) == sizeof(std::uint16_t));
  const LaneTag d;
  const hn::RebindToSigned<LaneTag> di;
  const hn::Rebind<std::uint16_t, LaneTag> dh;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; n - i >= kRoundVectors * lanes; i += kRoundVectors * lanes) {
    hn::Vec<LaneTag> v[kRoundVectors];
    hn::Vec<hn::RebindToUnsigned<LaneTag>> bits[kRoundVectors];
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kRoundVectors; ++k) v[k] = hn::LoadU(d, x + i + k * lanes);
    AllBf16InUpperHalf(d, v, bits);
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kRoundVectors; ++k) {
      const auto half = hn::DemoteTo(dh, hn::BitCast(di, hn::ShiftRight<16>(bits[k])));
      hn::StoreU(half, dh, reinterpret_cast<std::uint16_t*>(y + i + k * lanes));
    }
  }
  for (; i < n; ++i) y[i] = to_bf16(x[i]);
}

// n bf16 to float32, exact.
inline void ConvertToFloat(const bf16* x, std::size_t n, float* y) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* bits = reinterpret_cast<const std::uint16_t*>(x);
  std::size_t i = 0;
  for (; n - i >= kRoundVectors * lanes; i += kRoundVectors * lanes) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kRoundVectors; ++k)
      hn::StoreU(LoadFloats(d, bits + i + k * lanes), d, y + i + k * lanes);
  }
  for (; i < n; ++i) y[i] = to_float(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
