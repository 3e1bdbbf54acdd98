// Words for the error messages of checkpoint/: names that come from a file are untrusted bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "quipu/shape/error.hpp"

namespace quipu::detail {

/// The bytes of a file's name or word, fit for a message: printable, in quotes, at most `limit`
/// characters long (a hostile name may be gigabytes of escape sequences).
inline std::string in_quotes(std::string_view bytes, std::size_t limit = 96) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : bytes.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || byte == '"' || byte == '\\') {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  out += bytes.size() > limit ? "...\" (" + std::to_string(bytes.size()) + " bytes)"
                              : std::string("\"");
  return out;
}

/// "[576, 49152]".
inline std::string extents_text(std::span<const std::size_t> extents) {
  std::string out = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i != 0) out += ", ";
    out += std::to_string(extents[i]);
  }
  return out + "]";
}

/// FormatError "FILE: WHAT".
[[noreturn]] inline void bad_format(std::string_view file, const std::string& what) {
  raise<FormatError>(std::string(file) + ": " + what);
}

/// FormatError "FILE: FIELD: expected EXPECTED, found FOUND".
[[noreturn]] inline void bad_field(std::string_view file, const std::string& field,
                                   const std::string& expected, const std::string& found) {
  bad_format(file, field + ": expected " + expected + ", found " + found);
}

}  // namespace quipu::detail
