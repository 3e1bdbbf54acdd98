// The tokenizer: text to ids and ids to bytes, over any vocabulary that VocabularyData describes.
//
// A plain class: how a vocabulary splits and merges is chosen when it is made. Siblings:
// text/vocabulary.hpp (what it is made of), text/tiktoken.hpp (Llama 3's own file), text/chat.hpp
// (dialogs), text/utf8.hpp (Utf8Stream, for showing ids as they come).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/shape/error.hpp"
#include "quipu/text/bpe.hpp"
#include "quipu/text/byte_alphabet.hpp"
#include "quipu/text/pretokenizer.hpp"
#include "quipu/text/reference_cuts.hpp"
#include "quipu/text/sentencepiece.hpp"
#include "quipu/text/special_tokens.hpp"
#include "quipu/text/token_table.hpp"
#include "quipu/text/utf8.hpp"
#include "quipu/text/vocabulary.hpp"

namespace quipu {

/// How a text is encoded. The default is for text of users: nothing in it becomes a special token.
struct EncodeOptions {
  bool bos = false;  ///< put the begin-of-text token before
  bool eos = false;  ///< put the end-of-text token after

  /// Control tokens whose text becomes the token. (User-defined tokens always do.)
  SpecialSet allowed_special = SpecialSet::none();

  /// Control tokens whose text is refused with an ArgumentError, unless it is allowed.
  SpecialSet disallowed_special = SpecialSet::none();

  /// For vocabularies that put a space before a text: false if this text continues another.
  bool space_prefix = true;
};

/// How ids are decoded.
struct DecodeOptions {
  bool control = true;  ///< control tokens as their text; false: as nothing

  /// Take away the space that encoding put before the text; false if the ids continue others.
  bool space_prefix = true;
};

/// A tokenizer. Movable; all const members may be called from several threads at once.
class Tokenizer {
 public:
  /// FormatError names the source and the field, if the data do not make a vocabulary.
  explicit Tokenizer(VocabularyData data)
      : source_(data.source.empty() ? "vocabulary" : data.source),
        table_(data.tokens.size()),
        chat_template_(std::move(data.chat_template)) {
    if (data.tokens.empty()) refuse("tokens", "expected at least one token, found none");
    if (data.tokens.size() > std::size_t{1} << 30) {
      refuse("tokens", std::to_string(data.tokens.size()) + " are more than 2^30");
    }
    read_kinds(data);
    if (data.model == "llama") {
      make_sentencepiece(data);
    } else if (data.model == "gpt2" || data.model == "tiktoken") {
      make_byte_level(data);
    } else {
      refuse("model", "expected \"gpt2\", \"llama\" or \"tiktoken\", found \"" + data.model + "\"");
    }
    add_specials(data);
  }

  /// The ids of `text`, which may be any bytes.
  ///
  /// Time is O(n log n) in the longest word, O(n) otherwise, with a small stack, whatever the
  /// text. ArgumentError: bos or eos asked for where the vocabulary has none; a listed special
  /// token that does not exist; disallowed special text (named, with its offset).
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const {
    const std::vector<bool> allowed = allowed_tokens(options.allowed_special);
    refuse_disallowed(text, options, allowed);
    std::vector<TokenId> ids;
    detail::MergeScratch scratch;
    if (options.bos) ids.push_back(required(bos_, "begin-of-text"));
    bool prefix = options.space_prefix;
    const auto encode_part = [&](std::string_view part) {
      encode_with_specials(part, allowed, prefix, scratch, ids);
    };
    if (pretokenizer_.has_value() && pretokenizer_->reference_cuts()) {
      detail::for_each_reference_cut(text, encode_part);
    } else {
      encode_part(text);
    }
    if (options.eos) ids.push_back(required(eos_, "end-of-text"));
    return ids;
  }

  /// The bytes of the ids. Not necessarily UTF-8: to_text() or Utf8Stream make text of them.
  /// ArgumentError for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const {
    std::string bytes;
    bool first = options.space_prefix && space_prefix_;
    for (const TokenId id : ids) {
      std::string_view part = piece(id);
      if (is_control(id)) {
        if (options.control) bytes += part;
        continue;
      }
      if (first && part.starts_with(' ')) part.remove_prefix(1);
      first = false;
      bytes += part;
    }
    return bytes;
  }

  /// The bytes of one token, of a control token its text. Valid as long as the tokenizer is.
  std::string_view piece(TokenId id) const {
    check(id);
    return table_.bytes(id);
  }

  TokenKind kind(TokenId id) const {
    check(id);
    return kinds_[static_cast<std::size_t>(id)];
  }

  /// Whether a token stands for no text: control tokens and the one for unknown text.
  bool is_control(TokenId id) const {
    const TokenKind k = kind(id);
    return k == TokenKind::control || k == TokenKind::unknown;
  }

  /// The number of tokens.
  std::size_t size() const { return kinds_.size(); }

  /// The special token with exactly this text, if there is one.
  std::optional<TokenId> special(std::string_view text) const {
    const TokenId id = specials_.exact(text);
    if (id == detail::no_token) return std::nullopt;
    return id;
  }

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> padding() const { return padding_; }

  /// Whether the vocabulary wants a prompt to begin with bos / end with eos.
  bool adds_bos() const { return add_bos_; }
  bool adds_eos() const { return add_eos_; }

  /// Options for a prompt as the vocabulary wants it: bos and eos as it says, nothing special.
  EncodeOptions prompt_options() const {
    EncodeOptions options;
    options.bos = add_bos_ && bos_.has_value();
    options.eos = add_eos_ && eos_.has_value();
    return options;
  }

  /// Tokens that end a generation, ascending: end of text, of turn, of message.
  const std::vector<TokenId>& stop_ids() const { return stop_ids_; }

  /// Whether encode() keeps every byte of any input. Some vocabularies have no token for bytes that
  /// were rare in what they were made from; such bytes are left out, as elsewhere.
  bool has_every_byte() const {
    return byte_level_.has_value() ? byte_level_->has_every_byte()
                                   : sentencepiece_->has_every_byte();
  }

  /// The chat template of the file, empty if it has none.
  const std::string& chat_template() const { return chat_template_; }

  /// Where the vocabulary comes from, for messages.
  const std::string& source() const { return source_; }

 private:
  [[noreturn]] void refuse(const char* field, const std::string& what) const {
    raise<FormatError>(source_ + ": " + field + ": " + what);
  }

  void check(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= kinds_.size()) {
      raise<ArgumentError>(source_ + ": token id " + std::to_string(id) +
                           " is outside the vocabulary of " + std::to_string(kinds_.size()));
    }
  }

  TokenId required(std::optional<TokenId> id, const char* what) const {
    if (!id.has_value()) {
      raise<ArgumentError>(source_ + ": a " + what + " token was asked for, but there is none");
    }
    return *id;
  }

  void read_kinds(const VocabularyData& data) {
    kinds_.assign(data.tokens.size(), TokenKind::normal);
    if (data.token_types.empty()) return;
    if (data.token_types.size() != data.tokens.size()) {
      refuse("token types", "expected one per token (" + std::to_string(data.tokens.size()) +
                                "), found " + std::to_string(data.token_types.size()));
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const std::int32_t type = data.token_types[i];
      // 0 ("undefined") occurs in files and means nothing in particular.
      if (type < 0 || type > 6) {
        refuse("token types", "token " + std::to_string(i) + " has the type " +
                                  std::to_string(type) + "; known are 0 to 6");
      }
      kinds_[i] = type == 0 ? TokenKind::normal : static_cast<TokenKind>(type);
    }
  }

  // Whether text may become this token by merging.
  bool is_mergeable(std::size_t i) const {
    return kinds_[i] == TokenKind::normal || kinds_[i] == TokenKind::user_defined;
  }

  void make_byte_level(const VocabularyData& data) {
    const bool written = data.model == "gpt2";  // in the printable alphabet
    const detail::ByteAlphabet alphabet;
    for (std::size_t i = 0; i < data.tokens.size(); ++i) {
      const bool plain = !written || kinds_[i] != TokenKind::normal;
      table_.add(plain ? data.tokens[i] : alphabet.bytes_or_text(data.tokens[i]), is_mergeable(i));
    }
    pretokenizer_.emplace(Pretokenizer::named(data.pre, source_));
    add_bos_ = data.add_bos.value_or(pretokenizer_->adds_bos());
    add_eos_ = data.add_eos.value_or(false);
    using MergeBy = detail::ByteLevelBpe::MergeBy;
    byte_level_.emplace(written ? MergeBy::pairs : MergeBy::ranks,
                        written ? read_merges(data, alphabet) : detail::PairTable(),
                        pretokenizer_->whole_words(), table_);
  }

  detail::PairTable read_merges(const VocabularyData& data,
                                const detail::ByteAlphabet& alphabet) const {
    if (data.merges.empty()) refuse("merges", "expected a list of merges, found none");
    detail::PairTable pairs(data.merges.size());
    for (std::size_t i = 0; i < data.merges.size(); ++i) {
      const std::string& line = data.merges[i];
      // The alphabet has no blank, so the blank between the two is the only one; a token that
      // begins with one all the same is taken at its word.
      const std::size_t blank = line.find(' ', 1);
      const auto id_of = [&](std::string_view text) {
        const TokenId id = table_.find(alphabet.bytes_or_text(text));
        if (id == detail::no_token) {
          refuse("merges", "merge " + std::to_string(i) + " (\"" + line + "\"): \"" +
                               std::string(text) + "\" is not a token");
        }
        return id;
      };
      if (blank == std::string::npos) {
        refuse("merges", "merge " + std::to_string(i) + " (\"" + line +
                             "\"): expected two tokens and a blank between");
      }
      const std::string left = line.substr(0, blank);
      const std::string right = line.substr(blank + 1);
      const TokenId left_id = id_of(left);
      const TokenId right_id = id_of(right);
      pairs.add(left_id, right_id, {static_cast<std::uint32_t>(i), id_of(left + right)});
    }
    return pairs;
  }

  void make_sentencepiece(const VocabularyData& data) {
    if (data.scores.size() != data.tokens.size()) {
      refuse("scores", "expected one per token (" + std::to_string(data.tokens.size()) +
                           "), found " + std::to_string(data.scores.size()));
    }
    std::vector<std::uint32_t> priorities(data.tokens.size());
    std::array<TokenId, 256> bytes{};
    bytes.fill(detail::no_token);
    bool spaces_inside = false;
    for (std::size_t i = 0; i < data.tokens.size(); ++i) {
      if (std::isnan(data.scores[i])) {
        refuse("scores", "token " + std::to_string(i) + " has the score NaN");
      }
      priorities[i] = detail::priority_of_score(data.scores[i]);
      if (kinds_[i] == TokenKind::byte) {
        const int byte = detail::value_of_byte_token(data.tokens[i]);
        if (byte < 0) {
          refuse("tokens", "token " + std::to_string(i) + " is a byte, but its text is \"" +
                               data.tokens[i] + "\"; expected one like \"<0x0A>\"");
        }
        const char text = static_cast<char>(static_cast<unsigned char>(byte));
        table_.add(std::string_view(&text, 1), false);
        bytes[static_cast<std::size_t>(byte)] = static_cast<TokenId>(i);
      } else {
        const std::string text =
            is_mergeable(i) ? detail::plain_spaces(data.tokens[i]) : data.tokens[i];
        table_.add(text, is_mergeable(i));
        const std::size_t word = text.find_first_not_of(' ');
        const bool inside = word != std::string::npos && text.find(' ', word) != std::string::npos;
        spaces_inside = spaces_inside || (inside && is_mergeable(i));
      }
    }
    check_id(data.unknown, "unknown token");
    sentencepiece_.emplace(std::move(priorities), bytes, data.unknown.value_or(detail::no_token),
                           spaces_inside);
    space_prefix_ = data.add_space_prefix.value_or(true);
    add_bos_ = data.add_bos.value_or(true);
    add_eos_ = data.add_eos.value_or(false);
  }

  void check_id(std::optional<TokenId> id, const char* field) const {
    if (id.has_value() && (*id < 0 || static_cast<std::size_t>(*id) >= kinds_.size())) {
      refuse(field, "id " + std::to_string(*id) + " is outside the vocabulary of " +
                        std::to_string(kinds_.size()));
    }
  }

  void add_specials(const VocabularyData& data) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == TokenKind::control || kinds_[i] == TokenKind::unknown ||
          kinds_[i] == TokenKind::user_defined) {
        specials_.add(table_.bytes(static_cast<TokenId>(i)), static_cast<TokenId>(i));
        special_ids_.push_back(static_cast<TokenId>(i));
        has_user_defined_ = has_user_defined_ || kinds_[i] == TokenKind::user_defined;
      }
    }
    check_id(data.bos, "bos");
    check_id(data.eos, "eos");
    check_id(data.eot, "eot");
    check_id(data.eom, "eom");
    check_id(data.padding, "padding");
    bos_ = data.bos;
    eos_ = data.eos;
    padding_ = data.padding;
    // Files often name one end only (eos is the end of the turn, or of the text), while models
    // produce any of them.
    constexpr std::array<std::string_view, 6> ends{"<|end_of_text|>", "<|eot_id|>",    "<|eom_id|>",
                                                   "<|im_end|>",      "<|endoftext|>", "</s>"};
    std::vector<std::optional<TokenId>> stops{data.eos, data.eot, data.eom};
    for (const std::string_view text : ends) stops.push_back(special(text));
    for (const std::optional<TokenId>& id : stops) {
      if (id.has_value()) stop_ids_.push_back(*id);
    }
    std::sort(stop_ids_.begin(), stop_ids_.end());
    stop_ids_.erase(std::unique(stop_ids_.begin(), stop_ids_.end()), stop_ids_.end());
  }

  // For each id whether text becomes it; empty if none does.
  std::vector<bool> allowed_tokens(const SpecialSet& set) const {
    for (const std::string& text : set.texts()) {
      if (specials_.exact(text) == detail::no_token) {
        raise<ArgumentError>(source_ + ": \"" + text + "\" is not a special token");
      }
    }
    std::vector<bool> allowed;
    if (set.is_none() && !has_user_defined_) return allowed;
    allowed.resize(kinds_.size());
    for (const TokenId id : special_ids_) {
      allowed[static_cast<std::size_t>(id)] = !is_control(id) || set.contains(table_.bytes(id));
    }
    return allowed;
  }

  void refuse_disallowed(std::string_view text, const EncodeOptions& options,
                         const std::vector<bool>& allowed) const {
    const SpecialSet& set = options.disallowed_special;
    if (set.is_none()) return;
    const auto refused = [&](TokenId id) {
      return is_control(id) && set.contains(table_.bytes(id)) &&
             (allowed.empty() || !allowed[static_cast<std::size_t>(id)]);
    };
    const auto found = specials_.find(text, 0, refused);
    if (found.id != detail::no_token) {
      raise<ArgumentError>("text: the special token \"" + std::string(piece(found.id)) +
                           "\" at byte " + std::to_string(found.at) + " is not allowed");
    }
  }

  void encode_with_specials(std::string_view text, const std::vector<bool>& allowed, bool& prefix,
                            detail::MergeScratch& scratch, std::vector<TokenId>& ids) const {
    for (std::size_t at = 0; at < text.size();) {
      detail::SpecialFinder::Found next;
      if (!allowed.empty()) {
        next = specials_.find(
            text, at, [&allowed](TokenId id) { return allowed[static_cast<std::size_t>(id)]; });
      }
      const std::size_t end = (std::min)(next.at, text.size());
      if (end > at) {
        encode_plain(text.substr(at, end - at), prefix, scratch, ids);
        prefix = false;
      }
      at = end;
      if (next.id != detail::no_token) {
        ids.push_back(next.id);
        at += next.length;
        prefix = true;  // text after a special token begins anew, with its own space
      }
    }
  }

  void encode_plain(std::string_view text, bool prefix, detail::MergeScratch& scratch,
                    std::vector<TokenId>& ids) const {
    if (sentencepiece_.has_value()) {
      std::string whole = detail::plain_spaces(text);
      if (prefix && space_prefix_) whole.insert(whole.begin(), ' ');
      sentencepiece_->encode(table_, whole, scratch, ids);
      return;
    }
    pretokenizer_->split(text, detail::SplitScratch::of_this_thread(), [&](std::string_view word) {
      byte_level_->encode_word(table_, word, scratch, ids);
    });
  }

  std::string source_;
  detail::TokenTable table_;
  std::vector<TokenKind> kinds_;
  detail::SpecialFinder specials_;
  std::vector<TokenId> special_ids_;                // control, unknown and user-defined tokens
  std::optional<Pretokenizer> pretokenizer_;        // byte-level vocabularies
  std::optional<detail::ByteLevelBpe> byte_level_;  // "gpt2", "tiktoken"
  std::optional<detail::SentencePieceBpe> sentencepiece_;  // "llama"
  std::optional<TokenId> bos_, eos_, padding_;
  std::vector<TokenId> stop_ids_;
  std::string chat_template_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool space_prefix_ = false;
  bool has_user_defined_ = false;
};

}  // namespace quipu
