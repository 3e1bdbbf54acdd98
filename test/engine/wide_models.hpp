// The full-width golden pieces as models, so that they run through an engine's forward pass as it
// is: what a piece leaves out is made neutral.
#pragma once

#include "quipu/config/choices.hpp"

namespace wide {

// One block of Llama 3 or 3.1 8B. The inputs of the four phases, 4 + 1 + 4 + 1 rows of the residual
// stream, are its table of embeddings.
struct Block {
  static constexpr int dim = 4096, n_layers = 1, n_heads = 32, n_kv_heads = 8, vocab_size = 10;
  static constexpr quipu::ffn_rule ffn{.multiple_of = 1024, .ffn_dim_multiplier = 1.3};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr quipu::tied output{};
};

// The final norm and vocabulary projection of 8B. The block before them is as narrow as can be and
// has weights of zero: it adds zero to the stream. Tokens 0 and 1 are the two inputs.
struct Vocabulary {
  static constexpr int dim = 4096, n_layers = 1, n_heads = 2, n_kv_heads = 1, vocab_size = 128256;
  static constexpr int head_dim = 2;
  static constexpr quipu::ffn_width ffn{2};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
};

}  // namespace wide
