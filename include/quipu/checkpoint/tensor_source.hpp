// One logical matrix of a checkpoint, wherever its bytes stand: in one piece, in the shards of
// several model-parallel ranks, or as the part of a matrix that one rank of a new split needs.
//
// A matrix of a packed file stands in panels; its rows are unpacked when they are asked for.
// A source copies nothing until rows are asked for, so a packer can read, merge, re-split and
// un-permute a matrix a few rows at a time, and a 16 GB checkpoint is never in memory twice.
// Siblings: tensor_record.hpp, hugging_face.hpp (row orders), checkpoint.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/checkpoint/hugging_face.hpp"
#include "quipu/checkpoint/messages.hpp"
#include "quipu/checkpoint/tensor_record.hpp"
#include "quipu/reflect/shard_axis.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/simd/packing.hpp"

namespace quipu {

class TensorSource {
 public:
  TensorSource() = default;

  /// The whole tensor of one record. A vector is a matrix of one row. FormatError (with the
  /// record's name) for an unsupported element type, other than one or two extents, or rows that
  /// are not whole blocks.
  static TensorSource whole(const TensorRecord& record);

  /// Puts the shards of ranks 0, 1, ... together. FormatError if types or extents differ, if a
  /// vector is to be cut by rows, or if copies (ShardAxis::none) are not equal bytes.
  static TensorSource merge(std::span<const TensorRecord* const> shards, ShardAxis axis);

  /// The part of rank `rank` among `ranks`. ArgumentError, naming the sizes, if the rows, heads or
  /// blocks do not divide.
  TensorSource slice(ShardAxis axis, std::size_t rank, std::size_t ranks) const;

  /// The same matrix with its rows handed out in another order (q and k of Hugging Face files).
  TensorSource reordered(RowOrder order, std::size_t head_dim) const;

  const std::string& name() const { return name_; }
  ElementType type() const { return type_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  /// Bytes of one row as read_rows() writes it.
  std::size_t row_bytes() const { return quipu::row_bytes(type_, cols_); }

  /// The matrix in place, if its bytes stand in one piece in the order asked for: rows, or whole
  /// panels of a packed file.
  std::optional<MatrixView> view() const {
    if (pieces_.size() != 1 || order_ != RowOrder::stored) return std::nullopt;
    if (!panels_.empty()) {
      if (first_byte_ != 0 || cols_ != panels_.cols || first_row_ % panel_outputs != 0 ||
          (rows_ % panel_outputs != 0 && first_row_ + rows_ != panels_.rows)) {
        return std::nullopt;
      }
      MatrixView part = panels_;
      part.data += first_row_ / panel_outputs * panels_.row_stride;
      part.rows = rows_;
      return part;
    }
    return MatrixView{pieces_[0].data, rows_, cols_, pieces_[0].stride, type_, Layout::row_major};
  }

  /// Copies rows [first, first + count) to `out`, count * row_bytes() bytes.
  void read_rows(std::size_t first, std::size_t count, std::byte* out) const;

  /// The ranges of memory that hold the rows [first, first + count), as calls of
  /// f(const std::byte* begin, std::size_t bytes): for MappedFile::release() after packing. With a
  /// row order other than the stored one, whole heads must be asked for.
  template <class F>
  void for_each_range(std::size_t first, std::size_t count, F&& f) const {
    if (!panels_.empty()) {
      const std::size_t begin = (first_row_ + first) / panel_outputs;
      const std::size_t end = ceil_div(first_row_ + first + count, panel_outputs);
      return f(panels_.data + begin * panels_.row_stride, (end - begin) * panels_.row_stride);
    }
    for (const Piece& piece : pieces_) {
      const std::size_t begin = (std::max)(first, piece.row);
      const std::size_t end = (std::min)(first + count, piece.row + piece.rows);
      if (begin >= end) continue;
      const std::size_t bytes = (end - begin - 1) * piece.stride + piece.bytes;
      f(piece.data + (begin - piece.row) * piece.stride, bytes);
    }
  }

 private:
  // A rectangle of the logical matrix whose rows stand `stride` bytes apart.
  struct Piece {
    const std::byte* data;
    std::size_t stride;
    std::size_t row, rows;    ///< of the logical matrix, in stored order
    std::size_t byte, bytes;  ///< of a logical row
  };

  void read_row(std::size_t row, std::byte* out, std::byte* unpacked) const {
    if (!panels_.empty()) {
      unpack_row(panels_, first_row_ + row, unpacked);
      std::memcpy(out, unpacked + first_byte_, row_bytes());
      return;
    }
    for (const Piece& piece : pieces_) {
      if (row < piece.row || row - piece.row >= piece.rows) continue;
      std::memcpy(out + piece.byte, piece.data + (row - piece.row) * piece.stride, piece.bytes);
    }
  }

  std::string name_;
  ElementType type_ = ElementType::f32;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  RowOrder order_ = RowOrder::stored;
  std::size_t head_dim_ = 0;
  std::vector<Piece> pieces_;
  MatrixView panels_;                           ///< the whole matrix of a packed file, else empty
  std::size_t first_row_ = 0, first_byte_ = 0;  ///< of the part of it that this source is
};

inline TensorSource TensorSource::whole(const TensorRecord& record) {
  const detail::Words what = "tensor " + detail::in_quotes(record.name);
  if (!record.type) {
    detail::bad_format(what, "the element type " + detail::in_quotes(record.type_name) +
                                 " is none that quipu computes with");
  }
  const std::size_t rank = record.extents.size();
  if (rank != 1 && rank != 2) {
    detail::bad_field(what, "extents", "a vector or a matrix",
                      detail::extents_text(record.extents));
  }
  TensorSource source;
  source.name_ = record.name;
  source.type_ = *record.type;
  source.rows_ = rank == 2 ? record.extents[0] : 1;
  source.cols_ = record.extents[rank - 1];
  if (!row_is_whole_blocks(source.type_, source.cols_)) {
    detail::bad_format(what, "rows of " + detail::decimal(source.cols_) +
                                 " elements are not whole blocks of " +
                                 detail::decimal(info(source.type_).block_elements));
  }
  const std::size_t stride = source.row_bytes();
  if (record.layout == Layout::panels) {  // whose size the reader has judged
    source.panels_ = packed_view(record.data, source.type_, source.rows_, source.cols_);
  } else if (checked_mul(source.rows_, stride, "bytes of a tensor") != record.bytes) {
    detail::bad_field(what, "bytes", detail::decimal(source.rows_ * stride),
                      detail::decimal(record.bytes));
  }
  source.pieces_.push_back({record.data, stride, 0, source.rows_, 0, stride});
  return source;
}

inline TensorSource TensorSource::merge(std::span<const TensorRecord* const> shards,
                                        ShardAxis axis) {
  if (shards.empty()) raise<ArgumentError>("TensorSource::merge: no shards");
  TensorSource merged = whole(*shards[0]);
  if (shards.size() == 1) return merged;
  if (!merged.panels_.empty()) raise<ArgumentError>("TensorSource::merge: packed shards");
  const detail::Words what = "tensor " + detail::in_quotes(merged.name_);
  if (axis == ShardAxis::rows && shards[0]->extents.size() == 1) {
    detail::bad_format(what, "a vector cannot be cut by rows");
  }
  for (std::size_t rank = 1; rank < shards.size(); ++rank) {
    const TensorRecord& shard = *shards[rank];
    const detail::Words field = "shard " + detail::decimal(rank);
    if (shard.type_name != shards[0]->type_name) {
      detail::bad_field(what, field + ", element type", shards[0]->type_name, shard.type_name);
    }
    if (shard.extents != shards[0]->extents) {
      detail::bad_field(what, field + ", extents", detail::extents_text(shards[0]->extents),
                        detail::extents_text(shard.extents));
    }
    Piece piece = whole(shard).pieces_[0];
    if (axis == ShardAxis::none) {
      if (std::memcmp(shard.data, shards[0]->data, shard.bytes) != 0) {
        detail::bad_format(what, field + " should be a copy of shard 0, but its values differ");
      }
      continue;
    }
    if (axis == ShardAxis::rows) piece.row = merged.rows_;
    if (axis == ShardAxis::columns) piece.byte = merged.row_bytes();
    if (axis == ShardAxis::rows) merged.rows_ = checked_add(merged.rows_, shards[0]->extents[0]);
    if (axis == ShardAxis::columns) {
      merged.cols_ = checked_add(merged.cols_, shards[0]->extents.back());
    }
    merged.pieces_.push_back(piece);
  }
  return merged;
}

inline TensorSource TensorSource::slice(ShardAxis axis, std::size_t rank, std::size_t ranks) const {
  const detail::Words what = "tensor " + detail::in_quotes(name_);
  if (ranks == 0 || rank >= ranks) {
    raise<ArgumentError>(what + ": rank " + detail::decimal(rank) + " of " +
                         detail::decimal(ranks));
  }
  if (axis == ShardAxis::none || ranks == 1) return *this;
  const bool by_rows = axis == ShardAxis::rows;
  // Whole heads where rows are reordered by head, whole blocks where elements share a scale.
  const std::size_t unit = !by_rows                     ? info(type_).block_elements
                           : order_ == RowOrder::stored ? 1
                                                        : head_dim_;
  const std::size_t extent = by_rows ? rows_ : cols_;
  if (extent % ranks != 0 || extent / ranks % unit != 0) {
    raise<ArgumentError>(what + ": " + detail::decimal(extent) + (by_rows ? " rows" : " columns") +
                         " do not divide among " + detail::decimal(ranks) + " ranks" +
                         (unit == 1 ? "" : " in units of " + detail::decimal(unit)));
  }
  TensorSource part = *this;
  part.pieces_.clear();
  (by_rows ? part.rows_ : part.cols_) = extent / ranks;
  const std::size_t length = by_rows ? part.rows_ : part.row_bytes();
  const std::size_t from = rank * length;
  (by_rows ? part.first_row_ : part.first_byte_) += from;
  for (Piece piece : pieces_) {
    // The part of the piece inside [from, from + length), counted from `from`.
    std::size_t& start = by_rows ? piece.row : piece.byte;
    std::size_t& size = by_rows ? piece.rows : piece.bytes;
    const std::size_t begin = (std::max)(start, from);
    const std::size_t end = (std::min)(start + size, from + length);
    if (begin >= end) continue;
    piece.data += (begin - start) * (by_rows ? piece.stride : 1);
    start = begin - from;
    size = end - begin;
    part.pieces_.push_back(piece);
  }
  return part;
}

inline TensorSource TensorSource::reordered(RowOrder order, std::size_t head_dim) const {
  if (order != RowOrder::stored) {
    check_rotary_rows(rows_, head_dim, "tensor " + detail::in_quotes(name_));
  }
  TensorSource out = *this;
  out.order_ = order;
  out.head_dim_ = head_dim;
  return out;
}

inline void TensorSource::read_rows(std::size_t first, std::size_t count, std::byte* out) const {
  if (first > rows_ || count > rows_ - first) {
    raise<ArgumentError>("tensor " + detail::in_quotes(name_) + ": rows " + detail::decimal(first) +
                         " to " + detail::decimal(first + count) + " of " + detail::decimal(rows_));
  }
  const std::size_t stride = row_bytes();
  std::vector<std::byte> unpacked(panels_.empty() ? 0 : quipu::row_bytes(type_, panels_.cols));
  for (std::size_t i = 0; i < count; ++i) {
    read_row(stored_row(order_, first + i, head_dim_), out + i * stride, unpacked.data());
  }
}

}  // namespace quipu
