// The bytes of all tokens in one piece of memory, and the way back from bytes to an id.
//
// Also PairTable, the map from a pair of ids to a merge. Both are open-addressing tables: encoding
// looks up several candidates per byte of text, and a look-up here is one multiplication per eight
// bytes and mostly one cache line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/shape/error.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu::detail {

/// No token.
inline constexpr TokenId no_token = -1;

/// Spreads the bits of x (the finisher of MurmurHash3's 64-bit variant, a public-domain formula).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDULL;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return x ^ (x >> 33);
}

/// A hash of bytes, eight at a time. Vocabularies are not adversarial: no secret seed.
inline std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t h = bytes.size() * 0x9E3779B97F4A7C15ULL;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    h = mix_bits(h ^ word);
  }
  std::uint64_t tail = 0;
  if (left != 0) std::memcpy(&tail, at, left);
  return mix_bits(h ^ tail);
}

/// Bytes of the tokens by id, and ids by bytes.
class TokenTable {
 public:
  /// Room for `tokens` tokens; the table of bytes is sized for them and does not grow.
  explicit TokenTable(std::size_t tokens) : slots_(std::bit_ceil(tokens * 2 + 2), no_token) {
    ends_.reserve(tokens);
  }

  /// The next id gets these bytes. If `searchable`, find() gives that id for them, unless an
  /// earlier token has the same bytes.
  void add(std::string_view bytes, bool searchable) {
    if (bytes.size() > (std::numeric_limits<std::uint32_t>::max)() - bytes_.size()) {
      raise<SizeError>("vocabulary: the tokens together take more than 4 GiB");
    }
    const auto id = static_cast<TokenId>(ends_.size());
    bytes_.append(bytes);
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (!searchable || bytes.empty()) return;
    TokenId& slot = slots_[slot_of(bytes)];
    if (slot != no_token) return;
    slot = id;
    if (bytes.size() > longest_) longest_ = bytes.size();
  }

  std::size_t size() const { return ends_.size(); }

  /// The bytes of a token, 0 <= id < size().
  std::string_view bytes(TokenId id) const {
    const auto i = static_cast<std::size_t>(id);
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

  /// The searchable token with these bytes, or no_token.
  TokenId find(std::string_view bytes) const {
    return bytes.empty() || bytes.size() > longest_ ? no_token : slots_[slot_of(bytes)];
  }

 private:
  /// The slot that holds `bytes`, or the free one where they would go: at most half are taken.
  std::size_t slot_of(std::string_view text) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(hash_bytes(text)) & mask;
    while (slots_[slot] != no_token && bytes(slots_[slot]) != text) slot = (slot + 1) & mask;
    return slot;
  }

  std::string bytes_;
  std::vector<std::uint32_t> ends_;
  std::vector<TokenId> slots_;
  std::size_t longest_ = 0;
};

/// A merge of two neighbours: the smaller priority goes first. No merge: id is no_token.
struct Merge {
  std::uint32_t priority = 0;
  TokenId id = no_token;
};

/// From (left id, right id) to their merge.
class PairTable {
 public:
  explicit PairTable(std::size_t pairs = 0) : slots_(std::bit_ceil(pairs * 2 + 2)) {}

  /// Adds a pair, unless it is there already. At most as many as the constructor was told.
  void add(TokenId left, TokenId right, Merge merge) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    if (slot.merge.id == no_token) slot = {key_of(left, right), merge};
  }

  /// The merge of the pair; its id is no_token if there is none.
  Merge find(TokenId left, TokenId right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
  }

  std::size_t slot_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(mix_bits(key)) & mask;
    while (slots_[slot].merge.id != no_token && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Slot> slots_;
};

}  // namespace quipu::detail
