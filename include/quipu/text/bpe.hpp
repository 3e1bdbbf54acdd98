// Byte-pair encoding: the merging of neighbours, shared by every kind of vocabulary here, and the
// byte-level encoder of GPT-2's and Llama 3's kind.
//
// Siblings: text/sentencepiece.hpp (the encoder of Llama 2's kind), text/pretokenizer.hpp (what
// cuts text into the words given here).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/shape/error.hpp"
#include "quipu/text/token_table.hpp"

namespace quipu::detail {

/// A stretch of a word during merging; a node of a doubly linked list.
struct Symbol {
  std::uint32_t begin = 0;
  std::uint32_t length = 0;  ///< 0: merged into its left neighbour
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
  TokenId id = no_token;
  Merge merge;  ///< with the right neighbour
};

/// Memory that merging reuses from word to word.
struct MergeScratch {
  std::vector<Symbol> symbols;
  // Candidates are priority << 32 | left symbol: their order is that of merging.
  std::vector<std::uint64_t> first;  ///< those of the word as it came, ascending
  std::vector<std::uint64_t> heap;   ///< those that merging made

  /// Begins a word of `bytes` bytes: positions are 32-bit.
  void begin(std::size_t bytes) {
    if (bytes >= (std::numeric_limits<std::uint32_t>::max)() / 2) {
      raise<SizeError>("tokenizer: a piece of text of " + std::to_string(bytes) +
                       " bytes cannot be split; at most 2147483646 are possible");
    }
    symbols.clear();
    first.clear();
    heap.clear();
  }

  /// Appends the next stretch.
  void append(std::uint32_t length, TokenId id) {
    const auto index = static_cast<std::uint32_t>(symbols.size());
    const std::uint32_t at = index == 0 ? 0 : symbols.back().begin + symbols.back().length;
    symbols.push_back({at, length, index - 1, index + 1, id, {}});
  }
};

/// Merges neighbours, always the pair of least priority and among equals the leftmost, until no
/// pair has a merge. `find(left, right)` gives the Merge of two symbols. What remains are the
/// symbols with length > 0, in order.
///
/// A linked list, and candidates in order: O(n log n) for n symbols whatever the text, without
/// recursion. A candidate is out of date if its symbol's merge is no longer the one that it was
/// made for. The first candidates are sorted rather than put on the heap, since in long words of
/// one character, the worst case, they already are in order.
template <class Find>
void merge_symbols(MergeScratch& scratch, const Find& find) {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<std::uint64_t>& first = scratch.first;
  std::vector<std::uint64_t>& heap = scratch.heap;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  const auto consider = [&](std::uint32_t left, std::vector<std::uint64_t>& candidates) {
    Symbol& symbol = symbols[left];
    symbol.merge = symbol.next < count ? find(symbol, symbols[symbol.next]) : Merge{};
    if (symbol.merge.id == no_token) return false;
    candidates.push_back((std::uint64_t{symbol.merge.priority} << 32) | left);
    return true;
  };
  for (std::uint32_t i = 0; i < count; ++i) consider(i, first);
  if (!std::is_sorted(first.begin(), first.end())) std::sort(first.begin(), first.end());

  for (std::size_t at = 0; at < first.size() || !heap.empty();) {
    std::uint64_t best = 0;
    if (heap.empty() || (at < first.size() && first[at] <= heap.front())) {
      best = first[at++];
    } else {
      best = heap.front();
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.pop_back();
    }
    const auto index = static_cast<std::uint32_t>(best);
    Symbol& left = symbols[index];
    if (left.merge.id == no_token || left.merge.priority != best >> 32) continue;
    Symbol& right = symbols[left.next];
    left.length += right.length;
    left.id = left.merge.id;
    left.next = right.next;
    right.length = 0;
    right.merge = {};
    if (left.next < count) symbols[left.next].previous = index;
    if (index != 0 && consider(left.previous, heap)) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
    if (consider(index, heap)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

/// Byte-level BPE. A word's bytes are its first symbols; they merge by a list of pairs ("gpt2"), or
/// where the joined bytes are a token, the least id first ("tiktoken").
class ByteLevelBpe {
 public:
  enum class MergeBy { pairs, ranks };

  /// `whole_words`: a word that is a token is that token, before any merging.
  ByteLevelBpe(MergeBy merge_by, PairTable pairs, bool whole_words, const TokenTable& tokens)
      : merge_by_(merge_by), whole_words_(whole_words), pairs_(std::move(pairs)) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const char text = static_cast<char>(static_cast<unsigned char>(byte));
      byte_ids_[byte] = tokens.find(std::string_view(&text, 1));
    }
  }

  /// Appends the ids of one word. A byte that the vocabulary has no token for gives none, as in
  /// llama.cpp and Hugging Face's tokenizers: has_every_byte() tells whether there are any.
  void encode_word(const TokenTable& tokens, std::string_view word, MergeScratch& scratch,
                   std::vector<TokenId>& out) const {
    if (whole_words_) {
      const TokenId whole = tokens.find(word);
      if (whole != no_token) {
        out.push_back(whole);
        return;
      }
    }
    scratch.begin(word.size());
    for (const char byte : word) {
      scratch.append(1, byte_ids_[static_cast<unsigned char>(byte)]);
    }
    if (merge_by_ == MergeBy::pairs) {
      merge_symbols(scratch, [this](const Symbol& left, const Symbol& right) {
        return left.id == no_token || right.id == no_token ? Merge{}
                                                           : pairs_.find(left.id, right.id);
      });
    } else {
      merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) {
        const TokenId id = tokens.find(word.substr(left.begin, left.length + right.length));
        return Merge{static_cast<std::uint32_t>(id), id};
      });
    }
    for (const Symbol& symbol : scratch.symbols) {
      if (symbol.length != 0 && symbol.id != no_token) out.push_back(symbol.id);
    }
  }

  /// Whether each of the 256 bytes has a token, so that encoding loses nothing.
  bool has_every_byte() const {
    return std::find(byte_ids_.begin(), byte_ids_.end(), no_token) == byte_ids_.end();
  }

 private:
  MergeBy merge_by_;
  bool whole_words_;
  PairTable pairs_;
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace quipu::detail
