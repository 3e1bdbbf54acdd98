// Shapes: extents by name, equality, merge and split, strides of views, prefill and decode.
#include "quipu/shape/shape.hpp"

#include "quipu/shape/element_type.hpp"
#include "quipu/shape/view.hpp"

using namespace quipu;
using B = dim<axis::batch>;
using T = dim<axis::positions>;
using H = dim<axis::heads, 32>;
using W = dim<axis::head_dim, 128>;
using ByHead = Shape<B, T, H, W>;
using HeadsMerged = axis::merged<axis::heads, axis::head_dim>;
using Flat = Shape<B, T, dim<HeadsMerged, 4096>>;

static_assert(ByHead::rank == 4 && ByHead::dynamic_rank == 2);
static_assert(extent_of<axis::heads, ByHead> == 32 && extent_of<axis::batch, ByHead> == dynamic);
static_assert(has_axis<axis::head_dim, ByHead> && !has_axis<axis::ffn, ByHead>);
static_assert(std::is_same_v<nth_dim<2, ByHead>, H>);

static_assert(std::is_same_v<merge<axis::heads, axis::head_dim, ByHead>, Flat>);
static_assert(std::is_same_v<split<HeadsMerged, 32, 128, Flat>, ByHead>);
static_assert(
    extent_of<HeadsMerged, merge<axis::heads, axis::head_dim, Shape<B, dim<axis::heads>, W>>> ==
    dynamic);

// Same extents on other axes, other extents on the same axes, another order, another rank.
static_assert(same_shape<ByHead, ByHead>);
static_assert(!same_shape<Shape<B, dim<axis::d, 4096>>, Shape<B, dim<axis::ffn, 4096>>>);
static_assert(!same_shape<Shape<B, dim<axis::d, 4096>>, Shape<B, dim<axis::d, 2048>>>);
static_assert(!same_shape<Shape<B, T>, Shape<T, B>>);
static_assert(!same_shape<ByHead, Flat>);
// A dynamic extent agrees with any.
static_assert(same_shape<ByHead, with_extent<axis::positions, 7, ByHead>>);
static_assert(std::is_same_v<shape_difference<Shape<dim<axis::d, 1>>, Shape<dim<axis::d, 2>>>,
                             axis_extent_mismatch<axis::d, expected<1>, found<2>>>);

// Decoding is one position.
using Decode = with_extent<axis::positions, 1, ByHead>;
static_assert(extent_of<axis::positions, Decode> == 1 && Decode::dynamic_rank == 1);
static_assert(element_count<with_extent<axis::batch, 2, Decode>>() == 2 * 4096);

constexpr bool views() {
  float memory[2 * 3 * 4096]{};
  const TensorView<float, ByHead> v(memory, 2, 3);
  bool ok = v.extent(0) == 2 && v.extent(1) == 3 && v.extent<axis::heads>() == 32;
  ok = ok && v.stride(0) == 3 * 4096 && v.stride(1) == 4096 && v.stride(2) == 128 &&
       v.stride(3) == 1;
  ok = ok && v.size() == 2 * 3 * 4096 && v.rows() == 2 * 3 * 32 && v.row_size() == 128;
  // Merging moves nothing; a row of the merged view is a whole position.
  const TensorView<float, Flat> flat = v.as<Flat>();
  ok = ok && flat.rows() == 6 && flat.row_size() == 4096 && flat.row(5) == memory + 5 * 4096;
  const TensorView<const float, Flat> read = flat;
  const TensorView<float, Decode> one(memory, 2);
  return ok && read.data() == memory && one.extent<axis::positions>() == 1 && one.rows() == 64;
}
static_assert(views());
static_assert(sizeof(TensorView<float, with_extent<axis::batch, 1, Decode>>) <= 2 * sizeof(void*));

// Size arithmetic at the edge of the type.
static_assert(checked_mul(0, dynamic) == 0 && checked_mul(dynamic, 1) == dynamic);
static_assert(checked_add(dynamic - 1, 1) == dynamic);
static_assert(round_up(33, 16) == 48 && round_up(32, 16) == 32 && round_up(0, 16) == 0);
static_assert(ceil_div(33, 32) == 2 && ceil_div(32, 32) == 1);

// Rows of block formats: 31, 33, 255 and 257 elements are never whole blocks.
constexpr bool whole(std::size_t n, bool plain, bool by_32, bool by_256) {
  using enum ElementType;
  for (ElementType t : {f32, bf16, f16}) {
    if (row_is_whole_blocks(t, n) != plain) return false;
  }
  for (ElementType t : {q8_0, q4_0, q4_1, q5_0, q5_1}) {
    if (row_is_whole_blocks(t, n) != by_32) return false;
  }
  for (ElementType t : {q4_k, q5_k, q6_k}) {
    if (row_is_whole_blocks(t, n) != by_256) return false;
  }
  return true;
}
static_assert(whole(31, true, false, false) && whole(32, true, true, false) &&
              whole(33, true, false, false) && whole(255, true, false, false) &&
              whole(256, true, true, true) && whole(257, true, false, false));
static_assert(row_bytes(ElementType::q8_0, 64) == 68 && row_bytes(ElementType::q4_1, 576) == 360 &&
              row_bytes(ElementType::q6_k, 256) == 210 && row_bytes(ElementType::bf16, 3) == 6);
