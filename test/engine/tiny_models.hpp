// The four tiny models of the golden data as a user's own models would be: types of a few
// constants, outside the catalogue. (test/data/golden/README.md has their table.)
#pragma once

#include "quipu/config/choices.hpp"

namespace tiny {

struct T1 {
  static constexpr int dim = 64, n_layers = 2, n_heads = 4, n_kv_heads = 2, vocab_size = 512;
  static constexpr quipu::ffn_rule ffn{.multiple_of = 32, .ffn_dim_multiplier = 1.3};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
};

struct T2 {
  static constexpr int dim = 96, n_layers = 3, n_heads = 6, n_kv_heads = 2, vocab_size = 320;
  static constexpr quipu::ffn_rule ffn{.multiple_of = 16, .ffn_dim_multiplier = 0.7};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr quipu::llama3_scaling rope_scaling{};
};

// No n_kv_heads and no multiplier: the reference's defaults.
struct T3 {
  static constexpr int dim = 32, n_layers = 2, n_heads = 4, vocab_size = 256;
  static constexpr quipu::ffn_rule ffn{.multiple_of = 64};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
};

struct T4 {
  static constexpr int dim = 48, n_layers = 1, n_heads = 4, n_kv_heads = 2, vocab_size = 128;
  static constexpr quipu::ffn_rule ffn{.multiple_of = 8, .ffn_dim_multiplier = 1.5};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr quipu::llama3_scaling rope_scaling{};
  static constexpr quipu::tied output{};
};

}  // namespace tiny
