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
#include <type_traits>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "quipu/runtime/kv_cache.hpp"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/simd/attention.hpp"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of the register tile, by two vectors: with 16 registers 6 rows leave room for two vectors of
// keys or values and a broadcast, with 32 registers 12 rows do. Both divide attention_tile_rows.
#if HWY_TARGET == HWY_SCALAR
inline constexpr std::size_t kTileRows = 4;
#elif HWY_ARCH_ARM || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
inline constexpr std::size_t kTileRows = 12;
#else
inline constexpr std::size_t kTileRows = 6;
#endif
static_assert(detail::attention_tile_rows % kTileRows == 0);
using LaneVec = hn::Vec<LaneTag>;

// acc[r] += rows[r][i + j] * (two vectors of keys or values of j) for j < kInputs in order; those
// of j stand at a + j * stride and b + j * stride.
template <std::size_t kInputs, std::size_t kRows, class Element>
HWY_INLINE void AddToTile(const float* const (&rows)[kRows], std::size_t i, const Element* a,
                          const Element* b, std::size_t stride, LaneVec (&acc)[kRows][2]) {
  const LaneTag d;
  QUIPU_UNROLL
  for (std::size_t j = 0; j < kInputs; ++j) {
    LaneVec first = LoadFloats(d, a + j * stride);
    LaneVec second = LoadFloats(d, b + j * stride);
    PinRegister(first);
    PinRegister(second);
    QUIPU_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const LaneVec x = hn::Set(d, rows[r][i + j]);
      AddProduct(acc[r][0], first, x);
      AddProduct(acc[r][1], second, x);
    }
  }
}

// Fetches kCount places, `stride` elements apart, if asked to.
template <std::size_t kCount, bool kFetch, class Element>
HWY_INLINE void FetchEvery(const Element* first, std::size_t stride) {
  QUIPU_UNROLL
  for (std::size_t i = 0; kFetch && i < kCount; ++i) hwy::Prefetch(first + i * stride);
}

// What becomes of a sum of products: it is divided by `divisor`, the bf16 mode rounding before and
// after. In the tile, where the next one's multiply-adds hide the divisions.
struct ScoreScaling {
  float divisor;
  NumericMode mode;

  HWY_INLINE LaneVec operator()(LaneVec score) const {
    const LaneTag d;
    const bool round = mode == NumericMode::bf16;
    const LaneVec scaled = hn::Div(round ? RoundBf16(d, score) : score, hn::Set(d, divisor));
    return round ? RoundBf16(d, scaled) : scaled;
  }
};

// Scores of kRows queries against two vectors of positions, whose first feature stands at k0 and
// k1, the next ones 16 elements on. One accumulator per row and position. Fetches what stands
// `ahead` elements on: the next tile.
template <std::size_t kRows, bool kFetch, class Element>
HWY_INLINE void ScoreTile(const float* const* queries, std::size_t head_dim, const Element* k0,
                          const Element* k1, float* const* out, std::size_t offset0,
                          std::size_t offset1, std::size_t ahead, ScoreScaling scaling) {
  const LaneTag d;
  constexpr bool kApart = hn::MaxLanes(LaneTag()) >= kv_block;  // k1 stands in another block
  const float* q[kRows];
  LaneVec acc[kRows][2];
  QUIPU_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    q[r] = queries[r];
    acc[r][0] = acc[r][1] = hn::Zero(d);
  }
  std::size_t i = 0;
  for (; i + kTileUnroll <= head_dim; i += kTileUnroll) {
    FetchEvery<kTileUnroll, kFetch>(k0 + ahead, kv_block);
    FetchEvery<kTileUnroll, kFetch && kApart>(k1 + ahead, kv_block);
    AddToTile<kTileUnroll>(q, i, k0, k1, kv_block, acc);
    k0 += kTileUnroll * kv_block;
    k1 += kTileUnroll * kv_block;
  }
  for (; i < head_dim; ++i, k0 += kv_block, k1 += kv_block) {
    FetchEvery<1, kFetch>(k0 + ahead, kv_block);
    FetchEvery<1, kFetch && kApart>(k1 + ahead, kv_block);
    AddToTile<1>(q, i, k0, k1, kv_block, acc);
  }
  QUIPU_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    hn::StoreU(scaling(acc[r][0]), d, out[r] + offset0);
    hn::StoreU(scaling(acc[r][1]), d, out[r] + offset1);
  }
}

// Scores of kRows queries against the positions [begin, end), begin a multiple of 16; writes whole
// vectors, at most to the end of the last block of 16: what is past `end` nobody reads.
template <std::size_t kRows, bool kFetch, class Element>
HWY_NOINLINE void ScoreRows(const float* const* q, std::size_t head_dim, const Element* keys,
                            std::size_t begin, std::size_t end, float* const* out,
                            ScoreScaling scaling) {
  const std::size_t lanes = hn::Lanes(LaneTag());
  const auto at = [keys, head_dim](std::size_t position) HWY_ATTR {
    return keys + position / kv_block * kv_block * head_dim + position % kv_block;
  };
  for (std::size_t p = begin; p < end; p += 2 * lanes) {
    // With 16 lanes the last block may have no neighbour: it is computed twice then.
    const std::size_t second = p + lanes < end ? p + lanes : p;
    ScoreTile<kRows, kFetch>(q, head_dim, at(p), at(second), out, p, second, 2 * lanes * head_dim,
                             scaling);
  }
}

// sums[r][feature .. two vectors on) += weights[r][j] * values[j][...] for j in order, kRows rows.
// Two vectors of every position is a way through memory that no prefetcher follows: each step
// fetches from `ahead` on what the same number of steps will need of the positions after these.
template <std::size_t kRows, bool kFetch, class Element>
HWY_INLINE void WeighTile(const float* const* weights, const Element* values, std::size_t head_dim,
                          std::size_t count, float* const* sums, std::size_t feature,
                          const Element* ahead) {
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  const float* w[kRows];
  LaneVec acc[kRows][2];
  QUIPU_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    w[r] = weights[r];
    acc[r][0] = hn::LoadU(d, sums[r] + feature);
    acc[r][1] = hn::LoadU(d, sums[r] + feature + lanes);
  }
  values += feature;
  std::size_t j = 0;
  for (; j + kTileUnroll <= count; j += kTileUnroll) {
    FetchEvery<kTileUnroll, kFetch>(ahead, 2 * lanes);
    AddToTile<kTileUnroll>(w, j, values, values + lanes, head_dim, acc);
    values += kTileUnroll * head_dim;
    ahead += kTileUnroll * 2 * lanes;
  }
  for (; j < count; ++j, values += head_dim, ahead += 2 * lanes) {
    FetchEvery<1, kFetch>(ahead, 2 * lanes);
    AddToTile<1>(w, j, values, values + lanes, head_dim, acc);
  }
  QUIPU_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    hn::StoreU(acc[r][0], d, sums[r] + feature);
    hn::StoreU(acc[r][1], d, sums[r] + feature + lanes);
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
template <std::size_t kRows, bool kFetch, class Element>
HWY_NOINLINE void WeighRows(const float* const* weights, const Element* values,
                            std::size_t head_dim, std::size_t count, float* const* sums) {
  const LaneTag d;
  const hn::CappedTag<float, 2> pair;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t whole = 0;
  for (; whole + 2 * lanes <= head_dim; whole += 2 * lanes) {
    WeighTile<kRows, kFetch>(weights, values, head_dim, count, sums, whole,
                             values + count * (head_dim + whole));
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

// The row counts 1..kTileRows as run-time values. Whole tiles after the first of several that read
// the same keys or values do not fetch: it is done.
template <class Element>
using ScoreKernel = void (*)(const float* const*, std::size_t, const Element*, std::size_t,
                             std::size_t, float* const*, ScoreScaling);
template <class Element, std::size_t... R>
HWY_INLINE ScoreKernel<Element> ScoreKernelFor(std::size_t rows, std::index_sequence<R...>) {
  static constexpr ScoreKernel<Element> table[] = {&ScoreRows<R + 1, true, Element>...};
  return table[rows - 1];
}
template <class Element>
HWY_INLINE void ScoreSomeRows(std::size_t rows, bool fetch, const float* const* q,
                              std::size_t head_dim, const Element* keys, std::size_t begin,
                              std::size_t end, float* const* out, ScoreScaling scaling) {
  const ScoreKernel<Element> kernel =
      rows == kTileRows && !fetch
          ? &ScoreRows<kTileRows, false, Element>
          : ScoreKernelFor<Element>(rows, std::make_index_sequence<kTileRows>());
  kernel(q, head_dim, keys, begin, end, out, scaling);
}
template <class Element>
using WeighKernel = void (*)(const float* const*, const Element*, std::size_t, std::size_t,
                             float* const*);
template <class Element, std::size_t... R>
HWY_INLINE WeighKernel<Element> WeighKernelFor(std::size_t rows, std::index_sequence<R...>) {
  static constexpr WeighKernel<Element> table[] = {&WeighRows<R + 1, true, Element>...};
  return table[rows - 1];
}
template <class Element>
HWY_INLINE void WeighSomeRows(std::size_t rows, bool fetch, const float* const* weights,
                              const Element* values, std::size_t head_dim, std::size_t count,
                              float* const* sums) {
  const WeighKernel<Element> kernel =
      rows == kTileRows && !fetch
          ? &WeighRows<kTileRows, false, Element>
          : WeighKernelFor<Element>(rows, std::make_index_sequence<kTileRows>());
  kernel(weights, values, head_dim, count, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
