// The token embedding: a table look-up from token id to the residual stream.
// Siblings: simd/embedding-inl.hpp, test/static/components.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
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
};

}  // namespace quipu
