// The rotary embedding: every neighbouring pair (2i, 2i + 1) of a head is turned by
// position * inverse frequency i. No weights.
// Siblings: config/rope.hpp (frequencies), simd/rotary-inl.hpp, test/simd/rotary_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// Queries [B, T, heads, head_dim] and keys [B, T, kv_heads, head_dim], each to its own shape.
/// Source: model.py 49-54 (table), 65-75 (application), 160 (call); scaled for Llama 3.1 and later:
/// meta-llama/llama-models a9c89c471f79, models/llama3/model.py 45-62.
template <class M>
struct RotaryEmbedding {
  using In = Queries<M>;
  using Out = Queries<M>;
  using KeysIn = KeysOrValues<M>;
  using KeysOut = KeysOrValues<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// A pair: 4 products and 2 sums, that is 3 a feature of q and k.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 3 * (dims<M>::q_width + dims<M>::kv_width), "FLOPs"), 0, 0, 0};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/rotary-inl.hpp",
                                    test = "test/simd/rotary_test.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = RotaryEmbedding;
    static constexpr notation::Kind kind = notation::Kind::operation;
    static constexpr std::string_view
        id = "layers.N.attention.rope",
        name = "Rotary embedding", inside = "Attention",
        code = "apply_rotary_emb(xq, xk, freqs_cis=freqs_cis)",
        sentence =
            "Turns every neighbouring pair of features of each query and key by an angle that "
            "grows with the position.",
        explanation =
            "The pair (2i, 2i + 1) is read as one complex number and multiplied by cis(p f_i), so "
            "that a query and a key meet at an angle that depends on their distance alone. It "
            "happens in float32 and the result is cast back. Values are not turned.",
        header = "quipu/model/rotary_embedding.hpp";
    using PairFrequencies = Shape<dim<axis::pairs, dims<M>::head_dim / 2>>;
    using symbols =
        notation::Symbols<notation::in<symbol::q, In>, notation::in<symbol::k, KeysIn>,
                          notation::given<symbol::p, Shape<PositionsDim>>,
                          notation::given<symbol::f, PairFrequencies, notation::Carrier::f32>,
                          notation::out<symbol::q_rot, Out>, notation::out<symbol::k_rot, KeysOut>>;
    static constexpr auto equations = notation::equations(
        notation::call<notation::fn::complex_pairs>(symbol::q_rot) ==
            notation::hadamard(
                notation::call<notation::fn::complex_pairs>(symbol::q),
                notation::call<notation::fn::cis>(notation::outer(symbol::p, symbol::f))),
        notation::call<notation::fn::complex_pairs>(symbol::k_rot) ==
            notation::hadamard(
                notation::call<notation::fn::complex_pairs>(symbol::k),
                notation::call<notation::fn::cis>(notation::outer(symbol::p, symbol::f))));
    static constexpr notation::Mistake mistake{
        "Pairing feature i with i + head_dim / 2 on weights of Meta's layout",
        "Meta pairs 2i with 2i + 1; Hugging Face files have the rows of wq and wk permuted to suit "
        "halves",
        0, 0, ""};
    static constexpr notation::Notes notes = [] {
      notation::Notes n;
      if constexpr (notation::has_scaled_rope<M>) {
        n.push(
            {"The frequencies are scaled: long wavelengths divided by the factor, short ones kept, "
             "those between blended.",
             "llama-models model.py 45-62"});
        if constexpr (detail::scaling_of<M>().factor != 8) {
          n.push(
              {"The released configuration says factor 32. The pinned reference applies 8 to every "
               "model: both are stated, 32 is used here.",
               "llama-models model.py 45-62"});
        }
      } else {
        n.push({"The frequencies are not scaled: theta to the power -2i / head_dim.",
                "llama3 model.py 49-54"});
      }
      return n;
    }();
    static consteval notation::SourceList sources() {
      constexpr bool scaled = notation::has_scaled_rope<M>;
      notation::SourceList list;
      if constexpr (scaled) {
        list.push(
            notation::source("rope-scaling", notation::direct_for<M>,
                             "The inverse frequencies are scaled in three bands of wavelength with "
                             "the constants 8, 1, 4 and 8192, on request of use_scaled.",
                             notation::files::llama_models_model, {{45, 62}, {65, 72}},
                             {"apply_scaling", "scale_factor", "use_scaled"}));
      }
      return list +
             notation::cite<M>(
                 {{"rope",
                   notation::Evidence::direct,
                   scaled
                       ? "Neighbouring features are turned as complex numbers in float32, queries "
                         "and keys alike. llama3's own file does not scale the frequencies."
                       : "The table of unit complex numbers from theta; neighbouring features are "
                         "turned as complex numbers in float32, queries and keys alike.",
                   {{49, 54}, {65, 75}, {160, 160}},
                   {{65, 72}, {83, 93}, {178, 178}},
                   {"torch.polar", "view_as_complex", "apply_rotary_emb"}}}) +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// Rotated queries, as a card of its own.
  struct rotated_queries {
    using of = RotaryEmbedding;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view id = "layers.N.attention.xq_rope", name = "Rotated queries",
                                      inside = "Attention",
                                      code = "apply_rotary_emb(xq, xk, freqs_cis=freqs_cis)",
                                      sentence = "The queries by head, turned to their positions.",
                                      explanation = "What is compared with the cached keys.",
                                      header = "quipu/model/rotary_embedding.hpp";
    using symbols = notation::Symbols<notation::out<symbol::q_rot, Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"rope",
                   notation::Evidence::contextual,
                   "Queries and keys are turned as complex pairs in float32 and cast back.",
                   {{65, 75}, {160, 160}},
                   {{83, 93}, {178, 178}},
                   {"view_as_complex", "apply_rotary_emb"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Rotated keys, as a card of its own.
  struct rotated_keys {
    using of = RotaryEmbedding;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.xk_rope",
        name = "Rotated keys", inside = "Attention",
        code = "apply_rotary_emb(xq, xk, freqs_cis=freqs_cis)",
        sentence = "The keys by kv head, turned to their positions: what the cache keeps.",
        explanation =
            "A key is turned once, when it is made, and never again: the cache holds turned keys.",
        header = "quipu/model/rotary_embedding.hpp";
    using symbols = notation::Symbols<notation::out<symbol::k_rot, KeysOut>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"rope",
                                 notation::Evidence::contextual,
                                 "Queries and keys are turned as complex pairs in float32, and the "
                                 "turned keys are written to the cache.",
                                 {{65, 75}, {160, 160}, {165, 166}},
                                 {{83, 93}, {178, 178}, {183, 187}},
                                 {"view_as_complex", "apply_rotary_emb"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// The table of unit complex numbers, as a card of its own.
  struct table_tensor {
    using of = RotaryEmbedding;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "freqs_cis",
        name = "Rotary table", inside = "", code = "precompute_freqs_cis(...)",
        sentence = "The unit complex number of every position and pair.",
        explanation =
            "The reference computes it once, for twice the longest sequence, and each call takes "
            "the rows of its positions. Here the inverse frequencies are constants of the type, "
            "equal bit for bit.",
        header = "quipu/config/rope.hpp";
    static constexpr std::size_t instances = 1;
    using symbols = notation::Symbols<notation::out<
        symbol::f, Shape<dim<axis::positions>, dim<axis::pairs, dims<M>::head_dim / 2>>,
        notation::Carrier::complex64>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"rope-table",
                                 notation::Evidence::contextual,
                                 "The table is made for twice the longest sequence, and each call "
                                 "takes a slice from its first position.",
                                 {{49, 54}, {271, 275}, {282, 282}},
                                 {{65, 72}, {273, 278}, {285, 285}},
                                 {"torch.polar", "start_pos"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
