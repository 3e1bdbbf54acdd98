// The residual addition.
//
// Siblings: model/residual_add.hpp, test/simd/residual_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_RESIDUAL_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_RESIDUAL_INL_HPP_
#undef QUIPU_SIMD_RESIDUAL_INL_HPP_
#else
#define QUIPU_SIMD_RESIDUAL_INL_HPP_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// stream += update for n values; the bf16 mode rounds the sum. Rounding the update itself is the
// business of the product that made it.
inline void AddResidual(float* stream, const float* update, std::size_t n, NumericMode mode) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const bool round = mode == NumericMode::bf16;
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    const auto sum = hn::Add(hn::LoadU(d, stream + i), hn::LoadU(d, update + i));
    hn::StoreU(round ? RoundBf16(d, sum) : sum, d, stream + i);
  }
  for (; i < n; ++i) {
    const float sum = stream[i] + update[i];
    stream[i] = round ? to_float(to_bf16(sum)) : sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
