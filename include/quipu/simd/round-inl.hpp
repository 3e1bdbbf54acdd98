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

// The bits of the nearest bf16 (ties to even) in the upper half of each lane; the lower half is
// zero. A NaN stays a quiet NaN; what rounds past the largest finite value becomes infinity.
template <class D>
HWY_INLINE hn::Vec<D> RoundBf16(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  // Tested on the bits: a comparison of floats would be optimised away under -ffast-math.
  const auto nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7fffffffu)), hn::Set(du, 0x7f800000u));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000u));
  const auto result = hn::And(hn::IfThenElse(nan, quiet, rounded), hn::Set(du, 0xffff0000u));
  return hn::BitCast(d, result);
}

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
  for (; n - i >= lanes; i += lanes) hn::StoreU(RoundBf16(d, hn::LoadU(d, x + i)), d, x + i);
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
  for (; n - i >= lanes; i += lanes) {
    const auto high = hn::ShiftRight<16>(
        hn::BitCast(hn::RebindToUnsigned<LaneTag>(), RoundBf16(d, hn::LoadU(d, x + i))));
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, high)), dh,
               reinterpret_cast<std::uint16_t*>(y + i));
  }
  for (; i < n; ++i) y[i] = to_bf16(x[i]);
}

// n bf16 to float32, exact.
inline void ConvertToFloat(const bf16* x, std::size_t n, float* y) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    hn::StoreU(LoadFloats(d, reinterpret_cast<const std::uint16_t*>(x + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = to_float(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
