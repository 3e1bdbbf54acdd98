// The attention's output projection wo: merged heads to the attention update.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of OutputProjection.
struct wo {
  static constexpr std::string_view gguf = "attn_output", hugging_face = "self_attn.o_proj";
  static constexpr ShardAxis shard = ShardAxis::columns;
};
}  // namespace weight_id

/// [B, T, heads*head_dim] -> [B, T, d]. Source: model.py 121-127, applied at 190.
template <class M>
struct OutputProjection
    : Projection<weight_id::wo, dim<axis::d, dims<M>::dim>,
                 dim<axis::merged<axis::heads, axis::head_dim>, dims<M>::q_width>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
