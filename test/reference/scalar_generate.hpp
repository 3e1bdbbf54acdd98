// The generation loop of Meta's reference restated over the scalar forward pass: ragged prompts in
// one batch, teacher forcing until the longest prompt ends, stop tokens, echo, log-probabilities.
// Source: meta-llama/llama3, llama/generation.py, Llama.generate.
// Siblings: scalar_forward.hpp; test/generate/sampling_test.cpp runs it on golden/generation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/scalar_forward.hpp"

namespace quipu_test {

struct GenerationCase {
  std::vector<std::vector<std::int64_t>> prompts;
  std::size_t max_gen_len, max_seq_len;
  std::vector<std::int64_t> stop_tokens;
  bool echo;
};

struct GenerationResult {
  std::vector<std::vector<std::int64_t>> tokens;
  std::vector<std::vector<float>> log_probabilities;
  std::vector<std::vector<std::size_t>> calls;  ///< start position and count of each forward call
};

/// choose(logits) picks a token, log_probability(logits, token) scores one.
inline GenerationResult scalar_generate(
    const ScalarModel& model, const GenerationCase& request,
    const std::function<std::int64_t(std::span<const float>)>& choose,
    const std::function<float(std::span<const float>, std::int64_t)>& log_probability) {
  const std::size_t rows = request.prompts.size(), vocabulary = model.config.vocab_size;
  std::size_t shortest = request.prompts[0].size(), longest = 0;
  for (const auto& prompt : request.prompts) {
    shortest = (std::min)(shortest, prompt.size());
    longest = (std::max)(longest, prompt.size());
  }
  const std::size_t total = (std::min)(request.max_seq_len, request.max_gen_len + longest);
  std::vector<std::vector<std::int64_t>> tokens = request.prompts;
  std::vector<std::vector<float>> scores(rows, std::vector<float>(total));
  std::vector<bool> stopped(rows);
  for (auto& row : tokens) row.resize(total);

  GenerationResult result;
  ScalarLlama<> llama(model.config, model.weights, Rounding::float32, rows, total);
  const auto run = [&](std::size_t start, std::size_t end) {
    std::vector<std::int64_t> fed;
    for (const auto& row : tokens) {
      fed.insert(fed.end(), row.begin() + static_cast<std::ptrdiff_t>(start),
                 row.begin() + static_cast<std::ptrdiff_t>(end));
    }
    result.calls.push_back({start, end - start});
    return llama.forward(fed, start);
  };
  const auto logits_at = [&](const std::vector<float>& logits, std::size_t row, std::size_t count,
                             std::size_t i) {
    return std::span(logits).subspan((row * count + i) * vocabulary, vocabulary);
  };

  if (shortest == total) {
    // Nothing to generate: the reference scores each token by the logits of its own position.
    const std::vector<float> logits = run(0, total);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < total; ++i) {
        scores[row][i] = log_probability(logits_at(logits, row, total, i), tokens[row][i]);
      }
    }
  }
  for (std::size_t start = 0, end = shortest; end < total; start = end++) {
    const std::vector<float> logits = run(start, end);
    const std::size_t count = end - start;
    bool all_stopped = true;
    for (std::size_t row = 0; row < rows; ++row) {
      const bool forced = end < request.prompts[row].size();
      if (!forced) tokens[row][end] = choose(logits_at(logits, row, count, count - 1));
      for (std::size_t i = 0; i < count; ++i) {
        scores[row][start + i + 1] =
            log_probability(logits_at(logits, row, count, i), tokens[row][start + i + 1]);
      }
      const auto& stops = request.stop_tokens;
      if (!forced && std::find(stops.begin(), stops.end(), tokens[row][end]) != stops.end()) {
        stopped[row] = true;
      }
      all_stopped = all_stopped && stopped[row];
    }
    if (all_stopped) break;
  }

  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t prompt = request.prompts[row].size(), first = request.echo ? 0 : prompt;
    std::size_t last = (std::min)(total, prompt + request.max_gen_len);
    for (std::size_t i = last; i-- > first;) {
      const auto& stops = request.stop_tokens;
      if (std::find(stops.begin(), stops.end(), tokens[row][i]) != stops.end()) last = i;
    }
    const auto cut = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(first),
                         all.begin() + static_cast<std::ptrdiff_t>(last));
    };
    result.tokens.push_back(cut(tokens[row]));
    result.log_probabilities.push_back(cut(scores[row]));
  }
  return result;
}

}  // namespace quipu_test
