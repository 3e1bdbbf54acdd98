// Llama 3's tokenizer.model: lines of a base64 token and its rank, as the tiktoken package reads
// them, and the 256 special tokens, which are not in the file but in the reference's code.
//
// Reference: llama/tokenizer.py of meta-llama/llama3 (Llama 3), models/llama3/tokenizer.py of
// meta-llama/llama-models (Llama 3.1 and later). Makes a VocabularyData (text/vocabulary.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "quipu/shape/error.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

/// Which names the 256 special tokens have. The ids are the same: 3.1 named some that 3 reserved.
enum class SpecialNames { llama3, llama3_1 };

namespace detail {

/// The value of a base64 digit, or -1.
constexpr int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Decodes padded base64; false if it is none.
inline bool decode_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  std::size_t digits = text.size();
  while (digits > text.size() - 2 && text[digits - 1] == '=') --digits;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int value = base64_value(text[i]);
    if (value < 0) return false;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<char>(static_cast<unsigned char>((bits >> held) & 0xFF)));
    }
  }
  return (bits & ((1U << held) - 1U)) == 0;
}

/// The text of special token `index` of 256.
inline std::string llama3_special_text(SpecialNames names, std::size_t index) {
  constexpr std::array<std::string_view, 12> of_3_1{"<|begin_of_text|>",
                                                    "<|end_of_text|>",
                                                    "",
                                                    "",
                                                    "<|finetune_right_pad_id|>",
                                                    "<|step_id|>",
                                                    "<|start_header_id|>",
                                                    "<|end_header_id|>",
                                                    "<|eom_id|>",
                                                    "<|eot_id|>",
                                                    "<|python_tag|>",
                                                    "<|image|>"};
  std::size_t reserved = 0;
  for (std::size_t i = 0;; ++i) {
    std::string_view name = i < of_3_1.size() ? of_3_1[i] : "";
    // Llama 3 has only the texts' ends, the headers' and the turn's.
    if (names == SpecialNames::llama3 && (i == 4 || i == 5 || i == 8 || i >= 10)) name = "";
    if (i == index) {
      return name.empty() ? "<|reserved_special_token_" + std::to_string(reserved) + "|>"
                          : std::string(name);
    }
    if (name.empty()) ++reserved;
  }
}

}  // namespace detail

/// The vocabulary of a tokenizer.model given as bytes. Ids are the ranks, which must run from 0
/// without a gap, in any order of lines; the special tokens follow. FormatError names the line and
/// what is wrong with it. `source` names the file in messages.
inline VocabularyData read_tiktoken(std::string_view bytes, SpecialNames names,
                                    const std::string& source = "tokenizer.model") {
  VocabularyData data;
  data.source = source;
  data.model = "tiktoken";
  data.pre = "llama-bpe";
  const auto refuse = [&source](std::size_t line, const std::string& what) {
    raise<FormatError>(source + ", line " + std::to_string(line) + ": " + what);
  };
  // A rank is at most the number of lines: a wrong one cannot make the table large.
  std::size_t lines = 0;
  for (const char c : bytes) lines += c == '\n' ? 1 : 0;
  data.tokens.resize(lines + 1);
  std::size_t count = 0;
  std::size_t line = 0;
  std::string token;
  for (std::size_t at = 0; at < bytes.size();) {
    ++line;
    const std::size_t end = (std::min)(bytes.find('\n', at), bytes.size());
    std::string_view text = bytes.substr(at, end - at);
    at = end + 1;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty()) continue;
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) refuse(line, "expected \"base64 rank\", found no blank");
    if (!detail::decode_base64(text.substr(0, blank), token)) {
      refuse(line, "\"" + std::string(text.substr(0, (std::min)(blank, std::size_t{80}))) +
                       "\" is not base64");
    }
    const std::string_view digits = text.substr(blank + 1);
    std::size_t rank = 0;
    bool number = !digits.empty() && digits.size() <= 9;
    for (const char c : digits) {
      number = number && c >= '0' && c <= '9';
      if (number) rank = rank * 10 + static_cast<std::size_t>(c - '0');
    }
    if (!number) {
      refuse(line, "\"" + std::string(digits.substr(0, 80)) + "\" is not a rank");
    }
    if (rank >= data.tokens.size()) {
      refuse(line, "rank " + std::to_string(rank) + " in a file of " +
                       std::to_string(data.tokens.size()) + " lines: ranks must have no gap");
    }
    if (!data.tokens[rank].empty()) {
      refuse(line, "rank " + std::to_string(rank) + " is given twice");
    }
    data.tokens[rank] = token;
    ++count;
  }
  if (count == 0) raise<FormatError>(source + ": no tokens");
  data.tokens.resize((std::max)(count, std::size_t{1}));
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (data.tokens[rank].empty()) {
      raise<FormatError>(source + ": " + std::to_string(count) + " tokens, but rank " +
                         std::to_string(rank) + " is missing");
    }
  }

  data.token_types.assign(count, static_cast<std::int32_t>(TokenKind::normal));
  for (std::size_t i = 0; i < 256; ++i) {
    data.tokens.push_back(detail::llama3_special_text(names, i));
    data.token_types.push_back(static_cast<std::int32_t>(TokenKind::control));
  }
  const auto special = [count](std::size_t i) { return static_cast<TokenId>(count + i); };
  data.bos = special(0);
  data.eos = special(1);
  data.eot = special(9);
  if (names == SpecialNames::llama3_1) {
    data.padding = special(4);
    data.eom = special(8);
  }
  data.add_bos = true;
  return data;
}

}  // namespace quipu
