// Scaled dot-product attention with grouped queries over the KV cache: scores, causal softmax,
// weighted values. No weights.
// Siblings: simd/attention-inl.hpp, runtime/kv_cache.hpp, test/simd/attention_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"

namespace quipu {

/// Queries [B, T, heads, head_dim] with the cached keys and values -> [B, T, heads*head_dim].
/// Query head h reads kv head h / heads_per_kv_head. Source: model.py 165-169 (cache), 172-177
/// (grouping), 184-189.
template <class M>
struct ScaledDotProduct {
  using In = Queries<M>;
  using Cache = CachedKeysOrValues<M>;
  using Scores = Probabilities<M>;
  using Out = MergedHeads<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// A query head and visible key: 2 head_dim for the score, 1 scaling, 4 for the softmax (maximum,
  /// difference, exponential, sum) and 1 division, 2 head_dim for the weighted value. The cache of
  /// all visible positions is read once a call and sequence; the new positions are written.
  static constexpr Cost cost(const Work& w) {
    const std::size_t pairs = checked_mul(w.visible_keys(), dims<M>::n_heads, "scores");
    const std::size_t position = 2 * dims<M>::kv_width * w.cache_element_bytes;
    return {checked_mul(pairs, 4 * dims<M>::head_dim + 6, "FLOPs"), 0,
            checked_mul(checked_mul(w.batch, w.start + w.positions, "cached positions"), position,
                        "bytes"),
            checked_mul(w.rows(), position, "bytes")};
  }
};

}  // namespace quipu
