// The two inner loops of attention: scores of a few rows against some positions, and their weighted
// sums of values. Templates on rows, vectors and element type, never on a model.
//
// Siblings: attention-inl.hpp calls them; attention.hpp has the canonical order; tested through
// test/simd/attention_test.cpp.
#if defined(QUIPU_SIMD_ATTENTION_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ATTENTION_TILE_INL_HPP_
#undef QUIPU_SIMD_ATTENTION_TILE_INL_HPP_
#else
#define QUIPU_SIMD_ATTENTION_TILE_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/runtime/kv_cache.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows and vectors of the register tile: eight accumulators hide the latency of the multiply-add,
// and with them two vectors of keys or values and one broadcast fit the 16 registers of AVX2.
inline constexpr std::size_t kTileRows = 4;

// Scores of kRows queries against kVectors vectors of positions. Vector v's first feature stands at
// k0 (k1), its next features 16 elements on. One accumulator per row and position.
template <std::size_t kRows, std::size_t kVectors, class Element>
HWY_INLINE void ScoreTile(const float* const* q, std::size_t head_dim, const Element* k0,
                          const Element* k1, float* const* out, std::size_t offset0,
                          std::size_t offset1) {
  const LaneTag d;
  const float* q0 = q[0];
  const float* q1 = q[kRows > 1 ? 1 : 0];
  const float* q2 = q[kRows > 2 ? 2 : 0];
  const float* q3 = q[kRows > 3 ? 3 : 0];
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  auto b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  for (std::size_t i = 0; i < head_dim; ++i) {
    const auto a = LoadFloats(d, k0 + i * kv_block);
    const auto b = kVectors > 1 ? LoadFloats(d, k1 + i * kv_block) : a;
    const auto x0 = hn::Set(d, q0[i]);
    a0 = hn::MulAdd(x0, a, a0);
    if constexpr (kVectors > 1) b0 = hn::MulAdd(x0, b, b0);
    if constexpr (kRows > 1) {
      const auto x1 = hn::Set(d, q1[i]);
      a1 = hn::MulAdd(x1, a, a1);
      if constexpr (kVectors > 1) b1 = hn::MulAdd(x1, b, b1);
    }
    if constexpr (kRows > 2) {
      const auto x2 = hn::Set(d, q2[i]);
      a2 = hn::MulAdd(x2, a, a2);
      if constexpr (kVectors > 1) b2 = hn::MulAdd(x2, b, b2);
    }
    if constexpr (kRows > 3) {
      const auto x3 = hn::Set(d, q3[i]);
      a3 = hn::MulAdd(x3, a, a3);
      if constexpr (kVectors > 1) b3 = hn::MulAdd(x3, b, b3);
    }
  }
  hn::StoreU(a0, d, out[0] + offset0);
  if constexpr (kRows > 1) hn::StoreU(a1, d, out[1] + offset0);
  if constexpr (kRows > 2) hn::StoreU(a2, d, out[2] + offset0);
  if constexpr (kRows > 3) hn::StoreU(a3, d, out[3] + offset0);
  if constexpr (kVectors > 1) {
    hn::StoreU(b0, d, out[0] + offset1);
    if constexpr (kRows > 1) hn::StoreU(b1, d, out[1] + offset1);
    if constexpr (kRows > 2) hn::StoreU(b2, d, out[2] + offset1);
    if constexpr (kRows > 3) hn::StoreU(b3, d, out[3] + offset1);
  }
}

// Scores of kRows queries against the positions [begin, end), begin a multiple of 16; writes whole
// blocks of 16, those past `end` with values that nobody reads.
template <std::size_t kRows, class Element>
HWY_NOINLINE void ScoreRows(const float* const* q, std::size_t head_dim, const Element* keys,
                            std::size_t begin, std::size_t end, float* const* out) {
  const std::size_t lanes = hn::Lanes(LaneTag());
  const auto at = [keys, head_dim](std::size_t position) HWY_ATTR {
    return keys + position / kv_block * kv_block * head_dim + position % kv_block;
  };
  std::size_t p = begin;
  for (; p + lanes < end; p += 2 * lanes) {
    ScoreTile<kRows, 2>(q, head_dim, at(p), at(p + lanes), out, p, p + lanes);
  }
  if (p < end) ScoreTile<kRows, 1>(q, head_dim, at(p), at(p), out, p, p);
}

// sums[r][0 .. kVectors lanes) += weights[r][j] * values[j][...] for j in order, kRows rows.
template <std::size_t kRows, std::size_t kVectors, class D, class Element>
HWY_INLINE void WeighTile(D d, const float* const* weights, const Element* values,
                          std::size_t head_dim, std::size_t count, float* const* sums,
                          std::size_t feature) {
  const std::size_t lanes = hn::Lanes(d);
  const float* w0 = weights[0];
  const float* w1 = weights[kRows > 1 ? 1 : 0];
  const float* w2 = weights[kRows > 2 ? 2 : 0];
  const float* w3 = weights[kRows > 3 ? 3 : 0];
  float* const s0 = sums[0] + feature;
  float* const s1 = sums[kRows > 1 ? 1 : 0] + feature;
  float* const s2 = sums[kRows > 2 ? 2 : 0] + feature;
  float* const s3 = sums[kRows > 3 ? 3 : 0] + feature;
  const std::size_t second = kVectors > 1 ? lanes : 0;
  auto a0 = hn::LoadU(d, s0), a1 = hn::LoadU(d, s1), a2 = hn::LoadU(d, s2), a3 = hn::LoadU(d, s3);
  auto b0 = hn::LoadU(d, s0 + second), b1 = hn::LoadU(d, s1 + second);
  auto b2 = hn::LoadU(d, s2 + second), b3 = hn::LoadU(d, s3 + second);
  values += feature;
  for (std::size_t j = 0; j < count; ++j, values += head_dim) {
    const auto a = LoadFloats(d, values);
    const auto b = kVectors > 1 ? LoadFloats(d, values + second) : a;
    const auto x0 = hn::Set(d, w0[j]);
    a0 = hn::MulAdd(x0, a, a0);
    if constexpr (kVectors > 1) b0 = hn::MulAdd(x0, b, b0);
    if constexpr (kRows > 1) {
      const auto x1 = hn::Set(d, w1[j]);
      a1 = hn::MulAdd(x1, a, a1);
      if constexpr (kVectors > 1) b1 = hn::MulAdd(x1, b, b1);
    }
    if constexpr (kRows > 2) {
      const auto x2 = hn::Set(d, w2[j]);
      a2 = hn::MulAdd(x2, a, a2);
      if constexpr (kVectors > 1) b2 = hn::MulAdd(x2, b, b2);
    }
    if constexpr (kRows > 3) {
      const auto x3 = hn::Set(d, w3[j]);
      a3 = hn::MulAdd(x3, a, a3);
      if constexpr (kVectors > 1) b3 = hn::MulAdd(x3, b, b3);
    }
  }
  hn::StoreU(a0, d, s0);
  if constexpr (kRows > 1) hn::StoreU(a1, d, s1);
  if constexpr (kRows > 2) hn::StoreU(a2, d, s2);
  if constexpr (kRows > 3) hn::StoreU(a3, d, s3);
  if constexpr (kVectors > 1) {
    hn::StoreU(b0, d, s0 + second);
    if constexpr (kRows > 1) hn::StoreU(b1, d, s1 + second);
    if constexpr (kRows > 2) hn::StoreU(b2, d, s2 + second);
    if constexpr (kRows > 3) hn::StoreU(b3, d, s3 + second);
  }
}

// Adds weights[r][j] * values[j] of `count` positions to sums[r][0 .. head_dim), kRows rows, each
// feature in order of j. Features that do not fill a vector go by pairs: head_dim is even.
template <std::size_t kRows, class Element>
HWY_NOINLINE void WeighRows(const float* const* weights, const Element* values,
                            std::size_t head_dim, std::size_t count, float* const* sums) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t feature = 0;
  for (; feature + 2 * lanes <= head_dim; feature += 2 * lanes) {
    WeighTile<kRows, 2>(d, weights, values, head_dim, count, sums, feature);
  }
  if (feature + lanes <= head_dim) {
    WeighTile<kRows, 1>(d, weights, values, head_dim, count, sums, feature);
    feature += lanes;
  }
  const hn::CappedTag<float, 2> pair;
  for (; feature < head_dim; feature += hn::Lanes(pair)) {
    WeighTile<kRows, 1>(pair, weights, values, head_dim, count, sums, feature);
  }
}

// The row counts 1..4 as run-time values.
template <class Element>
HWY_INLINE void ScoreSomeRows(std::size_t rows, const float* const* q, std::size_t head_dim,
                              const Element* keys, std::size_t begin, std::size_t end,
                              float* const* out) {
  switch (rows) {
    case 1:
      return ScoreRows<1>(q, head_dim, keys, begin, end, out);
    case 2:
      return ScoreRows<2>(q, head_dim, keys, begin, end, out);
    case 3:
      return ScoreRows<3>(q, head_dim, keys, begin, end, out);
    default:
      return ScoreRows<4>(q, head_dim, keys, begin, end, out);
  }
}
template <class Element>
HWY_INLINE void WeighSomeRows(std::size_t rows, const float* const* weights, const Element* values,
                              std::size_t head_dim, std::size_t count, float* const* sums) {
  switch (rows) {
    case 1:
      return WeighRows<1>(weights, values, head_dim, count, sums);
    case 2:
      return WeighRows<2>(weights, values, head_dim, count, sums);
    case 3:
      return WeighRows<3>(weights, values, head_dim, count, sums);
    default:
      return WeighRows<4>(weights, values, head_dim, count, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();

#endif  // toggle
