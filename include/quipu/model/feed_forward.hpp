// The feed-forward network: w2 (silu(w1 x) * w3 x).
// Siblings: gate_projection.hpp, up_projection.hpp, silu_gate.hpp, down_projection.hpp;
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/down_projection.hpp"
#include "quipu/model/gate_projection.hpp"
#include "quipu/model/silu_gate.hpp"
#include "quipu/model/up_projection.hpp"
#include "quipu/notation/description.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu {

/// The matrices of one block's feed-forward network, in the order of Meta's state dict.
template <class A>
struct FeedForwardWeights {
  using W1 = typename GateProjection<A>::Weight;
  using W2 = typename DownProjection<A>::Weight;
  using W3 = typename UpProjection<A>::Weight;
  QUIPU_WEIGHTS(FeedForwardWeights, (W1, w1), (W2, w2), (W3, w3));
};

/// [B, T, d] normalised -> [B, T, d], the feed-forward update. Source: model.py 193-219; the hidden
/// width's rule: 202-206.
template <class M>
struct FeedForward {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = FeedForwardWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return GateProjection<M>::cost(w) + UpProjection<M>::cost(w) + SiluGate<M>::cost(w) +
           DownProjection<M>::cost(w);
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/transformer-inl.hpp",
                                    test = "test/static/components.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = FeedForward;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view id = "layers.N.feed_forward", name = "Feed-forward network",
                                      inside = "", code = "self.feed_forward(self.ffn_norm(h))",
                                      sentence = "Works on each position alone, in a wider space.",
                                      explanation =
                                          "Two projections up, one of them a gate, and one down. "
                                          "Holds most of a block's parameters.",
                                      header = "quipu/model/feed_forward.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::x_ffn, In>,
                          notation::weight<symbol::W_1, typename GateProjection<M>::Weight>,
                          notation::weight<symbol::W_3, typename UpProjection<M>::Weight>,
                          notation::weight<symbol::W_2, typename DownProjection<M>::Weight>,
                          notation::out<symbol::delta_ffn, Out>>;
    static constexpr auto equations = notation::equations(
        symbol::delta_ffn ==
        notation::hadamard(notation::call<notation::fn::silu>(symbol::x_ffn * symbol::W_1),
                           symbol::x_ffn* symbol::W_3) *
            symbol::W_2);
    static constexpr notation::Mistake mistake = hidden_width_mistake<M>;
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"ffn-parts",
                   notation::Evidence::direct,
                   "The hidden width by its rule, three bias-free projections, the SiLU gate.",
                   {{202, 206}, {208, 216}, {218, 219}},
                   {{214, 218}, {220, 222}, {224, 225}},
                   {"multiple_of", "RowParallelLinear", "F.silu"}}}) +
             notation::column_parallel_storage() + notation::row_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
