// Which tokens of a forward pass belong to which sequence, and where they stand in it.
//
// Siblings: rotary_table.hpp, simd/kv_append-inl.hpp and simd/attention-inl.hpp, which take it.
// Tokens of all sequences follow each other without padding: activations have one row per token.
#pragma once

#include <cstddef>

namespace quipu {

/// A run of tokens of one sequence within the rows of a forward pass.
struct SequenceChunk {
  std::size_t cache_row = 0;  ///< batch row of the KV cache
  std::size_t start = 0;      ///< absolute position of its first token
  std::size_t tokens = 0;     ///< how many
  std::size_t first_row = 0;  ///< activation row of its first token
};

}  // namespace quipu
