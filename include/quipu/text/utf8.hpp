// UTF-8, one code point at a time, and the stream that turns bytes of tokens into text.
//
// Ill-formed input is never refused here: what to do with it is the caller's choice (a tokenizer
// keeps the bytes, a stream of text shows U+FFFD). Siblings: text/pretokenizer.hpp and
// text/tokenizer.hpp use the decoder, generation uses Utf8Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quipu {

/// What stands at the beginning of some bytes.
struct CodePoint {
  char32_t value = 0;        ///< the code point; U+FFFD where the bytes are ill-formed
  std::uint32_t length = 0;  ///< bytes it takes; of ill-formed bytes the maximal ill-formed prefix
  bool valid = false;        ///< well-formed
  bool cut = false;          ///< ill-formed only because the bytes end here: more might complete it
};

inline constexpr char32_t replacement_character = 0xFFFD;

/// The code point at the beginning of `bytes`, which must not be empty. Surrogates, overlong forms
/// and values above U+10FFFF are ill-formed, as the Unicode Standard (3.9, table 3-7) has it.
constexpr CodePoint decode_code_point(std::string_view bytes) {
  const auto at = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {lead, 1, true, false};
  std::uint32_t length = 0;
  unsigned low = 0x80;  // bounds of the second byte; the further ones are 80..BF
  unsigned high = 0xBF;
  char32_t value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {replacement_character, 1, false, false};
  }
  for (std::uint32_t i = 1; i < length; ++i) {
    if (i >= bytes.size()) return {replacement_character, i, false, true};
    const unsigned next = at(i);
    if (next < low || next > high) return {replacement_character, i, false, false};
    value = (value << 6) | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {value, length, true, false};
}

/// Bytes of the longest well-formed beginning of `bytes`.
constexpr std::size_t valid_utf8_prefix(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const CodePoint next = decode_code_point(bytes.substr(at));
    if (!next.valid) break;
    at += next.length;
  }
  return at;
}

/// Appends a code point (below U+110000) as UTF-8.
inline void append_utf8(std::string& out, char32_t value) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

/// White space as Python's str.isspace and str.strip understand it: Unicode's White_Space and
/// U+001C..U+001F. The reference cuts and strips with these.
constexpr bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

/// `text` without white space at both ends, as Python's str.strip. Ill-formed bytes are no space.
constexpr std::string_view python_strip(std::string_view text) {
  std::size_t begin = 0;
  std::size_t end = 0;  // after the last character that is not space
  bool started = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_code_point(text.substr(at));
    const bool space = c.valid && is_python_space(c.value);
    if (!space && !started) {
      started = true;
      begin = at;
    }
    at += c.length;
    if (!space) end = at;
  }
  return started ? text.substr(begin, end - begin) : std::string_view();
}

/// Turns the bytes of tokens, which may end anywhere, into text of whole characters.
///
/// A character whose bytes are spread over several tokens is held back until it is complete, so
/// nothing that was emitted ever has to be taken back. Ill-formed bytes become U+FFFD, one for each
/// maximal ill-formed prefix, as Python's bytes.decode(errors="replace") does; the whole output is
/// that of decoding all bytes at once, however they were cut.
class Utf8Stream {
 public:
  /// Takes the next bytes; returns the text that is certain now (possibly empty).
  std::string push(std::string_view bytes) {
    held_.append(bytes);
    std::string text;
    std::size_t at = 0;
    while (at < held_.size()) {
      const CodePoint next = decode_code_point(std::string_view(held_).substr(at));
      if (next.cut) break;
      if (next.valid) {
        text.append(held_, at, next.length);
      } else {
        append_utf8(text, replacement_character);
      }
      at += next.length;
    }
    held_.erase(0, at);
    return text;
  }

  /// The end of the bytes: what is still held becomes one U+FFFD. The stream is as new afterwards.
  std::string flush() {
    std::string text;
    if (!held_.empty()) append_utf8(text, replacement_character);
    held_.clear();
    return text;
  }

  /// Bytes held back (at most 3).
  std::size_t pending() const { return held_.size(); }

 private:
  std::string held_;
};

/// All of `bytes` as text, ill-formed parts as U+FFFD (see Utf8Stream).
inline std::string to_text(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  text += stream.flush();
  return text;
}

}  // namespace quipu
