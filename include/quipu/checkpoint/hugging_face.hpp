// The order of the rows of q and k in Hugging Face files, and the way back to Meta's.
//
// Meta's rotary embedding turns the neighbouring rows (2i, 2i + 1) of a head together, Hugging
// Face's the rows (i, i + head_dim/2), so their converter moves the rows of q_proj and k_proj, head
// by head. A head is head_dim rows whatever the number of heads, so one function serves queries and
// the fewer keys. Forgetting this gives text that is fluent for some words only.
// Source: the permutation written out in the model conversion for Llama (pairs to halves).
#pragma once

#include <cstddef>
#include <cstring>

#include "quipu/checkpoint/messages.hpp"

namespace quipu {

/// In which order rows are handed out, relative to how they are stored.
enum class RowOrder : unsigned char {
  stored,
  meta_from_hugging_face,  ///< stored as halves, handed out as neighbouring pairs
  hugging_face_from_meta   ///< stored as neighbouring pairs, handed out as halves
};

/// The row of a Hugging Face matrix that holds Meta's row `row`; head_dim is even.
constexpr std::size_t hugging_face_row(std::size_t row, std::size_t head_dim) {
  const std::size_t in_head = row % head_dim;
  return row - in_head + (in_head % 2) * (head_dim / 2) + in_head / 2;
}

/// The row of Meta's matrix that holds Hugging Face's row `row`; head_dim is even.
constexpr std::size_t meta_row(std::size_t row, std::size_t head_dim) {
  const std::size_t in_head = row % head_dim;
  const std::size_t half = head_dim / 2;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

/// The stored row that is handed out as row `row`.
constexpr std::size_t stored_row(RowOrder order, std::size_t row, std::size_t head_dim) {
  return order == RowOrder::stored                   ? row
         : order == RowOrder::meta_from_hugging_face ? hugging_face_row(row, head_dim)
                                                     : meta_row(row, head_dim);
}

/// ArgumentError unless `rows` are whole heads of an even head_dim; `what` names the tensor.
inline void check_rotary_rows(std::size_t rows, std::size_t head_dim, const detail::Words& what) {
  if (head_dim == 0 || head_dim % 2 != 0) {
    raise<ArgumentError>(what + ": head_dim: expected an even number, found " +
                         detail::decimal(head_dim));
  }
  if (rows % head_dim != 0) {
    raise<ArgumentError>(what + ": " + detail::decimal(rows) +
                         " rows are not whole heads of head_dim " + detail::decimal(head_dim));
  }
}

/// Copies `rows` rows of `row_bytes` bytes from `in` to `out` (no overlap) in the given order.
inline void reorder_rows(RowOrder order, const std::byte* in, std::byte* out, std::size_t rows,
                         std::size_t row_bytes, std::size_t head_dim) {
  if (order != RowOrder::stored) check_rotary_rows(rows, head_dim, "reorder_rows");
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(out + row * row_bytes, in + stored_row(order, row, head_dim) * row_bytes,
                row_bytes);
  }
}

}  // namespace quipu
