// From logits to probabilities: argmax, softmax, log-probabilities, the k largest, the nucleus.
//
// Probabilities are float32 values, as in Meta's reference. A sum over the vocabulary is taken in
// double, so that it does not depend on an order within float32's precision. Logits are examined by
// their bits, so that NaN and infinities are found in programs built with -ffast-math too.
// Siblings: sampling.hpp (who uses this), random.hpp. Tests: test/generate/distribution_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quipu/shape/error.hpp"

namespace quipu {

/// Logits that no token can be chosen from: one is NaN or +infinity, all are -infinity, or there
/// are none. The message names the first such token and its value.
class LogitsError : public Error {
 public:
  using Error::Error;
};

namespace detail {

inline constexpr std::uint32_t positive_infinity = 0x7f800000u;

/// NaN or +infinity. -infinity is a masked token and is fine.
constexpr bool unusable_logit(float logit) {
  const auto bits = std::bit_cast<std::uint32_t>(logit);
  return bits == positive_infinity || (bits & 0x7fffffffu) > positive_infinity;
}

constexpr bool masked_logit(float logit) {
  return std::bit_cast<std::uint32_t>(logit) == (positive_infinity | 0x80000000u);
}

constexpr bool finite_value(float x) {
  return (std::bit_cast<std::uint32_t>(x) & positive_infinity) != positive_infinity;
}

/// e^x of x <= 0 as float32, at most 0.55 units in the last place off. Our own, so that a seed
/// chooses the same tokens with every C library. x = k ln 2 + r with |r| <= 0.35, and the first
/// term of e^r that is left out is r^8 / 8! < 6e-9.
inline float exp_of_nonpositive(double x) {
  x = x > -104 ? x : -104;  // e^-104 is under half the least float32: 0
  const auto k = static_cast<int>(x * 1.4426950408889634 - 0.5);  // towards 0, hence to nearest
  const double r = x - k * 0.6931471805599453;
  double sum = 1 / 5040.0;
  sum = sum * r + 1 / 720.0;
  sum = sum * r + 1 / 120.0;
  sum = sum * r + 1 / 24.0;
  sum = sum * r + 1 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1;
  sum = sum * r + 1;
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + k) << 52);
  return static_cast<float>(sum * power);
}

}  // namespace detail

/// LogitsError unless a token can be chosen from the logits.
inline void check_logits(std::span<const float> logits) {
  bool unusable = false, all_masked = true;
  for (const float logit : logits) {
    unusable |= detail::unusable_logit(logit);
    all_masked &= detail::masked_logit(logit);
  }
  if (unusable) {
    const auto found = std::find_if(logits.begin(), logits.end(), detail::unusable_logit);
    const bool infinite = std::bit_cast<std::uint32_t>(*found) == detail::positive_infinity;
    raise<LogitsError>("logits: expected finite values or -infinity (a masked token), found " +
                       std::string(infinite ? "+infinity" : "NaN") + " for token " +
                       std::to_string(found - logits.begin()));
  }
  if (all_masked) {
    raise<LogitsError>("logits: expected a token that may be chosen, found all " +
                       std::to_string(logits.size()) + " masked with -infinity");
  }
}

/// The token of the largest logit, the first among equals. Logits as check_logits wants them.
inline std::int32_t argmax(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// softmax(logits / temperature) in float32, each quotient rounded to float32 as the reference's.
/// Temperature > 0. Where it is so small that the quotients leave float32 (1e-9 is not yet, 1e-38
/// is), the result is the limit: 1 for argmax, 0 for the others.
inline void softmax(std::span<const float> logits, float temperature,
                    std::vector<float>& probabilities) {
  probabilities.resize(logits.size());
  const auto best = static_cast<std::size_t>(argmax(logits));
  const float largest = logits[best] / temperature;
  if (!detail::finite_value(largest)) {
    std::fill(probabilities.begin(), probabilities.end(), 0.0f);
    probabilities[best] = 1;
    return;
  }
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i] / temperature;
    probabilities[i] = detail::exp_of_nonpositive(double{x} - double{largest});
  }
  for (const float e : probabilities) sum += e;
  for (float& p : probabilities) p = static_cast<float>(p / sum);
}

/// ln of the sum of e^logit. Accumulated in double: a float32 sum over a vocabulary of 128,256
/// could be wrong by 1e-3 in the worst order, and callers compare log-probabilities to 1e-5.
inline double log_sum_exp(std::span<const float> logits) {
  const double largest = logits[static_cast<std::size_t>(argmax(logits))];
  double sum = 0;
  for (const float logit : logits) sum += detail::exp_of_nonpositive(logit - largest);
  return largest + std::log(sum);
}

/// ln of the probability of a token, log softmax(logits)[token]; -infinity for a masked one.
/// LogitsError as check_logits, ArgumentError if the token is not in the vocabulary.
inline float log_probability(std::span<const float> logits, std::int32_t token) {
  if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) {
    raise<ArgumentError>("token: expected 0 to " + std::to_string(logits.size()) +
                         " (exclusive), found " + std::to_string(token));
  }
  check_logits(logits);
  return static_cast<float>(logits[static_cast<std::size_t>(token)] - log_sum_exp(logits));
}

/// The tokens of the k largest logits in ascending order of token; among equal logits at the edge
/// the lower tokens. One pass that keeps the k best so far in a heap: n comparisons and, on logits
/// in no particular order, few more.
inline std::vector<std::int32_t> largest_logits(std::span<const float> logits, std::size_t k) {
  k = (std::min)(k, logits.size());
  std::vector<std::int32_t> kept;
  kept.reserve(k);
  const auto before = [logits](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  for (std::size_t i = 0; i < logits.size() && k > 0; ++i) {
    const auto token = static_cast<std::int32_t>(i);
    if (kept.size() < k) {
      kept.push_back(token);
      std::push_heap(kept.begin(), kept.end(), before);
    } else if (logits[i] > logits[static_cast<std::size_t>(kept.front())]) {
      std::pop_heap(kept.begin(), kept.end(), before);
      kept.back() = token;
      std::push_heap(kept.begin(), kept.end(), before);
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// A token (or an index into a selection of tokens) and its probability.
struct Candidate {
  std::int32_t token;
  float probability;
};

namespace detail {
/// Descending by probability, equal ones left in their order. Floats from 0 to 1 order as their 30
/// bits do, so three stable passes by ten bits sort them in linear time: for a flat distribution
/// over 128,256 tokens a tenth of what std::sort takes.
inline void sort_descending(std::vector<Candidate>& candidates) {
  constexpr std::uint32_t digits = 1024;
  std::vector<Candidate> sorted(candidates.size());
  for (const unsigned shift : {0u, 10u, 20u}) {
    const auto digit = [shift](const Candidate& c) {
      return digits - 1 - ((std::bit_cast<std::uint32_t>(c.probability) >> shift) & (digits - 1));
    };
    std::array<std::size_t, digits + 1> place{};  // first of each digit, after the counts are added
    for (const Candidate& c : candidates) ++place[digit(c) + 1];
    for (std::size_t d = 0; d < digits; ++d) place[d + 1] += place[d];
    for (const Candidate& c : candidates) sorted[place[digit(c)]++] = c;
    candidates.swap(sorted);
  }
}
}  // namespace detail

/// The nucleus: the candidates in descending order of probability (among equals the lower token
/// first) as long as the probability of those before is <= p, compared in float32; the first is
/// always in it. As in the reference, "before" is the running sum, kept in double and rounded to
/// float32, less the candidate's own probability.
/// Source: meta-llama/llama3, llama/generation.py, sample_top_p.
inline std::vector<Candidate> nucleus(std::span<const float> probabilities, float p) {
  // Whoever has less than (1 - p) / n cannot be in it: it and all that follow add up to less than
  // 1 - p. The thousandth taken off outweighs the rounding of the sums while 1 - p > 1e-4. This
  // leaves some hundreds of 128,256 tokens to be ordered.
  const float least =
      1 - p > 1e-4f ? 0.999f * (1 - p) / static_cast<float>(probabilities.size()) : 0.0f;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] >= least) {
      candidates.push_back({static_cast<std::int32_t>(i), probabilities[i]});
    }
  }
  detail::sort_descending(candidates);
  double sum = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    sum += candidates[n].probability;
    if (static_cast<float>(sum) - candidates[n].probability > p) {
      candidates.resize(n);
      break;
    }
  }
  return candidates;
}

}  // namespace quipu
