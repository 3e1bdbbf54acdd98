// The up projection w3 of the feed-forward network: what the gate multiplies.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of UpProjection.
struct w3 {
  static constexpr std::string_view gguf = "ffn_up", hugging_face = "mlp.up_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, ffn]. Source: model.py 214-216, applied at 219.
template <class M>
struct UpProjection
    : Projection<weight_id::w3, dim<axis::ffn, dims<M>::ffn>, dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
