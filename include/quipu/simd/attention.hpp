// Attention over the KV cache: what a caller needs without Highway.
//
// Siblings: attention-inl.hpp (the kernel), kv_append-inl.hpp, model/scaled_dot_product.hpp,
// test/simd/attention_test.cpp, bench/attention_bench.cpp.
//
// The canonical order, the same for every batch, chunk, tile and number of threads:
//   score        fma in order of the features, then divided by sqrt(head_dim)
//   softmax      largest score; exponentials; their sum per block of 512 absolute positions (16
//                virtual lanes, simd/reduce-inl.hpp), block sums in order; division
//   result       per block of 512 absolute positions fma in order of the positions, blocks in order
// Positions that a query may not see are not computed into anything: there is no mask.
#pragma once

#include <cstddef>
#include <span>

#include "quipu/runtime/kv_cache.hpp"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/runtime/sequence_chunk.hpp"
#include "quipu/shape/checked.hpp"
#include "quipu/shape/matrix.hpp"

namespace quipu {

/// One layer's attention for the tokens of some chunks, whose keys and values are in the cache
/// already. Activation row r, head h, stands at q + r * q_stride + h * head_dim, likewise in out.
struct AttentionCall {
  const float* q = nullptr;  ///< after the rotary embedding
  std::size_t q_stride = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
  std::size_t heads = 0;  ///< a multiple of the cache's kv_heads
  const KvCache* cache = nullptr;
  std::size_t layer = 0;
  std::span<const SequenceChunk> chunks;
  NumericMode mode = NumericMode::f32;
  float* scratch = nullptr;  ///< attention_scratch_floats(...), 64-byte aligned
  /// If given: the probabilities of chunk after chunk, each [heads, tokens, start + tokens], zero
  /// where a query does not see; after and before the bf16 mode's rounding.
  float* probs = nullptr;
  float* probs_before_rounding = nullptr;
};

namespace detail {

/// Rows (a query of a token and head) that share one walk over keys and values. More rows would
/// read them fewer times, but the scores of 24 rows at 4096 positions just fit a second-level cache
/// of 512 KiB.
inline constexpr std::size_t attention_tile_rows = 24;

/// Floats from one row's scores to the next: whole key blocks, and 16 more so that rows whose
/// length is a power of two do not fall on the same sets of the cache.
constexpr std::size_t attention_score_stride(std::size_t positions) {
  return round_up(positions, kv_block, "scores") + 16;
}

/// Scratch floats of one row: scores, the result of each block of positions but the first, and of
/// each its largest score and its sum.
constexpr std::size_t attention_row_floats(std::size_t head_dim, std::size_t positions) {
  const std::size_t blocks = ceil_div(positions, sum_panel);
  const std::size_t later = blocks == 0 ? 0 : blocks - 1;
  const std::size_t results = round_up(checked_mul(later, head_dim, "scratch"), 16, "scratch");
  return checked_add(checked_add(attention_score_stride(positions), results, "scratch"),
                     round_up(checked_mul(blocks, 2, "scratch"), 16, "scratch"), "scratch");
}

}  // namespace detail

/// Scratch of a call whose longest sequence ends at `positions` positions, for so many workers.
constexpr std::size_t attention_scratch_floats(std::size_t head_dim, std::size_t positions,
                                               std::size_t workers) {
  return checked_mul(checked_mul(detail::attention_row_floats(head_dim, positions),
                                 detail::attention_tile_rows, "scratch of attention"),
                     workers, "scratch of attention");
}

}  // namespace quipu
