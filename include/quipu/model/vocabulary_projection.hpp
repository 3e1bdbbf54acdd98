// The vocabulary projection `output`: final features to logits.
// Siblings: model/projection.hpp, model/token_embedding.hpp (whose table it applies when tied),
// simd/transformer-inl.hpp.
#pragma once

#include "quipu/model/projection.hpp"

namespace quipu {

namespace weight_id {
/// Identity and names of the output matrix.
struct output {
  static constexpr std::string_view gguf = "output", hugging_face = "lm_head";
  static constexpr ShardAxis shard = ShardAxis::rows;
};
}  // namespace weight_id

/// [B, T, d] -> [B, T, vocabulary], float32. Counts the matrix that it applies; where that is the
/// embedding table (`shares_embedding`) a model counts it once.
/// Source: model.py 267-269, applied and cast to float32 at 301.
template <class M>
struct VocabularyProjection
    : Projection<weight_id::output, dim<axis::vocabulary, dims<M>::vocab_size>,
                 dim<axis::d, dims<M>::dim>> {
  static constexpr std::size_t instances = 1;
  static constexpr bool shares_embedding = dims<M>::tied_output;
};

}  // namespace quipu
