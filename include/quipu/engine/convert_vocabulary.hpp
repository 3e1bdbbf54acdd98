// A vocabulary as the keys of a GGUF file: the way back of engine/vocabulary_loader.hpp.
//
// Llama 3's tokenizer.model has ranks and no list of merges; GGUF's "gpt2" has a list. Two
// neighbours merge by rank if their joined bytes are a token, the least rank first, so the list is:
// for each token in order of rank, every pair of tokens that it splits into (among those of one
// token, the pair of least ranks first, as the published files of Llama 3 have it).
// Siblings: engine/convert.hpp, text/vocabulary.hpp. Test: test/engine/convert_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/text/byte_alphabet.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

namespace detail {

/// A code point below U+0800 as UTF-8.
inline std::string short_utf8(unsigned code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

/// How GPT-2's alphabet writes each byte: the inverse of ByteAlphabet.
inline std::array<std::string, 256> byte_letters() {
  std::array<std::string, 256> letters;
  for (unsigned byte = 0; byte < 256; ++byte) letters[byte] = short_utf8(byte);
  const ByteAlphabet alphabet;
  for (unsigned letter = 0x100; letter < 0x100 + 68; ++letter) {
    const std::string byte = alphabet.bytes_or_text(short_utf8(letter));
    letters[static_cast<unsigned char>(byte[0])] = short_utf8(letter);
  }
  return letters;
}

inline std::string in_byte_letters(const std::array<std::string, 256>& letters,
                                   std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += letters[static_cast<unsigned char>(c)];
  return text;
}

}  // namespace detail

/// "tiktoken" (bytes and ranks) as "gpt2" (printable letters and merges); other kinds as they are.
inline VocabularyData with_merges(VocabularyData data) {
  if (data.model != "tiktoken") return data;
  data.model = "gpt2";
  std::unordered_map<std::string_view, std::size_t> ranks;
  const auto is_normal = [&](std::size_t i) {
    return data.token_types.empty() ||
           data.token_types[i] == static_cast<std::int32_t>(TokenKind::normal);
  };
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (is_normal(i)) ranks.emplace(data.tokens[i], i);
  }
  const auto letters = detail::byte_letters();
  std::vector<std::string> written = data.tokens;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (is_normal(i)) written[i] = detail::in_byte_letters(letters, data.tokens[i]);
  }
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (!is_normal(i)) continue;
    const std::string_view token = data.tokens[i];
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut)), right = ranks.find(token.substr(cut));
      if (left != ranks.end() && right != ranks.end()) {
        pairs.emplace_back(left->second, right->second);
      }
    }
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [left, right] : pairs) {
      data.merges.push_back(written[left] + " " + written[right]);
    }
  }
  data.tokens = std::move(written);
  return data;
}

/// A vocabulary for a model of made-up weights: the 256 bytes, then placeholder words of a space
/// and their number, of which no text is made but which the model can say. Nothing if the bytes do
/// not fit.
inline std::optional<VocabularyData> placeholder_vocabulary(std::size_t size) {
  if (size < 257) return std::nullopt;
  VocabularyData data;
  data.source = "placeholder vocabulary";
  data.model = "gpt2";
  data.pre = "gpt-2";
  for (const std::string& letter : detail::byte_letters()) data.tokens.push_back(letter);
  const std::string space = data.tokens[' '];
  data.tokens.push_back(space + space);
  data.merges.push_back(space + " " + space);
  while (data.tokens.size() < size)
    data.tokens.push_back(space + std::to_string(data.tokens.size()));
  data.token_types.assign(size, static_cast<std::int32_t>(TokenKind::normal));
  return data;
}

/// Sets the keys `tokenizer.*` of a vocabulary.
inline void set_vocabulary(GgufMetadata& metadata, const VocabularyData& data) {
  const auto strings = [&](const char* key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    const std::vector<std::string_view> views(values.begin(), values.end());
    metadata.set_array<std::string_view>(key, views);
  };
  const auto id = [&](const char* key, const std::optional<TokenId>& value) {
    if (value) metadata.set(key, static_cast<std::uint32_t>(*value));
  };
  const auto flag = [&](const char* key, const std::optional<bool>& value) {
    if (value) metadata.set(key, *value);
  };
  metadata.set("tokenizer.ggml.model", std::string_view(data.model));
  if (!data.pre.empty()) metadata.set("tokenizer.ggml.pre", std::string_view(data.pre));
  strings("tokenizer.ggml.tokens", data.tokens);
  if (!data.scores.empty())
    metadata.set_array<float>("tokenizer.ggml.scores", std::span(data.scores));
  if (!data.token_types.empty())
    metadata.set_array<std::int32_t>("tokenizer.ggml.token_type", std::span(data.token_types));
  strings("tokenizer.ggml.merges", data.merges);
  id("tokenizer.ggml.bos_token_id", data.bos);
  id("tokenizer.ggml.eos_token_id", data.eos);
  id("tokenizer.ggml.eot_token_id", data.eot);
  id("tokenizer.ggml.eom_token_id", data.eom);
  id("tokenizer.ggml.unknown_token_id", data.unknown);
  id("tokenizer.ggml.padding_token_id", data.padding);
  flag("tokenizer.ggml.add_bos_token", data.add_bos);
  flag("tokenizer.ggml.add_eos_token", data.add_eos);
  flag("tokenizer.ggml.add_space_prefix", data.add_space_prefix);
  if (!data.chat_template.empty())
    metadata.set("tokenizer.chat_template", std::string_view(data.chat_template));
}

}  // namespace quipu
