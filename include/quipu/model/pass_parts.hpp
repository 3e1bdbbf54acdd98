// The parts of a forward pass in the order of their work, each with its cost: what a profile of a
// pass is compared with.
// Siblings: model/transformer.hpp (the sum), simd/transformer-inl.hpp (does the work),
// engine/profile.hpp, test/static/cost.cpp.
#pragma once

#include <array>
#include <string_view>

#include "quipu/model/transformer.hpp"

namespace quipu {

/// One part, under its name in a profile: that of its card, without "layers.N." in a block.
struct PassPart {
  std::string_view name;
  bool in_block = false;  ///< once a block; the cost is that of one
  Cost cost{};
};

inline constexpr std::size_t pass_part_count = 19;
using PassParts = std::array<PassPart, pass_part_count>;

/// The parts of a pass over `w`; the final norm and the vocabulary are those of the rows of
/// `logits`.
template <class M>
constexpr PassParts pass_parts(const Work& w, const Work& logits) {
  const Cost attention = ScaledDotProduct<M>::cost(w);
  const Cost written{0, 0, 0, attention.cache_write_bytes};
  const Cost read{attention.flops, attention.weight_bytes, attention.cache_read_bytes, 0};
  return {{
      {"freqs_cis", false, {}},
      {"tok_embeddings", false, TokenEmbedding<M>::cost(w)},
      {"attention_norm", true, RmsNorm<M, weight_id::attention_norm>::cost(w)},
      {"attention.wq", true, QueryProjection<M>::cost(w)},
      {"attention.wk", true, KeyProjection<M>::cost(w)},
      {"attention.wv", true, ValueProjection<M>::cost(w)},
      {"attention.rope", true, RotaryEmbedding<M>::cost(w)},
      {"attention.cache", true, written},
      {"attention.scaled_dot_product", true, read},
      {"attention.wo", true, OutputProjection<M>::cost(w)},
      {"attention_residual", true, ResidualAdd<M>::cost(w)},
      {"ffn_norm", true, RmsNorm<M, weight_id::ffn_norm>::cost(w)},
      {"feed_forward.w1", true, GateProjection<M>::cost(w)},
      {"feed_forward.w3", true, UpProjection<M>::cost(w)},
      {"feed_forward.silu_gate", true, SiluGate<M>::cost(w)},
      {"feed_forward.w2", true, DownProjection<M>::cost(w)},
      {"feed_forward_residual", true, ResidualAdd<M>::cost(w)},
      {"norm", false, RmsNorm<M>::cost(logits)},
      {"output", false, VocabularyProjection<M>::cost(logits)},
  }};
}

}  // namespace quipu
