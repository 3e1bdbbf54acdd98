// The down projection w2 of the feed-forward network: hidden features to the update.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of DownProjection.
struct w2 {
  static constexpr std::string_view gguf = "ffn_down", hugging_face = "mlp.down_proj";
  static constexpr ShardAxis shard = ShardAxis::columns;
};
}  // namespace weight_id

/// [B, T, ffn] -> [B, T, d]. Source: model.py 211-213, applied at 219.
template <class M>
struct DownProjection
    : Projection<weight_id::w2, dim<axis::d, dims<M>::dim>, dim<axis::ffn, dims<M>::ffn>> {
  static constexpr std::size_t instances = dims<M>::n_layers;
};

}  // namespace quipu
