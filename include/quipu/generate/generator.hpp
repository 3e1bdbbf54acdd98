// Generation of one sequence, step by step: stepped, streamed, cancelled, rolled back.
//
//   Generator g(session, settings);
//   g.feed(prompt);
//   while (auto token = g.next()) show(*token);
// Siblings: sampling.hpp (the choice of a token), engine/session.hpp (the logits).
// Tests: test/generate/generator_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "quipu/engine/session.hpp"
#include "quipu/generate/sampling.hpp"

namespace quipu {

struct GenerationSettings {
  SamplingSettings sampling;
  /// Most tokens to generate; nothing: until a stop token or the session's capacity.
  std::optional<std::size_t> max_tokens;
  /// Tokens that end the generation; they are not part of the output.
  std::vector<TokenId> stop_ids;
};

/// Why a generation has ended.
enum class FinishReason : unsigned char {
  not_finished,
  stop_token,
  max_tokens,
  capacity,
  cancelled
};

constexpr std::string_view name(FinishReason reason) {
  constexpr std::string_view names[] = {"not finished", "stop token", "max tokens", "capacity",
                                        "cancelled"};
  return names[static_cast<unsigned char>(reason)];
}

class Generator {
 public:
  /// Generates in one row of a session, which must outlive this. The row is emptied. ArgumentError
  /// for settings out of range.
  Generator(Session& session, GenerationSettings settings, std::size_t row = 0)
      : session_(session),
        settings_(std::move(settings)),
        row_(row),
        sampler_(settings_.sampling, row) {
    session_.truncate(row_, 0);
  }

  /// Appends tokens that are given (the prompt, the next turn of a dialog). ArgumentError, before
  /// any work, if they do not fit the capacity; it names both numbers.
  void feed(std::span<const TokenId> tokens, const Progress& progress = {}) {
    std::vector<TokenId> all(pending_.begin(), pending_.end());
    all.insert(all.end(), tokens.begin(), tokens.end());
    compute(all, progress);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    pending_.clear();
    generated_ = 0;
    finish_ = FinishReason::not_finished;
    cancelled_.store(false, std::memory_order_relaxed);
  }

  /// The next token, or nothing when the generation has ended (finish_reason() says why).
  /// ArgumentError if nothing was fed; LogitsError if no token can be chosen.
  std::optional<TokenId> next() {
    if (tokens_.empty())
      raise<ArgumentError>("generation: nothing was fed; a prompt of at least one token is needed");
    if (finish_ != FinishReason::not_finished) return std::nullopt;
    if (cancelled_.load(std::memory_order_relaxed)) return end(FinishReason::cancelled);
    if (settings_.max_tokens && generated_ >= *settings_.max_tokens)
      return end(FinishReason::max_tokens);
    if (!pending_.empty()) {
      // The token chosen last is computed now, not when it was chosen: the last one never is.
      if (session_.length(row_) >= session_.capacity()) return end(FinishReason::capacity);
      compute(pending_, {});
      pending_.clear();
    }
    const TokenId token = sampler_.sample(logits_);
    if (std::find(settings_.stop_ids.begin(), settings_.stop_ids.end(), token) !=
        settings_.stop_ids.end()) {
      stop_token_ = token;
      return end(FinishReason::stop_token);
    }
    tokens_.push_back(token);
    pending_.assign(1, token);
    ++generated_;
    return token;
  }

  /// Makes the next call of next() end. May be called from another thread.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  /// Keeps the first `length` tokens (at least one) and goes on from there, drawing anew.
  /// ArgumentError if there are fewer.
  void roll_back(std::size_t length) {
    if (length == 0 || length > tokens_.size()) {
      raise<ArgumentError>("roll back: there are " + std::to_string(tokens_.size()) +
                           " tokens, asked to keep " + std::to_string(length));
    }
    const std::size_t dropped = tokens_.size() - length;
    tokens_.resize(length);
    generated_ -= (std::min)(generated_, dropped);
    pending_.assign(1, tokens_.back());
    session_.truncate(row_, (std::min)(session_.length(row_), length - 1));
    finish_ = FinishReason::not_finished;
    cancelled_.store(false, std::memory_order_relaxed);
  }

  /// All tokens: fed and generated.
  std::span<const TokenId> tokens() const { return tokens_; }
  /// How many were generated since the last feed().
  std::size_t generated() const { return generated_; }
  FinishReason finish_reason() const { return finish_; }
  /// The stop token that ended the generation, if one did.
  std::optional<TokenId> stop_token() const { return stop_token_; }
  /// The logits that the next token will be, or the last one was, chosen from: [vocabulary].
  std::span<const float> logits() const { return logits_; }
  Sampler& sampler() { return sampler_; }

 private:
  void compute(std::span<const TokenId> tokens, const Progress& progress) {
    logits_.resize(session_.model().architecture().vocab_size);
    const Feed feed{row_, tokens, std::nullopt};
    session_.forward({&feed, 1}, LogitsWanted::last, logits_, progress);
  }

  std::nullopt_t end(FinishReason reason) {
    finish_ = reason;
    return std::nullopt;
  }

  Session& session_;
  GenerationSettings settings_;
  std::size_t row_;
  Sampler sampler_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> pending_;  // chosen, not yet computed
  std::vector<float> logits_;
  std::size_t generated_ = 0;
  FinishReason finish_ = FinishReason::not_finished;
  std::optional<TokenId> stop_token_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace quipu
