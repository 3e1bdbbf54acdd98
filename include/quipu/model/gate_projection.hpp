// The gate projection w1 of the feed-forward network.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of GateProjection.
struct w1 {
  static constexpr std::string_view gguf = "ffn_gate", hugging_face = "mlp.gate_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, ffn]. Source: model.py 208-210, applied at 219.
template <class M>
struct GateProjection
    : Projection<weight_id::w1, dim<axis::ffn, dims<M>::ffn>, dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
