// Sums in the canonical order, and the largest value.
//
// Siblings: rms_norm-inl.hpp and softmax-inl.hpp use it; test/simd/reduce_test.cpp.
// A sum has 16 virtual lanes whatever the vector's width: element i is added to lane i mod 16, in
// order, and the lanes are added by a fixed tree (8 + 8, 4 + 4, 2 + 2, 1 + 1). So the result has
// the same bits on every target with fused multiply-add.
#if defined(QUIPU_SIMD_REDUCE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_REDUCE_INL_HPP_
#undef QUIPU_SIMD_REDUCE_INL_HPP_
#else
#define QUIPU_SIMD_REDUCE_INL_HPP_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "quipu/simd/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kVirtualLanes = 16;

// Sixteen lanes by the fixed tree; destroys them.
HWY_INLINE float AddLanes(float* lanes) {
  for (std::size_t half = kVirtualLanes / 2; half != 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// Calls step(d, x + i, lane vector) for i by 16 and returns the sum of the lanes. The vectors of
// one lane group are few (1 with 16 lanes, 2 with 8), so each group runs over the data on its own:
// two chains at a time, and no arrays of vectors. The last, incomplete sixteen is read from a copy
// filled up with `fill`, for which the step must not change a lane.
template <class Step>
HWY_INLINE float ReduceSixteen(const float* x, std::size_t n, float fill, const Step& step) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = n / kVirtualLanes * kVirtualLanes;
  HWY_ALIGN float tail[kVirtualLanes];
  for (std::size_t i = 0; i < kVirtualLanes; ++i) tail[i] = whole + i < n ? x[whole + i] : fill;
  HWY_ALIGN float sums[kVirtualLanes];
  for (std::size_t lane = 0; lane < kVirtualLanes; lane += 2 * lanes) {
    // With 16 lanes there is no second vector; its chain repeats the first one's and is not stored.
    const std::size_t second = lane + lanes < kVirtualLanes ? lane + lanes : lane;
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    for (std::size_t i = 0; i < whole; i += kVirtualLanes) {
      a = step(d, hn::LoadU(d, x + i + lane), a);
      b = step(d, hn::LoadU(d, x + i + second), b);
    }
    if (whole != n) {
      a = step(d, hn::LoadU(d, tail + lane), a);
      b = step(d, hn::LoadU(d, tail + second), b);
    }
    hn::StoreU(a, d, sums + lane);
    hn::StoreU(b, d, sums + second);
  }
  return AddLanes(sums);
}

struct AddSquare {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V sum) const {
    return hn::MulAdd(x, x, sum);
  }
};
struct AddValue {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V sum) const {
    return hn::Add(x, sum);
  }
};

// The sum of x[i]^2.
inline float SumOfSquares(const float* x, std::size_t n) {
  return ReduceSixteen(x, n, 0.0f, AddSquare());
}

// The sum of x[i].
inline float Sum(const float* x, std::size_t n) { return ReduceSixteen(x, n, 0.0f, AddValue()); }

// The largest of n > 0 values; with a NaN among them, some value or NaN.
inline float Largest(const float* x, std::size_t n) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  float result = x[0];
  std::size_t i = 0;
  if (n >= lanes) {
    auto largest = hn::LoadU(d, x);
    for (i = lanes; n - i >= lanes; i += lanes) largest = hn::Max(largest, hn::LoadU(d, x + i));
    HWY_ALIGN float values[kVirtualLanes];
    hn::StoreU(largest, d, values);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (values[lane] > result) result = values[lane];
    }
  }
  for (; i < n; ++i) {
    if (x[i] > result) result = x[i];
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
