// The key projection wk: normalised features to keys of the kv heads.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of KeyProjection.
struct wk {
  static constexpr std::string_view gguf = "attn_k", hugging_face = "self_attn.k_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
  static constexpr bool rotary_rows = true;  // Hugging Face permutes the rows of each head
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, kv_heads*head_dim]. Source: model.py 107-113, applied at 154.
template <class M>
struct KeyProjection
    : Projection<weight_id::wk,
                 dim<axis::merged<axis::kv_heads, axis::head_dim>, dims<M>::kv_width>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = KeyProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.attention.wk",
        name = "Key projection", inside = "Attention", code = "self.wk(x)",
        sentence = "Maps the normalised features to the keys of the kv heads.",
        explanation =
            "Keys say what each position offers. Several query heads read the same kv head, so the "
            "matrix is as much smaller as heads share one.",
        header = "quipu/model/key_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x_attn, typename of::In>,
                                      notation::weight<symbol::W_k, typename of::Weight>,
                                      notation::out<symbol::k, typename of::Out>>;
    static constexpr auto equations =
        notation::equations(symbol::k == symbol::x_attn * symbol::W_k);
    static constexpr notation::Mistake mistake{
        "Giving every query head its own keys", "one kv head serves a group of query heads",
        dims<M>::dim* dims<M>::q_width, dims<M>::dim* dims<M>::kv_width, "parameters of wk"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-key",
                                 notation::Evidence::direct,
                                 "A bias-free column-parallel projection gives the keys; its "
                                 "result stays on the rank that made it.",
                                 {{107, 113}, {154, 154}},
                                 {{118, 138}, {172, 176}},
                                 {"ColumnParallelLinear", "self.wk(x)"}}}) +
             notation::column_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Keys, as a card of its own.
  struct tensor {
    using of = KeyProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.xk",
        name = "Keys", inside = "Attention", code = "self.wk(x)",
        sentence = "The keys of the kv heads, side by side, before rotation.",
        explanation =
            "The kv heads lie one after another in the last axis. The rotated keys, not these, are "
            "cached.",
        header = "quipu/model/key_projection.hpp";
    using symbols = notation::Symbols<notation::out<symbol::k, typename of::Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::query_key_value<M>() +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
