// The attention's output projection wo: merged heads to the attention update.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

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

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = OutputProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.attention.wo",
        name = "Output projection", inside = "Attention", code = "self.wo(output)",
        sentence = "Maps the merged heads to the attention update at model width.",
        explanation =
            "The only place of attention where what the heads found is mixed. Its result is not "
            "the new stream: it is added to the stream.",
        header = "quipu/model/output_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::o, typename of::In>,
                                      notation::weight<symbol::W_o, typename of::Weight>,
                                      notation::out<symbol::delta_attn, typename of::Out>>;
    static constexpr auto equations =
        notation::equations(symbol::delta_attn == symbol::o * symbol::W_o);
    static constexpr notation::Mistake mistake{
        "Splitting wo over ranks by output rows like wq",
        "it is split by input columns, and the ranks' partial updates are added", 0, 0, ""};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-output",
                                 notation::Evidence::direct,
                                 "A bias-free learned output projection takes the merged heads to "
                                 "model width; its input arrives split over the ranks.",
                                 {{121, 127}, {189, 190}},
                                 {{139, 145}, {201, 202}},
                                 {"RowParallelLinear", "input_is_parallel", "self.wo(output)"}}}) +
             notation::row_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Attention update, as a card of its own.
  struct tensor {
    using of = OutputProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.update",
        name = "Attention update", inside = "Attention", code = "self.wo(output)",
        sentence =
            "The contribution of attention, at model width, that is added to the residual stream "
            "that contains it.",
        explanation =
            "The block adds it to its own input as it was before normalisation, so the stream "
            "passes by attention unchanged and only gains this sum.",
        header = "quipu/model/output_projection.hpp";
    static constexpr std::string_view alias = "layers.N.attention.wo";
    using symbols = notation::Symbols<notation::out<symbol::delta_attn, typename of::Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"block-residuals",
                   notation::Evidence::contextual,
                   "The block adds the attention update to its input as it was before "
                   "normalisation (addition: 246 in llama3, 252 in llama-models).",
                   {{236, 248}},
                   {{252, 253}},
                   {"self.attention", "attention_norm"}},
                  {"attn-output",
                   notation::Evidence::contextual,
                   "A bias-free learned output projection takes the merged heads to model width.",
                   {{121, 127}, {189, 190}},
                   {{139, 145}, {201, 202}},
                   {"RowParallelLinear", "self.wo(output)"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
