// ModelFacts from Hugging Face's config.json and Meta's params.json.
//
// Keys that are not known are ignored, for both kinds of file carry many. A known key of the wrong
// kind, and a key that asks for a computation that is not Llama's (another activation, biases,
// another rotary scaling), is an error that names it. Siblings: model_facts.hpp, json_document.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "quipu/checkpoint/json_document.hpp"
#include "quipu/checkpoint/model_facts.hpp"

namespace quipu {

namespace detail {

// The members of one JSON object with checks of their kinds; null counts as absent.
class JsonFields {
 public:
  JsonFields(const JsonValue& object, std::string_view file, std::string prefix = {})
      : object_(object), file_(file), prefix_(std::move(prefix)) {
    if (object.object() == nullptr) {
      bad_field(file, prefix_.empty() ? "the document" : prefix_, "an object", object.describe());
    }
  }

  std::string label(std::string_view key) const {
    return prefix_.empty() ? std::string(key) : prefix_ + "." + std::string(key);
  }
  const JsonValue* find(std::string_view key) const {
    const JsonValue* value = object_.find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }
  std::optional<std::size_t> size(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::optional<std::uint64_t> n = value->unsigned_integer();
    if (!n || *n == 0) bad_field(file_, label(key), "a positive integer", value->describe());
    return static_cast<std::size_t>(*n);
  }
  std::optional<double> positive(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::optional<double> n = value->number();
    if (!n || !(*n > 0) || !std::isfinite(*n)) {
      bad_field(file_, label(key), "a positive number", value->describe());
    }
    return n;
  }
  std::optional<bool> boolean(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->boolean() == nullptr)
      bad_field(file_, label(key), "true or false", value->describe());
    return *value->boolean();
  }
  std::optional<std::string> text(std::string_view key) const {
    const JsonValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->text() == nullptr) bad_field(file_, label(key), "a string", value->describe());
    return *value->text();
  }

 private:
  const JsonValue& object_;
  std::string_view file_;
  std::string prefix_;
};

// config.json's `rope_scaling` (or `rope_parameters` of newer writers). The kind stands under
// `rope_type`, in older files under `type`, in some under both.
inline void read_rope_scaling(const JsonFields& fields, std::string_view file, ModelFacts& facts) {
  const std::optional<std::string> modern = fields.text("rope_type");
  const std::optional<std::string> older = fields.text("type");
  if (modern && older && *modern != *older) {
    bad_field(file, fields.label("type"), "the same as rope_type, " + in_quotes(*modern),
              in_quotes(*older));
  }
  if (!modern && !older) {
    bad_format(file, fields.label("rope_type") + " is missing");
  }
  const std::string kind = modern ? *modern : *older;
  if (kind == "default") return;
  if (kind != "llama3") {
    bad_field(file, fields.label(modern ? "rope_type" : "type"), "\"default\" or \"llama3\"",
              in_quotes(kind));
  }
  const auto need = [&](const char* key) {
    const std::optional<double> value = fields.positive(key);
    if (!value) bad_format(file, fields.label(key) + " is missing");
    return *value;
  };
  RopeScalingFacts scaling;
  scaling.factor = need("factor");
  scaling.low = need("low_freq_factor");
  scaling.high = need("high_freq_factor");
  const std::optional<std::size_t> original = fields.size("original_max_position_embeddings");
  if (!original) bad_format(file, fields.label("original_max_position_embeddings") + " is missing");
  scaling.original_positions = *original;
  facts.rope_scaled = true;
  facts.rope_scaling = scaling;
}

}  // namespace detail

/// The facts of a Hugging Face config.json. `file` is its name in messages. For a model_type other
/// than "llama" only that word and the name are read.
inline ModelFacts facts_from_config_json(const JsonValue& root, std::string_view file) {
  const detail::JsonFields config(root, file);
  ModelFacts facts;
  facts.source = "config.json";
  facts.architecture = config.text("model_type").value_or("");
  facts.name = config.text("_name_or_path").value_or("");
  if (facts.architecture != "llama") return facts;

  facts.dim = config.size("hidden_size");
  facts.n_layers = config.size("num_hidden_layers");
  facts.n_heads = config.size("num_attention_heads");
  facts.n_kv_heads = config.size("num_key_value_heads");
  if (!facts.n_kv_heads) facts.n_kv_heads = facts.n_heads;
  facts.head_dim = config.size("head_dim");
  if (!facts.head_dim && facts.dim && facts.n_heads && *facts.dim % *facts.n_heads == 0) {
    facts.head_dim = *facts.dim / *facts.n_heads;
  }
  facts.ffn = config.size("intermediate_size");
  facts.vocab_size = config.size("vocab_size");
  facts.norm_eps = config.positive("rms_norm_eps");
  facts.rope_theta = config.positive("rope_theta");
  facts.context_length = config.size("max_position_embeddings");
  facts.tied = config.boolean("tie_word_embeddings");
  facts.rope_scaled = false;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (const JsonValue* scaling = config.find(key)) {
      const detail::JsonFields fields(*scaling, file, key);
      detail::read_rope_scaling(fields, file, facts);
      if (!facts.rope_theta) facts.rope_theta = fields.positive("rope_theta");
    }
  }

  if (const auto act = config.text("hidden_act"); act && *act != "silu") {
    detail::bad_field(file, "hidden_act", "\"silu\"", detail::in_quotes(*act));
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (config.boolean(key).value_or(false)) detail::bad_field(file, key, "false", "true");
  }
  return facts;
}

/// The facts of Meta's params.json. What the file leaves out and the reference computes from other
/// fields is filled in (n_kv_heads, head_dim, the feed-forward width); its bare defaults are not:
/// an absent rope_theta meant 10000 for Llama 2 and means 500000 for Llama 3.
inline ModelFacts facts_from_params_json(const JsonValue& root, std::string_view file) {
  const detail::JsonFields params(root, file);
  ModelFacts facts;
  facts.source = "params.json";
  facts.architecture = "llama";
  facts.dim = params.size("dim");
  facts.n_layers = params.size("n_layers");
  facts.n_heads = params.size("n_heads");
  facts.n_kv_heads = params.size("n_kv_heads");
  if (!facts.n_kv_heads) facts.n_kv_heads = facts.n_heads;
  if (facts.dim && facts.n_heads && *facts.dim % *facts.n_heads == 0) {
    facts.head_dim = *facts.dim / *facts.n_heads;
  }
  // Llama 2's files say -1: "as the tokenizer has".
  if (const JsonValue* vocabulary = params.find("vocab_size");
      vocabulary != nullptr && vocabulary->number() != -1.0) {
    facts.vocab_size = params.size("vocab_size");
  }
  facts.norm_eps = params.positive("norm_eps");
  facts.rope_theta = params.positive("rope_theta");
  facts.rope_scaled = params.boolean("use_scaled_rope").value_or(false);
  if (facts.dim) {
    facts.ffn = ffn_width_by_rule(*facts.dim, params.size("multiple_of").value_or(256),
                                  params.positive("ffn_dim_multiplier"), file);
  }
  return facts;
}

}  // namespace quipu
