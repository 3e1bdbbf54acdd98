// Attention: four projections around the scaled dot product.
// Siblings: query_projection.hpp, key_projection.hpp, value_projection.hpp, rotary_embedding.hpp,
// scaled_dot_product.hpp, output_projection.hpp; simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/key_projection.hpp"
#include "quipu/model/output_projection.hpp"
#include "quipu/model/query_projection.hpp"
#include "quipu/model/rotary_embedding.hpp"
#include "quipu/model/scaled_dot_product.hpp"
#include "quipu/model/value_projection.hpp"
#include "quipu/notation/description.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu {

/// The matrices of one block's attention.
template <class A>
struct AttentionWeights {
  using Wq = typename QueryProjection<A>::Weight;
  using Wk = typename KeyProjection<A>::Weight;
  using Wv = typename ValueProjection<A>::Weight;
  using Wo = typename OutputProjection<A>::Weight;
  QUIPU_WEIGHTS(AttentionWeights, (Wq, wq), (Wk, wk), (Wv, wv), (Wo, wo));
};

/// [B, T, d] normalised -> [B, T, d], the attention update. Source: model.py 90-190.
template <class M>
struct Attention {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = AttentionWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return QueryProjection<M>::cost(w) + KeyProjection<M>::cost(w) + ValueProjection<M>::cost(w) +
           RotaryEmbedding<M>::cost(w) + ScaledDotProduct<M>::cost(w) +
           OutputProjection<M>::cost(w);
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/transformer-inl.hpp",
                                    test = "test/static/components.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = Attention;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.attention",
        name = "Attention", inside = "",
        code = "self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)",
        sentence = "Lets every position gather from the positions up to its own.",
        explanation =
            "Four projections around the scaled dot product. The only component in which positions "
            "meet, and the only one whose cost grows with the length of the context.",
        header = "quipu/model/attention.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::x_attn, In>, notation::out<symbol::delta_attn, Out>>;
    static constexpr auto equations = notation::equations(
        symbol::delta_attn == notation::call<notation::fn::attention>(symbol::x_attn));
    static constexpr notation::Mistake mistake{
        "Taking four matrices of dim × dim", "wk and wv serve the kv heads only",
        4 * dims<M>::dim* dims<M>::q_width, parameters, "parameters"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-parts",
                                 notation::Evidence::direct,
                                 "Head counts, three input projections and one output projection, "
                                 "all without bias.",
                                 {{93, 98}, {100, 127}},
                                 {{111, 116}, {118, 145}},
                                 {"n_rep", "ColumnParallelLinear", "RowParallelLinear"}}}) +
             notation::column_parallel_storage() + notation::row_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
