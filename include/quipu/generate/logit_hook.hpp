// Hooks that change the logits before a token is chosen: a bias, a mask, or a caller's own, for
// instance the tokens that a grammar allows next.
// Sibling: sampling.hpp. Tests: test/generate/sampling_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/generate/distribution.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// Called with the logits of one position, [vocabulary], which it may change; -infinity masks a
/// token. It works on a copy: log-probabilities remain those of the model.
using LogitHook = std::function<void(std::span<float> logits)>;

/// Added to the logit of a token; -infinity masks it.
struct TokenBias {
  std::int32_t token;
  float bias;
};

namespace detail {
inline float& logit_of(std::span<float> logits, std::int32_t token, const char* argument) {
  if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) {
    raise<ArgumentError>(std::string(argument) + ": expected tokens from 0 to " +
                         std::to_string(logits.size()) + " (exclusive), found " +
                         std::to_string(token));
  }
  return logits[static_cast<std::size_t>(token)];
}
}  // namespace detail

/// A hook that adds the biases. ArgumentError for a bias that is NaN or +infinity; when it is
/// called, for a token outside the vocabulary.
inline LogitHook bias_tokens(std::vector<TokenBias> biases) {
  for (const TokenBias& b : biases) {
    if (detail::unusable_logit(b.bias)) {
      raise<ArgumentError>("bias of token " + std::to_string(b.token) +
                           ": expected a finite number or -infinity, found " +
                           std::to_string(b.bias));
    }
  }
  return [biases = std::move(biases)](std::span<float> logits) {
    for (const TokenBias& b : biases) detail::logit_of(logits, b.token, "bias") += b.bias;
  };
}

/// A hook that masks all tokens but these. ArgumentError when it is called, for a token outside the
/// vocabulary; with no token allowed the choice ends in LogitsError.
inline LogitHook allow_tokens(std::vector<std::int32_t> allowed) {
  return [allowed = std::move(allowed)](std::span<float> logits) {
    std::vector<float> kept;
    for (const std::int32_t token : allowed) {
      kept.push_back(detail::logit_of(logits, token, "allowed token"));
    }
    for (float& logit : logits) logit = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      logits[static_cast<std::size_t>(allowed[i])] = kept[i];
    }
  };
}

}  // namespace quipu
