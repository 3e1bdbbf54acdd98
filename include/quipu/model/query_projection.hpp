// The query projection wq: normalised features to queries.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of QueryProjection.
struct wq {
  static constexpr std::string_view gguf = "attn_q", hugging_face = "self_attn.q_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, heads*head_dim]. Source: model.py 100-106, applied at 154.
template <class M>
struct QueryProjection
    : Projection<weight_id::wq, dim<axis::merged<axis::heads, axis::head_dim>, dims<M>::q_width>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
