// Source records: where the reference says what a card says.
//
// A record that names no revision, or whose lines are out of order or beyond the file, does not
// compile: the check is consteval and ends in a function whose name is the reason.
// Siblings: notation/reference.hpp (the files cited), test/static/notation.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace quipu::notation {

/// What a record is worth for the card on which it stands. The same lines may be direct evidence
/// for one card and context for another.
enum class Evidence : unsigned char {
  direct,
  contextual,
  dependency_context,  ///< how a dependency of the reference carries the operation out
};

/// How a card writes it.
constexpr std::string_view name(Evidence e) {
  constexpr std::string_view names[] = {"direct", "contextual",
                                        "operation context of a dependency"};
  return names[static_cast<unsigned char>(e)];
}

/// A file at a pinned revision. `lines` is its length, 0 where it is not known; `version` is a
/// release's name or empty.
struct SourceFile {
  std::string_view repository;
  std::string_view path;
  std::string_view revision;
  int lines = 0;
  std::string_view version = "";
};

/// Lines first..last of a file, counted from 1, both included.
struct LineRange {
  int first = 0;
  int last = 0;
  friend constexpr bool operator==(const LineRange&, const LineRange&) = default;
};

/// A list of at most N of something, for constants.
template <class T, std::size_t Count>
struct SmallList {
  std::array<T, Count> items{};
  std::size_t count = 0;

  constexpr SmallList() = default;
  constexpr SmallList(std::initializer_list<T> list) {
    for (const T& item : list) push(item);
  }
  constexpr void push(const T& item) { items[count++] = item; }
  constexpr const T* begin() const { return items.data(); }
  constexpr const T* end() const { return items.data() + count; }
  constexpr std::size_t size() const { return count; }
  constexpr const T& operator[](std::size_t i) const { return items[i]; }
};

/// The ranges of one record, in the file's order.
using Lines = SmallList<LineRange, 4>;
/// What must stand in a record's lines: words of the file's code.
using Tokens = SmallList<std::string_view, 4>;

/// One record of a card.
struct Source {
  std::string_view id;
  Evidence evidence = Evidence::direct;
  std::string_view claim;
  SourceFile file;
  Lines lines;
  Tokens tokens;
};

/// The records of one card.
using SourceList = SmallList<Source, 8>;

// Not constexpr on purpose: a record that reaches one of these at compile time is an error that
// names it.
void source_needs_a_revision_in_hexadecimal();
void source_needs_a_repository_a_path_and_a_claim();
void source_needs_lines_in_ascending_order_from_1();
void source_lines_lie_beyond_the_end_of_the_file();
void source_needs_a_token_to_be_checked_by();

/// The record, checked.
consteval Source source(std::string_view id, Evidence evidence, std::string_view claim,
                        const SourceFile& file, Lines lines, Tokens tokens) {
  if (file.repository.find('/') == std::string_view::npos || file.path.empty() || id.empty() ||
      claim.empty()) {
    source_needs_a_repository_a_path_and_a_claim();
  }
  if (file.revision.size() < 7) source_needs_a_revision_in_hexadecimal();
  for (char c : file.revision) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      source_needs_a_revision_in_hexadecimal();
    }
  }
  int before = 0;
  if (lines.size() == 0) source_needs_lines_in_ascending_order_from_1();
  for (const LineRange& r : lines) {
    if (r.first <= before || r.last < r.first) source_needs_lines_in_ascending_order_from_1();
    if (file.lines > 0 && r.last > file.lines) source_lines_lie_beyond_the_end_of_the_file();
    before = r.last;
  }
  if (tokens.size() == 0) source_needs_a_token_to_be_checked_by();
  return {id, evidence, claim, file, lines, tokens};
}

}  // namespace quipu::notation
