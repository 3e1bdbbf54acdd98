// Choosing the next token from logits: greedy, temperature, top-k, top-p, with a seed.
//
// The order is: logit hook, top-k on the logits, softmax(logits / temperature) of what remains,
// top-p on those probabilities, one draw. With top-k off this is what Meta's reference does.
// Siblings: distribution.hpp (the arithmetic), random.hpp, logit_hook.hpp.
// Tests: test/generate/sampling_test.cpp, distribution_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/generate/distribution.hpp"
#include "quipu/generate/logit_hook.hpp"
#include "quipu/generate/random.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// How the next token is chosen. The defaults are greedy.
struct SamplingSettings {
  float temperature = 0;   ///< 0: the largest logit, the first among equals
  std::int64_t top_k = 0;  ///< only the k largest logits; 0: all
  float top_p = 1;         ///< only the nucleus of this probability; 1: all, 0: the likeliest
  std::uint64_t seed = 0;
};

/// ArgumentError that names the setting, what it may be and what it is.
inline void validate(const SamplingSettings& settings) {
  const auto refuse = [](const char* name, const char* range, double value) {
    char found[32];
    std::snprintf(found, sizeof found, "%g", value);
    raise<ArgumentError>(std::string(name) + ": expected " + range + ", found " + found);
  };
  const float t = settings.temperature, p = settings.top_p;
  if (!detail::finite_value(t) || t < 0) {
    refuse("temperature", "a finite number >= 0 (0 is greedy)", double{t});
  }
  if (settings.top_k < 0) {
    raise<ArgumentError>("top_k: expected an integer >= 0 (0 is off), found " +
                         std::to_string(settings.top_k));
  }
  if (!detail::finite_value(p) || p < 0 || p > 1) {
    refuse("top_p", "a number from 0 to 1 (1 is off)", double{p});
  }
}

/// Chooses tokens. Each sample() makes one draw, greedy or not, so that `random().rewind_to(n)`
/// rolls back to where n tokens had been chosen, and (settings, drawn) is all there is to save.
/// One sampler serves one sequence; rows of a batch take streams 0, 1, ... of the same seed.
class Sampler {
 public:
  /// ArgumentError as validate().
  explicit Sampler(const SamplingSettings& settings, std::uint64_t stream = 0)
      : settings_(settings), stream_(stream), random_(settings.seed, stream) {
    validate(settings);
  }

  const SamplingSettings& settings() const { return settings_; }
  std::uint64_t stream() const { return stream_; }

  /// Goes on as a sampler of these settings and that stream which has chosen so many tokens.
  void resume(std::uint64_t stream, std::uint64_t drawn) {
    stream_ = stream;
    random_ = Random(settings_.seed, stream);
    random_.rewind_to(drawn);
  }

  Random& random() { return random_; }
  const Random& random() const { return random_; }

  /// The hook sees each position's logits before the choice; an empty one is none.
  void set_hook(LogitHook hook) { hook_ = std::move(hook); }

  /// The next token for logits [vocabulary]. LogitsError if none can be chosen from them; then no
  /// draw was made.
  std::int32_t sample(std::span<const float> logits) {
    if (hook_) {
      changed_.assign(logits.begin(), logits.end());
      hook_(changed_);
      logits = changed_;
    }
    check_logits(logits);
    const double u = random_.uniform();
    if (settings_.temperature == 0) return argmax(logits);
    const auto k = static_cast<std::uint64_t>(settings_.top_k);
    if (k == 0 || k >= logits.size()) return choose(logits, u);

    const std::vector<std::int32_t> tokens = largest_logits(logits, static_cast<std::size_t>(k));
    selected_.clear();
    for (const std::int32_t token : tokens) {
      selected_.push_back(logits[static_cast<std::size_t>(token)]);
    }
    return tokens[static_cast<std::size_t>(choose(selected_, u))];
  }

 private:
  std::int32_t choose(std::span<const float> logits, double u) {
    softmax(logits, settings_.temperature, probabilities_);
    if (settings_.top_p >= 1) {
      return static_cast<std::int32_t>(draw(probabilities_, u, [](float p) { return p; }));
    }
    const std::vector<Candidate> kept = nucleus(probabilities_, settings_.top_p);
    return kept[draw(kept, u, [](const Candidate& c) { return c.probability; })].token;
  }

  /// The first element at which the running sum passes u times the whole sum: never one of
  /// probability 0, and always one, since u < 1.
  template <class Range, class Probability>
  static std::size_t draw(const Range& range, double u, Probability probability) {
    double whole = 0, sum = 0;
    for (const auto& element : range) whole += double{probability(element)};
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < range.size() && !(sum > u * whole); ++i) {
      sum += double{probability(range[i])};
      chosen = i;
    }
    return chosen;
  }

  SamplingSettings settings_;
  std::uint64_t stream_;
  Random random_;
  LogitHook hook_;
  std::vector<float> changed_, selected_, probabilities_;  // kept between calls: no allocation
};

}  // namespace quipu
