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

// y = silu(gate) * up of kCount vectors, with silu(x) = x / (1 + exp(-x)). The exponential is taken
// of -|x|, which cannot overflow: with e = exp(-|x|) the denominator is 1 + e on both sides and the
// numerator gets the factor e for negative x.
template <NumericMode kMode, std::size_t kCount>
HWY_INLINE void SiluGateVectors(const float* gate, const float* up, float* y) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1.0f);
  hn::Vec<LaneTag> e[kCount];
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i)
    e[i] = hn::Or(hn::LoadU(d, gate + i * lanes), hn::SignBit(d));
  ExpAll(d, e);
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto x = hn::LoadU(d, gate + i * lanes);
    const auto numerator = hn::Mul(x, hn::IfNegativeThenElse(x, e[i], one));
    e[i] = hn::Div(numerator, hn::Add(one, e[i]));
  }
  if (kMode == NumericMode::bf16) RoundAllBf16(d, e);
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) e[i] = hn::Mul(e[i], hn::LoadU(d, up + i * lanes));
  if (kMode == NumericMode::bf16) RoundAllBf16(d, e);
  QUIPU_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) hn::StoreU(e[i], d, y + i * lanes);
}

template <NumericMode kMode>
HWY_INLINE void SiluGateRow(const float* gate, const float* up, std::size_t n, float* y) {
  const std::size_t lanes = hn::Lanes(LaneTag());
  std::size_t i = 0;
  for (; n - i >= kExpVectors * lanes; i += kExpVectors * lanes)
    SiluGateVectors<kMode, kExpVectors>(gate + i, up + i, y + i);
  for (; n - i >= lanes; i += lanes) SiluGateVectors<kMode, 1>(gate + i, up + i, y + i);
  if (i < n) {
    HWY_ALIGN float g[kVirtualLanes] = {};
    HWY_ALIGN float u[kVirtualLanes] = {};
    for (std::size_t k = 0; i + k < n; ++k) {
      g[k] = gate[i + k];
      u[k] = up[i + k];
    }
    SiluGateVectors<kMode, 1>(g, u, g);
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
