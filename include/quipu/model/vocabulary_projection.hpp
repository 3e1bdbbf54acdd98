// The vocabulary projection `output`: final features to logits.
// Siblings: model/projection.hpp, model/token_embedding.hpp (whose table it applies when tied),
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the output matrix.
struct output {
  static constexpr std::string_view gguf = "output", hugging_face = "lm_head";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

template <class M>
struct Transformer;  // transformer.hpp; its count stands on the card of this component

/// [B, T, d] -> [B, T, vocabulary], float32. Counts the matrix that it applies; where that is the
/// embedding table (`shares_embedding`) a model counts it once.
/// Source: model.py 267-269, applied and cast to float32 at 301.
template <class M>
struct VocabularyProjection
    : Projection<weight_id::output, dim<axis::vocabulary, dims<M>::vocab_size>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = 1;
  static constexpr bool shares_embedding = dims<M>::tied_output;

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = VocabularyProjection;
    static constexpr notation::Kind kind = notation::Kind::learned;
    static constexpr std::string_view
        id = "output",
        name = "Vocabulary projection", inside = "", code = "self.output(h).float()",
        sentence = "Projects each normalised feature vector into the logits of the vocabulary.",
        explanation =
            "Each entry scores one token of the vocabulary as the next token of its position. The "
            "softmax and the choice of a token happen outside the model. The code goes on calling "
            "the normalised features h; the equation calls them z.",
        header = "quipu/model/vocabulary_projection.hpp";
    using symbols =
        notation::Symbols<notation::in<symbol::z, typename of::In>,
                          notation::weight<symbol::W_out, typename of::Weight>,
                          notation::out<symbol::L, typename of::Out, notation::Carrier::f32>>;
    static constexpr auto equations = notation::equations(symbol::L == symbol::z * symbol::W_out);
    static constexpr notation::Mistake mistake{
        dims<M>::tied_output ? "Counting the shared matrix twice"
                             : "Taking the matrix for the embedding table's",
        dims<M>::tied_output ? "a shared matrix counts once, though its FLOPs happen"
                             : "this model has both",
        static_cast<long long>(Transformer<M>::parameters) +
            (dims<M>::tied_output ? 1 : -1) * static_cast<long long>(of::parameters),
        static_cast<long long>(Transformer<M>::parameters), "parameters of the model"};
    static constexpr notation::Notes notes{
        {"Cast to float32 before it is returned.",
         notation::has_scaled_rope<M> ? "llama-models model.py 308, llama3 model.py 301"
                                      : "model.py 301"},
        {dims<M>::tied_output
             ? "This projection applies the token embedding table; the model counts it once."
             : "This projection owns a separate matrix from the token embedding table."},
        {"Softmax, nucleus sampling and arg-max happen outside the model.",
         "llama3 generation.py 182-185"},
        {"On several ranks the parts of the logits are gathered: gather_output keeps its default, "
         "True.",
         "fairscale layers.py 244"}};
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"model-readout",
                   notation::Evidence::direct,
                   dims<M>::tied_output
                       ? "The final norm precedes a bias-free vocabulary projection; the logits "
                         "are turned into float32. The released model gives the projection the "
                         "embedding table."
                       : "The final norm precedes a separate, bias-free vocabulary projection; the "
                         "logits that are returned are turned into float32.",
                   {{266, 269}, {298, 302}},
                   {{270, 271}, {305, 308}},
                   {"self.norm", "self.output(h).float()"}},
                  {"embedding-table",
                   notation::Evidence::contextual,
                   "The token embedding is a table of its own in the reference, beside the output "
                   "matrix.",
                   {{258, 260}},
                   {{264, 264}},
                   {"VocabParallelEmbedding"}}}) +
             notation::catalogue_sources<M>::records(notation::direct_for<M>) +
             notation::column_parallel_storage();
    }
  };

  /// The logits, as a card of their own.
  struct tensor {
    using of = VocabularyProjection;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "logits",
        name = "Logits", inside = "", code = "self.output(h).float()",
        sentence = "The scores of every token of the vocabulary, for every position, in float32.",
        explanation =
            "Not probabilities: softmax and choice happen outside the model. For decoding only "
            "those of the last position are needed.",
        header = "quipu/model/vocabulary_projection.hpp";
    using symbols =
        notation::Symbols<notation::out<symbol::L, typename of::Out, notation::Carrier::f32>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"model-readout",
                                 notation::Evidence::contextual,
                                 "The logits are turned into float32 and returned.",
                                 {{298, 302}},
                                 {{305, 308}},
                                 {"self.output(h).float()"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };
};

}  // namespace quipu
