// The down projection w2 of the feed-forward network: hidden features to the update.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

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

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = DownProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.feed_forward.w2",
        name = "Down projection", inside = "Feed-forward network",
        code = "self.w2(F.silu(self.w1(x)) * self.w3(x))",
        sentence = "Maps the gated hidden features to the feed-forward update at model width.",
        explanation =
            "Its result is added to the residual stream; nothing else of the network leaves it.",
        header = "quipu/model/down_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::a, typename of::In>,
                                      notation::weight<symbol::W_2, typename of::Weight>,
                                      notation::out<symbol::delta_ffn, typename of::Out>>;
    static constexpr auto equations =
        notation::equations(symbol::delta_ffn == symbol::a * symbol::W_2);
    static constexpr notation::Mistake mistake{
        "Splitting w2 over ranks by output rows like w1 and w3",
        "it is split by input columns, and the ranks' partial updates are added", 0, 0, ""};
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"ffn-down",
                   notation::Evidence::direct,
                   "A bias-free row-parallel projection, applied in the line of the gate.",
                   {{211, 213}, {219, 219}},
                   {{220, 222}, {224, 225}},
                   {"RowParallelLinear", "self.w2"}}}) +
             notation::row_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Feed-forward update, as a card of its own.
  struct tensor {
    using of = DownProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.feed_forward.update",
        name = "Feed-forward update", inside = "Feed-forward network",
        code = "self.w2(F.silu(self.w1(x)) * self.w3(x))",
        sentence =
            "The contribution of the feed-forward network, at model width, that is added to the "
            "residual stream.",
        explanation =
            "The block adds it to the stream as it was after attention and before normalisation.",
        header = "quipu/model/down_projection.hpp";
    static constexpr std::string_view alias = "layers.N.feed_forward.w2";
    using symbols = notation::Symbols<notation::out<symbol::delta_ffn, typename of::Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"block-residuals",
                   notation::Evidence::contextual,
                   "The block adds the feed-forward update to the stream as it was before "
                   "normalisation (addition: 247 in llama3, 253 in llama-models).",
                   {{236, 248}},
                   {{252, 253}},
                   {"self.feed_forward", "ffn_norm"}},
                  {"ffn-output",
                   notation::Evidence::contextual,
                   "A bias-free learned projection takes the gated hidden features to model width.",
                   {{211, 213}, {218, 219}},
                   {{220, 222}, {224, 225}},
                   {"RowParallelLinear", "F.silu", "self.w2"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
