// The gate projection w1 of the feed-forward network.
// Siblings: model/projection.hpp, simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the matrix of GateProjection.
struct w1 {
  static constexpr std::string_view gguf = "ffn_gate", hugging_face = "mlp.gate_proj";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// What the hidden width is often taken for; FeedForward says it too.
template <class M>
inline constexpr notation::Mistake hidden_width_mistake{
    "Taking the hidden width for 4 × dim",
    "two thirds of that, times the multiplier, rounded up to a multiple", 4 * dims<M>::dim,
    dims<M>::ffn, "hidden features"};

/// [B, T, d] -> [B, T, ffn]. Source: model.py 208-210, applied at 219.
template <class M>
struct GateProjection
    : Projection<weight_id::w1, dim<axis::ffn, dims<M>::ffn>, dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = GateProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N.feed_forward.w1",
        name = "Gate projection", inside = "Feed-forward network", code = "self.w1(x)",
        sentence = "Maps the normalised features to the gate, before its activation.",
        explanation =
            "Each hidden feature has a gate; silu decides how much of the feature w3 gives is let "
            "through.",
        header = "quipu/model/gate_projection.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x_ffn, typename of::In>,
                                      notation::weight<symbol::W_1, typename of::Weight>,
                                      notation::out<symbol::g, typename of::Out>>;
    static constexpr auto equations = notation::equations(symbol::g == symbol::x_ffn * symbol::W_1);
    static constexpr notation::Mistake mistake = hidden_width_mistake<M>;
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"ffn-gate",
                   notation::Evidence::direct,
                   "A bias-free column-parallel projection, applied in the line of the gate.",
                   {{208, 210}, {219, 219}},
                   {{220, 222}, {224, 225}},
                   {"ColumnParallelLinear", "self.w1(x)"}}}) +
             notation::column_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
