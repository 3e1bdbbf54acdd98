// What makes a type a configuration, and which sentence says so when a rule is broken.
//
// A configuration is any type with static constexpr members dim, n_layers, n_heads, vocab_size,
// ffn, norm_eps and rope_theta (any integer or floating type), and optionally n_kv_heads (else
// n_heads), head_dim (else from_heads), rope_scaling (else none), output (else separate). A broken
// rule is one error that names the rule and its numbers:
// model_rule_broken<kv_heads_must_divide_heads, n_heads_is<32>, n_kv_heads_is<5>>. Siblings:
// config/dims.hpp, test/static/config.cpp, test/compile_fail.
#pragma once

#include <type_traits>

#include "quipu/config/choices.hpp"
#include "quipu/shape/diagnostics.hpp"

namespace quipu {

/// The undefined template of all errors about a configuration: a rule and the facts against it.
template <class Rule, class... Facts>
struct model_rule_broken;

// The rules, named for what must hold.
struct kv_heads_must_divide_heads;
struct heads_must_divide_dim;  ///< unless head_dim is given as a number
struct head_dim_must_be_even;  ///< rotary embedding turns pairs
struct field_must_be_positive;
struct field_is_missing;
struct foreign_name;   ///< a field under another project's name
struct misspelt_name;  ///< a field one slip away from ours
struct norm_eps_must_be_positive;
struct rope_theta_must_exceed_one;
struct scaling_factor_must_be_positive;
struct scaling_bands_must_be_ordered;  ///< 0 < low < high, original_positions > 0
struct ffn_must_be_rule_or_width;
struct head_dim_must_be_from_heads_or_number;
struct rope_scaling_must_be_none_or_llama3_scaling;
struct output_must_be_separate_or_tied;
struct ffn_dim_multiplier_must_be_positive;

// The facts: a field of the configuration and its value, or what to write instead of a name.
template <long long Value>
struct dim_is;
template <long long Value>
struct n_heads_is;
template <long long Value>
struct n_kv_heads_is;
template <long long Value>
struct head_dim_is;
template <class Field, long long Value>
struct field_is;
template <class Field>
struct write_instead;

/// Names of fields, as they stand in messages.
namespace field {
struct dim;
struct n_layers;
struct n_heads;
struct n_kv_heads;
struct vocab_size;
struct ffn;
struct ffn_multiple_of;
struct head_dim;
struct norm_eps;
struct rope_theta;
struct rope_scaling;
struct output;
}  // namespace field

// Names that people bring from elsewhere or that are one slip away, each with ours.
// clang-format off
#define QUIPU_FOREIGN_NAMES(X)                                                              \
  X(hidden_size, dim) X(n_embd, dim) X(d_model, dim) X(embedding_length, dim)               \
  X(model_dim, dim) X(intermediate_size, ffn) X(hidden_dim, ffn) X(ffn_dim, ffn)            \
  X(feed_forward_length, ffn) X(num_hidden_layers, n_layers) X(num_layers, n_layers)        \
  X(block_count, n_layers) X(num_heads, n_heads) X(num_attention_heads, n_heads)            \
  X(head_count, n_heads) X(num_key_value_heads, n_kv_heads) X(num_kv_heads, n_kv_heads)     \
  X(head_count_kv, n_kv_heads) X(n_query_groups, n_kv_heads) X(vocabulary_size, vocab_size) \
  X(padded_vocab_size, vocab_size) X(rms_norm_eps, norm_eps)                                \
  X(layer_norm_rms_epsilon, norm_eps) X(rms_eps, norm_eps) X(rope_freq_base, rope_theta)    \
  X(rope_base, rope_theta) X(tie_word_embeddings, output) X(multiple_of, ffn)               \
  X(ffn_dim_multiplier, ffn)
#define QUIPU_MISSPELT_NAMES(X)                                                              \
  X(dims, dim) X(n_layer, n_layers) X(layers, n_layers) X(n_head, n_heads) X(heads, n_heads) \
  X(n_kv_head, n_kv_heads) X(n_heads_kv, n_kv_heads) X(kv_heads, n_kv_heads)                 \
  X(n_head_kv, n_kv_heads) X(n_vocab, vocab_size) X(vocab, vocab_size)                       \
  X(vocabsize, vocab_size) X(eps, norm_eps) X(norm_epsilon, norm_eps) X(epsilon, norm_eps)   \
  X(theta, rope_theta) X(rope_scale, rope_scaling) X(rope_scalings, rope_scaling)            \
  X(n_ffn, ffn) X(ffn_size, ffn) X(headdim, head_dim) X(head_size, head_dim)                 \
  X(outputs, output)
// clang-format on

/// The names of those lists as types, for messages.
namespace name_found {
#define QUIPU_DECLARE(theirs, ours) struct theirs;
QUIPU_FOREIGN_NAMES(QUIPU_DECLARE)
QUIPU_MISSPELT_NAMES(QUIPU_DECLARE)
#undef QUIPU_DECLARE
}  // namespace name_found

namespace detail {

template <class T>
using bare = std::remove_cvref_t<T>;

template <class M>
consteval auto broken_name() {
#define QUIPU_CHECK_FOREIGN(theirs, ours)                                                   \
  if constexpr (requires { M::theirs; }) {                                                  \
    return type_is<                                                                         \
        model_rule_broken<foreign_name, name_found::theirs, write_instead<field::ours>>>{}; \
  } else
#define QUIPU_CHECK_MISSPELT(theirs, ours)                                                   \
  if constexpr (requires { M::theirs; }) {                                                   \
    return type_is<                                                                          \
        model_rule_broken<misspelt_name, name_found::theirs, write_instead<field::ours>>>{}; \
  } else
  QUIPU_FOREIGN_NAMES(QUIPU_CHECK_FOREIGN)
  QUIPU_MISSPELT_NAMES(QUIPU_CHECK_MISSPELT) { return type_is<check_passed>{}; }
#undef QUIPU_CHECK_FOREIGN
#undef QUIPU_CHECK_MISSPELT
}

template <class M>
consteval auto missing_field() {
#define QUIPU_NEEDS(f)                                               \
  if constexpr (!requires { M::f; }) {                               \
    return type_is<model_rule_broken<field_is_missing, field::f>>{}; \
  } else
  QUIPU_NEEDS(dim)
  QUIPU_NEEDS(n_layers)
  QUIPU_NEEDS(n_heads)
  QUIPU_NEEDS(vocab_size) QUIPU_NEEDS(ffn) QUIPU_NEEDS(norm_eps) QUIPU_NEEDS(rope_theta) {
    return type_is<check_passed>{};
  }
#undef QUIPU_NEEDS
}

template <class M>
consteval long long kv_heads_of() {
  if constexpr (requires { M::n_kv_heads; }) {
    return static_cast<long long>(M::n_kv_heads);
  } else {
    return static_cast<long long>(M::n_heads);  // the reference's default
  }
}

template <class M>
consteval auto scaling_of() {
  if constexpr (requires { M::rope_scaling; }) {
    return M::rope_scaling;
  } else {
    return none{};
  }
}

template <class M>
consteval auto head_dim_choice() {
  if constexpr (requires { M::head_dim; }) {
    return M::head_dim;
  } else {
    return from_heads{};
  }
}

template <class M>
consteval auto output_of() {
  if constexpr (requires { M::output; }) {
    return M::output;
  } else {
    return separate{};
  }
}

/// Head width, 0 where it cannot be told yet.
template <class M>
consteval long long head_dim_of() {
  using H = bare<decltype(head_dim_choice<M>())>;
  if constexpr (std::is_integral_v<H>) {
    return static_cast<long long>(head_dim_choice<M>());
  } else {
    return M::n_heads > 0 ? static_cast<long long>(M::dim) / static_cast<long long>(M::n_heads) : 0;
  }
}

template <class M>
consteval auto broken_choice() {
  using F = bare<decltype(M::ffn)>;
  using H = bare<decltype(head_dim_choice<M>())>;
  using S = bare<decltype(scaling_of<M>())>;
  using O = bare<decltype(output_of<M>())>;
  if constexpr (!std::is_same_v<F, ffn_rule> && !std::is_same_v<F, ffn_width>) {
    return type_is<model_rule_broken<ffn_must_be_rule_or_width, field::ffn>>{};
  } else if constexpr (!std::is_same_v<H, from_heads> && !std::is_integral_v<H>) {
    return type_is<model_rule_broken<head_dim_must_be_from_heads_or_number, field::head_dim>>{};
  } else if constexpr (!std::is_same_v<S, none> && !std::is_same_v<S, llama3_scaling>) {
    return type_is<
        model_rule_broken<rope_scaling_must_be_none_or_llama3_scaling, field::rope_scaling>>{};
  } else if constexpr (!std::is_same_v<O, separate> && !std::is_same_v<O, tied>) {
    return type_is<model_rule_broken<output_must_be_separate_or_tied, field::output>>{};
  } else {
    return type_is<check_passed>{};
  }
}

template <class M>
consteval auto broken_number() {
#define QUIPU_POSITIVE(f)                                                                  \
  if constexpr (!(M::f > 0)) {                                                             \
    return type_is<model_rule_broken<field_must_be_positive,                               \
                                     field_is<field::f, static_cast<long long>(M::f)>>>{}; \
  } else
  QUIPU_POSITIVE(dim)
  QUIPU_POSITIVE(n_layers)
  QUIPU_POSITIVE(n_heads)
  QUIPU_POSITIVE(vocab_size)
#undef QUIPU_POSITIVE
  if constexpr (!(kv_heads_of<M>() > 0)) {
    return type_is<
        model_rule_broken<field_must_be_positive, field_is<field::n_kv_heads, kv_heads_of<M>()>>>{};
  } else if constexpr (static_cast<long long>(M::n_heads) % kv_heads_of<M>() != 0) {
    return type_is<model_rule_broken<kv_heads_must_divide_heads,
                                     n_heads_is<static_cast<long long>(M::n_heads)>,
                                     n_kv_heads_is<kv_heads_of<M>()>>>{};
  } else if constexpr (std::is_same_v<bare<decltype(head_dim_choice<M>())>, from_heads> &&
                       static_cast<long long>(M::dim) % static_cast<long long>(M::n_heads) != 0) {
    return type_is<model_rule_broken<heads_must_divide_dim, dim_is<static_cast<long long>(M::dim)>,
                                     n_heads_is<static_cast<long long>(M::n_heads)>>>{};
  } else if constexpr (!(head_dim_of<M>() > 0)) {
    return type_is<
        model_rule_broken<field_must_be_positive, field_is<field::head_dim, head_dim_of<M>()>>>{};
  } else if constexpr (head_dim_of<M>() % 2 != 0) {
    return type_is<model_rule_broken<head_dim_must_be_even, head_dim_is<head_dim_of<M>()>>>{};
  } else if constexpr (!(M::norm_eps > 0 && M::norm_eps < 1)) {
    return type_is<model_rule_broken<norm_eps_must_be_positive, field::norm_eps>>{};
  } else if constexpr (!(M::rope_theta > 1 && M::rope_theta < 1e30)) {
    return type_is<model_rule_broken<rope_theta_must_exceed_one, field::rope_theta>>{};
  } else {
    return type_is<check_passed>{};
  }
}

template <class M>
consteval auto broken_ffn_or_scaling() {
  using F = bare<decltype(M::ffn)>;
  if constexpr (std::is_same_v<F, ffn_width>) {
    if constexpr (!(M::ffn.n > 0)) {
      return type_is<model_rule_broken<field_must_be_positive, field_is<field::ffn, M::ffn.n>>>{};
    } else {
      return type_is<check_passed>{};
    }
  } else if constexpr (!(M::ffn.multiple_of > 0)) {
    return type_is<model_rule_broken<field_must_be_positive,
                                     field_is<field::ffn_multiple_of, M::ffn.multiple_of>>>{};
  } else if constexpr (!(M::ffn.ffn_dim_multiplier > 0 && M::ffn.ffn_dim_multiplier < 1e6)) {
    return type_is<model_rule_broken<ffn_dim_multiplier_must_be_positive, field::ffn>>{};
  } else {
    return type_is<check_passed>{};
  }
}

template <class M>
consteval auto broken_scaling() {
  if constexpr (std::is_same_v<bare<decltype(scaling_of<M>())>, llama3_scaling>) {
    constexpr llama3_scaling s = scaling_of<M>();
    if constexpr (!(s.factor > 0)) {
      return type_is<model_rule_broken<scaling_factor_must_be_positive, field::rope_scaling>>{};
    } else if constexpr (!(0 < s.low && s.low < s.high && s.original_positions > 0)) {
      return type_is<model_rule_broken<scaling_bands_must_be_ordered, field::rope_scaling>>{};
    } else {
      return type_is<check_passed>{};
    }
  } else {
    return type_is<check_passed>{};
  }
}

/// The first rule that M breaks; names first, so that a wrong name is not reported as a missing
/// field.
template <class M>
consteval auto first_broken_rule() {
  if constexpr (!std::is_same_v<decltype(broken_name<M>()), type_is<check_passed>>) {
    return broken_name<M>();
  } else if constexpr (!std::is_same_v<decltype(missing_field<M>()), type_is<check_passed>>) {
    return missing_field<M>();
  } else if constexpr (!std::is_same_v<decltype(broken_choice<M>()), type_is<check_passed>>) {
    return broken_choice<M>();
  } else if constexpr (!std::is_same_v<decltype(broken_number<M>()), type_is<check_passed>>) {
    return broken_number<M>();
  } else if constexpr (!std::is_same_v<decltype(broken_ffn_or_scaling<M>()),
                                       type_is<check_passed>>) {
    return broken_ffn_or_scaling<M>();
  } else {
    return broken_scaling<M>();
  }
}

template <class M>
using broken_rule = typename decltype(first_broken_rule<M>())::type;

}  // namespace detail

#undef QUIPU_FOREIGN_NAMES
#undef QUIPU_MISSPELT_NAMES

/// A type whose constants describe a model of the family: no rule is broken.
template <class M>
concept ModelConfig = std::is_same_v<detail::broken_rule<M>, detail::check_passed>;

}  // namespace quipu
