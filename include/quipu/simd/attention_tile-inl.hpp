// The two inner loops of attention: scores of a few rows against some positions, and their weighted
// sums of values. Templates on rows and element type, never on a model.
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

// Scores of kRows queries against two vectors of positions, whose first feature stands at k0 and
// k1, the next ones 16 elements on. One accumulator per row and position.
template <std::size_t kRows, class Element>
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
    const auto b = LoadFloats(d, k1 + i * kv_block);
    const auto x0 = hn::Set(d, q0[i]);
    a0 = hn::MulAdd(x0, a, a0);
    b0 = hn::MulAdd(x0, b, b0);
    if constexpr (kRows > 1) {
      const auto x1 = hn::Set(d, q1[i]);
      a1 = hn::MulAdd(x1, a, a1);
      b1 = hn::MulAdd(x1, b, b1);
    }
    if constexpr (kRows > 2) {
      const auto x2 = hn::Set(d, q2[i]);
      a2 = hn::MulAdd(x2, a, a2);
      b2 = hn::MulAdd(x2, b, b2);
    }
    if constexpr (kRows > 3) {
      const auto x3 = hn::Set(d, q3[i]);
      a3 = hn::MulAdd(x3, a, a3);
      b3 = hn::MulAdd(x3, b, b3);
    }
  }
  hn::StoreU(a0, d, out[0] + offset0);
  hn::StoreU(b0, d, out[0] + offset1);
  if constexpr (kRows > 1) {
    hn::StoreU(a1, d, out[1] + offset0);
    hn::StoreU(b1, d, out[1] + offset1);
  }
  if constexpr (kRows > 2) {
    hn::StoreU(a2, d, out[2] + offset0);
    hn::StoreU(b2, d, out[2] + offset1);
  }
  if constexpr (kRows > 3) {
    hn::StoreU(a3, d, out[3] + offset0);
    hn::StoreU(b3, d, out[3] + offset1);
  }
}

// Scores of kRows queries against the positions [begin, end), begin a multiple of 16; writes whole
// vectors, at most to the end of the last block of 16: what is past `end` nobody reads.
template <std::size_t kRows, class Element>
HWY_NOINLINE void ScoreRows(const float* const* q, std::size_t head_dim, const Element* keys,
                            std::size_t begin, std::size_t end, float* const* out) {
  const std::size_t lanes = hn::Lanes(LaneTag());
  const auto at = [keys, head_dim](std::size_t position) HWY_ATTR {
    return keys + position / kv_block * kv_block * head_dim + position % kv_block;
  };
  for (std::size_t p = begin; p < end; p += 2 * lanes) {
    // With 16 lanes the last block may have no neighbour: it is computed twice then.
    const std::size_t second = p + lanes < end ? p + lanes : p;
    ScoreTile<kRows>(q, head_dim, at(p), at(second), out, p, second);
  }
}

// sums[r][feature .. two vectors on) += weights[r][j] * values[j][...] for j in order, kRows rows.
template <std::size_t kRows, class Element>
HWY_INLINE void WeighTile(const float* const* weights, const Element* values, std::size_t head_dim,
                          std::size_t count, float* const* sums, std::size_t feature) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const float* w0 = weights[0];
  const float* w1 = weights[kRows > 1 ? 1 : 0];
  const float* w2 = weights[kRows > 2 ? 2 : 0];
  const float* w3 = weights[kRows > 3 ? 3 : 0];
  float* const s0 = sums[0] + feature;
  float* const s1 = sums[kRows > 1 ? 1 : 0] + feature;
  float* const s2 = sums[kRows > 2 ? 2 : 0] + feature;
  float* const s3 = sums[kRows > 3 ? 3 : 0] + feature;
  auto a0 = hn::LoadU(d, s0), a1 = hn::LoadU(d, s1), a2 = hn::LoadU(d, s2), a3 = hn::LoadU(d, s3);
  auto b0 = hn::LoadU(d, s0 + lanes), b1 = hn::LoadU(d, s1 + lanes);
  auto b2 = hn::LoadU(d, s2 + lanes), b3 = hn::LoadU(d, s3 + lanes);
  values += feature;
  for (std::size_t j = 0; j < count; ++j, values += head_dim) {
    const auto a = LoadFloats(d, values);
    const auto b = LoadFloats(d, values + lanes);
    const auto x0 = hn::Set(d, w0[j]);
    a0 = hn::MulAdd(x0, a, a0);
    b0 = hn::MulAdd(x0, b, b0);
    if constexpr (kRows > 1) {
      const auto x1 = hn::Set(d, w1[j]);
      a1 = hn::MulAdd(x1, a, a1);
      b1 = hn::MulAdd(x1, b, b1);
    }
    if constexpr (kRows > 2) {
      const auto x2 = hn::Set(d, w2[j]);
      a2 = hn::MulAdd(x2, a, a2);
      b2 = hn::MulAdd(x2, b, b2);
    }
    if constexpr (kRows > 3) {
      const auto x3 = hn::Set(d, w3[j]);
      a3 = hn::MulAdd(x3, a, a3);
      b3 = hn::MulAdd(x3, b, b3);
    }
  }
  hn::StoreU(a0, d, s0);
  hn::StoreU(b0, d, s0 + lanes);
  if constexpr (kRows > 1) {
    hn::StoreU(a1, d, s1);
    hn::StoreU(b1, d, s1 + lanes);
  }
  if constexpr (kRows > 2) {
    hn::StoreU(a2, d, s2);
    hn::StoreU(b2, d, s2 + lanes);
  }
  if constexpr (kRows > 3) {
    hn::StoreU(a3, d, s3);
    hn::StoreU(b3, d, s3 + lanes);
  }
}

// One vector of features of one row: what two vectors leave over.
template <class D, class Element>
HWY_INLINE void WeighVector(D d, const float* weights, const Element* values, std::size_t head_dim,
                            std::size_t count, float* sums) {
  auto sum = hn::LoadU(d, sums);
  for (std::size_t j = 0; j < count; ++j, values += head_dim) {
    sum = hn::MulAdd(hn::Set(d, weights[j]), LoadFloats(d, values), sum);
  }
  hn::StoreU(sum, d, sums);
}

// Adds weights[r][j] * values[j] of `count` positions to sums[r][0 .. head_dim), kRows rows, each
// feature in order of j. Features that do not fill a vector go by pairs: head_dim is even.
template <std::size_t kRows, class Element>
HWY_NOINLINE void WeighRows(const float* const* weights, const Element* values,
                            std::size_t head_dim, std::size_t count, float* const* sums) {
  const LaneTag d;
  const hn::CappedTag<float, 2> pair;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t whole = 0;
  for (; whole + 2 * lanes <= head_dim; whole += 2 * lanes) {
    WeighTile<kRows>(weights, values, head_dim, count, sums, whole);
  }
  for (std::size_t r = 0; whole < head_dim && r < kRows; ++r) {
    std::size_t i = whole;
    for (; i + lanes <= head_dim; i += lanes) {
      WeighVector(d, weights[r], values + i, head_dim, count, sums[r] + i);
    }
    for (; i < head_dim; i += hn::Lanes(pair)) {
      WeighVector(pair, weights[r], values + i, head_dim, count, sums[r] + i);
    }
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
