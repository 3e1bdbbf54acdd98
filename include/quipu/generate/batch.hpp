// Generation of several sequences at once, of prompts of any lengths, as Meta's reference does it:
// teacher forcing, echo, log-probabilities, stop tokens.
//
//   const auto results = generate_batch(session, prompts, {.max_tokens = 64});
//   BatchGenerator g(session, settings);        // or step by step
//   g.feed(prompts);
//   for (auto step = g.next(); !step.empty(); step = g.next()) show(step);
//
// The reference pads prompts to a rectangle, feeds the length of the shortest and then one position
// at a time, rows of ended sequences too. Here a prompt is fed whole and rows are of different
// lengths, so that nothing is padded; an ended row is no longer computed. Since a row's logits do
// not depend on other rows or on how the input is cut, the results are the same.
// Sources: meta-llama/llama3, llama/generation.py, Llama.generate; meta-llama/llama-models,
// models/llama3/generation.py, Llama3.generate (lock_step).
// Siblings: generator.hpp (one sequence), sampling.hpp. Tests: test/generate/batch_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/engine/session.hpp"
#include "quipu/generate/finish.hpp"
#include "quipu/generate/sampling.hpp"

namespace quipu {

struct BatchSettings {
  SamplingSettings sampling{};  ///< row r draws from stream r of the seed
  /// Most tokens to generate in each row; nothing: until a stop token or the session's capacity.
  std::optional<std::size_t> max_tokens{};
  /// Tokens that end a row; results end before them.
  std::vector<TokenId> stop_ids{};
  /// Score every token, of prompts too, with the model's own logits (no temperature, no hook).
  bool log_probabilities = false;
  /// Results begin with the prompt, and end before a stop token that stands in it.
  bool echo = false;
  /// llama-models' generator: every step is one position of all rows, from the end of the shortest
  /// prompt on. Prompt tokens are reported (ignore), a row that has ended goes on until all have,
  /// max_tokens counts from the end of the longest prompt, and prompts that fill the capacity give
  /// nothing. With echo the first steps are the positions of the prompts.
  bool lock_step = false;
  /// With lock_step: reported where a row has no token to echo; a prompt's token of this id is
  /// chosen by the model, unless it stands before the end of the shortest prompt.
  TokenId pad_id = -1;
  /// Where all prompts fill the rows and nothing is generated, the reference scores token i with
  /// the logits of position i, those of its successor. Only for parity: the default scores it with
  /// the logits of position i - 1, as everywhere else.
  bool reference_unshifted_scores = false;
};

/// What a step did in one row.
struct BatchToken {
  std::size_t row;
  TokenId token;
  bool input;             ///< echoed before anything was computed
  bool ignore;            ///< of the prompt or padding, not generated
  bool finished;          ///< the row has met a stop token or, without lock_step, ended
  float log_probability;  ///< 0 for echoed tokens and if log_probabilities is off
};

/// What became of one row.
struct BatchResult {
  std::vector<TokenId> tokens{};
  /// One for each of `tokens`, if asked for. The first token of a sequence, which nothing predicts,
  /// has 0.
  std::vector<float> log_probabilities{};
  FinishReason finish = FinishReason::not_finished;
};

/// Generates in rows 0, 1, ... of a session, which must outlive this.
class BatchGenerator {
 public:
  /// ArgumentError for settings out of range.
  BatchGenerator(Session& session, BatchSettings settings)
      : session_(session), settings_(std::move(settings)) {
    validate(settings_.sampling);
  }

  /// Takes the prompts, empties a row of the session for each and computes them. ArgumentError,
  /// before any work, if there are none, one is empty or too long, or the session has too few rows.
  void feed(std::span<const std::vector<TokenId>> prompts, const Progress& progress = {}) {
    check(prompts);
    std::size_t shortest = session_.capacity(), longest = 0;
    for (const auto& prompt : prompts) {
      shortest = (std::min)(shortest, prompt.size());
      longest = (std::max)(longest, prompt.size());
    }
    rows_.clear();
    for (std::size_t r = 0; r < prompts.size(); ++r) {
      Row row{.prompt = prompts[r], .sampler = Sampler(settings_.sampling, r)};
      row.position = settings_.lock_step ? shortest : row.prompt.size();
      const auto from = row.prompt.begin() + static_cast<std::ptrdiff_t>(row.position);
      const auto unknown = std::find(from, row.prompt.end(), settings_.pad_id);
      row.tokens.assign(row.prompt.begin(), unknown);
      row.scores.assign(row.tokens.size(), 0.0f);
      const std::size_t start = settings_.lock_step ? longest : row.prompt.size();
      const std::size_t room = session_.capacity() - start;
      row.limit = start + (std::min)(room, settings_.max_tokens.value_or(room));
      // Where both ends fall together it is the one asked for, as with Generator.
      if (settings_.max_tokens && *settings_.max_tokens <= room)
        row.full = FinishReason::max_tokens;
      rows_.push_back(std::move(row));
    }
    const bool none = settings_.lock_step && longest == session_.capacity();  // no token fits
    echoed_ = settings_.lock_step && settings_.echo && !none ? 0 : longest;
    longest_ = longest;
    for (Row& row : rows_) {
      if (none) row.limit = row.position;
      end_if_full(row);
    }
    compute_prompts(progress);
  }

  /// The next token of every row that goes on, in order of rows; empty when all have ended.
  /// LogitsError if no token can be chosen. Valid until the next call.
  std::span<const BatchToken> next() {
    step_.clear();
    if (cancelled_.load(std::memory_order_relaxed)) {
      end_cancelled();
      return step_;
    }
    if (echoed_ < longest_) {
      echo(echoed_++);
      return step_;
    }
    if (settings_.lock_step && all_stopped()) {
      for (Row& row : rows_) row.active = false;
    }
    if (!compute_chosen()) return step_;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].active) advance(r);
    }
    return step_;
  }

  /// Ends all rows in the next() or feed() under way, or else in the next one (see
  /// Generator::cancel). May be called from another thread and from a signal handler.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  /// What there is of each row by now.
  std::vector<BatchResult> results() const {
    std::vector<BatchResult> results;
    for (const Row& row : rows_) results.push_back(result(row));
    return results;
  }

  /// The sampler of a row, for a logit hook. After feed().
  Sampler& sampler(std::size_t row) { return rows_.at(row).sampler; }

 private:
  struct Row {
    std::vector<TokenId> prompt;
    Sampler sampler;
    std::vector<TokenId> tokens{};  // of the prompt as far as it is known, then chosen ones
    std::vector<float> scores{};    // of tokens
    std::vector<float> logits{};    // for the token after those computed
    std::size_t position = 0;       // of the next token that a step reports
    std::size_t limit = 0;          // most tokens of the row
    bool active = true, stopped = false;
    FinishReason full = FinishReason::capacity;  // why the row ends at its limit
    FinishReason finish = FinishReason::not_finished;
  };

  void check(std::span<const std::vector<TokenId>> prompts) const {
    const std::size_t batch = session_.options().batch;
    if (prompts.empty() || prompts.size() > batch) {
      raise<ArgumentError>("prompts: expected 1 to " + std::to_string(batch) +
                           " (the batch of the session), found " + std::to_string(prompts.size()));
    }
    const std::size_t vocabulary = session_.model().architecture().vocab_size;
    for (std::size_t r = 0; r < prompts.size(); ++r) {
      const std::size_t n = prompts[r].size();
      if (n == 0 || n > session_.capacity()) {
        raise<ArgumentError>("prompt " + std::to_string(r) + ": expected 1 to " +
                             std::to_string(session_.capacity()) +
                             " tokens (the capacity of the session), found " + std::to_string(n));
      }
      for (const TokenId token : prompts[r]) {
        if (token >= 0 && static_cast<std::size_t>(token) < vocabulary) continue;
        raise<ArgumentError>("prompt " + std::to_string(r) + ": expected tokens from 0 to " +
                             std::to_string(vocabulary) + " (exclusive), found " +
                             std::to_string(token));
      }
    }
  }

  static void end(Row& row, FinishReason reason) {
    if (row.finish == FinishReason::not_finished) row.finish = reason;
    row.active = false;
  }

  void end_if_full(Row& row) const {
    if (row.position >= row.limit) end(row, row.full);
  }

  void end_cancelled() {
    cancelled_.store(false, std::memory_order_relaxed);
    for (Row& row : rows_) end(row, FinishReason::cancelled);
    echoed_ = longest_;
  }

  bool all_stopped() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.stopped; });
  }

  bool any_active() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.active; });
  }

  void echo(std::size_t position) {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto& prompt = rows_[r].prompt;
      const TokenId token = position < prompt.size() ? prompt[position] : settings_.pad_id;
      step_.push_back({r, token, true, token == settings_.pad_id, false, 0});
    }
  }

  /// Scores need the logits of every position: computed in slices, so that those of some tens of
  /// positions are in memory and not those of all prompts.
  void compute_prompts(const Progress& progress) {
    for (std::size_t r = 0; r < rows_.size(); ++r) session_.truncate(r, 0);
    if (!any_active() && !settings_.log_probabilities) return;
    constexpr std::size_t scored_at_once = 64;
    const std::size_t slice = settings_.log_probabilities
                                  ? (std::max<std::size_t>)(1, scored_at_once / rows_.size())
                                  : session_.capacity();
    std::size_t total = 0, done = 0;
    for (const Row& row : rows_) total += row.tokens.size();
    for (bool more = true; more;) {
      more = false;
      feeds_.clear();
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::span<const TokenId> left =
            std::span(rows_[r].tokens).subspan(session_.length(r));
        if (left.empty()) continue;
        feeds_.push_back({r, left.first((std::min)(left.size(), slice)), std::nullopt});
        more = true;
      }
      if (!more) break;
      if (!settings_.log_probabilities) {
        forward(LogitsWanted::last, progress);
        return;
      }
      const std::size_t before = done;
      const bool computed =
          forward(LogitsWanted::all, [&](std::string_view what, std::size_t n, std::size_t) {
            done = before + n;
            if (progress) progress(what, done, total);
          });
      if (!computed) return;
      score_prompts();
    }
  }

  /// Gives each fed row the logits of its last position; false if cancelled, which ends all rows.
  bool forward(LogitsWanted wanted, const Progress& progress) {
    const std::size_t vocabulary = session_.model().architecture().vocab_size;
    logits_.resize(Session::logit_rows(feeds_, wanted) * vocabulary);
    if (!session_.forward_until(cancelled_, feeds_, wanted, logits_, progress)) {
      end_cancelled();
      return false;
    }
    std::size_t end = 0;
    for (const Feed& feed : feeds_) {
      end += (wanted == LogitsWanted::all ? feed.tokens.size() : 1) * vocabulary;
      const auto last = std::span(logits_).first(end).last(vocabulary);
      rows_[feed.row].logits.assign(last.begin(), last.end());
    }
    return true;
  }

  void score_prompts() {
    const std::size_t vocabulary = session_.model().architecture().vocab_size;
    const bool unshifted = settings_.reference_unshifted_scores && fills_all_rows();
    std::span<const float> logits = logits_;
    for (const Feed& feed : feeds_) {
      Row& row = rows_[feed.row];
      const std::size_t first = session_.length(feed.row) - feed.tokens.size();
      for (std::size_t i = first; i < session_.length(feed.row); ++i) {
        const std::size_t scored = unshifted ? i : i + 1;
        if (scored < row.tokens.size()) {
          row.scores[scored] = log_probability(logits.first(vocabulary), row.tokens[scored]);
        }
        logits = logits.subspan(vocabulary);
      }
    }
  }

  bool fills_all_rows() const {
    return std::all_of(rows_.begin(), rows_.end(), [this](const Row& row) {
      return row.prompt.size() == row.limit && row.limit == rows_[0].limit;
    });
  }

  /// Computes the tokens chosen last, of all rows that need the logits after them, in one pass;
  /// false if cancelled.
  bool compute_chosen() {
    feeds_.clear();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const Row& row = rows_[r];
      if (!row.active || session_.length(r) >= row.position) continue;
      feeds_.push_back({r, std::span(row.tokens).subspan(session_.length(r)), std::nullopt});
    }
    return feeds_.empty() || forward(LogitsWanted::last, {});
  }

  void advance(std::size_t r) {
    Row& row = rows_[r];
    const std::size_t at = row.position;
    const bool in_prompt = at < row.prompt.size();
    const bool chosen = !in_prompt || row.prompt[at] == settings_.pad_id;
    if (at == row.tokens.size()) {
      const TokenId token = chosen ? row.sampler.sample(row.logits) : row.prompt[at];
      row.tokens.push_back(token);
      row.scores.push_back(settings_.log_probabilities ? log_probability(row.logits, token) : 0);
    }
    const TokenId token = row.tokens[at];
    row.position = at + 1;
    if (chosen && is_stop(token)) {
      row.stopped = true;
      if (row.finish == FinishReason::not_finished) row.finish = FinishReason::stop_token;
      if (!settings_.lock_step) row.active = false;
    }
    if (row.active) end_if_full(row);
    step_.push_back({r, token, false, in_prompt,
                     row.stopped || (!row.active && !settings_.lock_step), row.scores[at]});
  }

  bool is_stop(TokenId token) const {
    return std::find(settings_.stop_ids.begin(), settings_.stop_ids.end(), token) !=
           settings_.stop_ids.end();
  }

  BatchResult result(const Row& row) const {
    const std::size_t prompt = row.prompt.size();
    const std::size_t most = (std::min)(row.limit, settings_.max_tokens.value_or(row.limit));
    const std::size_t last = (std::min)({row.tokens.size(), row.limit, prompt + most});
    const std::size_t first = settings_.echo ? 0 : (std::min)(prompt, last);
    BatchResult result{.finish = row.finish};
    for (std::size_t i = first; i < last && !is_stop(row.tokens[i]); ++i) {
      result.tokens.push_back(row.tokens[i]);
      if (settings_.log_probabilities) result.log_probabilities.push_back(row.scores[i]);
    }
    return result;
  }

  Session& session_;
  BatchSettings settings_;
  std::vector<Row> rows_;
  std::vector<Feed> feeds_;
  std::vector<float> logits_;
  std::vector<BatchToken> step_;
  std::size_t echoed_ = 0, longest_ = 0;
  std::atomic<bool> cancelled_{false};
};

/// Generates in all rows until each has ended. Errors as BatchGenerator's.
inline std::vector<BatchResult> generate_batch(Session& session,
                                               std::span<const std::vector<TokenId>> prompts,
                                               const BatchSettings& settings,
                                               const Progress& progress = {}) {
  BatchGenerator generator(session, settings);
  generator.feed(prompts, progress);
  while (!generator.next().empty()) {
  }
  return generator.results();
}

}  // namespace quipu
