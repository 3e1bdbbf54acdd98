// The whole model: embedding, a stack of blocks, final norm, vocabulary projection.
// Siblings: token_embedding.hpp, block.hpp, rms_norm.hpp, vocabulary_projection.hpp;
// simd/transformer-inl.hpp runs it.
#pragma once

#include <array>

#include "quipu/model/block.hpp"
#include "quipu/model/token_embedding.hpp"
#include "quipu/model/vocabulary_projection.hpp"

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
};

namespace detail {
template <class X>
consteval std::size_t parameters_of() {
  if constexpr (requires { X::parameters; }) {
    return X::parameters;
  } else {
    return Transformer<X>::parameters;
  }
}
}  // namespace detail

/// Exact number of parameters of a component (one instance), or of a model.
template <class X>
inline constexpr std::size_t parameter_count = detail::parameters_of<X>();

}  // namespace quipu
