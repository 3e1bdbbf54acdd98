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
// The vectors that they are in.
inline constexpr std::size_t kLaneVectors = kVirtualLanes / kTagLanes;

// The lanes of one vector, and of sixteen virtual lanes in vectors, by the fixed tree; destroys
// them. In registers: through memory, halves of what was stored are loaded, which waits.
template <class D>
HWY_INLINE float AddLanes([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return AddLanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}
HWY_INLINE float AddLanes(hn::Vec<LaneTag> (&sums)[kLaneVectors]) {
  QUIPU_UNROLL
  for (std::size_t half = kLaneVectors / 2; half != 0; half /= 2) {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < half; ++i) sums[i] = hn::Add(sums[i], sums[i + half]);
  }
  return AddLanes(LaneTag(), sums[0]);
}

// Calls step(d, x + i, lane vector) for i by 16 and returns the sum of the lanes. The last,
// incomplete sixteen is read from a copy filled up with `fill`, for which the step must not change
// a lane.
template <class Step>
HWY_INLINE float ReduceSixteen(const float* x, std::size_t n, float fill, const Step& step) {
  const LaneTag d;
  hn::Vec<LaneTag> sums[kLaneVectors];
  QUIPU_UNROLL
  for (std::size_t k = 0; k < kLaneVectors; ++k) sums[k] = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kLaneVectors; ++k)
      sums[k] = step(d, hn::LoadU(d, x + i + k * kTagLanes), sums[k]);
  }
  if (i < n) {
    HWY_ALIGN float tail[kVirtualLanes];
    for (std::size_t k = 0; k < kVirtualLanes; ++k) tail[k] = i + k < n ? x[i + k] : fill;
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kLaneVectors; ++k)
      sums[k] = step(d, hn::Load(d, tail + k * kTagLanes), sums[k]);
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
