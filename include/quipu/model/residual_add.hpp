// The residual addition: an update joins the residual stream. Twice a block, nowhere else.
// Siblings: simd/residual-inl.hpp, test/simd/residual_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// Stream and update, both [B, T, d] -> [B, T, d]. Source: model.py 246 and 247.
template <class M>
struct ResidualAdd {
  using In = Residual<M>;
  using Out = Residual<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = 2 * dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), dims<M>::dim, "FLOPs"), 0, 0, 0};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/residual-inl.hpp",
                                    test = "test/simd/residual_test.cpp";

  // Two places in a block, one description each.

  /// The addition of the attention update.
  struct after_attention {
    using of = ResidualAdd;
    static constexpr std::size_t instances = dims<M>::n_layers;
    static constexpr notation::Kind kind = notation::Kind::operation;
    static constexpr std::string_view
        id = "layers.N.attention_residual",
        name = "Residual addition after attention", inside = "",
        code = "x + self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)",
        sentence = "Adds the attention update to the stream as it entered the block.",
        explanation =
            "The stream itself is never normalised or scaled: each block reads a normalised copy "
            "and adds to the original.",
        header = "quipu/model/residual_add.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::x, In>, notation::in<symbol::delta_attn, In>,
                          notation::out<symbol::h, Out>>;
    static constexpr auto equations =
        notation::equations(symbol::h == symbol::x + symbol::delta_attn);
    static constexpr notation::Mistake mistake{
        "Adding the update to the normalised input",
        "it is added to the input as it was before normalisation", 0, 0, ""};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-residuals",
                                 notation::Evidence::direct,
                                 "The attention update is added to the un-normalised input.",
                                 {{246, 246}},
                                 {{252, 253}},
                                 {"attention_norm"}}});
    }
  };

  /// The addition of the feed-forward update.
  struct after_feed_forward {
    using of = ResidualAdd;
    static constexpr std::size_t instances = dims<M>::n_layers;
    static constexpr notation::Kind kind = notation::Kind::operation;
    static constexpr std::string_view
        id = "layers.N.feed_forward_residual",
        name = "Residual addition after the feed-forward network", inside = "",
        code = "h + self.feed_forward(self.ffn_norm(h))",
        sentence = "Adds the feed-forward update to the stream as attention left it.",
        explanation = "What leaves here enters the next block, or the final norm.",
        header = "quipu/model/residual_add.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::h, In>, notation::in<symbol::delta_ffn, In>,
                          notation::out<symbol::y, Out>>;
    static constexpr auto equations =
        notation::equations(symbol::y == symbol::h + symbol::delta_ffn);
    static constexpr notation::Mistake mistake{
        "Adding the update to the block's input",
        "it is added to h, which holds the attention update already", 0, 0, ""};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-residuals",
                                 notation::Evidence::direct,
                                 "The feed-forward update is added to the un-normalised stream.",
                                 {{247, 247}},
                                 {{252, 253}},
                                 {"ffn_norm"}}});
    }
  };

  /// Residual stream entering a block, as a card of its own.
  struct block_input {
    using of = ResidualAdd;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view id = "layers.N.x", name = "Residual stream entering a block",
                                      inside = "", code = "x",
                                      sentence = "The residual stream as a block receives it.",
                                      explanation =
                                          "For the first block the token embeddings, for the "
                                          "others the output of the block before.",
                                      header = "quipu/model/residual_add.hpp";
    using symbols = notation::Symbols<notation::out<symbol::x, Out>>;
    static constexpr auto equations = notation::equations();
    static constexpr std::size_t instances = dims<M>::n_layers;
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-residuals",
                                 notation::Evidence::contextual,
                                 "The block adds its updates to this stream.",
                                 {{246, 248}},
                                 {{252, 253}},
                                 {"attention_norm", "ffn_norm"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Residual stream after attention, as a card of its own.
  struct between {
    using of = ResidualAdd;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.h",
        name = "Residual stream after attention", inside = "",
        code = "x + self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)",
        sentence = "The residual stream between the two updates of a block.",
        explanation = "The feed-forward network reads a normalised copy of it and adds to it.",
        header = "quipu/model/residual_add.hpp";
    using symbols = notation::Symbols<notation::out<symbol::h, Out>>;
    static constexpr auto equations = notation::equations();
    static constexpr std::size_t instances = dims<M>::n_layers;
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-residuals",
                                 notation::Evidence::contextual,
                                 "The first of the two additions gives h.",
                                 {{246, 248}},
                                 {{252, 253}},
                                 {"attention_norm", "ffn_norm"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Residual stream leaving a block, as a card of its own.
  struct block_output {
    using of = ResidualAdd;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view id = "layers.N.out", name = "Residual stream leaving a block",
                                      inside = "", code = "h + self.feed_forward(self.ffn_norm(h))",
                                      sentence = "The residual stream as a block hands it on.",
                                      explanation = "The last block hands it to the final norm.",
                                      header = "quipu/model/residual_add.hpp";
    using symbols = notation::Symbols<notation::out<symbol::y, Out>>;
    static constexpr auto equations = notation::equations();
    static constexpr std::size_t instances = dims<M>::n_layers;
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"block-residuals",
                                 notation::Evidence::contextual,
                                 "The second of the two additions gives the result of the block.",
                                 {{246, 248}},
                                 {{252, 253}},
                                 {"attention_norm", "ffn_norm"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
