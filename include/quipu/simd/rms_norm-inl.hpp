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

// y = x / sqrt(mean(x^2) + eps) * weight for `rows` dense rows of n; y may be x. The squares are
// summed in float32 in either mode; the bf16 mode rounds before and after the weight.
inline void ApplyRmsNorm(const float* x, const float* weight, float eps, std::size_t n,
                         std::size_t rows, float* y, NumericMode mode) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = n - n % lanes;
  for (std::size_t row = 0; row < rows; ++row, x += n, y += n) {
    const float mean = SumOfSquares(x, n) / static_cast<float>(n);
    const float scale = 1.0f / std::sqrt(mean + eps);
    const auto s = hn::Set(d, scale);
    std::size_t i = 0;
    if (mode == NumericMode::bf16) {
      for (; i < whole; i += lanes) {
        const auto normal = RoundBf16(d, hn::Mul(hn::LoadU(d, x + i), s));
        hn::StoreU(RoundBf16(d, hn::Mul(normal, hn::LoadU(d, weight + i))), d, y + i);
      }
      for (; i < n; ++i) {
        const float normal = to_float(to_bf16(x[i] * scale));
        y[i] = to_float(to_bf16(normal * weight[i]));
      }
    } else {
      for (; i < whole; i += lanes) {
        const auto normal = hn::Mul(hn::LoadU(d, x + i), s);
        hn::StoreU(hn::Mul(normal, hn::LoadU(d, weight + i)), d, y + i);
      }
      for (; i < n; ++i) y[i] = x[i] * scale * weight[i];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
