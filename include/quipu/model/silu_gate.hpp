// The SiLU gate: silu(w1 x) * w3 x, element by element, silu(a) = a / (1 + e^-a). No weights.
// Siblings: simd/silu-inl.hpp, test/simd/silu_test.cpp, bench/silu_bench.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// Gate and up, both [B, T, ffn] -> [B, T, ffn]. Source: model.py 219.
template <class M>
struct SiluGate {
  using In = Hidden<M>;
  using Out = Hidden<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// An element: negation, exponential, sum, division, product.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 5 * dims<M>::ffn, "FLOPs"), 0, 0, 0};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/silu-inl.hpp",
                                    test = "test/simd/silu_test.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = SiluGate;
    static constexpr notation::Kind kind = notation::Kind::operation;
    static constexpr std::string_view
        id = "layers.N.feed_forward.silu_gate",
        name = "SiLU gate", inside = "Feed-forward network",
        code = "F.silu(self.w1(x)) * self.w3(x)",
        sentence = "Multiplies each hidden feature by its activated gate.",
        explanation =
            "silu(a) = a / (1 + exp(-a)): near the identity for large a, near nothing for very "
            "negative a, and smooth between. The product is element by element.",
        header = "quipu/model/silu_gate.hpp";
    using symbols = notation::Symbols<notation::in<symbol::g, In>, notation::in<symbol::u, In>,
                                      notation::out<symbol::a, Out>>;
    static constexpr auto equations = notation::equations(
        symbol::a == notation::hadamard(notation::call<notation::fn::silu>(symbol::g), symbol::u));
    static constexpr notation::Mistake mistake{
        "Activating w3 instead of w1", "silu stands on w1, whose extents are the same", 0, 0, ""};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"ffn-gate",
                                 notation::Evidence::direct,
                                 "SiLU of one projection times another, then the down projection.",
                                 {{218, 219}},
                                 {{224, 225}},
                                 {"F.silu", "self.w3(x)"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Gated hidden features, as a card of its own.
  struct tensor {
    using of = SiluGate;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.feed_forward.act",
        name = "Gated hidden features", inside = "Feed-forward network",
        code = "F.silu(self.w1(x)) * self.w3(x)",
        sentence = "The hidden features after the gate: the input of the down projection.",
        explanation = "The widest activation of a block.", header = "quipu/model/silu_gate.hpp";
    using symbols = notation::Symbols<notation::out<symbol::a, Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"ffn-gate",
                                 notation::Evidence::contextual,
                                 "SiLU of one projection times another, then the down projection.",
                                 {{218, 219}},
                                 {{224, 225}},
                                 {"F.silu", "self.w3(x)"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
