// The gate of the feed-forward: silu(w1 x) * w3 x.
//
// Siblings: model/silu_gate.hpp, test/simd/silu_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_SILU_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_SILU_INL_HPP_
#undef QUIPU_SIMD_SILU_INL_HPP_
#else
#define QUIPU_SIMD_SILU_INL_HPP_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/simd/reduce-inl.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x / (1 + exp(-x)). The exponential is taken of -|x|, which cannot overflow: with e = exp(-|x|)
// the denominator is 1 + e on both sides and the numerator gets the factor e for negative x.
template <class D>
HWY_INLINE hn::Vec<D> Silu(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto e = Exp(d, hn::Neg(hn::Abs(x)));
  const auto numerator = hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one));
  return hn::Div(numerator, hn::Add(one, e));
}

template <NumericMode kMode, class D>
HWY_INLINE hn::Vec<D> SiluGateVector(D d, hn::Vec<D> gate, hn::Vec<D> up) {
  if constexpr (kMode == NumericMode::bf16) {
    return RoundBf16(d, hn::Mul(RoundBf16(d, Silu(d, gate)), up));
  } else {
    return hn::Mul(Silu(d, gate), up);
  }
}

template <NumericMode kMode>
HWY_INLINE void SiluGateRow(const float* gate, const float* up, std::size_t n, float* y) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    hn::StoreU(SiluGateVector<kMode>(d, hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, y + i);
  }
  if (i < n) {
    HWY_ALIGN float g[kVirtualLanes] = {};
    HWY_ALIGN float u[kVirtualLanes] = {};
    for (std::size_t k = 0; i + k < n; ++k) {
      g[k] = gate[i + k];
      u[k] = up[i + k];
    }
    hn::StoreU(SiluGateVector<kMode>(d, hn::LoadU(d, g), hn::LoadU(d, u)), d, g);
    for (std::size_t k = 0; i + k < n; ++k) y[i + k] = g[k];
  }
}

// y = silu(gate) * up for n values; y may be either input. The bf16 mode rounds silu and product.
inline void ApplySiluGate(const float* gate, const float* up, std::size_t n, float* y,
                          NumericMode mode) {
  if (mode == NumericMode::bf16) {
    SiluGateRow<NumericMode::bf16>(gate, up, n, y);
  } else {
    SiluGateRow<NumericMode::f32>(gate, up, n, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
