// Configurations that break a rule. Each case is one derived struct or one field.
// FAIL kv_heads_do_not_divide: model_rule_broken<kv_heads_must_divide_heads, n_heads_is<32>, n_kv_heads_is<5>>
// FAIL heads_do_not_divide: model_rule_broken<heads_must_divide_dim, dim_is<4100>, n_heads_is<32>>
// FAIL odd_head_dim: model_rule_broken<head_dim_must_be_even, head_dim_is<127>>
// FAIL odd_head_dim_given: model_rule_broken<head_dim_must_be_even, head_dim_is<65>>
// FAIL zero_head_dim: model_rule_broken<field_must_be_positive, field_is<field::head_dim, 0>>
// FAIL zero_dim: model_rule_broken<field_must_be_positive, field_is<field::dim, 0>>
// FAIL negative_layers: model_rule_broken<field_must_be_positive, field_is<field::n_layers, -1>>
// FAIL zero_heads: model_rule_broken<field_must_be_positive, field_is<field::n_heads, 0>>
// FAIL zero_kv_heads: model_rule_broken<field_must_be_positive, field_is<field::n_kv_heads, 0>>
// FAIL zero_vocabulary: model_rule_broken<field_must_be_positive, field_is<field::vocab_size, 0>>
// FAIL zero_ffn: model_rule_broken<field_must_be_positive, field_is<field::ffn, 0>>
// FAIL negative_multiple: model_rule_broken<field_must_be_positive, field_is<field::ffn_multiple_of, -256>>
// FAIL zero_multiplier: model_rule_broken<ffn_dim_multiplier_must_be_positive, field::ffn>
// FAIL zero_eps: model_rule_broken<norm_eps_must_be_positive, field::norm_eps>
// FAIL theta_one: model_rule_broken<rope_theta_must_exceed_one, field::rope_theta>
// FAIL zero_factor: model_rule_broken<scaling_factor_must_be_positive, field::rope_scaling>
// FAIL bands_swapped: model_rule_broken<scaling_bands_must_be_ordered, field::rope_scaling>
// FAIL ffn_is_a_number: model_rule_broken<ffn_must_be_rule_or_width, field::ffn>
// FAIL head_dim_is_a_fraction: model_rule_broken<head_dim_must_be_from_heads_or_number, field::head_dim>
// FAIL scaling_is_a_number: model_rule_broken<rope_scaling_must_be_none_or_llama3_scaling, field::rope_scaling>
// FAIL output_is_a_bool: model_rule_broken<output_must_be_separate_or_tied, field::output>
#include "quipu/quipu.hpp"

struct mine : quipu::models::llama3_8b {
#ifdef QUIPU_FAIL_kv_heads_do_not_divide
  static constexpr int n_kv_heads = 5;
#endif
#ifdef QUIPU_FAIL_heads_do_not_divide
  static constexpr int dim = 4100;
#endif
#ifdef QUIPU_FAIL_odd_head_dim
  static constexpr int dim = 4064;
#endif
#ifdef QUIPU_FAIL_odd_head_dim_given
  static constexpr int head_dim = 65;
#endif
#ifdef QUIPU_FAIL_zero_head_dim
  static constexpr int head_dim = 0;
#endif
#ifdef QUIPU_FAIL_zero_dim
  static constexpr int dim = 0;
#endif
#ifdef QUIPU_FAIL_negative_layers
  static constexpr int n_layers = -1;
#endif
#ifdef QUIPU_FAIL_zero_heads
  static constexpr int n_heads = 0;
#endif
#ifdef QUIPU_FAIL_zero_kv_heads
  static constexpr int n_kv_heads = 0;
#endif
#ifdef QUIPU_FAIL_zero_vocabulary
  static constexpr unsigned vocab_size = 0;
#endif
#ifdef QUIPU_FAIL_zero_ffn
  static constexpr quipu::ffn_width ffn{0};
#endif
#ifdef QUIPU_FAIL_negative_multiple
  static constexpr quipu::ffn_rule ffn{.multiple_of = -256, .ffn_dim_multiplier = 1.3};
#endif
#ifdef QUIPU_FAIL_zero_multiplier
  static constexpr quipu::ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 0};
#endif
#ifdef QUIPU_FAIL_zero_eps
  static constexpr double norm_eps = 0;
#endif
#ifdef QUIPU_FAIL_theta_one
  static constexpr float rope_theta = 1;
#endif
#ifdef QUIPU_FAIL_zero_factor
  static constexpr quipu::llama3_scaling rope_scaling{.factor = 0};
#endif
#ifdef QUIPU_FAIL_bands_swapped
  static constexpr quipu::llama3_scaling rope_scaling{.factor = 8, .low = 4, .high = 1};
#endif
#ifdef QUIPU_FAIL_ffn_is_a_number
  static constexpr int ffn = 14336;
#endif
#ifdef QUIPU_FAIL_head_dim_is_a_fraction
  static constexpr double head_dim = 128;
#endif
#ifdef QUIPU_FAIL_scaling_is_a_number
  static constexpr int rope_scaling = 8;
#endif
#ifdef QUIPU_FAIL_output_is_a_bool
  static constexpr bool output = true;
#endif
};

constexpr std::size_t parameters = quipu::parameter_count<mine>;
static_assert(parameters > 0);
