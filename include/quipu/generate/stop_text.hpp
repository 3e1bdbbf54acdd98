// Stop strings in text that comes in pieces: what may be shown, and whether one was met.
// Siblings: generator.hpp (ends by token, count, capacity), text/utf8.hpp (whole characters).
// Tests: test/generate/generator_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/shape/error.hpp"

namespace quipu {

/// Passes text on as it comes, holds back what may turn out to begin a stop string, and ends before
/// the one that is complete first (of two that end together, the longer): however the text is cut
/// into pieces, the result is the same.
class StopText {
 public:
  /// ArgumentError for an empty string. No strings: everything is passed on.
  explicit StopText(std::vector<std::string> strings = {}) : strings_(std::move(strings)) {
    for (const std::string& s : strings_) {
      if (s.empty()) raise<ArgumentError>("stop string: expected at least one byte, found none");
    }
  }

  /// Takes a piece of text, returns what may be shown now. Nothing after stopped().
  std::string push(std::string_view piece) {
    if (stopped_) return {};
    held_ += piece;
    std::size_t met = std::string::npos, met_end = std::string::npos, shown = held_.size();
    for (const std::string& s : strings_) {
      const std::size_t at = held_.find(s);
      const std::size_t end = at == std::string::npos ? at : at + s.size();
      if (end < met_end || (end == met_end && at < met)) met = at, met_end = end;
      shown = (std::min)(shown, may_begin(s));
    }
    stopped_ = met != std::string::npos;
    if (stopped_) shown = met;
    std::string text = held_.substr(0, shown);
    held_.erase(0, stopped_ ? std::string::npos : shown);
    return text;
  }

  /// The end of the text: what was held back, which was no stop string.
  std::string flush() { return std::exchange(held_, {}); }

  /// A stop string was met; the text before it has been returned.
  bool stopped() const { return stopped_; }

 private:
  /// Where the held text's end first may begin `s`; its size if nowhere.
  std::size_t may_begin(std::string_view s) const {
    const std::string_view held = held_;
    for (std::size_t at = held.size() - (std::min)(held.size(), s.size() - 1); at < held.size();
         ++at) {
      if (s.starts_with(held.substr(at))) return at;
    }
    return held.size();
  }

  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace quipu
