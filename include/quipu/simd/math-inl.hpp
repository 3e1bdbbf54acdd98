// The vector tag of all kernels here, and the exponential.
//
// Siblings: reduce-inl.hpp, softmax-inl.hpp and silu-inl.hpp use it; test/simd/math_test.cpp.
#if defined(QUIPU_SIMD_MATH_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_MATH_INL_HPP_
#undef QUIPU_SIMD_MATH_INL_HPP_
#else
#define QUIPU_SIMD_MATH_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/simd/compat-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 float32 lanes, a power of two, so that 16 virtual lanes are whole vectors.
using LaneTag = hn::CappedTag<float, 16>;
inline constexpr std::size_t kTagLanes = hn::MaxLanes(LaneTag());

// The nearest int, ties to even, of |x| < 2^31. hn::NearestInt also mends what is larger, which
// takes four instructions more of the twenty of an exponential.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NearestSmallInt(D, hn::Vec<D> x) {
  return {_mm512_cvtps_epi32(x.raw)};
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NearestSmallInt(D, hn::Vec<D> x) {
  return {_mm256_cvtps_epi32(x.raw)};
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NearestSmallInt(D, hn::Vec<D> x) {
  return {_mm_cvtps_epi32(x.raw)};
}
#else
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NearestSmallInt(D, hn::Vec<D> x) {
  return hn::NearestInt(x);
}
#endif

// x = exp(x) of several vectors, for x <= 88; 0 below -87.336, where the result would be subnormal;
// NaN for NaN.
//
// With n = round(x / ln 2) and r = x - n ln 2, |r| <= 0.3466 and exp(x) = 2^n exp(r). ln 2 is
// split: the first part has 10 bits, so that its product with n is exact with or without fused
// multiply-add. The Taylor polynomial of degree 7 leaves r^8 / 8! < 5.2e-9, less than a tenth of a
// unit in the last place (2^-24 = 6e-8); the last step of Horner's rule rounds by half a unit, the
// error of r and the steps before it by less than one more: within 2 units of the true value.
//
// Step by step for all vectors: one exponential is a chain of some 55 cycles, of which the
// processor's schedulers hold two or three at once.
template <class D, std::size_t kCount>
HWY_INLINE void ExpAll(D d, hn::Vec<D> (&x)[kCount]) {
  using V = hn::Vec<D>;
  const hn::RebindToUnsigned<D> du;
  hn::Vec<hn::RebindToSigned<D>> n[kCount];
  V r[kCount], p[kCount];
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i)
    n[i] = NearestSmallInt(d, hn::Mul(x[i], hn::Set(d, 1.44269504f)));
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) {
    const V nf = hn::ConvertTo(d, n[i]);
    r[i] = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), x[i]);
    r[i] = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r[i]);
    p[i] = hn::Set(d, 1.0f / 5040);
  }
  constexpr float coefficients[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  QUIPU_UNROLL
  for (const float coefficient : coefficients) {
    const V c = hn::Set(d, coefficient);
    QUIPU_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], r[i], c);
  }
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto exponent = hn::Add(hn::BitCast(du, n[i]), hn::Set(du, 127u));
    const V power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
    x[i] = hn::IfThenZeroElse(hn::Lt(x[i], hn::Set(d, -87.336f)), hn::Mul(p[i], power));
  }
}

template <class D>
HWY_INLINE hn::Vec<D> Exp(D d, hn::Vec<D> x) {
  hn::Vec<D> one[1] = {x};
  ExpAll(d, one);
  return one[0];
}

// Vectors whose exponentials are taken together.
inline constexpr std::size_t kExpVectors = 4;

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
