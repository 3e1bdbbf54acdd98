// The key projection wk: normalised features to keys of the kv heads.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of KeyProjection.
struct wk {
  static constexpr std::string_view gguf = "attn_k", hugging_face = "self_attn.k_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, kv_heads*head_dim]. Source: model.py 107-113, applied at 154.
template <class M>
struct KeyProjection
    : Projection<weight_id::wk,
                 dim<axis::merged<axis::kv_heads, axis::head_dim>, dims<M>::kv_width>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
