// The encoder of SentencePiece's BPE vocabularies (Llama 2, TinyLlama).
//
// No pre-tokenizer: the first symbols are the characters of the whole text; a pair merges where the
// joined text is a token, the greatest score first. A character without a token becomes the tokens
// of its bytes. Sibling: text/bpe.hpp, which has the merging itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/text/bpe.hpp"
#include "quipu/text/token_table.hpp"
#include "quipu/text/utf8.hpp"

namespace quipu::detail {

/// U+2581, which SentencePiece writes for a space.
inline constexpr std::string_view space_mark = "\xE2\x96\x81";

/// `text` with a plain space for each space mark. SentencePiece itself cannot tell the two apart,
/// so nothing is lost by working on plain spaces.
inline std::string plain_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = text.find(space_mark, at);
    if (mark == std::string_view::npos) {
      out.append(text.substr(at));
      break;
    }
    out.append(text.substr(at, mark - at));
    out.push_back(' ');
    at = mark + space_mark.size();
  }
  return out;
}

/// A score as a priority: the greater the score, the less the number. Takes any float but NaN.
inline std::uint32_t priority_of_score(float score) {
  // The bits of a float order like the floats themselves once negative ones are turned over.
  const auto bits = std::bit_cast<std::uint32_t>(score == 0.0F ? 0.0F : score);
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

/// SentencePiece BPE over a TokenTable whose tokens have plain spaces.
class SentencePieceBpe {
 public:
  /// priorities[id] of each token; bytes[b] the token of a byte, or no_token; `unknown` the token
  /// for a byte that has none, or no_token to leave it out; `spaces_inside` whether any
  /// token has a space after something else.
  SentencePieceBpe(std::vector<std::uint32_t> priorities, const std::array<TokenId, 256>& bytes,
                   TokenId unknown, bool spaces_inside)
      : priorities_(std::move(priorities)),
        byte_ids_(bytes),
        unknown_(unknown),
        spaces_inside_(spaces_inside) {}

  /// Appends the ids of a whole text (already with the space that is put before it, if any).
  void encode(const TokenTable& tokens, std::string_view text, MergeScratch& scratch,
              std::vector<TokenId>& out) const {
    if (spaces_inside_) {
      encode_word(tokens, text, scratch, out);
      return;
    }
    // No token has a space after anything else, so that no merge crosses such a place: the words
    // between can be merged one by one, in the cache and in linear time.
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t word = text.find_first_not_of(' ', at);
      const std::size_t end = (std::min)(text.find(' ', word), text.size());
      encode_word(tokens, text.substr(at, end - at), scratch, out);
      at = end;
    }
  }

  /// Whether each of the 256 bytes has a token, so that encoding loses nothing.
  bool has_every_byte() const {
    return std::find(byte_ids_.begin(), byte_ids_.end(), no_token) == byte_ids_.end();
  }

 private:
  void encode_word(const TokenTable& tokens, std::string_view text, MergeScratch& scratch,
                   std::vector<TokenId>& out) const {
    scratch.begin(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_code_point(text.substr(at));
      const std::uint32_t length = c.valid ? c.length : 1;
      scratch.append(length, tokens.find(text.substr(at, length)));
      at += length;
    }
    merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) {
      const TokenId id = tokens.find(text.substr(left.begin, left.length + right.length));
      return id == no_token ? Merge{} : Merge{priorities_[static_cast<std::size_t>(id)], id};
    });
    for (const Symbol& symbol : scratch.symbols) {
      if (symbol.length == 0) continue;
      if (symbol.id != no_token) {
        out.push_back(symbol.id);
        continue;
      }
      for (const char byte : text.substr(symbol.begin, symbol.length)) {
        const TokenId id = byte_ids_[static_cast<unsigned char>(byte)];
        if (id != no_token) {
          out.push_back(id);
        } else if (unknown_ != no_token) {
          out.push_back(unknown_);
        }
      }
    }
  }

  std::vector<std::uint32_t> priorities_;
  std::array<TokenId, 256> byte_ids_;
  TokenId unknown_;
  bool spaces_inside_;
};

}  // namespace quipu::detail
