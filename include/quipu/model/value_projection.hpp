// The value projection wv: normalised features to values of the kv heads.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of ValueProjection.
struct wv {
  static constexpr std::string_view gguf = "attn_v", hugging_face = "self_attn.v_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, kv_heads*head_dim]. Source: model.py 114-120, applied at 154.
template <class M>
struct ValueProjection
    : Projection<weight_id::wv,
                 dim<axis::merged<axis::kv_heads, axis::head_dim>, dims<M>::kv_width>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
