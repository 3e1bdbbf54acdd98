// RMSNorm: x / sqrt(mean(x^2) + eps), times a learned weight by feature.
// Siblings: simd/rms_norm-inl.hpp, test/simd/rms_norm_test.cpp, bench/rms_norm_bench.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"
#include "quipu/reflect/weight.hpp"

namespace quipu {

namespace weight_id {
/// The norm before attention.
struct attention_norm {
  static constexpr std::string_view gguf = "attn_norm", hugging_face = "input_layernorm";
  static constexpr ShardAxis shard = ShardAxis::none;
  /// What the card of this norm says beside what all norms say.
  struct place {
    static constexpr std::string_view
        id = "layers.N.attention_norm",
        name = "Norm before attention", code = "self.attention_norm(x)",
        sentence = "A copy of the stream, brought to unit mean square, for attention to read.",
        claim = "Attention reads the normalised stream.";
    static constexpr const auto& input = symbol::x;
    static constexpr const auto& gain = symbol::w_attn;
    static constexpr const auto& output = symbol::x_attn;
    static constexpr notation::Lines llama3{{236, 236}, {246, 246}},
        llama_models{{234, 243}, {252, 253}};
    static constexpr notation::Tokens tokens{"attention_norm"};
  };
};
/// The norm before the feed-forward network.
struct ffn_norm {
  static constexpr std::string_view gguf = "ffn_norm", hugging_face = "post_attention_layernorm";
  static constexpr ShardAxis shard = ShardAxis::none;
  /// What the card of this norm says beside what all norms say.
  struct place {
    static constexpr std::string_view id = "layers.N.ffn_norm",
                                      name = "Norm before the feed-forward network",
                                      code = "self.ffn_norm(h)",
                                      sentence =
                                          "A copy of the stream, brought to unit mean square, for "
                                          "the feed-forward network to read.",
                                      claim =
                                          "The feed-forward network reads the normalised stream.";
    static constexpr const auto& input = symbol::h;
    static constexpr const auto& gain = symbol::w_ffn;
    static constexpr const auto& output = symbol::x_ffn;
    static constexpr notation::Lines llama3{{237, 237}, {247, 247}},
        llama_models{{234, 243}, {252, 253}};
    static constexpr notation::Tokens tokens{"ffn_norm"};
  };
};
/// The norm after the last block.
struct norm {
  static constexpr std::string_view gguf = "output_norm", hugging_face = "model.norm";
  static constexpr ShardAxis shard = ShardAxis::none;
  /// What the card of this norm says beside what all norms say.
  struct place {
    static constexpr std::string_view id = "norm", name = "Final norm", code = "self.norm(h)",
                                      sentence =
                                          "Brings the stream that leaves the last block to unit "
                                          "mean square, for the vocabulary projection.",
                                      claim = "The stream is normalised after the last block.";
    static constexpr const auto& input = symbol::y;
    static constexpr const auto& gain = symbol::w_norm;
    static constexpr const auto& output = symbol::z;
    static constexpr notation::Lines llama3{{266, 266}, {300, 300}},
        llama_models{{270, 270}, {307, 307}};
    static constexpr notation::Tokens tokens{"self.norm"};
  };
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, d]. Id says which of the norms: the final one unless stated.
/// Source: model.py 35-46 (epsilon inside the root, added to the mean), eps from the configuration.
template <class M, class Id = weight_id::norm>
struct RmsNorm {
  using In = Residual<M>;
  using Out = Residual<M>;
  using Weight = quipu::Weight<Id, dim<one_row, 1>, dim<axis::d, dims<M>::dim>>;
  static constexpr std::size_t parameters = Weight::size;
  static constexpr std::size_t instances =
      std::is_same_v<Id, weight_id::norm> ? 1 : dims<M>::n_layers;

  /// A row: d squares and d - 1 sums, mean, eps, root, reciprocal (4), d scalings, d weights.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 4 * dims<M>::dim + 3, "FLOPs"),
            predicted_weight_bytes(ElementType::f32, 1, Weight::in), 0, 0};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/rms_norm-inl.hpp",
                                    test = "test/simd/rms_norm_test.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = RmsNorm;
    using place = typename Id::place;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = place::id,
        name = place::name, inside = "", code = place::code, sentence = place::sentence,
        explanation =
            "Each row is divided by the root of its mean square, with epsilon inside the root, "
            "then scaled feature by feature. Nothing is subtracted and there is no bias. The "
            "division is computed in float32 and cast back before the weight is applied.",
        header = "quipu/model/rms_norm.hpp";
    using symbols =
        notation::Symbols<notation::in<place::input, In>, notation::weight<place::gain, Weight>,
                          notation::given<symbol::epsilon>, notation::out<place::output, Out>>;
    static constexpr auto equations = notation::equations(
        place::output ==
        notation::hadamard(
            notation::hadamard(place::input,
                               notation::call<notation::fn::rsqrt>(
                                   notation::call<notation::fn::mean>(
                                       notation::call<notation::fn::square>(place::input)) +
                                   symbol::epsilon)),
            place::gain));
    static constexpr notation::Mistake mistake{"Giving it a bias, as a layer norm has",
                                               "one weight a feature and nothing else",
                                               2 * dims<M>::dim, dims<M>::dim, "parameters"};
    static constexpr notation::Notes notes{
        {"Epsilon is 1e-5 in every catalogue entry, though the norm class's own default is 1e-6."}};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"rms-norm",
                                 notation::Evidence::direct,
                                 "Mean of squares plus epsilon, reciprocal root, in float32; cast "
                                 "back; times the weight.",
                                 {{36, 39}, {41, 42}, {44, 46}},
                                 {{31, 42}},
                                 {"rsqrt", "type_as", "self.weight"}},
                                {"norm-place", notation::Evidence::direct, place::claim,
                                 place::llama3, place::llama_models, place::tokens}}) +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

}  // namespace quipu
