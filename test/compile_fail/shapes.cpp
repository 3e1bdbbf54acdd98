// Shapes taken apart and put together wrongly.
// FAIL merge_not_adjacent: axes_not_adjacent<axis::heads, axis::head_dim, Shape<dim<axis::heads, 32>, dim<axis::batch, 2>, dim<axis::head_dim, 128>>>
// FAIL merge_backwards: axes_not_adjacent<axis::head_dim, axis::heads, Shape<dim<axis::batch, 2>, dim<axis::heads, 32>, dim<axis::head_dim, 128>>>
// FAIL split_product: split_must_multiply_to_extent<axis::merged<heads, head_dim>, extent_is<4096>, outer_is<32>, inner_is<64>>
// FAIL split_no_such_axis: axis_not_in_shape<axis::merged<kv_heads, head_dim>, Shape<dim<axis::batch, 2>, dim<axis::merged<heads, head_dim>, 4096>>>
// FAIL axis_not_there: axis_not_in_shape<axis::ffn, Shape<dim<axis::batch, 2>, dim<axis::heads, 32>, dim<axis::head_dim, 128>>>
#include "quipu/shape/shape.hpp"

using namespace quipu;
using ByHead = Shape<dim<axis::batch, 2>, dim<axis::heads, 32>, dim<axis::head_dim, 128>>;
using HeadsMerged = axis::merged<axis::heads, axis::head_dim>;
using KvMerged = axis::merged<axis::kv_heads, axis::head_dim>;
using Flat = merge<axis::heads, axis::head_dim, ByHead>;

#if defined(QUIPU_FAIL_merge_not_adjacent)
using Y = merge<axis::heads, axis::head_dim,
                Shape<dim<axis::heads, 32>, dim<axis::batch, 2>, dim<axis::head_dim, 128>>>;
#elif defined(QUIPU_FAIL_merge_backwards)
using Y = merge<axis::head_dim, axis::heads, ByHead>;
#elif defined(QUIPU_FAIL_split_product)
using Y = split<HeadsMerged, 32, 64, Flat>;
#elif defined(QUIPU_FAIL_split_no_such_axis)
using Y = split<KvMerged, 8, 128, Flat>;
#elif defined(QUIPU_FAIL_axis_not_there)
using Y = Shape<dim<axis::ffn, extent_of<axis::ffn, ByHead>>>;
#else
using Y = split<HeadsMerged, 32, 128, Flat>;
static_assert(same_shape<Y, ByHead>);
#endif
static_assert(Y::rank > 0);
