// Special tokens in text: which of them a caller lets text turn into, and where the next one is.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quipu/text/token_table.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

/// A set of special tokens: none, all, or those with the listed texts.
class SpecialSet {
 public:
  static SpecialSet none() { return SpecialSet(Kind::none, {}); }
  static SpecialSet all() { return SpecialSet(Kind::all, {}); }
  static SpecialSet listed(std::vector<std::string> texts) {
    return SpecialSet(Kind::listed, std::move(texts));
  }

  bool is_none() const { return kind_ == Kind::none; }

  /// The texts of a listed set.
  const std::vector<std::string>& texts() const { return texts_; }

  bool contains(std::string_view text) const {
    return kind_ == Kind::all ||
           (kind_ == Kind::listed && std::find(texts_.begin(), texts_.end(), text) != texts_.end());
  }

 private:
  enum class Kind { none, all, listed };
  SpecialSet(Kind kind, std::vector<std::string> texts) : kind_(kind), texts_(std::move(texts)) {}

  Kind kind_;
  std::vector<std::string> texts_;
};

namespace detail {

/// Finds the texts of special tokens in a text: the leftmost, and of several there the longest.
class SpecialFinder {
 public:
  struct Found {
    std::size_t at = std::string_view::npos;
    std::size_t length = 0;
    TokenId id = no_token;
  };

  void add(std::string_view text, TokenId id) {
    if (text.empty()) return;
    begins_[static_cast<unsigned char>(text.front())] = true;
    std::uint32_t node = 0;
    for (const char byte : text) {
      const auto [next, fresh] =
          edges_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(ids_.size()));
      if (fresh) ids_.push_back(no_token);
      node = next->second;
    }
    if (ids_[node] == no_token) ids_[node] = id;
  }

  /// The token whose text is exactly this, or no_token.
  TokenId exact(std::string_view text) const {
    std::uint32_t node = 0;
    for (const char byte : text) {
      const auto next = edges_.find(edge(node, byte));
      if (next == edges_.end()) return no_token;
      node = next->second;
    }
    return ids_[node];
  }

  /// The next special token at or after `from` for which allowed(id). A text costs at most its
  /// length times the longest special token.
  template <class Allowed>
  Found find(std::string_view text, std::size_t from, const Allowed& allowed) const {
    for (std::size_t at = from; at < text.size(); ++at) {
      if (!begins_[static_cast<unsigned char>(text[at])]) continue;
      Found found;
      std::uint32_t node = 0;
      for (std::size_t i = at; i < text.size(); ++i) {
        const auto next = edges_.find(edge(node, text[i]));
        if (next == edges_.end()) break;
        node = next->second;
        if (ids_[node] != no_token && allowed(ids_[node])) found = {at, i + 1 - at, ids_[node]};
      }
      if (found.id != no_token) return found;
    }
    return {};
  }

 private:
  static std::uint64_t edge(std::uint32_t node, char byte) {
    return (static_cast<std::uint64_t>(node) << 8) | static_cast<unsigned char>(byte);
  }

  // A trie: edges from (node, byte) to a node, and the token that ends at each node.
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<TokenId> ids_{no_token};
  std::array<bool, 256> begins_{};
};

}  // namespace detail

}  // namespace quipu
