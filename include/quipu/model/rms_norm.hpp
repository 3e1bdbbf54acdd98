// RMSNorm: x / sqrt(mean(x^2) + eps), times a learned weight by feature.
// Siblings: simd/rms_norm-inl.hpp, test/simd/rms_norm_test.cpp, bench/rms_norm_bench.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/reflect/weight.hpp"

namespace quipu {

namespace weight_id {
/// The norm before attention.
struct attention_norm {
  static constexpr std::string_view gguf = "attn_norm", hugging_face = "input_layernorm";
  static constexpr ShardAxis shard = ShardAxis::none;
};
/// The norm before the feed-forward network.
struct ffn_norm {
  static constexpr std::string_view gguf = "ffn_norm", hugging_face = "post_attention_layernorm";
  static constexpr ShardAxis shard = ShardAxis::none;
};
/// The norm after the last block.
struct norm {
  static constexpr std::string_view gguf = "output_norm", hugging_face = "model.norm";
  static constexpr ShardAxis shard = ShardAxis::none;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, d]. Id says which of the norms: the final one unless stated.
/// Source: model.py 35-46 (epsilon inside the root, added to the mean), eps from the configuration.
template <class M, class Id = weight_id::norm>
struct RmsNorm {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weight = quipu::Weight<Id, dim<one_row, 1>, dim<axis::d, dims<M>::dim>>;
  static constexpr std::size_t parameters = Weight::size;
  static constexpr std::size_t instances =
      std::is_same_v<Id, weight_id::norm> ? 1 : dims<M>::n_layers;

  /// A row: d squares and d - 1 sums, mean, eps, root, reciprocal (4), d scalings, d weights.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 4 * dims<M>::dim + 3, "FLOPs"),
            predicted_weight_bytes(ElementType::f32, 1, Weight::in), 0, 0};
  }
};

}  // namespace quipu
