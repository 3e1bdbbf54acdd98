// The catalogue: models of the Llama family with every constant stated.
//
// Sources, one a family; `source` beside an entry names its lines:
//   Llama 3, 3.1   meta-llama/llama-models 0e0b8c519242, models/sku_list.py (8B), 8c88b8c0d75d
//   (others) Llama 3.2, 3.3 the same file at 8c88b8c0d75d; the 3.2 scaling factor 32 is that of the
//   released
//                  configurations, while the pinned reference applies 8 to every model
//   Llama 2        the released checkpoints' params.json: the catalogue file lists other values
//                  (8 kv heads and rope_theta 500000 for 7B), which do not describe them
//   SmolLM2, TinyLlama, stories  the released config.json / model headers
// Siblings: config/rules.hpp, test/static/catalogue.cpp (every total, stated independently).
#pragma once

#include <string_view>

#include "quipu/config/choices.hpp"

namespace quipu::models {

/// Llama 2 7B, as released (no grouped queries, theta 10000).
struct llama2_7b {
  static constexpr int dim = 4096, n_layers = 32, n_heads = 32, n_kv_heads = 32, vocab_size = 32000;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.0};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama2_7b", description = "Llama 2 7b model",
                                    huggingface_repo = "meta-llama/Llama-2-7b";
  static constexpr int pth_file_count = 1;
  static constexpr bool use_scaled_rope = false;
};

/// Llama 2 13B, as released.
struct llama2_13b {
  static constexpr int dim = 5120, n_layers = 40, n_heads = 40, n_kv_heads = 40, vocab_size = 32000;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.0};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama2_13b", description = "Llama 2 13b model",
                                    huggingface_repo = "meta-llama/Llama-2-13b";
  static constexpr int pth_file_count = 2;
  static constexpr bool use_scaled_rope = false;
};

/// Llama 2 70B, as released.
struct llama2_70b {
  static constexpr int dim = 8192, n_layers = 80, n_heads = 64, n_kv_heads = 8, vocab_size = 32000;
  static constexpr ffn_rule ffn{.multiple_of = 4096, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama2_70b", description = "Llama 2 70b model",
                                    huggingface_repo = "meta-llama/Llama-2-70b";
  static constexpr int pth_file_count = 8;
  static constexpr bool use_scaled_rope = false;
};

/// Llama 3 8B: sku_list.py 188-207.
struct llama3_8b {
  static constexpr int dim = 4096, n_layers = 32, n_heads = 32, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 1024, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_8b", description = "Llama 3 8b model",
                                    huggingface_repo = "meta-llama/Llama-3-8B";
  static constexpr int pth_file_count = 1;
  static constexpr bool use_scaled_rope = false;
};

/// Llama 3 70B: sku_list.py 162-180.
struct llama3_70b {
  static constexpr int dim = 8192, n_layers = 80, n_heads = 64, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 4096, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_70b", description = "Llama 3 70b model",
                                    huggingface_repo = "meta-llama/Llama-3-70B";
  static constexpr int pth_file_count = 8;
  static constexpr bool use_scaled_rope = false;
};

/// Llama 3.1 8B: sku_list.py 231-248. Differs from Llama 3 8B in rotary scaling only.
struct llama3_1_8b {
  static constexpr int dim = 4096, n_layers = 32, n_heads = 32, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 1024, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 8, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_1_8b",
                                    description = "Llama 3.1 8b model",
                                    huggingface_repo = "meta-llama/Llama-3.1-8B";
  static constexpr int pth_file_count = 1;
  static constexpr bool use_scaled_rope = true;
};

/// Llama 3.1 70B: sku_list.py 205-223.
struct llama3_1_70b {
  static constexpr int dim = 8192, n_layers = 80, n_heads = 64, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 4096, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 8, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_1_70b",
                                    description = "Llama 3.1 70b model",
                                    huggingface_repo = "meta-llama/Llama-3.1-70B";
  static constexpr int pth_file_count = 8;
  static constexpr bool use_scaled_rope = true;
};

/// Llama 3.1 405B with 8 kv heads: sku_list.py 224-243 (264-283 lists 16 for 16 ranks).
struct llama3_1_405b {
  static constexpr int dim = 16384, n_layers = 126, n_heads = 128, n_kv_heads = 8,
                       vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 4096, .ffn_dim_multiplier = 1.2};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 8, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_1_405b",
                                    description = "Llama 3.1 405b model (BF16 weights)",
                                    huggingface_repo = "meta-llama/Llama-3.1-405B";
  static constexpr int pth_file_count = 8;
  static constexpr bool use_scaled_rope = true;
};

/// Llama 3.2 1B: sku_list.py 289-307; factor 32 and the shared matrix from the release.
struct llama3_2_1b {
  static constexpr int dim = 2048, n_layers = 16, n_heads = 32, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.5};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 32, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "llama3_2_1b",
                                    description = "Llama 3.2 1b model",
                                    huggingface_repo = "meta-llama/Llama-3.2-1B";
  static constexpr int pth_file_count = 1;
  static constexpr bool use_scaled_rope = true;
};

/// Llama 3.2 3B: sku_list.py 308-326; factor 32 and the shared matrix from the release.
struct llama3_2_3b {
  static constexpr int dim = 3072, n_layers = 28, n_heads = 24, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.0};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 32, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "llama3_2_3b",
                                    description = "Llama 3.2 3b model",
                                    huggingface_repo = "meta-llama/Llama-3.2-3B";
  static constexpr int pth_file_count = 1;
  static constexpr bool use_scaled_rope = true;
};

/// Llama 3.3 70B: sku_list.py 753-771 (released as an instruct model only).
struct llama3_3_70b {
  static constexpr int dim = 8192, n_layers = 80, n_heads = 64, n_kv_heads = 8, vocab_size = 128256;
  static constexpr ffn_rule ffn{.multiple_of = 4096, .ffn_dim_multiplier = 1.3};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
  static constexpr llama3_scaling rope_scaling{
      .factor = 8, .low = 1, .high = 4, .original_positions = 8192};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "llama3_3_70b_instruct",
                                    description = "Llama 3.3 70b instruct",
                                    huggingface_repo = "meta-llama/Llama-3.3-70B-Instruct";
  static constexpr int pth_file_count = 8;
  static constexpr bool use_scaled_rope = true;
};

/// SmolLM2 135M.
struct smollm2_135m {
  static constexpr int dim = 576, n_layers = 30, n_heads = 9, n_kv_heads = 3, vocab_size = 49152;
  static constexpr ffn_width ffn{1536};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 100000;
  static constexpr none rope_scaling{};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "smollm2_135m", description = "SmolLM2 135M",
                                    huggingface_repo = "HuggingFaceTB/SmolLM2-135M";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

/// SmolLM2 360M.
struct smollm2_360m {
  static constexpr int dim = 960, n_layers = 32, n_heads = 15, n_kv_heads = 5, vocab_size = 49152;
  static constexpr ffn_width ffn{2560};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 100000;
  static constexpr none rope_scaling{};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "smollm2_360m", description = "SmolLM2 360M",
                                    huggingface_repo = "HuggingFaceTB/SmolLM2-360M";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

/// SmolLM2 1.7B.
struct smollm2_1_7b {
  static constexpr int dim = 2048, n_layers = 24, n_heads = 32, n_kv_heads = 32, vocab_size = 49152;
  static constexpr ffn_width ffn{8192};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 130000;
  static constexpr none rope_scaling{};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "smollm2_1_7b", description = "SmolLM2 1.7B",
                                    huggingface_repo = "HuggingFaceTB/SmolLM2-1.7B";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

/// TinyLlama 1.1B.
struct tinyllama_1_1b {
  static constexpr int dim = 2048, n_layers = 22, n_heads = 32, n_kv_heads = 4, vocab_size = 32000;
  static constexpr ffn_width ffn{5632};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr separate output{};
  static constexpr std::string_view core_model_id = "tinyllama_1_1b",
                                    description = "TinyLlama 1.1B",
                                    huggingface_repo = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

/// TinyStories 15M of llama2.c.
struct stories15m {
  static constexpr int dim = 288, n_layers = 6, n_heads = 6, n_kv_heads = 6, vocab_size = 32000;
  static constexpr ffn_width ffn{768};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "stories15m", description = "TinyStories 15M",
                                    huggingface_repo = "karpathy/tinyllamas";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

/// TinyStories 110M of llama2.c.
struct stories110m {
  static constexpr int dim = 768, n_layers = 12, n_heads = 12, n_kv_heads = 12, vocab_size = 32000;
  static constexpr ffn_width ffn{2048};
  static constexpr from_heads head_dim{};
  static constexpr double norm_eps = 1e-5, rope_theta = 10000;
  static constexpr none rope_scaling{};
  static constexpr tied output{};
  static constexpr std::string_view core_model_id = "stories110m", description = "TinyStories 110M",
                                    huggingface_repo = "karpathy/tinyllamas";
  static constexpr int pth_file_count = 0;
  static constexpr bool use_scaled_rope = false;
};

}  // namespace quipu::models
