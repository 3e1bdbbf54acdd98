// The feed-forward network: w2 (silu(w1 x) * w3 x).
// Siblings: gate_projection.hpp, up_projection.hpp, silu_gate.hpp, down_projection.hpp;
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/down_projection.hpp"
#include "quipu/model/gate_projection.hpp"
#include "quipu/model/silu_gate.hpp"
#include "quipu/model/up_projection.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu {

/// The matrices of one block's feed-forward network, in the order of Meta's state dict.
template <class A>
struct FeedForwardWeights {
  using W1 = typename GateProjection<A>::Weight;
  using W2 = typename DownProjection<A>::Weight;
  using W3 = typename UpProjection<A>::Weight;
  QUIPU_WEIGHTS(FeedForwardWeights, (W1, w1), (W2, w2), (W3, w3));
};

/// [B, T, d] normalised -> [B, T, d], the feed-forward update. Source: model.py 193-219; the hidden
/// width's rule: 202-206.
template <class M>
struct FeedForward {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = FeedForwardWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return GateProjection<M>::cost(w) + UpProjection<M>::cost(w) + SiluGate<M>::cost(w) +
           DownProjection<M>::cost(w);
  }
};

}  // namespace quipu
