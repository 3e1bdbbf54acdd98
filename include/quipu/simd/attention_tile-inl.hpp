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
#include <bit>
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

// Positions whose keys or values (16 KB of float32 with 128 features) stay in the first-level cache
// while all rows of a tile use them. A multiple of 16 that divides a block.
inline constexpr std::size_t kNearPositions = 32;

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

// Where the next keys or values are fetched from: hardware reads several streams faster than one,
// so each turn of a tile takes a line of each of kStreams parts of the next window of 64 KB. (AVX2,
// Zen 3, 8192 positions, against what one tile further on needs: 1.05 to 1.1 times the speed with a
// float32 cache, 1.04 to 1.09 with bf16; windows of 32 KB 1.00 to 1.13, 16 and 128 KB 0.88
// to 1.06.)
template <class Element>
class NextWindow {
 public:
  // `before` elements of those from `position` on are done; `first` is where position 0 stands.
  HWY_INLINE NextWindow(const Element* first, std::size_t head_dim, std::size_t position,
                        std::size_t before) {
    const std::size_t positions =
        (std::max)(kNearPositions, std::bit_floor(kWindowBytes / sizeof(Element) / head_dim));
    const std::size_t inside = position % positions;
    stream_ = positions * head_dim / kStreams;
    next_ = first + (position - inside + positions) * head_dim +
            (inside * head_dim + before) / kStreams;
  }
  // What a turn of kTileUnroll inputs uses up.
  HWY_INLINE void FetchTurn() {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < kLines; ++i) {
      hwy::Prefetch(next_ + i % kStreams * stream_ + i / kStreams * kLine);
    }
    next_ += kLines / kStreams * kLine;
  }

 private:
  static constexpr std::size_t kWindowBytes = 65536;
  static constexpr std::size_t kLine = 64 / sizeof(Element);
  static constexpr std::size_t kOfTurn = kTileUnroll * 2 * hn::MaxLanes(LaneTag());
  static constexpr std::size_t kLines = (std::max)(std::size_t{1}, kOfTurn / kLine);
  static constexpr std::size_t kStreams = (std::min)(std::size_t{4}, kLines);
  const Element* next_;
  std::size_t stream_;
};

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
// k1, the next ones 16 elements on. One accumulator per row and position.
template <std::size_t kRows, bool kFetch, class Element>
HWY_INLINE void ScoreTile(const float* const* queries, std::size_t head_dim, const Element* k0,
                          const Element* k1, float* const* out, std::size_t offset0,
                          std::size_t offset1, NextWindow<Element> next, ScoreScaling scaling) {
  const LaneTag d;
  const float* q[kRows];
  LaneVec acc[kRows][2];
  QUIPU_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    q[r] = queries[r];
    acc[r][0] = acc[r][1] = hn::Zero(d);
  }
  std::size_t i = 0;
  for (; i + kTileUnroll <= head_dim; i += kTileUnroll) {
    if constexpr (kFetch) next.FetchTurn();
    AddToTile<kTileUnroll>(q, i, k0, k1, kv_block, acc);
    k0 += kTileUnroll * kv_block;
    k1 += kTileUnroll * kv_block;
  }
  for (; i < head_dim; ++i, k0 += kv_block, k1 += kv_block) {
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
    ScoreTile<kRows, kFetch>(q, head_dim, at(p), at(second), out, p, second,
                             NextWindow<Element>(keys, head_dim, p, 0), scaling);
  }
}

// sums[r][feature .. two vectors on) += weights[r][j] * values[j][feature ...] for the positions j
// of [begin, end) in order, kRows rows.
template <std::size_t kRows, bool kFetch, class Element>
HWY_INLINE void WeighTile(const float* const* weights, const Element* values, std::size_t head_dim,
                          std::size_t begin, std::size_t end, float* const* sums,
                          std::size_t feature) {
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
  NextWindow<Element> next(values, head_dim, begin, (end - begin) * feature);
  values += begin * head_dim + feature;
  std::size_t j = begin;
  for (; j + kTileUnroll <= end; j += kTileUnroll, values += kTileUnroll * head_dim) {
    if constexpr (kFetch) next.FetchTurn();
    AddToTile<kTileUnroll>(w, j, values, values + lanes, head_dim, acc);
  }
  for (; j < end; ++j, values += head_dim) {
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
                            std::size_t begin, std::size_t end, float* sums) {
  auto sum = hn::LoadU(d, sums);
  for (std::size_t j = begin; j < end; ++j) {
    sum = hn::MulAdd(hn::Set(d, weights[j]), LoadFloats(d, values + j * head_dim), sum);
  }
  hn::StoreU(sum, d, sums);
}

// Adds weights[r][j] * values[j] of the positions j of [begin, end) to sums[r][0 .. head_dim),
// kRows rows, each feature in order of j. Features that do not fill a vector go by pairs: head_dim
// is even.
template <std::size_t kRows, bool kFetch, class Element>
HWY_NOINLINE void WeighRows(const float* const* weights, std::size_t head_dim,
                            const Element* values, std::size_t begin, std::size_t end,
                            float* const* sums) {
  const LaneTag d;
  const hn::CappedTag<float, 2> pair;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t whole = 0;
  for (; whole + 2 * lanes <= head_dim; whole += 2 * lanes) {
    WeighTile<kRows, kFetch>(weights, values, head_dim, begin, end, sums, whole);
  }
  for (std::size_t r = 0; whole < head_dim && r < kRows; ++r) {
    std::size_t i = whole;
    for (; i + lanes <= head_dim; i += lanes) {
      WeighVector(d, weights[r], values + i, head_dim, begin, end, sums[r] + i);
    }
    for (; i < head_dim; i += hn::Lanes(pair)) {
      WeighVector(pair, weights[r], values + i, head_dim, begin, end, sums[r] + i);
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
using WeighKernel = void (*)(const float* const*, std::size_t, const Element*, std::size_t,
                             std::size_t, float* const*);
template <class Element, std::size_t... R>
HWY_INLINE WeighKernel<Element> WeighKernelFor(std::size_t rows, std::index_sequence<R...>) {
  static constexpr WeighKernel<Element> table[] = {&WeighRows<R + 1, true, Element>...};
  return table[rows - 1];
}
template <class Element>
HWY_INLINE void WeighSomeRows(std::size_t rows, bool fetch, const float* const* weights,
                              std::size_t head_dim, const Element* values, std::size_t begin,
                              std::size_t end, float* const* sums) {
  const WeighKernel<Element> kernel =
      rows == kTileRows && !fetch
          ? &WeighRows<kTileRows, false, Element>
          : WeighKernelFor<Element>(rows, std::make_index_sequence<kTileRows>());
  kernel(weights, head_dim, values, begin, end, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
