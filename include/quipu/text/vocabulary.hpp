// The plain data of a vocabulary: what a checkpoint reader fills in and a Tokenizer is made of.
//
// This struct is the contract between the readers in checkpoint/, which know file formats and no
// tokenization, and text/, which knows no file formats (the one exception is tokenizer.model of
// Llama 3, which is nothing but a vocabulary: text/tiktoken.hpp). The engine glues the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quipu {

/// An id of a token.
using TokenId = std::int32_t;

/// Kinds of tokens, with the numbers that GGUF's `tokenizer.ggml.token_type` uses.
enum class TokenKind : std::int32_t {
  normal = 1,        ///< made from text
  unknown = 2,       ///< stands for text that has no token
  control = 3,       ///< begin of text, end of turn, ...: never made from plain text
  user_defined = 4,  ///< text that is always kept whole
  unused = 5,        ///< never made
  byte = 6,          ///< one byte, "<0x0A>", for text that has no token (SentencePiece)
};

/// A vocabulary as files state it. Fields that a file does not have stay empty; a Tokenizer then
/// takes what the kind of vocabulary implies.
struct VocabularyData {
  /// Where it comes from (a path); for messages only.
  std::string source;

  /// How text is split and merged: "gpt2" (byte-level BPE with a list of merges), "llama"
  /// (SentencePiece BPE with scores), "tiktoken" (byte-level BPE whose ranks are the ids).
  /// GGUF: `tokenizer.ggml.model`.
  std::string model;

  /// The pre-tokenizer of "gpt2" and "tiktoken": "llama-bpe", "smollm", ...
  /// (text/pretokenizer.hpp). Empty means "default". GGUF: `tokenizer.ggml.pre`.
  std::string pre;

  /// The tokens in order of their ids. "gpt2": bytes written in GPT-2's printable alphabet, except
  /// control and user-defined tokens, which are plain text. "llama": UTF-8 with U+2581 for a space.
  /// "tiktoken": the bytes themselves. GGUF: `tokenizer.ggml.tokens`.
  std::vector<std::string> tokens;

  /// "llama": one score per token, the greater merges first. GGUF: `tokenizer.ggml.scores`.
  std::vector<float> scores;

  /// TokenKind of each token; empty: all are normal. GGUF: `tokenizer.ggml.token_type`.
  std::vector<std::int32_t> token_types;

  /// "gpt2": "left right", both tokens in the printable alphabet, the first of the list merges
  /// first. GGUF: `tokenizer.ggml.merges`.
  std::vector<std::string> merges;

  /// GGUF: `tokenizer.ggml.bos_token_id`, `eos_token_id`, `eot_token_id`, `eom_token_id`,
  /// `unknown_token_id`, `padding_token_id`.
  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;

  /// Whether a prompt begins with bos / ends with eos. GGUF: `tokenizer.ggml.add_bos_token`,
  /// `add_eos_token`.
  std::optional<bool> add_bos, add_eos;

  /// "llama": a space is put before text. GGUF: `tokenizer.ggml.add_space_prefix`.
  std::optional<bool> add_space_prefix;

  /// The chat template (Jinja text); only its markers are looked at (text/chat.hpp).
  /// GGUF: `tokenizer.chat_template`.
  std::string chat_template;
};

}  // namespace quipu
