// Attention: four projections around the scaled dot product.
// Siblings: query_projection.hpp, key_projection.hpp, value_projection.hpp, rotary_embedding.hpp,
// scaled_dot_product.hpp, output_projection.hpp; simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/key_projection.hpp"
#include "quipu/model/output_projection.hpp"
#include "quipu/model/query_projection.hpp"
#include "quipu/model/rotary_embedding.hpp"
#include "quipu/model/scaled_dot_product.hpp"
#include "quipu/model/value_projection.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu {

/// The matrices of one block's attention.
template <class A>
struct AttentionWeights {
  using Wq = typename QueryProjection<A>::Weight;
  using Wk = typename KeyProjection<A>::Weight;
  using Wv = typename ValueProjection<A>::Weight;
  using Wo = typename OutputProjection<A>::Weight;
  QUIPU_WEIGHTS(AttentionWeights, (Wq, wq), (Wk, wk), (Wv, wv), (Wo, wo));
};

/// [B, T, d] normalised -> [B, T, d], the attention update. Source: model.py 90-190.
template <class M>
struct Attention {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = AttentionWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return QueryProjection<M>::cost(w) + KeyProjection<M>::cost(w) + ValueProjection<M>::cost(w) +
           RotaryEmbedding<M>::cost(w) + ScaledDotProduct<M>::cost(w) +
           OutputProjection<M>::cost(w);
  }
};

}  // namespace quipu
