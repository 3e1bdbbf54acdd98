// The index of the largest value: greedy sampling.
//
// Siblings: test/simd/argmax_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_ARGMAX_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ARGMAX_INL_HPP_
#undef QUIPU_SIMD_ARGMAX_INL_HPP_
#else
#define QUIPU_SIMD_ARGMAX_INL_HPP_
#endif

#include <cstddef>
#include <limits>

#include "hwy/highway.h"
#include "quipu/simd/reduce-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first index of the largest of n > 0 values. A NaN is never the largest: an index of one is
// returned only if all are NaN, and then it is 0.
inline std::size_t ArgMax(const float* x, std::size_t n) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  // Starting from the least finite value keeps infinities out; a NaN fails every comparison.
  const float least = -(std::numeric_limits<float>::max)();
  auto best = hn::Set(d, least);
  std::size_t i = 0;
  for (; n - i >= lanes; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    best = hn::IfThenElse(hn::Gt(v, best), v, best);
  }
  HWY_ALIGN float values[kVirtualLanes];
  hn::StoreU(best, d, values);
  float largest = least;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (values[lane] > largest) largest = values[lane];
  }
  for (; i < n; ++i) {
    if (x[i] > largest) largest = x[i];
  }

  const auto wanted = hn::Set(d, largest);
  i = 0;
  while (i + lanes <= n && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), wanted))) i += lanes;
  for (; i < n; ++i) {
    if (x[i] == largest) return i;
  }
  // Only values below the least finite one, or NaN: the first that is not NaN.
  for (i = 0; i < n; ++i) {
    if (x[i] <= least) return i;
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
