// The value projection wv: normalised features to values of the kv heads.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

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

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = ValueProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.attention.wv",
        name = "Value projection", inside = "Attention", code = "self.wv(x)",
        sentence = "Maps the normalised features to the values of the kv heads.",
        explanation =
            "Values are what a position hands on to those that look at it. They are not rotated: "
            "position enters through queries and keys alone.",
        header = "quipu/model/value_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x_attn, typename of::In>,
                                      notation::weight<symbol::W_v, typename of::Weight>,
                                      notation::out<symbol::v, typename of::Out>>;
    static constexpr auto equations =
        notation::equations(symbol::v == symbol::x_attn * symbol::W_v);
    static constexpr notation::Mistake mistake{
        "Giving every query head its own values", "one kv head serves a group of query heads",
        dims<M>::dim* dims<M>::q_width, dims<M>::dim* dims<M>::kv_width, "parameters of wv"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-value",
                                 notation::Evidence::direct,
                                 "A bias-free column-parallel projection gives the values; its "
                                 "result stays on the rank that made it.",
                                 {{114, 120}, {154, 154}},
                                 {{118, 138}, {172, 176}},
                                 {"ColumnParallelLinear", "self.wv(x)"}}}) +
             notation::column_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Values, as a card of its own.
  struct tensor {
    using of = ValueProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.xv",
        name = "Values", inside = "Attention", code = "self.wv(x)",
        sentence = "The values of the kv heads, side by side, as they go into the cache.",
        explanation =
            "The kv heads lie one after another in the last axis. These very numbers are cached: "
            "values are never rotated.",
        header = "quipu/model/value_projection.hpp";
    using symbols = notation::Symbols<notation::out<symbol::v, typename of::Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::query_key_value<M>() +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
