// Holding source records against a user's own checkouts of the cited repositories.
//
// A record is confirmed if its file is there, is long enough, and every expected symbol stands in
// the cited lines. Excerpts are shown to that user only; none is part of this project.
// Siblings: notation/source.hpp; test/atlas/verify_test.cpp does it on a stand-in tree.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "quipu/atlas/figures.hpp"

namespace quipu::atlas {

/// Checkouts by repository: "meta-llama/llama3" -> its folder.
using SourceTrees = std::map<std::string, std::string, std::less<>>;

/// Reads "meta-llama/llama3=DIR"; ArgumentError if it is not of that form.
inline void add_source_tree(SourceTrees& trees, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos ||
      text.substr(0, equals).find('/') == std::string_view::npos || equals + 1 == text.size()) {
    raise<ArgumentError>("--source " + std::string(text) +
                         ": expected OWNER/REPOSITORY=DIR, such as meta-llama/llama3=DIR");
  }
  trees[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
}

/// The lines of one range of a record.
struct Excerpt {
  notation::LineRange range;
  std::vector<std::string> lines;
};

/// What came of a record.
struct Verdict {
  enum class State : unsigned char { confirmed, refuted, no_checkout };
  State state = State::no_checkout;
  std::string reason;  ///< empty if confirmed
  std::vector<Excerpt> excerpts;
};

/// The lines of a text file; false if it cannot be read.
inline bool read_lines(const std::string& path, std::vector<std::string>& lines) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return true;
}

/// Holds one record against the checkouts.
inline Verdict verify(const notation::Source& source, const SourceTrees& trees) {
  Verdict verdict;
  const auto tree = trees.find(source.file.repository);
  if (tree == trees.end()) {
    verdict.reason = "no checkout of " + std::string(source.file.repository) + " was given";
    return verdict;
  }
  verdict.state = Verdict::State::refuted;
  const std::string path = tree->second + "/" + std::string(source.file.path);
  std::vector<std::string> lines;
  if (!read_lines(path, lines)) {
    verdict.reason = path + ": cannot be read";
    return verdict;
  }
  if (source.file.lines > 0 && lines.size() != static_cast<std::size_t>(source.file.lines)) {
    verdict.reason = path + ": has " + std::to_string(lines.size()) + " lines, expected " +
                     std::to_string(source.file.lines) + " at revision " +
                     std::string(source.file.revision);
    return verdict;
  }
  std::string text;
  for (const notation::LineRange& r : source.lines) {
    if (static_cast<std::size_t>(r.last) > lines.size()) {
      verdict.reason = path + ": has " + std::to_string(lines.size()) +
                       " lines, the record names " + std::to_string(r.last);
      return verdict;
    }
    Excerpt excerpt{r, {}};
    for (int i = r.first; i <= r.last; ++i) {
      excerpt.lines.push_back(lines[static_cast<std::size_t>(i - 1)]);
      text += excerpt.lines.back() + "\n";
    }
    verdict.excerpts.push_back(std::move(excerpt));
  }
  for (std::string_view token : source.tokens) {
    if (text.find(token) == std::string::npos) {
      verdict.reason = path + " " + lines_text(source.lines) + ": " + std::string(token) +
                       " does not stand there";
      return verdict;
    }
  }
  verdict.state = Verdict::State::confirmed;
  return verdict;
}

/// An excerpt record for people: numbered lines, left-out ones marked.
inline std::string excerpt_text(const Verdict& verdict) {
  std::string out;
  int before = 0;
  for (const Excerpt& e : verdict.excerpts) {
    if (before > 0 && e.range.first > before + 1) {
      out += "       … lines " + std::to_string(before + 1) + "–" +
             std::to_string(e.range.first - 1) + " left out …\n";
    }
    int number_of_line = e.range.first;
    for (const std::string& line : e.lines) {
      char head[16];
      std::snprintf(head, sizeof head, "%6d ", number_of_line++);
      out += head + printable(line) + "\n";
    }
    before = e.range.last;
  }
  return out;
}

}  // namespace quipu::atlas
