// Text of unknown origin for a terminal: a tensor's name or a configuration's value is whatever its
// file says, escape sequences included.
// Siblings: shape/error.hpp (every message passes through here), checkpoint/messages.hpp (bytes of
// a file in quotes). Test: test/checkpoint/messages_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quipu {

/// Bytes of the control character that begins at text[at], 0 if none does: those below a space,
/// 0x7f, and U+0080 to U+009F, which are the byte C2 and one from 80 to 9F.
inline std::size_t control_character_bytes(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

/// Appends `text` so that a terminal shows it and obeys none of it: control characters and the
/// characters of `also` byte by byte as \x1b, everything else as it is.
inline void append_printable(std::string& out, std::string_view text, std::string_view also = {}) {
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < text.size();) {
    std::size_t hidden = control_character_bytes(text, i);
    if (hidden == 0 && also.find(text[i]) != also.npos) hidden = 1;
    if (hidden == 0) out += text[i++];
    for (; hidden > 0; --hidden, ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
}

/// The text as append_printable() writes it.
inline std::string printable(std::string_view text) {
  std::string out;
  append_printable(out, text);
  return out;
}

/// At most `most` bytes of the text, cut between two characters if it is UTF-8 there.
inline std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t cut = most;
  const auto in_character = [&] { return (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80; };
  while (cut > 0 && most - cut < 3 && in_character()) --cut;
  return text.substr(0, in_character() ? most : cut);
}

}  // namespace quipu
