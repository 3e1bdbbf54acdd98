// Generation of one sequence, step by step: stepped, streamed, cancelled, rolled back, saved.
//
//   Generator g(session, settings);
//   g.feed(prompt);
//   while (auto token = g.next()) show(*token);
// Siblings: sampling.hpp (the choice of a token), engine/session.hpp (the logits), batch.hpp (many
// sequences at once), stop_text.hpp (ends by strings).
// Tests: test/generate/generator_test.cpp, saved_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/engine/session.hpp"
#include "quipu/generate/finish.hpp"
#include "quipu/generate/sampling.hpp"

namespace quipu {

struct GenerationSettings {
  SamplingSettings sampling{};
  /// Most tokens to generate; nothing: until a stop token or the session's capacity.
  std::optional<std::size_t> max_tokens{};
  /// Tokens that end the generation; they are not part of the output.
  std::vector<TokenId> stop_ids{};
};

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
  /// any work, if they do not fit the capacity; it names both numbers. A cancel() ends it within a
  /// small part of a layer: then nothing was appended and finish_reason() is cancelled.
  void feed(std::span<const TokenId> tokens, const Progress& progress = {}) {
    std::vector<TokenId> all(pending_.begin(), pending_.end());
    all.insert(all.end(), tokens.begin(), tokens.end());
    if (!compute(all, progress)) {
      end_cancelled();
      return;
    }
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    pending_.clear();
    generated_ = 0;
    go_on();
  }

  /// The next token, or nothing when the generation has ended (finish_reason() says why).
  /// ArgumentError if nothing was fed; LogitsError if no token can be chosen, after which a call
  /// chooses from the same logits again (with another hook, say).
  std::optional<TokenId> next() {
    if (finish_ != FinishReason::not_finished) return std::nullopt;
    if (tokens_.empty())
      raise<ArgumentError>("generation: nothing was fed; a prompt of at least one token is needed");
    if (cancelled_.load(std::memory_order_relaxed)) return end_cancelled();
    if (settings_.max_tokens && generated_ >= *settings_.max_tokens)
      return end(FinishReason::max_tokens);
    if (tokens_.size() >= session_.capacity()) return end(FinishReason::capacity);
    if (!pending_.empty()) {
      // The token chosen last is computed now, not when it was chosen: the last one never is.
      if (!compute(pending_)) return end_cancelled();
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

  /// Ends the next() or feed() under way, or else the next one. None is lost: one that comes before
  /// the work begins ends it all the same; each ends one call only, and the next feed() goes on.
  /// May be called from another thread and from a signal handler.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  /// Ends the generation for a reason of the caller's, such as a stop string in the text.
  void finish(FinishReason reason) { finish_ = reason; }

  /// Keeps the first `length` tokens (at least one) and goes on from there, drawing anew (the same
  /// again after sampler().random().rewind_to()). ArgumentError if there are fewer.
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
    go_on();
  }

  /// All of the generation's state, the session's row included. restore() of these bytes continues
  /// bit-equal. A logit hook is not part of it.
  std::vector<std::byte> save() const {
    detail::StateWriter state(generation_kind);
    state.facts(state_facts());
    state.value(std::uint64_t{tokens_.size()});
    for (const TokenId token : tokens_) state.value(token);
    state.value(std::uint64_t{pending_.size()});
    state.value(std::uint64_t{generated_});
    state.value(static_cast<std::uint8_t>(finish_));
    state.value(static_cast<std::uint8_t>(stop_token_.has_value()));
    state.value(stop_token_.value_or(0));
    state.value(sampler_.stream());
    state.value(sampler_.random().drawn());
    state.value(std::uint64_t{logits_.size()});
    state.bytes(logits_.data(), logits_.size() * sizeof(float));
    const std::vector<std::byte> sequence = session_.save(row_);
    state.value(std::uint64_t{sequence.size()});
    state.bytes(sequence.data(), sequence.size());
    return state.finish();
  }

  /// Goes on where save() was called, in this session and row, which may be others than then.
  /// Refused, with nothing changed, as Session::restore refuses, and MismatchError for other
  /// sampling settings. max_tokens and stop_ids are those of this generator.
  void restore(std::span<const std::byte> bytes, std::string_view file = "saved generation") {
    detail::ByteReader in = detail::open_state(bytes, generation_kind, file);
    detail::check_facts(in, state_facts());
    const std::size_t vocabulary = session_.model().architecture().vocab_size;
    const auto limited = [&](const char* what, std::uint64_t least, std::uint64_t most) {
      const auto value = in.read<std::uint64_t>(what);
      if (value < least || value > most) {
        detail::bad_field(file, what, detail::decimal(least) + " to " + detail::decimal(most),
                          detail::decimal(value));
      }
      return static_cast<std::size_t>(value);
    };
    const auto token_id = [&](const char* what) {
      const auto token = in.read<TokenId>(what);
      if (token < 0 || static_cast<std::size_t>(token) >= vocabulary) {
        detail::bad_field(file, what, "an id below " + detail::decimal(vocabulary),
                          detail::decimal(token));
      }
      return token;
    };
    const auto count = in.read<std::uint64_t>("number of tokens");
    in.need_items(count, sizeof(TokenId), "tokens");
    std::vector<TokenId> tokens(static_cast<std::size_t>(count));
    for (TokenId& token : tokens) token = token_id("token");
    const std::size_t pending = limited("tokens to be computed", 0, tokens.empty() ? 0 : 1);
    const std::size_t generated = limited("tokens generated", 0, count);
    const auto reason = in.read<std::uint8_t>("finish reason");
    if (reason > static_cast<std::uint8_t>(FinishReason::cancelled)) {
      detail::bad_field(file, "finish reason", "a known one", detail::decimal(reason));
    }
    const bool stopped = in.read<std::uint8_t>("stop token") != 0;
    const TokenId stop_token = token_id("stop token");
    const auto stream = in.read<std::uint64_t>("stream");
    const auto drawn = in.read<std::uint64_t>("draws");
    // Only a generation to which nothing was fed has none.
    const std::size_t no_logits = tokens.empty() ? 0 : vocabulary;
    std::vector<float> logits(limited("logits", no_logits, vocabulary));
    if (!logits.empty()) {
      const std::size_t size = checked_mul(logits.size(), sizeof(float), "logits");
      std::memcpy(logits.data(), in.take(size, "logits").data(), size);
    }
    const auto sequence = in.take(in.read<std::uint64_t>("size of the sequence"), "sequence");
    detail::check_end(in);
    const std::size_t length = session_.saved_length(sequence, file);
    if (length != tokens.size() - pending) {
      detail::bad_field(file, "positions", detail::decimal(tokens.size() - pending),
                        detail::decimal(length));
    }

    session_.restore(sequence, row_, file);
    tokens_ = std::move(tokens);
    pending_.clear();
    if (pending > 0) pending_.assign(1, tokens_.back());
    logits_ = std::move(logits);
    generated_ = generated;
    // A limit is judged anew by the next call: this generator's may be another.
    finish_ = static_cast<FinishReason>(reason);
    if (finish_ == FinishReason::max_tokens || finish_ == FinishReason::capacity) go_on();
    stop_token_ = stopped ? std::optional(stop_token) : std::nullopt;
    sampler_.resume(stream, drawn);
  }

  /// The sampling settings that a saved generation was made with, which a generator needs to
  /// restore it. FormatError if the bytes are damaged.
  static SamplingSettings saved_sampling(std::span<const std::byte> bytes,
                                         std::string_view file = "saved generation") {
    detail::ByteReader in = detail::open_state(bytes, generation_kind, file);
    const std::vector<StateFact> facts = detail::read_facts(in);
    const auto number = [&](const char* name, auto read) {
      for (const StateFact& fact : facts) {
        if (fact.name != name) continue;
        char* end = nullptr;
        const auto value = read(fact.value.c_str(), &end);
        if (end != fact.value.c_str() && *end == '\0') return value;
      }
      detail::bad_format(file, std::string("no ") + name + " of the sampling");
    };
    SamplingSettings s;
    s.temperature =
        number("temperature", [](const char* t, char** e) { return std::strtof(t, e); });
    s.top_k = number(
        "top_k", [](const char* t, char** e) { return static_cast<int>(std::strtol(t, e, 10)); });
    s.top_p = number("top_p", [](const char* t, char** e) { return std::strtof(t, e); });
    s.seed = number("seed",
                    [](const char* t, char** e) { return std::uint64_t{std::strtoull(t, e, 10)}; });
    return s;
  }

  /// All tokens: fed and generated.
  std::span<const TokenId> tokens() const { return tokens_; }
  /// How many were generated since the last feed().
  std::size_t generated() const { return generated_; }
  FinishReason finish_reason() const { return finish_; }
  /// The stop token that ended the generation, if one did.
  std::optional<TokenId> stop_token() const { return stop_token_; }
  /// The logits that the last token was chosen from (after feed(): the next one will be), as the
  /// model gave them, [vocabulary]. Valid until the next call.
  std::span<const float> logits() const { return logits_; }
  /// For a logit hook, and for the count of draws.
  Sampler& sampler() { return sampler_; }

 private:
  static constexpr std::string_view generation_kind = "quipugen";

  /// What the choice of tokens depends on beside the model.
  std::vector<StateFact> state_facts() const {
    const SamplingSettings& s = settings_.sampling;
    const auto text = [](float x) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.9g", double{x});
      return std::string(digits);
    };
    return {{"temperature", text(s.temperature)},
            {"top_k", std::to_string(s.top_k)},
            {"top_p", text(s.top_p)},
            {"seed", std::to_string(s.seed)}};
  }

  /// Computes tokens and takes the logits after them; false, with nothing changed, if cancelled.
  bool compute(std::span<const TokenId> tokens, const Progress& progress = {}) {
    computed_.resize(session_.model().architecture().vocab_size);
    const Feed feed{row_, tokens, std::nullopt};
    if (!session_.forward_until(cancelled_, {&feed, 1}, LogitsWanted::last, computed_, progress))
      return false;
    logits_.swap(computed_);
    return true;
  }

  std::nullopt_t end_cancelled() {
    cancelled_.store(false, std::memory_order_relaxed);
    return end(FinishReason::cancelled);
  }

  void go_on() {
    finish_ = FinishReason::not_finished;
    stop_token_.reset();
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
  std::vector<float> logits_, computed_;
  std::size_t generated_ = 0;
  FinishReason finish_ = FinishReason::not_finished;
  std::optional<TokenId> stop_token_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace quipu
