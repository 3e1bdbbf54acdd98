// A transformer block: h = x + attention(norm(x)), out = h + feed_forward(norm(h)).
// Siblings: attention.hpp, feed_forward.hpp, rms_norm.hpp, residual_add.hpp;
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/attention.hpp"
#include "quipu/model/feed_forward.hpp"
#include "quipu/model/residual_add.hpp"
#include "quipu/model/rms_norm.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// The nine tensors of a block, in the order of Meta's state dict.
template <class A>
struct BlockWeights {
  using AttentionNorm = typename RmsNorm<A, weight_id::attention_norm>::Weight;
  using FfnNorm = typename RmsNorm<A, weight_id::ffn_norm>::Weight;
  QUIPU_WEIGHTS(BlockWeights, (AttentionWeights<A>, attention),
                (FeedForwardWeights<A>, feed_forward), (AttentionNorm, attention_norm),
                (FfnNorm, ffn_norm));
};

/// [B, T, d] -> [B, T, d]. Source: model.py 222-248.
template <class M>
struct Block {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weights = BlockWeights<architecture_of<M>>;
  static constexpr std::size_t parameters = elements_of<Weights>;
  static constexpr std::size_t instances = dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return RmsNorm<M, weight_id::attention_norm>::cost(w) + Attention<M>::cost(w) +
           RmsNorm<M, weight_id::ffn_norm>::cost(w) + FeedForward<M>::cost(w) +
           2 * ResidualAdd<M>::cost(w);
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/transformer-inl.hpp",
                                    test = "test/static/components.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = Block;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "layers.N",
        name = "Transformer block", inside = "", code = "layer(h, start_pos, freqs_cis, mask)",
        sentence =
            "Adds two updates to the residual stream: attention's, then the feed-forward "
            "network's.",
        explanation =
            "All blocks have the same shapes, and weights of their own. Each update is computed "
            "from a normalised copy of the stream.",
        header = "quipu/model/block.hpp";
    using symbols = notation::Symbols<notation::in<symbol::x, In>, notation::given<symbol::h, In>,
                                      notation::out<symbol::y, Out>>;
    static constexpr auto equations = notation::equations(
        symbol::h == symbol::x + notation::call<notation::fn::attention>(
                                     notation::call<notation::fn::norm>(symbol::x)),
        symbol::y == symbol::h + notation::call<notation::fn::feed_forward>(
                                     notation::call<notation::fn::norm>(symbol::h)));
    static constexpr notation::Mistake mistake{
        "Leaving out the two norms", "each has a weight a feature", parameters - 2 * dims<M>::dim,
        parameters, "parameters"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-parts",
                                 notation::Evidence::direct,
                                 "Attention, a feed-forward network asked for 4 dim, and two "
                                 "norms; two additions.",
                                 {{228, 234}, {236, 237}, {246, 247}},
                                 {{234, 243}, {252, 253}},
                                 {"attention_norm", "ffn_norm"}},
                                {"stack",
                                 notation::Evidence::direct,
                                 "The model runs n_layers blocks one after another.",
                                 {{262, 264}, {298, 299}},
                                 {{266, 268}, {305, 306}},
                                 {"n_layers"}}}) +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
