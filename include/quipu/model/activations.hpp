// The shapes that pass between components. Prefill has T positions, decoding has 1:
// with_extent<axis::positions, 1, In>.
// Siblings: the component headers of this folder.
#pragma once

#include "quipu/config/dims.hpp"
#include "quipu/shape/shape.hpp"

namespace quipu {

/// B sequences, known at run time.
using BatchDim = dim<axis::batch>;
/// T new positions of each, known at run time.
using PositionsDim = dim<axis::positions>;

/// Token ids: [B batch, T positions].
using Tokens = Shape<BatchDim, PositionsDim>;

/// The residual stream and every contribution to it: [B, T, d].
template <class M>
using Residual = Shape<BatchDim, PositionsDim, dim<axis::d, dims<M>::dim>>;

/// Queries by head: [B, T, heads, head_dim].
template <class M>
using Queries = Shape<BatchDim, PositionsDim, dim<axis::heads, dims<M>::n_heads>,
                      dim<axis::head_dim, dims<M>::head_dim>>;

/// Keys or values by head: [B, T, kv_heads, head_dim].
template <class M>
using KeysOrValues = Shape<BatchDim, PositionsDim, dim<axis::kv_heads, dims<M>::n_kv_heads>,
                           dim<axis::head_dim, dims<M>::head_dim>>;

/// Queries, or the weighted values, with heads merged: [B, T, heads*head_dim].
template <class M>
using MergedHeads = merge<axis::heads, axis::head_dim, Queries<M>>;

/// Keys or values with heads merged, as wk and wv give them: [B, T, kv_heads*head_dim].
template <class M>
using MergedKvHeads = merge<axis::kv_heads, axis::head_dim, KeysOrValues<M>>;

/// Inside the feed-forward network: [B, T, ffn].
template <class M>
using Hidden = Shape<BatchDim, PositionsDim, dim<axis::ffn, dims<M>::ffn>>;

/// Attention weights after softmax: [B, heads, T, keys].
template <class M>
using Probabilities =
    Shape<BatchDim, dim<axis::heads, dims<M>::n_heads>, PositionsDim, dim<axis::keys>>;

/// Scores of the vocabulary: [B, T, vocabulary].
template <class M>
using Logits = Shape<BatchDim, PositionsDim, dim<axis::vocabulary, dims<M>::vocab_size>>;

/// One layer's keys, or values, of every position: [B, keys, kv_heads, head_dim].
template <class M>
using CachedKeysOrValues =
    Shape<BatchDim, dim<axis::keys>, dim<axis::kv_heads, dims<M>::n_kv_heads>,
          dim<axis::head_dim, dims<M>::head_dim>>;

}  // namespace quipu
