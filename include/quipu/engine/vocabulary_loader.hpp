// The vocabulary of a checkpoint as plain data: GGUF's tokenizer keys, or Meta's tokenizer.model or
// Hugging Face's tokenizer.json beside the weights.
// Siblings: text/vocabulary.hpp (the contract), engine/model.hpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/text/hugging_face_tokenizer.hpp"
#include "quipu/text/tiktoken.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

/// The tokenizer keys of a GGUF file; nothing if it has none (tokenizer.ggml.model is absent or
/// says "none"). FormatError for a key of another type.
inline std::optional<VocabularyData> vocabulary_from_gguf(const GgufFile& file) {
  const auto text = [&](const char* key) {
    return std::string(file.get_if<std::string_view>(key).value_or(""));
  };
  VocabularyData data;
  data.source = file.path();
  data.model = text("tokenizer.ggml.model");
  if (data.model.empty() || data.model == "none" || data.model == "no_vocab") return std::nullopt;
  data.pre = text("tokenizer.ggml.pre");
  data.chat_template = text("tokenizer.chat_template");
  const auto strings = [&](const char* key) {
    std::vector<std::string> out;
    if (file.find(key) == nullptr) return out;
    for (std::string_view s : file.get_array<std::string_view>(key)) out.emplace_back(s);
    return out;
  };
  data.tokens = strings("tokenizer.ggml.tokens");
  data.merges = strings("tokenizer.ggml.merges");
  data.scores = file.get_array_if<float>("tokenizer.ggml.scores").value_or(std::vector<float>{});
  data.token_types = file.get_array_if<std::int32_t>("tokenizer.ggml.token_type")
                         .value_or(std::vector<std::int32_t>{});
  const auto id = [&](const char* key) -> std::optional<TokenId> {
    const auto value = file.get_unsigned(key);
    if (!value) return std::nullopt;
    if (*value > 0x7fffffffu) {
      raise<FormatError>(file.path() + ": key " + key + ": " + std::to_string(*value) +
                         " is not a token id");
    }
    return static_cast<TokenId>(*value);
  };
  data.bos = id("tokenizer.ggml.bos_token_id");
  data.eos = id("tokenizer.ggml.eos_token_id");
  data.eot = id("tokenizer.ggml.eot_token_id");
  data.eom = id("tokenizer.ggml.eom_token_id");
  data.unknown = id("tokenizer.ggml.unknown_token_id");
  data.padding = id("tokenizer.ggml.padding_token_id");
  data.add_bos = file.get_if<bool>("tokenizer.ggml.add_bos_token");
  data.add_eos = file.get_if<bool>("tokenizer.ggml.add_eos_token");
  data.add_space_prefix = file.get_if<bool>("tokenizer.ggml.add_space_prefix");
  return data;
}

/// The vocabulary of any checkpoint: the keys of a GGUF file, or tokenizer.json (with
/// tokenizer_config.json, and chat_template.jinja where that is a file) in the folder of a
/// checkpoint in Hugging Face's layout, or tokenizer.model (Llama 3's) in the folder of the weights
/// or in its subfolder `original`, as Hugging Face repositories have it. Nothing if there is none.
/// Models with scaled rotary frequencies (3.1 on) have the newer special names.
inline std::optional<VocabularyData> vocabulary_of(const Checkpoint& checkpoint) {
  if (checkpoint.gguf) return vocabulary_from_gguf(*checkpoint.gguf);
  std::error_code ignored;
  std::filesystem::path folder(checkpoint.path);
  if (!std::filesystem::is_directory(folder, ignored)) folder = folder.parent_path();
  const auto text_of = [](const std::filesystem::path& path) {
    const MappedFile file(path.string());
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  };
  const std::filesystem::path json = folder / "tokenizer.json";
  if (std::filesystem::is_regular_file(json, ignored)) {
    VocabularyData data = read_tokenizer_json(text_of(json), json.string());
    const std::filesystem::path beside = folder / "tokenizer_config.json";
    if (std::filesystem::is_regular_file(beside, ignored)) {
      read_tokenizer_config(text_of(beside), data, beside.string());
    }
    const std::filesystem::path chat = folder / "chat_template.jinja";
    if (std::filesystem::is_regular_file(chat, ignored)) data.chat_template = text_of(chat);
    return data;
  }
  for (const char* name : {"tokenizer.model", "original/tokenizer.model"}) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::is_regular_file(path, ignored)) continue;
    const MappedFile file(path.string());
    const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.size());
    const bool newer = checkpoint.facts.rope_scaled.value_or(false);
    return read_tiktoken(bytes, newer ? SpecialNames::llama3_1 : SpecialNames::llama3,
                         path.string());
  }
  return std::nullopt;
}

}  // namespace quipu
