// The token embedding: a table look-up from token id to the residual stream.
// Siblings: simd/embedding-inl.hpp, test/static/components.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"
#include "quipu/reflect/weight.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the embedding table.
struct tok_embeddings {
  static constexpr std::string_view gguf = "token_embd", hugging_face = "model.embed_tokens";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T] token ids -> [B, T, d]. Source: model.py 258-260, applied at 280.
template <class M>
struct TokenEmbedding {
  using In = Tokens;
  using Out = Residual<M>;
  /// One row a token: [vocabulary, d].
  using Weight =
      quipu::Weight<weight_id::tok_embeddings, dim<axis::vocabulary, dims<M>::vocab_size>,
                    dim<axis::d, dims<M>::dim>>;
  static constexpr std::size_t parameters = Weight::size;
  static constexpr std::size_t instances = 1;

  /// No arithmetic; one row is read for each token.
  static constexpr Cost cost(const Work& w) {
    return {0, checked_mul(w.rows(), predicted_weight_bytes(w.weights, 1, Weight::in), "bytes"), 0,
            0};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/embedding-inl.hpp",
                                    test = "test/simd/embedding_test.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = TokenEmbedding;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "tok_embeddings",
        name = "Token embedding", inside = "", code = "self.tok_embeddings(tokens)",
        sentence = "Looks up the row of each token: the first value of its residual stream.",
        explanation =
            "A look-up, not a product: one row a token is read and no arithmetic happens. No "
            "position is added here; positions enter in attention.",
        header = "quipu/model/token_embedding.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::t, In, notation::Carrier::token>,
                          notation::table<symbol::E, Weight>, notation::out<symbol::x, Out>>;
    static constexpr auto equations =
        notation::equations(symbol::x == notation::lookup(symbol::E, symbol::t));
    static constexpr notation::Mistake mistake{
        "Charging the look-up as a product with a one-hot matrix", "one row is copied",
        2 * dims<M>::vocab_size* dims<M>::dim, 0, "FLOPs a token"};
    static constexpr notation::Notes notes =
        dims<M>::tied_output
            ? notation::Notes{{"The vocabulary projection applies this same table; the model "
                               "counts it once."}}
            : notation::Notes{{"The vocabulary projection has a matrix of its own."}};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"embedding",
                                 notation::Evidence::direct,
                                 "A vocabulary-parallel table of one row a token, looked up before "
                                 "the first block.",
                                 {{258, 260}, {280, 280}},
                                 {{264, 264}, {283, 283}},
                                 {"VocabParallelEmbedding", "tok_embeddings"}}}) +
             notation::vocabulary_parallel_storage() +
             notation::catalogue_sources<M>::records(notation::direct_for<M>);
    }
  };

  /// The token ids, as a card of their own.
  struct tokens_tensor {
    using of = TokenEmbedding;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view id = "tokens", name = "Tokens", inside = "", code = "tokens",
                                      sentence =
                                          "The token ids of the new positions: all that enters the "
                                          "model, with the first position.",
                                      explanation = "Text becomes tokens outside the model.",
                                      header = "quipu/model/token_embedding.hpp";
    using symbols = notation::Symbols<notation::out<symbol::t, In, notation::Carrier::token>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"embedding",
                                 notation::Evidence::contextual,
                                 "The tokens are looked up in the table.",
                                 {{280, 280}},
                                 {{283, 283}},
                                 {"tok_embeddings"}}});
    }
  };
};

}  // namespace quipu
