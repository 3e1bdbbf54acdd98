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

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 float32 lanes, a power of two, so that 16 virtual lanes are whole vectors.
using LaneTag = hn::CappedTag<float, 16>;

// exp(x) for x <= 88; 0 below -87.336, where the result would be subnormal; NaN for NaN.
//
// With n = round(x / ln 2) and r = x - n ln 2, |r| <= 0.3466 and exp(x) = 2^n exp(r). ln 2 is
// split: the first part has 10 bits, so that its product with n is exact with or without fused
// multiply-add. The Taylor polynomial of degree 7 leaves r^8 / 8! < 5.2e-9, less than a tenth of a
// unit in the last place (2^-24 = 6e-8); the last step of Horner's rule rounds by half a unit, the
// error of r and the steps before it by less than one more: within 2 units of the true value.
template <class D>
HWY_INLINE hn::Vec<D> Exp(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const auto nf = hn::ConvertTo(d, n);
  auto r = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::Add(hn::BitCast(du, n), hn::Set(du, 127u));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.336f)), hn::Mul(p, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
