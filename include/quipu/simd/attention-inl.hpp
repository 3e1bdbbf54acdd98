// Grouped-query attention over the KV cache.
//
// Siblings: attention.hpp (call, scratch and the canonical order), attention_tile-inl.hpp (the
// inner loops), softmax-inl.hpp, model/scaled_dot_product.hpp, test/simd/attention_test.cpp,
// bench/attention_bench.cpp.
//
// The queries of one kv head, token after token, are cut into tiles of 24 rows, which read keys and
// values together: a decoded token's group of query heads shares them, and so do neighbouring
// tokens of a prompt. A tile is one task; where tiles are fewer than the workers can use and the
// context is long, the blocks of 512 positions of each tile are tasks too, with the same sums in
// the same order.
#if defined(QUIPU_SIMD_ATTENTION_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ATTENTION_INL_HPP_
#undef QUIPU_SIMD_ATTENTION_INL_HPP_
#else
#define QUIPU_SIMD_ATTENTION_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/runtime/executor.hpp"
#include "quipu/simd/attention.hpp"
#include "quipu/simd/attention_tile-inl.hpp"
#include "quipu/simd/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// From this context on, blocks of one tile may be shared out: below it four more regions cost more
// than they bring.
inline constexpr std::size_t kShareOutPositions = 2048;

// One call's attention, cut into tiles.
class AttentionTiles {
 public:
  static constexpr std::size_t kRows = detail::attention_tile_rows;

  explicit AttentionTiles(const AttentionCall& call)
      : call_(call),
        kv_heads_(call.cache->shape().kv_heads),
        head_dim_(call.cache->shape().head_dim),
        group_(call.heads / kv_heads_),
        divisor_(std::sqrt(static_cast<float>(head_dim_))) {
    for (const SequenceChunk& chunk : call.chunks) {
      tiles_ += kv_heads_ * TilesOfHead(chunk);
      rows_ += kv_heads_ * group_ * chunk.tokens;
      if (chunk.tokens != 0) longest_ = (std::max)(longest_, chunk.start + chunk.tokens);
    }
    row_floats_ = detail::attention_row_floats(head_dim_, longest_);
  }

  std::size_t Tiles() const { return tiles_; }
  std::size_t Rows() const { return rows_; }
  std::size_t Longest() const { return longest_; }
  std::size_t Blocks() const { return ceil_div(longest_, sum_panel); }

  // Some rows of one kv head of one chunk.
  struct Tile {
    const SequenceChunk* chunk;
    KvHeadView head;
    std::size_t kv_head;
    std::size_t first;         // of the head's rows, which go token by token, heads within a token
    std::size_t count;         // of rows
    std::size_t scratch_row;   // the row's place if every row of the call had its own
    std::size_t probs_offset;  // of the chunk in the traced probabilities
  };

  Tile At(std::size_t index) const {
    std::size_t scratch_row = 0;
    std::size_t probs_offset = 0;
    for (const SequenceChunk& chunk : call_.chunks) {
      const std::size_t head_rows = chunk.tokens * group_;
      const std::size_t per_head = TilesOfHead(chunk);
      if (index < kv_heads_ * per_head) {
        const std::size_t kv_head = index / per_head;
        const std::size_t first = index % per_head * kRows;
        return {&chunk,
                call_.cache->head(chunk.cache_row, call_.layer, kv_head),
                kv_head,
                first,
                (std::min)(kRows, head_rows - first),
                scratch_row + kv_head * head_rows + first,
                probs_offset};
      }
      index -= kv_heads_ * per_head;
      scratch_row += kv_heads_ * head_rows;
      probs_offset += call_.heads * chunk.tokens * (chunk.start + chunk.tokens);
    }
    return {};
  }

  // Blocks of 512 positions that the tile's last row sees.
  std::size_t BlocksOf(const Tile& tile) const {
    return ceil_div(Visible(tile, tile.count - 1), sum_panel);
  }

  // All steps of a tile, in the scratch rows from `scratch_row` on.
  void Whole(const Tile& tile, std::size_t scratch_row) const {
    const std::size_t blocks = BlocksOf(tile);
    for (std::size_t b = 0; b < blocks; ++b) Scores(tile, scratch_row, b);
    for (std::size_t b = 0; b < blocks; ++b) Exponentials(tile, scratch_row, b);
    for (std::size_t b = 0; b < blocks; ++b) Values(tile, scratch_row, b);
    Finish(tile, scratch_row);
  }

  // First step: scaled scores of a block, and the largest of each row.
  void Scores(const Tile& tile, std::size_t scratch_row, std::size_t block) const {
    if (tile.head.element == ElementType::bf16) {
      ScaledScores<std::uint16_t>(tile, scratch_row, block);
    } else {
      ScaledScores<float>(tile, scratch_row, block);
    }
    for (std::size_t r = 0; r < tile.count; ++r) {
      const std::size_t n = VisibleInBlock(tile, r, block);
      if (n == 0) continue;
      BlockLargest(scratch_row + r)[block] =
          Largest(RowScores(scratch_row + r) + block * sum_panel, n);
    }
  }

  // Second step, once all blocks have had the first: exponentials of a block and their sum.
  void Exponentials(const Tile& tile, std::size_t scratch_row, std::size_t block) const {
    for (std::size_t r = 0; r < tile.count; ++r) {
      const std::size_t n = VisibleInBlock(tile, r, block);
      if (n == 0) continue;
      const std::size_t blocks = ceil_div(Visible(tile, r), sum_panel);
      const float largest = Largest(BlockLargest(scratch_row + r), blocks);
      BlockSums(scratch_row + r)[block] =
          ExpBlock(RowScores(scratch_row + r) + block * sum_panel, n, largest);
    }
  }

  // Third step, once all blocks have had the second: probabilities of a block and its weighted
  // values.
  void Values(const Tile& tile, std::size_t scratch_row, std::size_t block) const {
    for (std::size_t r = 0; r < tile.count; ++r) {
      const std::size_t n = VisibleInBlock(tile, r, block);
      if (n == 0) continue;
      const std::size_t blocks = ceil_div(Visible(tile, r), sum_panel);
      const float* sums = BlockSums(scratch_row + r);
      float sum = sums[0];
      for (std::size_t b = 1; b < blocks; ++b) sum += sums[b];
      Probabilities(tile, r, block, RowScores(scratch_row + r) + block * sum_panel, n, sum);
    }
    if (tile.head.element == ElementType::bf16) {
      WeighBlock<std::uint16_t>(tile, scratch_row, block);
    } else {
      WeighBlock<float>(tile, scratch_row, block);
    }
  }

  // Last step, once all blocks have had the third: the results of later blocks added in order.
  void Finish(const Tile& tile, std::size_t scratch_row) const {
    for (std::size_t r = 0; r < tile.count; ++r) {
      const std::size_t visible = Visible(tile, r);
      float* out = Out(tile, r);
      for (std::size_t b = 1; b < ceil_div(visible, sum_panel); ++b) {
        const float* result = BlockResult(tile, r, scratch_row + r, b);
        for (std::size_t i = 0; i < head_dim_; ++i) out[i] += result[i];
      }
      if (call_.mode == NumericMode::bf16) RoundToBf16(out, head_dim_);
      for (float* probs : {call_.probs, call_.probs_before_rounding}) {
        if (probs == nullptr) continue;
        float* row = TracedRow(tile, r, probs);
        std::fill(row + visible, row + tile.chunk->start + tile.chunk->tokens, 0.0f);
      }
    }
  }

 private:
  std::size_t TilesOfHead(const SequenceChunk& chunk) const {
    return ceil_div(chunk.tokens * group_, kRows);
  }
  std::size_t Token(const Tile& tile, std::size_t r) const { return (tile.first + r) / group_; }
  std::size_t Row(const Tile& tile, std::size_t r) const {
    return tile.chunk->first_row + Token(tile, r);
  }
  std::size_t Head(const Tile& tile, std::size_t r) const {
    return tile.kv_head * group_ + (tile.first + r) % group_;
  }
  // Positions that a row sees: all before it in its sequence, and its own.
  std::size_t Visible(const Tile& tile, std::size_t r) const {
    return tile.chunk->start + Token(tile, r) + 1;
  }
  std::size_t VisibleInBlock(const Tile& tile, std::size_t r, std::size_t block) const {
    const std::size_t visible = Visible(tile, r);
    const std::size_t begin = block * sum_panel;
    return visible <= begin ? 0 : (std::min)(visible - begin, sum_panel);
  }

  float* Out(const Tile& tile, std::size_t r) const {
    return call_.out + Row(tile, r) * call_.out_stride + Head(tile, r) * head_dim_;
  }
  float* RowScores(std::size_t scratch_row) const {
    return call_.scratch + scratch_row * row_floats_;
  }
  float* LaterResults(std::size_t scratch_row) const {
    return RowScores(scratch_row) + detail::attention_score_stride(longest_);
  }
  // Where the weighted values of a block are added up: those of the first block in the output.
  float* BlockResult(const Tile& tile, std::size_t r, std::size_t scratch_row,
                     std::size_t block) const {
    return block == 0 ? Out(tile, r) : LaterResults(scratch_row) + (block - 1) * head_dim_;
  }
  float* BlockLargest(std::size_t scratch_row) const {
    return LaterResults(scratch_row) + round_up((Blocks() - 1) * head_dim_, 16);
  }
  float* BlockSums(std::size_t scratch_row) const { return BlockLargest(scratch_row) + Blocks(); }
  float* TracedRow(const Tile& tile, std::size_t r, float* probs) const {
    const std::size_t row = Head(tile, r) * tile.chunk->tokens + Token(tile, r);
    return probs + tile.probs_offset + row * (tile.chunk->start + tile.chunk->tokens);
  }

  template <class Element>
  void ScaledScores(const Tile& tile, std::size_t scratch_row, std::size_t block) const {
    const float* q[kRows];
    float* scores[kRows];
    for (std::size_t r = 0; r < tile.count; ++r) {
      q[r] = call_.q + Row(tile, r) * call_.q_stride + Head(tile, r) * head_dim_;
      scores[r] = RowScores(scratch_row + r);
    }
    const auto* keys = reinterpret_cast<const Element*>(tile.head.keys);
    const std::size_t begin = block * sum_panel;
    const std::size_t end = (std::min)(begin + sum_panel, Visible(tile, tile.count - 1));
    // With few rows there is no second use that the keys would have to stay near for.
    const std::size_t step = tile.count <= kTileRows ? sum_panel : kNearPositions;
    for (std::size_t p = begin; p < end; p += step) {
      for (std::size_t r = 0; r < tile.count; r += kTileRows) {
        ScoreSomeRows((std::min)(kTileRows, tile.count - r), r == 0, q + r, head_dim_, keys, p,
                      (std::min)(p + step, end), scores + r, {divisor_, call_.mode});
      }
    }
  }

  template <class Element>
  void WeighBlock(const Tile& tile, std::size_t scratch_row, std::size_t block) const {
    const float* weights[kRows];
    float* results[kRows];
    for (std::size_t r = 0; r < tile.count; ++r) {
      weights[r] = RowScores(scratch_row + r);
      results[r] = BlockResult(tile, r, scratch_row + r, block);
      std::fill(results[r], results[r] + head_dim_, 0.0f);
    }
    const auto* values = reinterpret_cast<const Element*>(tile.head.values);
    const std::size_t begin = block * sum_panel;
    const std::size_t end = begin + sum_panel;
    // What all rows see goes by tiles; the few positions that only later ones see token by token.
    const std::size_t common = (std::max)(begin, (std::min)(end, Visible(tile, 0)));
    for (std::size_t p = begin; p < common; p += kNearPositions) {
      for (std::size_t r = 0; r < tile.count; r += kTileRows) {
        WeighSomeRows((std::min)(kTileRows, tile.count - r), r == 0, weights + r, head_dim_, values,
                      p, (std::min)(p + kNearPositions, common), results + r);
      }
    }
    for (std::size_t r = 0; r < tile.count;) {
      std::size_t same = r + 1;  // heads of one token
      while (same < tile.count && same - r < kTileRows && Token(tile, same) == Token(tile, r)) {
        ++same;
      }
      const std::size_t own = begin + VisibleInBlock(tile, r, block);
      if (own > common) {
        WeighSomeRows(same - r, true, weights + r, head_dim_, values, common, own, results + r);
      }
      r = same;
    }
  }

  void Probabilities(const Tile& tile, std::size_t r, std::size_t block, float* x, std::size_t n,
                     float sum) const {
    const std::size_t begin = block * sum_panel;
    if (call_.probs_before_rounding != nullptr) {
      DivideRow(x, n, sum, NumericMode::f32);
      std::copy(x, x + n, TracedRow(tile, r, call_.probs_before_rounding) + begin);
      if (call_.mode == NumericMode::bf16) RoundToBf16(x, n);
    } else {
      DivideRow(x, n, sum, call_.mode);
    }
    if (call_.probs != nullptr) std::copy(x, x + n, TracedRow(tile, r, call_.probs) + begin);
  }

  const AttentionCall& call_;
  std::size_t kv_heads_;
  std::size_t head_dim_;
  std::size_t group_;
  float divisor_;
  std::size_t tiles_ = 0;
  std::size_t rows_ = 0;
  std::size_t longest_ = 0;
  std::size_t row_floats_ = 0;
};

// out = softmax(q k^T / sqrt(head_dim)) v for every query head of every token of the call.
inline void Attend(const AttentionCall& call, ExecutorRef executor) {
  const AttentionTiles tiles(call);
  const std::size_t workers = executor.concurrency();
  const std::size_t blocks = tiles.Blocks();
  const bool share_out = workers > 1 && tiles.Tiles() < 2 * workers &&
                         tiles.Longest() >= kShareOutPositions &&
                         tiles.Rows() <= workers * AttentionTiles::kRows;
  if (!share_out) {
    executor.run(tiles.Tiles(), [&](std::size_t task, std::size_t worker) HWY_ATTR {
      tiles.Whole(tiles.At(task), worker * AttentionTiles::kRows);
    });
    return;
  }
  // Every tile has scratch rows of its own, every block of a tile is a task.
  const auto for_all_blocks = [&](auto step) HWY_ATTR {
    executor.run(tiles.Tiles() * blocks, [&](std::size_t task, std::size_t) HWY_ATTR {
      const AttentionTiles::Tile tile = tiles.At(task / blocks);
      if (task % blocks < tiles.BlocksOf(tile))
        (tiles.*step)(tile, tile.scratch_row, task % blocks);
    });
  };
  for_all_blocks(&AttentionTiles::Scores);
  for_all_blocks(&AttentionTiles::Exponentials);
  for_all_blocks(&AttentionTiles::Values);
  executor.run(tiles.Tiles(), [&](std::size_t task, std::size_t) HWY_ATTR {
    const AttentionTiles::Tile tile = tiles.At(task);
    tiles.Finish(tile, tile.scratch_row);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
