// The query projection wq: normalised features to queries.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of QueryProjection.
struct wq {
  static constexpr std::string_view gguf = "attn_q", hugging_face = "self_attn.q_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
  static constexpr bool rotary_rows = true;  // Hugging Face permutes the rows of each head
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, heads*head_dim]. Source: model.py 100-106, applied at 154.
template <class M>
struct QueryProjection
    : Projection<weight_id::wq, dim<axis::merged<axis::heads, axis::head_dim>, dims<M>::q_width>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = QueryProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.attention.wq",
        name = "Query projection", inside = "Attention", code = "self.wq(x)",
        sentence = "Maps the normalised features to the queries of all heads.",
        explanation =
            "Queries say what each position looks for. A head has head_dim of them, and no two "
            "heads share one.",
        header = "quipu/model/query_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x_attn, typename of::In>,
                                      notation::weight<symbol::W_q, typename of::Weight>,
                                      notation::out<symbol::q, typename of::Out>>;
    static constexpr auto equations =
        notation::equations(symbol::q == symbol::x_attn * symbol::W_q);
    static constexpr notation::Mistake mistake{
        "Counting wq, wk and wv alike, as without grouped queries",
        "wk and wv serve the kv heads only", 3 * dims<M>::dim* dims<M>::q_width,
        dims<M>::dim*(dims<M>::q_width + 2 * dims<M>::kv_width), "parameters of wq, wk and wv"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-query",
                                 notation::Evidence::direct,
                                 "A bias-free column-parallel projection gives the queries; its "
                                 "result stays on the rank that made it.",
                                 {{100, 106}, {154, 154}},
                                 {{118, 138}, {172, 176}},
                                 {"ColumnParallelLinear", "self.wq(x)"}}}) +
             notation::column_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Queries, as a card of its own.
  struct tensor {
    using of = QueryProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.xq",
        name = "Queries", inside = "Attention", code = "self.wq(x)",
        sentence = "The queries of all heads, side by side, before rotation.",
        explanation =
            "The heads lie one after another in the last axis; reading it as heads × head_dim "
            "moves no element.",
        header = "quipu/model/query_projection.hpp";
    using symbols = notation::Symbols<notation::out<symbol::q, typename of::Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::query_key_value<M>() +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
