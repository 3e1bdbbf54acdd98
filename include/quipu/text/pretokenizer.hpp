// Pre-tokenizers: the patterns that cut text into words before byte-level BPE merges within them.
//
// PCRE2 runs the patterns, compiled by its JIT where that is available. They are written so that
// nothing can explode: every repetition is possessive, or gives back at most one character, which
// needs no stack per character; a text of n bytes is cut in O(n). White space is spelt out, since
// PCRE2's \s with UCP has U+180E, which Unicode's White_Space has not. Sibling: text/bpe.hpp.
#pragma once

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/shape/error.hpp"
#include "quipu/text/utf8.hpp"

namespace quipu {

namespace detail {

inline std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR8, 256> text{};
  pcre2_get_error_message_8(code, text.data(), text.size());
  return std::string(reinterpret_cast<const char*>(text.data()));
}

/// A compiled pattern over UTF-8 with Unicode properties.
class SplitPattern {
 public:
  explicit SplitPattern(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                                PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (code_ == nullptr) {
      raise<ArgumentError>("split pattern \"" + std::string(pattern) +
                           "\": " + pcre2_message(error) + " at offset " + std::to_string(at));
    }
    // Where there is no JIT (not built in, or no executable memory) the interpreter does the same.
    static_cast<void>(pcre2_jit_compile_8(code_.get(), PCRE2_JIT_COMPLETE));
  }

  const pcre2_code_8* code() const { return code_.get(); }

 private:
  struct Free {
    void operator()(pcre2_code_8* code) const { pcre2_code_free_8(code); }
  };
  std::unique_ptr<pcre2_code_8, Free> code_;
};

/// What one thread needs to run patterns, some 40 KiB. The JIT gets a stack of its own, so that the
/// caller's may be small.
class SplitScratch {
 public:
  SplitScratch()
      : match_(pcre2_match_data_create_8(1, nullptr)),
        context_(pcre2_match_context_create_8(nullptr)),
        stack_(pcre2_jit_stack_create_8(std::size_t{32} << 10, std::size_t{1} << 20, nullptr)) {
    if (match_ == nullptr || context_ == nullptr) {
      raise<SizeError>("pre-tokenizer: no memory for matching");
    }
    if (stack_ != nullptr) pcre2_jit_stack_assign_8(context_.get(), nullptr, stack_.get());
    // The limit counts steps of a single match, and a run of white space is one match.
    pcre2_set_match_limit_8(context_.get(), (std::numeric_limits<std::uint32_t>::max)());
  }

  /// The one of the calling thread. Making one maps memory, 10 microseconds: more than the encoding
  /// of a short text.
  static SplitScratch& of_this_thread() {
    thread_local SplitScratch scratch;
    return scratch;
  }

  /// The next match of `pattern` in `text` (well-formed UTF-8) from `from`: [first, second); both
  /// npos if there is none.
  std::pair<std::size_t, std::size_t> find(const SplitPattern& pattern, std::string_view text,
                                           std::size_t from) {
    const int found =
        pcre2_match_8(pattern.code(), reinterpret_cast<PCRE2_SPTR8>(text.data()), text.size(), from,
                      PCRE2_NO_UTF_CHECK, match_.get(), context_.get());
    if (found == PCRE2_ERROR_NOMATCH) return {std::string_view::npos, std::string_view::npos};
    if (found < 0) raise<Error>("pre-tokenizer: " + pcre2_message(found));
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer_8(match_.get());
    return {span[0], span[1]};
  }

 private:
  struct Free {
    void operator()(pcre2_match_data_8* p) const { pcre2_match_data_free_8(p); }
    void operator()(pcre2_match_context_8* p) const { pcre2_match_context_free_8(p); }
    void operator()(pcre2_jit_stack_8* p) const { pcre2_jit_stack_free_8(p); }
  };
  std::unique_ptr<pcre2_match_data_8, Free> match_;
  std::unique_ptr<pcre2_match_context_8, Free> context_;
  std::unique_ptr<pcre2_jit_stack_8, Free> stack_;
};

// Members of a character class: Unicode's White_Space, and the same without CR and LF.
#define QUIPU_SPACE_BUT_NEWLINES \
  R"(\x09\x0b\x0c\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"
#define QUIPU_SPACE QUIPU_SPACE_BUT_NEWLINES R"(\r\n)"

// What the patterns of Llama 3 and Qwen 2 share, before and after their rule for numbers. The
// contractions ignore case as Unicode does: U+017F is an s. The fifth alternative is
// \s*[\r\n]+, white space up to the last line break of a run, without going back.
#define QUIPU_LLAMA3_HEAD R"((?i:'(?:s|t|re|ve|m|ll|d))|[^\r\n\p{L}\p{N}]?+\p{L}++|)"
#define QUIPU_LLAMA3_TAIL                              \
  "| ?+[^" QUIPU_SPACE R"(\p{L}\p{N}]++[\r\n]*+)"      \
  "|(?:[" QUIPU_SPACE_BUT_NEWLINES R"(]*+[\r\n]++)++)" \
  "|[" QUIPU_SPACE "]+(?![^" QUIPU_SPACE "])|[" QUIPU_SPACE "]++"

inline constexpr std::string_view llama3_pattern =
    QUIPU_LLAMA3_HEAD R"(\p{N}{1,3}+)" QUIPU_LLAMA3_TAIL;

inline constexpr std::string_view qwen2_pattern = QUIPU_LLAMA3_HEAD R"(\p{N})" QUIPU_LLAMA3_TAIL;

inline constexpr std::string_view gpt2_pattern =
    R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}++| ?\p{N}++| ?[^)" QUIPU_SPACE R"(\p{L}\p{N}]++)"
    "|[" QUIPU_SPACE "]+(?![^" QUIPU_SPACE "])|[" QUIPU_SPACE "]++";

// Each digit alone, and GPT-2's pattern on what stands between digits: for it a digit is the end.
inline constexpr std::string_view digits_gpt2_pattern =
    R"(\p{N}|'(?:s|t|re|ve|m|ll|d)| ?\p{L}++| ?[^)" QUIPU_SPACE R"(\p{L}\p{N}]++)"
    "|[" QUIPU_SPACE "]+(?![^" QUIPU_SPACE R"(\p{N}]))"
    "|[" QUIPU_SPACE "]++";

#undef QUIPU_LLAMA3_TAIL
#undef QUIPU_LLAMA3_HEAD
#undef QUIPU_SPACE
#undef QUIPU_SPACE_BUT_NEWLINES

}  // namespace detail

/// Cuts text into words by one or more patterns, each applied to the pieces of the one before.
/// What a pattern matches is a piece, and so is what lies between its matches.
class Pretokenizer {
 public:
  /// The pre-tokenizer with a name of GGUF's `tokenizer.ggml.pre` ("" is "default"). FormatError
  /// for a name that is not among known_names(); `source` is for the message.
  static Pretokenizer named(std::string_view name, const std::string& source) {
    const std::string_view wanted = name.empty() ? "default" : name;
    for (const Entry& entry : entries) {
      if (entry.name != wanted) continue;
      switch (entry.family) {
        case Family::llama3:
          return Pretokenizer({detail::llama3_pattern}, entry.family);
        case Family::qwen2:
          return Pretokenizer({detail::qwen2_pattern}, entry.family);
        case Family::digits_gpt2:
          return Pretokenizer({detail::digits_gpt2_pattern}, entry.family);
        case Family::gpt2:
          return Pretokenizer({detail::gpt2_pattern}, entry.family);
        case Family::fallback:
          return Pretokenizer(
              {R"([\p{P}$+<=>^~|]++)", detail::gpt2_pattern, R"(\p{N}++)", "[0-9][0-9][0-9]"},
              entry.family);
      }
    }
    raise<FormatError>(source + ": unknown pre-tokenizer \"" + std::string(name) +
                       "\" (tokenizer.ggml.pre); known are " + known_names());
  }

  /// All names, for messages.
  static std::string known_names() {
    std::string names;
    for (const Entry& entry : entries) {
      if (!names.empty()) names += ", ";
      names += entry.name;
    }
    return names;
  }

  /// Calls word(std::string_view) for each word of `text`, in order; together they are the text.
  /// Any bytes will do: each maximal run of bytes that are not UTF-8 is a word of its own, and ends
  /// the text before it.
  template <class Word>
  void split(std::string_view text, detail::SplitScratch& scratch, Word&& word) const {
    while (!text.empty()) {
      const std::size_t valid = valid_utf8_prefix(text);
      if (valid != 0) split_stage(0, text.substr(0, valid), scratch, word);
      std::size_t invalid = valid;
      while (invalid < text.size()) {
        const CodePoint next = decode_code_point(text.substr(invalid));
        if (next.valid) break;
        invalid += next.length;
      }
      if (invalid != valid) word(text.substr(valid, invalid - valid));
      text.remove_prefix(invalid);
    }
  }

  /// A word that is a token is not merged (tokenizers of Llama 3's kind).
  bool whole_words() const { return family_ == Family::llama3; }

  /// Very long texts and very long runs are cut first, as Meta's tokenizer of Llama 3 does
  /// (text/tokenizer.hpp).
  bool reference_cuts() const { return family_ == Family::llama3; }

  /// Whether a prompt begins with bos if the file does not say.
  bool adds_bos() const { return family_ == Family::llama3; }

 private:
  enum class Family { llama3, qwen2, digits_gpt2, gpt2, fallback };

  struct Entry {
    std::string_view name;
    Family family;
  };

  // Names that the converters of llama.cpp write.
  static constexpr std::array<Entry, 13> entries{{{"llama-bpe", Family::llama3},
                                                  {"llama3", Family::llama3},
                                                  {"llama-v3", Family::llama3},
                                                  {"smollm", Family::digits_gpt2},
                                                  {"codeshell", Family::digits_gpt2},
                                                  {"command-r", Family::digits_gpt2},
                                                  {"exaone", Family::digits_gpt2},
                                                  {"refact", Family::digits_gpt2},
                                                  {"starcoder", Family::digits_gpt2},
                                                  {"gpt-2", Family::gpt2},
                                                  {"olmo", Family::gpt2},
                                                  {"qwen2", Family::qwen2},
                                                  {"default", Family::fallback}}};

  Pretokenizer(std::initializer_list<std::string_view> patterns, Family family) : family_(family) {
    stages_.reserve(patterns.size());
    for (const std::string_view pattern : patterns) stages_.emplace_back(pattern);
  }

  // One level of recursion per pattern, never per character.
  template <class Word>
  void split_stage(std::size_t stage, std::string_view text, detail::SplitScratch& scratch,
                   Word& word) const {
    if (stage == stages_.size()) {
      word(text);
      return;
    }
    for (std::size_t at = 0; at < text.size();) {
      auto [begin, end] = scratch.find(stages_[stage], text, at);
      if (begin == std::string_view::npos) begin = end = text.size();
      if (begin > at) split_stage(stage + 1, text.substr(at, begin - at), scratch, word);
      if (end > begin) split_stage(stage + 1, text.substr(begin, end - begin), scratch, word);
      at = end;
    }
  }

  std::vector<detail::SplitPattern> stages_;
  Family family_;
};

}  // namespace quipu
