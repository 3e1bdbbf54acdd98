// A transformer block: h = x + attention(norm(x)), out = h + feed_forward(norm(h)).
// Siblings: attention.hpp, feed_forward.hpp, rms_norm.hpp, residual_add.hpp;
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/attention.hpp"
#include "quipu/model/feed_forward.hpp"
#include "quipu/model/residual_add.hpp"
#include "quipu/model/rms_norm.hpp"

namespace quipu {

/// The nine tensors of a block, in the order of Meta's state dict.
template <class A>
struct BlockWeights {
  using AttentionNorm = typename RmsNorm<A, weight_id::attention_norm>::Weight;
  using FfnNorm = typename RmsNorm<A, weight_id::ffn_norm>::Weight;
  QUIPU_WEIGHTS(BlockWeights, (AttentionWeights<A>, attention),
                (FeedForwardWeights<A>, feed_forward), (AttentionNorm, attention_norm),
                (FfnNorm, ffn_norm));
};

/// [B, T, d] -> [B, T, d]. Source: model.py 222-248.
template <class M>
struct Block {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = BlockWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return RmsNorm<M, weight_id::attention_norm>::cost(w) + Attention<M>::cost(w) +
           RmsNorm<M, weight_id::ffn_norm>::cost(w) + FeedForward<M>::cost(w) +
           2 * ResidualAdd<M>::cost(w);
  }
};

}  // namespace quipu
