// The rotary embedding: every neighbouring pair (2i, 2i + 1) of a head is turned by
// position * inverse frequency i. No weights.
// Siblings: config/rope.hpp (frequencies), simd/rotary-inl.hpp, test/simd/rotary_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"

namespace quipu {

/// Queries [B, T, heads, head_dim] and keys [B, T, kv_heads, head_dim], each to its own shape.
/// Source: model.py 49-54 (table), 65-75 (application), 160 (call); scaled for Llama 3.1 and later:
/// meta-llama/llama-models a9c89c471f79, models/llama3/model.py 45-62.
template <class M>
struct RotaryEmbedding {
  using In = Queries<M>;
  using Out = Queries<M>;
  using KeysIn = KeysOrValues<M>;
  using KeysOut = KeysOrValues<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// A pair: 4 products and 2 sums, that is 3 a feature of q and k.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 3 * (dims<M>::q_width + dims<M>::kv_width), "FLOPs"), 0, 0, 0};
  }
};

}  // namespace quipu
