// ModelFacts from GGUF metadata (keys `llama.*`). Siblings: model_facts.hpp, gguf.hpp.
#pragma once

#include <string>

#include "quipu/checkpoint/gguf.hpp"
#include "quipu/checkpoint/model_facts.hpp"
#include "quipu/checkpoint/packed_file.hpp"

namespace quipu {

/// The facts a GGUF file states. For an architecture other than "llama" only the architecture and
/// the name are read: its keys may mean other things. FormatError on a value of the wrong type.
inline ModelFacts facts_from_gguf(const GgufFile& file) {
  ModelFacts facts;
  facts.source = "GGUF metadata";
  facts.architecture = file.get_if<std::string_view>("general.architecture").value_or("");
  facts.name = file.get_if<std::string_view>("general.name").value_or("");
  if (facts.architecture == packed_architecture) facts.architecture = "llama";
  if (facts.architecture != "llama") return facts;

  const auto size = [&file](std::string_view key) -> std::optional<std::size_t> {
    return file.get_unsigned(key);
  };
  const auto has_tensor = [&file](std::string_view tensor_name) {
    for (const TensorRecord& tensor : file.tensors()) {
      if (tensor.name == tensor_name) return true;
    }
    return false;
  };
  facts.dim = size("llama.embedding_length");
  facts.n_layers = size("llama.block_count");
  facts.n_heads = size("llama.attention.head_count");
  facts.n_kv_heads = size("llama.attention.head_count_kv");
  if (!facts.n_kv_heads) facts.n_kv_heads = facts.n_heads;  // the format's own default
  // One head size serves queries, keys and values, and the whole head is rotated.
  for (const char* key : {"llama.attention.key_length", "llama.attention.value_length",
                          "llama.rope.dimension_count"}) {
    const std::optional<std::size_t> found = size(key);
    if (found && facts.head_dim && *found != *facts.head_dim) {
      detail::bad_field(file.path(), "key " + detail::in_quotes(key),
                        detail::decimal(*facts.head_dim) + ", the length of a key",
                        detail::decimal(*found));
    }
    if (found) facts.head_dim = found;
  }
  facts.ffn = size("llama.feed_forward_length");
  facts.vocab_size = size("llama.vocab_size");
  if (!facts.vocab_size) {
    if (const GgufEntry* tokens = file.find("tokenizer.ggml.tokens");
        tokens != nullptr && tokens->type == GgufType::array) {
      facts.vocab_size = tokens->count;
    }
  }
  facts.norm_eps = file.get_real("llama.attention.layer_norm_rms_epsilon");
  facts.rope_theta = file.get_real("llama.rope.freq_base");
  facts.context_length = size("llama.context_length");
  if (!file.tensors().empty()) facts.tied = !has_tensor("output.weight");

  const std::string_view scaling =
      file.get_if<std::string_view>("llama.rope.scaling.type").value_or("none");
  if (scaling != "none") {
    detail::bad_field(file.path(), "key \"llama.rope.scaling.type\"",
                      "\"none\" (Llama 3.1's scaling stands in rope_freqs.weight)",
                      detail::in_quotes(scaling));
  }
  facts.rope_scaled = has_tensor("rope_freqs.weight");
  return facts;
}

}  // namespace quipu
