// One weight as a member of a struct of weights.
//
// The type carries the logical extents, always [out, in], and an identity: w1 and w3 have equal
// extents and are different types. The value is a view: element type, layout and stride are known
// at run time, since they differ from tensor to tensor in real files.
// Siblings: reflect/reflect.hpp (visiting), model/ (the weights of each component).
#pragma once

#include <string_view>

#include "quipu/reflect/shard_axis.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/shape/shape.hpp"

namespace quipu {

/// The dim on which an output of a norm stands: one row.
struct one_row {
  static constexpr std::string_view name = "1", singular = "1", symbol = "1";
};

/// A weight [out, in]. Id is a type with names (`gguf`, `hugging_face`: the tensor's stem there,
/// without ".weight"; the Meta name is the path of members), `shard`, and for wq and wk `rotary_rows`;
/// OutDim and InDim are dims.
template <class Id, class OutDim, class InDim>
struct Weight {
  using id = Id;
  using out_dim = OutDim;
  using in_dim = InDim;
  static constexpr std::size_t out = OutDim::extent;
  static constexpr std::size_t in = InDim::extent;
  /// Elements of one instance.
  static constexpr std::size_t size = out * in;
  /// A vector (a norm's weight): files store it with one extent.
  static constexpr bool is_vector = std::is_same_v<typename OutDim::axis, one_row>;

  MatrixView view;
};

namespace detail {
template <class W, ElementType Type, bool Whole>
struct stored_bytes_checked {
  static constexpr std::size_t value =
      checked_mul(W::out, row_bytes(Type, W::in), "bytes of a weight");
};
template <class W, ElementType Type>
struct stored_bytes_checked<W, Type, false> {
  static_assert(
      sizeof(quantised_row_must_be_whole_blocks<typename W::in_dim::axis, extent_is<W::in>,
                                                block_is<info(Type).block_elements>>) > 0);
  static constexpr std::size_t value = 0;
};
}  // namespace detail

/// Bytes of a weight stored in a plain or block type. A row that is not whole blocks is an error
/// that carries the axis and both numbers: quantised_row_must_be_whole_blocks.
template <class W, ElementType Type>
inline constexpr std::size_t stored_bytes =
    detail::stored_bytes_checked<W, Type, row_is_whole_blocks(Type, W::in)>::value;

}  // namespace quipu
