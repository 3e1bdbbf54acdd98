// The whole model: embedding, a stack of blocks, final norm, vocabulary projection.
// Siblings: token_embedding.hpp, block.hpp, rms_norm.hpp, vocabulary_projection.hpp;
// simd/transformer-inl.hpp runs it.
#pragma once

#include <array>

#include "quipu/model/block.hpp"
#include "quipu/model/token_embedding.hpp"
#include "quipu/model/vocabulary_projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// All weights of a model. The blocks are an array of one type. `output` is present in tied models
/// too and then views the embedding table.
template <class A>
struct TransformerWeights {
  using Embeddings = typename TokenEmbedding<A>::Weight;
  using Layers = std::array<BlockWeights<A>, A::n_layers>;
  using Norm = typename RmsNorm<A, weight_id::norm>::Weight;
  using Output = typename VocabularyProjection<A>::Weight;
  QUIPU_WEIGHTS(TransformerWeights, (Embeddings, tok_embeddings), (Layers, layers), (Norm, norm),
                (Output, output));
};

/// [B, T] token ids -> [B, T, vocabulary] float32 logits. Source: model.py 251-302.
template <class M>
struct Transformer {
  using In = Tokens;
  using Out = Logits<M>;
  using Weights = TransformerWeights<architecture_of<M>>;
  /// A matrix shared with the embedding counts once.
  static constexpr std::size_t parameters =
      elements_of<Weights> - (dims<M>::tied_output ? VocabularyProjection<M>::parameters : 0);
  static constexpr std::size_t instances = 1;

  /// Logits of every position, as the reference computes them.
  static constexpr Cost cost(const Work& w) {
    return TokenEmbedding<M>::cost(w) + dims<M>::n_layers * Block<M>::cost(w) +
           RmsNorm<M>::cost(w) + VocabularyProjection<M>::cost(w);
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/transformer-inl.hpp",
                                    test = "test/static/components.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = Transformer;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "transformer",
        name = "Transformer", inside = "", code = "model.forward(tokens, start_pos)",
        sentence = "Token ids in, the scores of the vocabulary for every position out.",
        explanation =
            "Embedding, a stack of blocks, final norm, vocabulary projection. Sampling happens "
            "outside it.",
        header = "quipu/model/transformer.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::t, In, notation::Carrier::token>,
                          notation::table<symbol::E, typename TokenEmbedding<M>::Weight>,
                          notation::weight<symbol::W_out, typename VocabularyProjection<M>::Weight>,
                          notation::out<symbol::L, Out, notation::Carrier::f32>>;
    static constexpr auto equations = notation::equations(
        symbol::L == notation::call<notation::fn::norm>(notation::call<notation::fn::stack>(
                         notation::lookup(symbol::E, symbol::t))) *
                         symbol::W_out);
    static constexpr notation::Mistake mistake{
        "Taking two FLOPs for every parameter and token",
        "the embedding table is looked up, not multiplied; a tied table is multiplied once, by the "
        "projection",
        2 * parameters,
        2 * (parameters - (dims<M>::tied_output ? 0 : TokenEmbedding<M>::parameters)),
        "FLOPs a token, attention scores aside"};
    static constexpr notation::Notes notes =
        dims<M>::tied_output
            ? notation::
                  Notes{{"The output matrix is the embedding table: counted once, applied twice."}}
            : notation::Notes{
                  {"Embedding table and output matrix are two matrices of equal extents."}};
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"model-parts",
                   notation::Evidence::direct,
                   "Embedding, blocks, final norm and vocabulary projection, run in that order.",
                   {{258, 269}, {280, 280}, {298, 302}},
                   {{264, 271}, {283, 283}, {305, 308}},
                   {"VocabParallelEmbedding", "self.norm", "self.output(h).float()"}}}) +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };
};

namespace detail {
// A class and not a function: an error inside a function would be followed, in Clang, by a remark
// on each constant that needs its value.
template <class X>
struct counted : Transformer<X> {};
template <class X>
requires requires { X::parameters; }
struct counted<X> : X {};
}  // namespace detail

/// Exact number of parameters of a component (one instance), or of a model.
template <class X>
inline constexpr std::size_t parameter_count = detail::counted<X>::parameters;

}  // namespace quipu
