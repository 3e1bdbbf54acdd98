// What a model's type says, written as the configuration of each layout: GGUF's keys `llama.*`,
// Hugging Face's config.json, Meta's params.json.
// Siblings: engine/convert.hpp; checkpoint/gguf_facts.hpp and json_facts.hpp read them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/checkpoint/json_document.hpp"
#include "quipu/engine/model_entry.hpp"

namespace quipu {

/// Positions that a model was trained for: what the checkpoint says, else (Meta's params.json does
/// not) what the releases with such rotary frequencies had: 131072 scaled (3.1 and later), 8192
/// with theta 500000 (3), else 4096 (2).
inline std::size_t context_length_of(const Checkpoint& file, const ModelEntry& entry) {
  if (file.facts.context_length) return *file.facts.context_length;
  if (entry.numerics.rope_scaling) return 131072;
  return entry.numerics.rope_theta >= 500000 ? 8192 : 4096;
}

/// The numbers `multiple_of` and `ffn_dim_multiplier` of Meta's rule that give a width.
struct FfnRule {
  std::size_t multiple_of = 1;
  std::optional<double> multiplier;
};

/// The rule with the coarsest multiple and the shortest multiplier that gives `ffn` for `dim`: for
/// the released models what their params.json says or an equal of it.
inline FfnRule ffn_rule_of(std::size_t dim, std::size_t ffn) {
  const double plain = static_cast<double>(2 * (4 * dim) / 3);
  for (int decimals = 0; decimals <= 15; ++decimals) {
    for (std::size_t multiple = 4096; multiple > 0; multiple /= 2) {
      if (ffn % multiple != 0) continue;
      std::optional<double> multiplier;
      if (decimals > 0) {
        // The rule cuts and then rounds up: anything in (ffn - multiple, ffn] will do.
        const double middle = static_cast<double>(ffn) - 0.5 * static_cast<double>(multiple) + 0.5;
        const double scale = std::pow(10.0, decimals);
        multiplier = std::round(middle / plain * scale) / scale;
        if (!(*multiplier > 0)) continue;
        if (!(*multiplier * plain >= 1)) continue;
      }
      if (ffn_width_by_rule(dim, multiple, multiplier, "params.json") == ffn) {
        return {multiple, multiplier};
      }
    }
  }
  raise<ArgumentError>("params.json: no rule of Meta's gives the feed-forward width " +
                       std::to_string(ffn));
}

namespace detail {

/// A JSON object under construction, a member a line.
class JsonText {
 public:
  explicit JsonText(std::string indent = "  ") : indent_(std::move(indent)) {}
  void raw(std::string_view key, std::string_view value) {
    text_ += (text_.empty() ? "{\n" : ",\n") + indent_;
    text_ += json_quoted(key);
    text_ += ": ";
    text_ += value;
  }
  void text(std::string_view key, std::string_view value) { raw(key, json_quoted(value)); }
  void flag(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
  void integer(std::string_view key, std::size_t value) { raw(key, std::to_string(value)); }
  /// The shortest decimal that reads back as the same double, recognisable as no integer.
  void real(std::string_view key, double value) {
    char digits[40];
    const bool plain = value >= 1e-3 && value < 1e15;
    const auto format = plain ? std::chars_format::fixed : std::chars_format::general;
    std::string written(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
    if (written.find_first_of(".e") == std::string::npos) written += ".0";
    raw(key, written);
  }
  std::string finish() const { return text_ + "\n" + indent_.substr(2) + "}"; }

 private:
  std::string indent_, text_;
};

}  // namespace detail

/// The text of params.json. ArgumentError if Meta's layout cannot say it (a head_dim of its own).
inline std::string params_json(const ModelEntry& entry) {
  const ArchitectureFacts& a = entry.architecture;
  if (a.head_dim * a.n_heads != a.dim) {
    raise<ArgumentError>("params.json: head_dim: Meta's layout has dim / n_heads only, and " +
                         std::string(entry.name) + " has " + std::to_string(a.head_dim));
  }
  const FfnRule rule = ffn_rule_of(a.dim, a.ffn);
  detail::JsonText json;
  json.integer("dim", a.dim);
  json.integer("n_layers", a.n_layers);
  json.integer("n_heads", a.n_heads);
  json.integer("n_kv_heads", a.n_kv_heads);
  json.integer("vocab_size", a.vocab_size);
  json.integer("multiple_of", rule.multiple_of);
  if (rule.multiplier) json.real("ffn_dim_multiplier", *rule.multiplier);
  json.real("norm_eps", entry.numerics.norm_eps);
  json.real("rope_theta", entry.numerics.rope_theta);
  json.flag("use_scaled_rope", entry.numerics.rope_scaling.has_value());
  return json.finish() + "\n";
}

/// The text of config.json. `type` is the element type of the matrices, `bos` and `eos` ids if
/// known.
inline std::string config_json(const Checkpoint& file, const ModelEntry& entry, ElementType type,
                               std::optional<std::int32_t> bos, std::optional<std::int32_t> eos) {
  const ArchitectureFacts& a = entry.architecture;
  detail::JsonText json;
  json.raw("architectures", "[\"LlamaForCausalLM\"]");
  json.text("model_type", "llama");
  json.flag("attention_bias", false);
  json.flag("mlp_bias", false);
  if (bos) json.integer("bos_token_id", static_cast<std::size_t>(*bos));
  if (eos) json.integer("eos_token_id", static_cast<std::size_t>(*eos));
  json.integer("head_dim", a.head_dim);
  json.text("hidden_act", "silu");
  json.integer("hidden_size", a.dim);
  json.integer("intermediate_size", a.ffn);
  json.integer("max_position_embeddings", context_length_of(file, entry));
  json.integer("num_attention_heads", a.n_heads);
  json.integer("num_hidden_layers", a.n_layers);
  json.integer("num_key_value_heads", a.n_kv_heads);
  json.real("rms_norm_eps", entry.numerics.norm_eps);
  if (const auto& scaling = entry.numerics.rope_scaling) {
    detail::JsonText inner("    ");
    inner.text("rope_type", "llama3");
    inner.real("factor", scaling->factor);
    inner.real("low_freq_factor", scaling->low);
    inner.real("high_freq_factor", scaling->high);
    inner.integer("original_max_position_embeddings",
                  static_cast<std::size_t>(scaling->original_positions));
    json.raw("rope_scaling", inner.finish());
  }
  json.real("rope_theta", entry.numerics.rope_theta);
  json.flag("tie_word_embeddings", a.tied_output);
  json.text("torch_dtype", type == ElementType::f32   ? "float32"
                           : type == ElementType::f16 ? "float16"
                                                      : "bfloat16");
  json.integer("vocab_size", a.vocab_size);
  return json.finish() + "\n";
}

/// Sets GGUF's keys `general.*` and `llama.*`, other than those that are there already. `type` is
/// the element type of the matrices.
inline void set_configuration(GgufMetadata& metadata, const Checkpoint& file,
                              const ModelEntry& entry, ElementType type) {
  const ArchitectureFacts& a = entry.architecture;
  const auto set = [&](std::string_view key, auto value) {
    if (!metadata.contains(key)) metadata.set(key, value);
  };
  const auto count = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
  // Numbers that llama.cpp gives its mixes of types; readers show them and compute nothing by them.
  constexpr std::uint32_t file_types[element_type_count] = {0, 32, 1, 7, 2, 3, 8, 9, 14, 16, 18};
  set("general.architecture", std::string_view("llama"));
  set("general.name", file.facts.name.empty() ? entry.name : std::string_view(file.facts.name));
  set("general.file_type", file_types[static_cast<std::size_t>(type)]);
  if (info(type).block_elements > 1) set("general.quantization_version", std::uint32_t{2});
  set("llama.block_count", count(a.n_layers));
  set("llama.context_length", count(context_length_of(file, entry)));
  set("llama.embedding_length", count(a.dim));
  set("llama.feed_forward_length", count(a.ffn));
  set("llama.attention.head_count", count(a.n_heads));
  set("llama.attention.head_count_kv", count(a.n_kv_heads));
  set("llama.attention.layer_norm_rms_epsilon", static_cast<float>(entry.numerics.norm_eps));
  set("llama.rope.dimension_count", count(a.head_dim));
  set("llama.rope.freq_base", static_cast<float>(entry.numerics.rope_theta));
  set("llama.vocab_size", count(a.vocab_size));
  if (a.head_dim * a.n_heads != a.dim) {
    set("llama.attention.key_length", count(a.head_dim));
    set("llama.attention.value_length", count(a.head_dim));
  }
}

}  // namespace quipu
