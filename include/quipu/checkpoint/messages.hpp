// Words for the error messages of checkpoint/: names that come from a file are untrusted bytes.
//
// A message is put together from views and numbers only, and becomes a string when it is raised.
// With std::string in their place, each of the hundred error paths had its chain of temporaries and
// their clean-up, and a build with sanitizers took over a minute for these headers.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quipu/shape/error.hpp"
#include "quipu/shape/printable.hpp"

namespace quipu::detail {

/// Pieces of a message, joined with `+`. Owns no text: what it refers to must outlive it.
class Words {
 public:
  // These convert implicitly, so that a message reads like a sentence.
  Words(const char* text) : Words(std::string_view(text)) {}
  Words(const std::string& text) : Words(std::string_view(text)) {}
  Words(std::string_view text) { pieces_[count_++] = {text, 0, Kind::text}; }

  /// Bytes of a file: printable, in quotes, and cut (a hostile name may be gigabytes of escapes).
  static Words in_quotes(std::string_view text, std::size_t longest) {
    return Words({text, longest, Kind::quoted});
  }
  static Words number(std::uint64_t value) { return Words({{}, value, Kind::number}); }
  static Words negative(std::uint64_t value) { return Words({{}, value, Kind::negative}); }
  static Words extents(std::span<const std::size_t> extents) {
    return Words(
        {{reinterpret_cast<const char*>(extents.data()), extents.size()}, 0, Kind::extents});
  }

  friend Words operator+(const Words& a, const Words& b) {
    Words sum = a;
    sum.add(b);
    return sum;
  }
  friend Words&& operator+(Words&& a, const Words& b) {
    a.add(b);
    return static_cast<Words&&>(a);
  }

  std::string text() const;
  operator std::string() const { return text(); }  // raise() wants a string

 private:
  enum class Kind : unsigned char { text, quoted, number, negative, extents };
  struct Piece {
    std::string_view text;  ///< of extents: their address and number
    std::uint64_t number;   ///< of a quoted text: the most bytes of it that are shown
    Kind kind;
  };
  static constexpr std::size_t capacity = 20;

  explicit Words(const Piece& piece) { pieces_[count_++] = piece; }
  void add(const Words& other) {
    for (std::size_t i = 0; i < other.count_ && count_ < capacity; ++i) {
      pieces_[count_++] = other.pieces_[i];
    }
  }

  Piece pieces_[capacity];  // the first count_ are set
  std::size_t count_ = 0;
};

inline std::string Words::text() const {
  std::string out;
  for (std::size_t p = 0; p < count_; ++p) {
    const Piece& piece = pieces_[p];
    if (piece.kind == Kind::text) out += piece.text;
    if (piece.kind == Kind::negative) out += '-';
    if (piece.kind == Kind::number || piece.kind == Kind::negative) {
      out += std::to_string(piece.number);
    }
    if (piece.kind == Kind::extents) {
      const auto* extents = reinterpret_cast<const std::size_t*>(piece.text.data());
      out += '[';
      for (std::size_t i = 0; i < piece.text.size(); ++i) {
        if (i != 0) out += ", ";
        out += std::to_string(extents[i]);
      }
      out += ']';
    }
    if (piece.kind != Kind::quoted) continue;
    const std::string_view shown = first_bytes(piece.text, piece.number);
    out += '"';
    append_printable(out, shown, "\"\\");
    out += shown.size() < piece.text.size()
               ? "...\" (" + std::to_string(piece.text.size()) + " bytes)"
               : std::string("\"");
  }
  return out;
}

inline Words in_quotes(std::string_view text, std::size_t longest = 96) {
  return Words::in_quotes(text, longest);
}
inline Words extents_text(std::span<const std::size_t> extents) { return Words::extents(extents); }
template <std::integral T>
Words decimal(T value) {
  if constexpr (std::signed_integral<T>) {
    if (value < 0) return Words::negative(std::uint64_t{0} - static_cast<std::uint64_t>(value));
  }
  return Words::number(static_cast<std::uint64_t>(value));
}

/// FormatError "FILE: WHAT".
[[noreturn]] inline void bad_format(const Words& file, const Words& what) {
  raise<FormatError>(file + ": " + what);
}

/// FormatError "FILE: FIELD: expected EXPECTED, found FOUND".
[[noreturn]] inline void bad_field(const Words& file, const Words& field, const Words& expected,
                                   const Words& found) {
  raise<FormatError>(file + ": " + field + ": expected " + expected + ", found " + found);
}

}  // namespace quipu::detail
