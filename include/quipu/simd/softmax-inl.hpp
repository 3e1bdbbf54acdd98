// The pieces of a row's softmax, which attention shares out: exponentials of a block, quotients.
//
// Siblings: attention-inl.hpp, test/simd/softmax_test.cpp, bench/attention_bench.cpp.
// The order of the denominator's sum is canonical: each block of 512 positions is summed by sixteen
// lanes (reduce-inl.hpp), block sums are added in order. A row has exactly the visible positions:
// there is no mask and no infinity.
#if defined(QUIPU_SIMD_SOFTMAX_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_SOFTMAX_INL_HPP_
#undef QUIPU_SIMD_SOFTMAX_INL_HPP_
#else
#define QUIPU_SIMD_SOFTMAX_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/simd/reduce-inl.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x = exp(x - largest), in place; returns the canonical sum of the block (n <= 512), which is added
// up on the way, in units that the exponentials leave idle.
inline float ExpBlock(float* x, std::size_t n, float largest) {
  const LaneTag d;
  constexpr std::size_t kAtOnce = (std::max)(kExpVectors, kLaneVectors);  // whole sixteens
  constexpr std::size_t kStep = kAtOnce * kTagLanes;
  const auto m = hn::Set(d, largest);
  hn::Vec<LaneTag> sums[kLaneVectors];
  QUIPU_UNROLL
  for (std::size_t k = 0; k < kLaneVectors; ++k) sums[k] = hn::Zero(d);
  std::size_t i = 0;
  for (; n - i >= kStep; i += kStep) {
    hn::Vec<LaneTag> e[kAtOnce];
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kAtOnce; ++k)
      e[k] = hn::Sub(hn::LoadU(d, x + i + k * kTagLanes), m);
    ExpAll(d, e);
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kAtOnce; ++k) {
      hn::StoreU(e[k], d, x + i + k * kTagLanes);
      sums[k % kLaneVectors] = AddValue()(d, e[k], sums[k % kLaneVectors]);
    }
  }
  if (i < n) {
    HWY_ALIGN float tail[kStep];
    for (std::size_t k = 0; k < kStep; ++k) tail[k] = i + k < n ? x[i + k] : largest;
    for (std::size_t k = 0; i + k < n; k += kTagLanes)
      hn::Store(Exp(d, hn::Sub(hn::Load(d, tail + k), m)), d, tail + k);
    for (std::size_t k = 0; k < kStep; ++k) {
      if (i + k < n) {
        x[i + k] = tail[k];
      } else {
        tail[k] = 0.0f;
      }
    }
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kAtOnce; ++k)
      sums[k % kLaneVectors] =
          AddValue()(d, hn::Load(d, tail + k * kTagLanes), sums[k % kLaneVectors]);
  }
  return AddLanes(sums);
}

// x = x / divisor, in place; the bf16 mode rounds the quotients.
inline void DivideRow(float* x, std::size_t n, float divisor, NumericMode mode) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const auto v = hn::Set(d, divisor);
  const bool round = mode == NumericMode::bf16;
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    const auto quotient = hn::Div(hn::LoadU(d, x + i), v);
    hn::StoreU(round ? RoundBf16(d, quotient) : quotient, d, x + i);
  }
  for (; i < n; ++i) {
    const float quotient = x[i] / divisor;
    x[i] = round ? to_float(to_bf16(quotient)) : quotient;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
