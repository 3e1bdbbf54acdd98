// Probabilities, log-probabilities, the k largest and the nucleus against golden/generation and
// against the definitions computed in float64.
#include "quipu/generate/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/generator.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"

namespace {

using quipu_test::close;
using quipu_test::message_of;
const float infinity = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<float> floats(const nlohmann::json& values) {
  std::vector<float> result;
  for (const auto& v : values) result.push_back(v.is_string() ? -infinity : v.get<float>());
  return result;
}

TEST(Nucleus, IsThatOfTheReference) {
  QUIPU_GOLDEN_OR_SKIP(path, "generation/top_p.jsonl");
  std::ifstream file(path);
  int rows = 0, knife_edges = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const float p = row["p"].get<float>();
    const std::string what = row["name"].get<std::string>() + " temperature " +
                             row["temperature"].dump() + " p " + row["p"].dump();
    std::vector<float> probabilities;
    quipu::softmax(floats(row["logits"]), row["temperature"].get<float>(), probabilities);
    // Both sides round a quotient of an exponential; 1e-6 leaves room for another exp and sum.
    EXPECT_TRUE(close(what, probabilities, floats(row["probs"]), {.max_abs = 1e-6}));

    const std::vector<quipu::Candidate> all = quipu::nucleus(probabilities, 2);
    std::vector<std::int64_t> order;
    for (const quipu::Candidate& c : all) order.push_back(c.token);
    EXPECT_EQ(order, row["order"].get<std::vector<std::int64_t>>()) << what;

    const std::vector<quipu::Candidate> kept = quipu::nucleus(probabilities, p);
    std::vector<float> renormalised(probabilities.size());
    float whole = 0;
    for (const quipu::Candidate& c : kept) whole += c.probability;
    for (std::size_t i = 0; i < kept.size(); ++i) renormalised[i] = kept[i].probability / whole;
    EXPECT_TRUE(close(what, renormalised, floats(row["renormalised_sorted"]), {.max_abs = 1e-6}));
    // Where "before" is p to within rounding, the last places of another exp decide who is in.
    if (row["smallest_margin_to_p"].get<double>() < 1e-6 && p != 0 &&
        row["name"] != "flat10") {  // whose sums of tenths are the same for everyone
      ++knife_edges;
      continue;
    }
    std::vector<std::int64_t> ids;
    for (const quipu::Candidate& c : kept) ids.push_back(c.token);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, row["kept_ids"].get<std::vector<std::int64_t>>()) << what;
  }
  EXPECT_EQ(rows, 82);
  EXPECT_LE(knife_edges, 8);
}

/// The definition, on the whole vocabulary, with a plain sort.
std::vector<std::int32_t> plain_nucleus(const std::vector<float>& probabilities, float p) {
  std::vector<std::int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) { return probabilities[static_cast<std::size_t>(i)]; };
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return at(a) != at(b) ? at(a) > at(b) : a < b; });
  double sum = 0;
  std::size_t n = 0;
  while (n < order.size()) {
    sum += at(order[n]);
    if (static_cast<float>(sum) - at(order[n]) > p) break;
    ++n;
  }
  order.resize(n);
  return order;
}

TEST(Nucleus, OfAWholeVocabularyEqualsTheDefinition) {
  for (const float spread : {0.01f, 2.0f, 12.0f, 60.0f}) {
    std::vector<float> logits = quipu_test::generated_tensor(5, 128256, spread), probabilities;
    for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = logits[i / 2];  // many equals
    quipu::softmax(logits, 1, probabilities);
    for (const float p : {0.0f, 0.3f, 0.9f, 0.999f, 0.99999f, 1.0f}) {
      std::vector<std::int32_t> kept;
      for (const quipu::Candidate& c : quipu::nucleus(probabilities, p)) kept.push_back(c.token);
      EXPECT_EQ(kept, plain_nucleus(probabilities, p)) << "spread " << spread << ", p " << p;
    }
  }
}

TEST(Softmax, IsThatOfFloat64) {
  for (const float temperature : {1.0f, 0.1f, 30.0f}) {
    const std::vector<float> logits = quipu_test::generated_tensor(3, 50000, 20);
    std::vector<float> probabilities;
    quipu::softmax(logits, temperature, probabilities);
    double sum = 0, largest = -1e300;
    for (const float l : logits) largest = (std::max)(largest, double{l / temperature});
    for (const float l : logits) sum += std::exp(double{l / temperature} - largest);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double exact = std::exp(double{logits[i] / temperature} - largest) / sum;
      // Two roundings to float32 (of e^x, of the quotient) and 6e-9: under 1.2 * 2^-23; where
      // float32 is subnormal, its least step counts.
      ASSERT_NEAR(probabilities[i], exact, exact * 1.2 * 0x1p-23 + 0x1p-149) << i;
    }
  }
}

TEST(Softmax, OfMaskedTokensIsZeroAndOfHugeLogitsFinite) {
  std::vector<float> probabilities;
  quipu::softmax(std::vector<float>{-infinity, 1e30f, 1e30f, -3e38f}, 1, probabilities);
  EXPECT_EQ(probabilities, (std::vector<float>{0, 0.5f, 0.5f, 0}));
  quipu::softmax(std::vector<float>{-3e38f, -3e38f}, 1, probabilities);
  EXPECT_EQ(probabilities, (std::vector<float>{0.5f, 0.5f}));
}

TEST(Softmax, OfATinyTemperatureIsItsLimit) {
  std::vector<float> probabilities;
  for (const float temperature : {1e-9f, 1e-30f, 1e-38f, 1e-45f}) {
    for (const float sign : {1.0f, -1.0f}) {
      quipu::softmax(std::vector<float>{sign * 9 - 1, sign * 9, sign * 9 - 2}, temperature,
                     probabilities);
      EXPECT_EQ(probabilities, (std::vector<float>{0, 1, 0})) << temperature << " " << sign;
    }
  }
}

TEST(LogProbability, IsThatOfFloat64) {
  const std::vector<float> logits = quipu_test::generated_tensor(9, 128256, 15);
  double sum = 0;
  for (const float l : logits) sum += std::exp(double{l});
  for (const std::int32_t token : {0, 77, 128255}) {
    const double exact = logits[static_cast<std::size_t>(token)] - std::log(sum);
    // The sum is right to 1e-7 relative (float32 exponentials), the result rounds once.
    EXPECT_NEAR(quipu::log_probability(logits, token), exact, 1e-7 + std::abs(exact) * 0x1p-24);
  }
  EXPECT_EQ(quipu::log_probability(std::vector<float>{1, -infinity}, 1), -infinity);
  EXPECT_EQ(quipu::log_probability(std::vector<float>{1, -infinity}, 0), 0);
  for (const std::int32_t token : {-1, 2}) {
    const std::string message = message_of<quipu::ArgumentError>([&] {
      quipu::log_probability(std::vector<float>{1, 2}, token);
    });
    EXPECT_EQ(message, "token: expected 0 to 2 (exclusive), found " + std::to_string(token));
  }
}

TEST(LargestLogits, AreThoseOfAStableSort) {
  std::vector<float> logits = quipu_test::generated_tensor(11, 3000, 4);
  for (float& l : logits) l = std::round(l * 8);  // about 65 values: many equals at every edge
  logits[5] = logits[2900] = -infinity;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (const std::size_t k : {0u, 1u, 2u, 40u, 1500u, 2999u, 3000u, 9000u}) {
    std::vector<std::int32_t> expected(
        order.begin(), order.begin() + std::ptrdiff_t((std::min)(k, logits.size())));
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(quipu::largest_logits(logits, k), expected) << k;
  }
}

TEST(Argmax, TakesTheFirstAmongEquals) {
  EXPECT_EQ(quipu::argmax(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(quipu::argmax(std::vector<float>{-infinity, -infinity, -5}), 2);
  EXPECT_EQ(quipu::argmax(std::vector<float>{-0.0f, 0.0f}), 0);
}

TEST(CheckLogits, NamesTheTokenAndItsValue) {
  const auto message = [](std::vector<float> logits) {
    return message_of<quipu::LogitsError>([&] { quipu::check_logits(logits); });
  };
  EXPECT_EQ(message({1, 2, -infinity}), "not refused");
  EXPECT_EQ(message({1, 2, nan_value}),
            "logits: expected finite values or -infinity (a masked token), found NaN for token 2");
  EXPECT_EQ(message({1, infinity, nan_value}),
            "logits: expected finite values or -infinity (a masked token), found +infinity for "
            "token 1");
  EXPECT_EQ(message({-infinity, -infinity}),
            "logits: expected a token that may be chosen, found all 2 masked with -infinity");
  EXPECT_EQ(message({}),
            "logits: expected a token that may be chosen, found all 0 masked with -infinity");
}

}  // namespace
