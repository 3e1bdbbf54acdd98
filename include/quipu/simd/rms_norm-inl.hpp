// Root-mean-square normalisation of rows.
//
// Siblings: model/rms_norm.hpp, test/simd/rms_norm_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_RMS_NORM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_RMS_NORM_INL_HPP_
#undef QUIPU_SIMD_RMS_NORM_INL_HPP_
#else
#define QUIPU_SIMD_RMS_NORM_INL_HPP_
#endif

#include <cmath>
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

// The reciprocal root of a row's mean square.
HWY_INLINE float ScaleOf(float squares, std::size_t n, float eps) {
  return 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
}

// Normalises kRows dense rows of n, whose sums of squares are given, and, if kSum, gives those of
// the kRows rows that follow, in the canonical order: a sum is a chain of additions (Zen 3: four
// cycles a turn) beside which there is time for the rest, and the next rows come from memory while
// these are written.
template <NumericMode kMode, std::size_t kRows, bool kSum>
HWY_INLINE void NormaliseRowsTogether(const float* x, const float* weight, float eps, std::size_t n,
                                      float (&squares)[kRows], float* y) {
  const LaneTag d;
  float scale[kRows];
  hn::Vec<LaneTag> sums[kRows][kLaneVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    scale[r] = ScaleOf(squares[r], n, eps);
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kLaneVectors; ++k) sums[r][k] = hn::Zero(d);
  }
  const float* next = x + kRows * n;
  std::size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kLaneVectors; ++k) {
      const std::size_t at = i + k * kTagLanes;
      hn::Vec<LaneTag> v[kRows];
      QUIPU_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        if (kSum) sums[r][k] = AddSquare()(d, hn::LoadU(d, next + r * n + at), sums[r][k]);
        v[r] = hn::Mul(hn::LoadU(d, x + r * n + at), hn::Set(d, scale[r]));
      }
      if (kMode == NumericMode::bf16) RoundAllBf16(d, v);
      const auto w = hn::LoadU(d, weight + at);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) v[r] = hn::Mul(v[r], w);
      if (kMode == NumericMode::bf16) RoundAllBf16(d, v);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) hn::StoreU(v[r], d, y + r * n + at);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    if (kSum && i < n) {
      HWY_ALIGN float tail[kVirtualLanes] = {};
      for (std::size_t k = i; k < n; ++k) tail[k - i] = next[r * n + k];
      QUIPU_UNROLL
      for (std::size_t k = 0; k < kLaneVectors; ++k)
        sums[r][k] = AddSquare()(d, hn::Load(d, tail + k * kTagLanes), sums[r][k]);
    }
    for (std::size_t k = i; k < n; ++k) {
      const float normal = x[r * n + k] * scale[r];
      if (kMode == NumericMode::bf16) {
        y[r * n + k] = to_float(to_bf16(to_float(to_bf16(normal)) * weight[k]));
      } else {
        y[r * n + k] = normal * weight[k];
      }
    }
    if (kSum) squares[r] = AddLanes(sums[r]);
  }
}

template <NumericMode kMode>
HWY_INLINE void NormaliseDenseRows(const float* x, const float* weight, float eps, std::size_t n,
                                   std::size_t rows, float* y) {
  if (rows >= 2) {
    float squares[] = {SumOfSquares(x, n), SumOfSquares(x + n, n)};
    for (; rows >= 4; rows -= 2, x += 2 * n, y += 2 * n)
      NormaliseRowsTogether<kMode, 2, true>(x, weight, eps, n, squares, y);
    NormaliseRowsTogether<kMode, 2, false>(x, weight, eps, n, squares, y);
    rows -= 2, x += 2 * n, y += 2 * n;
  }
  if (rows == 1) {
    float squares[] = {SumOfSquares(x, n)};
    NormaliseRowsTogether<kMode, 1, false>(x, weight, eps, n, squares, y);
  }
}

// y = x / sqrt(mean(x^2) + eps) * weight for `rows` dense rows of n; y may be x. The squares are
// summed in float32 in either mode; the bf16 mode rounds before and after the weight.
inline void ApplyRmsNorm(const float* x, const float* weight, float eps, std::size_t n,
                         std::size_t rows, float* y, NumericMode mode) {
  if (mode == NumericMode::bf16) {
    NormaliseDenseRows<NumericMode::bf16>(x, weight, eps, n, rows, y);
  } else {
    NormaliseDenseRows<NumericMode::f32>(x, weight, eps, n, rows, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
