// The two ways in which vocabularies write bytes that are not printable: GPT-2's alphabet, in which
// every byte is a printable character, and SentencePiece's "<0x0A>".
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "quipu/text/utf8.hpp"

namespace quipu::detail {

/// GPT-2's alphabet: printable characters of Latin-1 stand for themselves, the other 68 bytes for
/// U+0100, U+0101, ... in order.
class ByteAlphabet {
 public:
  constexpr ByteAlphabet() {
    byte_of_.fill(-1);
    std::size_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      byte_of_[itself ? static_cast<std::size_t>(byte) : next++] = byte;
    }
  }

  /// The bytes that `text` writes; `text` itself if it is not written in the alphabet.
  std::string bytes_or_text(std::string_view text) const {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = decode_code_point(text.substr(at));
      if (!c.valid || c.value >= byte_of_.size() || byte_of_[c.value] < 0) {
        return std::string(text);
      }
      bytes.push_back(static_cast<char>(static_cast<unsigned char>(byte_of_[c.value])));
      at += c.length;
    }
    return bytes;
  }

 private:
  std::array<int, 256 + 68> byte_of_{};
};

/// The byte that a token like "<0x0A>" stands for; -1 if the text is no such token.
constexpr int value_of_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace quipu::detail
