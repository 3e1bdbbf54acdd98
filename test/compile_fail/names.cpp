// Fields that are missing, under another project's name, or one slip away from ours.
// FAIL missing_norm_eps: model_rule_broken<field_is_missing, field::norm_eps>
// FAIL missing_ffn: model_rule_broken<field_is_missing, field::ffn>
// FAIL missing_vocab_size: model_rule_broken<field_is_missing, field::vocab_size>
// FAIL hidden_size: model_rule_broken<foreign_name, name_found::hidden_size, write_instead<field::dim>>
// FAIL intermediate_size: model_rule_broken<foreign_name, name_found::intermediate_size, write_instead<field::ffn>>
// FAIL num_heads: model_rule_broken<foreign_name, name_found::num_heads, write_instead<field::n_heads>>
// FAIL num_key_value_heads: model_rule_broken<foreign_name, name_found::num_key_value_heads, write_instead<field::n_kv_heads>>
// FAIL rms_norm_eps: model_rule_broken<foreign_name, name_found::rms_norm_eps, write_instead<field::norm_eps>>
// FAIL tie_word_embeddings: model_rule_broken<foreign_name, name_found::tie_word_embeddings, write_instead<field::output>>
// FAIL multiple_of: model_rule_broken<foreign_name, name_found::multiple_of, write_instead<field::ffn>>
// FAIL n_layer: model_rule_broken<misspelt_name, name_found::n_layer, write_instead<field::n_layers>>
// FAIL n_kv_head: model_rule_broken<misspelt_name, name_found::n_kv_head, write_instead<field::n_kv_heads>>
// FAIL vocab: model_rule_broken<misspelt_name, name_found::vocab, write_instead<field::vocab_size>>
// FAIL rope_scale: model_rule_broken<misspelt_name, name_found::rope_scale, write_instead<field::rope_scaling>>
// FAIL head_size: model_rule_broken<misspelt_name, name_found::head_size, write_instead<field::head_dim>>
#include "quipu/config/dims.hpp"

struct mine {
  static constexpr int dim = 64, n_layers = 2, n_heads = 4, n_kv_heads = 2;
#ifndef QUIPU_FAIL_missing_vocab_size
  static constexpr int vocab_size = 512;
#endif
#ifndef QUIPU_FAIL_missing_ffn
  static constexpr quipu::ffn_width ffn{224};
#endif
#ifndef QUIPU_FAIL_missing_norm_eps
  static constexpr double norm_eps = 1e-5;
#endif
  static constexpr double rope_theta = 500000;

#ifdef QUIPU_FAIL_hidden_size
  static constexpr int hidden_size = 64;
#endif
#ifdef QUIPU_FAIL_intermediate_size
  static constexpr int intermediate_size = 224;
#endif
#ifdef QUIPU_FAIL_num_heads
  static constexpr int num_heads = 4;
#endif
#ifdef QUIPU_FAIL_num_key_value_heads
  static constexpr int num_key_value_heads = 2;
#endif
#ifdef QUIPU_FAIL_rms_norm_eps
  static constexpr double rms_norm_eps = 1e-6;
#endif
#ifdef QUIPU_FAIL_tie_word_embeddings
  static constexpr bool tie_word_embeddings = true;
#endif
#ifdef QUIPU_FAIL_multiple_of
  static constexpr int multiple_of = 32;
#endif
#ifdef QUIPU_FAIL_n_layer
  static constexpr int n_layer = 2;
#endif
#ifdef QUIPU_FAIL_n_kv_head
  static constexpr int n_kv_head = 2;
#endif
#ifdef QUIPU_FAIL_vocab
  static constexpr int vocab = 512;
#endif
#ifdef QUIPU_FAIL_rope_scale
  static constexpr double rope_scale = 8;
#endif
#ifdef QUIPU_FAIL_head_size
  static constexpr int head_size = 16;
#endif
};

constexpr std::size_t ffn = quipu::dims<mine>::ffn;
static_assert(ffn > 0);
