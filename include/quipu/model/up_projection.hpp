// The up projection w3 of the feed-forward network: what the gate multiplies.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of UpProjection.
struct w3 {
  static constexpr std::string_view gguf = "ffn_up", hugging_face = "mlp.up_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, ffn]. Source: model.py 214-216, applied at 219.
template <class M>
struct UpProjection
    : Projection<weight_id::w3, dim<axis::ffn, dims<M>::ffn>, dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = UpProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.feed_forward.w3",
        name = "Up projection", inside = "Feed-forward network", code = "self.w3(x)",
        sentence = "Maps the normalised features to the hidden features that the gate multiplies.",
        explanation =
            "Of the same extents as w1 and easily swapped with it: this one is not activated.",
        header = "quipu/model/up_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x_ffn, typename of::In>,
                                      notation::weight<symbol::W_3, typename of::Weight>,
                                      notation::out<symbol::u, typename of::Out>>;
    static constexpr auto equations = notation::equations(symbol::u == symbol::x_ffn * symbol::W_3);
    static constexpr notation::Mistake mistake{
        "Counting two matrices, as in a feed-forward network without a gate",
        "the gate makes it three", 2 * dims<M>::dim* dims<M>::ffn, 3 * dims<M>::dim* dims<M>::ffn,
        "parameters of w1, w2 and w3"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"ffn-up",
                   notation::Evidence::direct,
                   "A bias-free column-parallel projection, applied in the line of the gate.",
                   {{214, 216}, {219, 219}},
                   {{220, 222}, {224, 225}},
                   {"ColumnParallelLinear", "self.w3(x)"}}}) +
             notation::column_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
