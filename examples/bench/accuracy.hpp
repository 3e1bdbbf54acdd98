// What the faster number formats cost: how far the distribution of the next token moves from that
// of float32 activations and a float32 cache, over a text.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "program.hpp"
#include "quipu/engine/session.hpp"
#include "quipu/runtime/statistics.hpp"

namespace bench {

/// Kullback-Leibler divergence D(P || Q) in nats of the softmax distributions of two rows of
/// logits; sums in double.
inline double divergence(std::span<const float> p, std::span<const float> q) {
  const auto log_sum = [](std::span<const float> logits, double largest) {
    double sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x) - largest);
    return largest + std::log(sum);
  };
  const double p_norm = log_sum(p, *std::max_element(p.begin(), p.end()));
  const double q_norm = log_sum(q, *std::max_element(q.begin(), q.end()));
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = static_cast<double>(p[i]) - p_norm;
    sum += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_norm));
  }
  return (std::max)(0.0, sum);
}

/// One choice of number formats and how far it is from float32.
struct AccuracyVariant {
  std::string name;
  quipu::ElementType cache = quipu::ElementType::f32;
  quipu::NumericMode mode = quipu::NumericMode::f32;
  quipu::ActivationMode activations = quipu::ActivationMode::f32;
  std::vector<double> divergences;  ///< one a position
  std::size_t same_top = 0;         ///< positions with the same likeliest token

  double mean() const {
    double sum = 0;
    for (double d : divergences) sum += d;
    return divergences.empty() ? 0 : sum / static_cast<double>(divergences.size());
  }
};

/// The text in windows of `context` tokens, or in one if it is shorter; every position of every
/// window counts.
inline std::vector<AccuracyVariant> measure_accuracy(const quipu::Model& model,
                                                     std::span<const quipu::TokenId> tokens,
                                                     std::size_t context) {
  context = (std::min)(context, tokens.size());
  using quipu::ActivationMode;
  using quipu::ElementType;
  using quipu::NumericMode;
  std::vector<AccuracyVariant> variants{
      {"int8 activations", ElementType::f32, NumericMode::f32, ActivationMode::int8, {}, 0},
      {"bf16 cache", ElementType::bf16, NumericMode::f32, ActivationMode::f32, {}, 0},
      {"int8 activations, bf16 cache",
       ElementType::bf16,
       NumericMode::f32,
       ActivationMode::int8,
       {},
       0},
      {"bf16 mode", ElementType::bf16, NumericMode::bf16, ActivationMode::f32, {}, 0}};
  constexpr std::size_t step = 32;  // logits of so many positions are kept
  const std::size_t vocabulary = model.architecture().vocab_size;
  const auto session_of = [&](ElementType cache, NumericMode mode, ActivationMode activations) {
    return std::make_unique<quipu::Session>(model,
                                            quipu::SessionOptions{.capacity = context,
                                                                  .chunk = step,
                                                                  .cache = cache,
                                                                  .mode = mode,
                                                                  .activations = activations});
  };
  const auto reference = session_of(ElementType::f32, NumericMode::f32, ActivationMode::f32);
  std::vector<std::unique_ptr<quipu::Session>> sessions;
  for (const AccuracyVariant& v : variants)
    sessions.push_back(session_of(v.cache, v.mode, v.activations));
  std::vector<float> exact(step * vocabulary), other(step * vocabulary);
  program::ProgressBar bar;
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t in_window = at % context;
    const std::size_t n = (std::min)({step, context - in_window, tokens.size() - at});
    const quipu::Feed feed{0, tokens.subspan(at, n), in_window};
    reference->forward({&feed, 1}, quipu::LogitsWanted::all, exact);
    for (std::size_t v = 0; v < variants.size(); ++v) {
      sessions[v]->forward({&feed, 1}, quipu::LogitsWanted::all, other);
      for (std::size_t i = 0; i < n; ++i) {
        const auto p = std::span<const float>(exact).subspan(i * vocabulary, vocabulary);
        const auto q = std::span<const float>(other).subspan(i * vocabulary, vocabulary);
        variants[v].divergences.push_back(divergence(p, q));
        variants[v].same_top += std::max_element(p.begin(), p.end()) - p.begin() ==
                                        std::max_element(q.begin(), q.end()) - q.begin()
                                    ? 1
                                    : 0;
      }
    }
    at += n;
    bar("tokens", at, tokens.size());
  }
  return variants;
}

inline Table accuracy_table(const std::vector<AccuracyVariant>& variants) {
  Table table({"against float32", ">mean KL", ">99 % KL", ">same top token"});
  for (const AccuracyVariant& v : variants) {
    table.add({v.name, fmt::format("{:.2e}", v.mean()),
               fmt::format("{:.2e}", quipu::quantile(v.divergences, 0.99)),
               fmt::format("{:.2f} %", 100 * static_cast<double>(v.same_top) /
                                           static_cast<double>(v.divergences.size()))});
  }
  return table;
}

inline nlohmann::ordered_json accuracy_json(const std::vector<AccuracyVariant>& variants) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const AccuracyVariant& v : variants) {
    out.push_back({{"name", v.name},
                   {"positions", v.divergences.size()},
                   {"mean_divergence", v.mean()},
                   {"divergence_99", quipu::quantile(v.divergences, 0.99)},
                   {"same_top",
                    static_cast<double>(v.same_top) / static_cast<double>(v.divergences.size())}});
  }
  return out;
}

}  // namespace bench
