// A real model, SmolLM2-135M-Instruct as Q4_1, against two independent judges recorded by
// record_smollm2.py: llama.cpp's greedy continuations, and a float64 forward pass in NumPy.
// Needs the model file: QUIPU_SMOLLM2_GGUF, or where examples/demo.sh puts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "quipu/generate/generator.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

using quipu::ActivationMode;
using quipu::TokenId;
using Json = nlohmann::json;

/// The likeliest tokens of one step with their logits, best first.
struct Step {
  std::vector<TokenId> ids;
  std::vector<double> logits;
  std::vector<double>
      other;  ///< of the same ids: the exact ones in llama.cpp's record, and reverse
};

std::vector<Step> steps_of(const Json& record, const char* other) {
  std::vector<Step> steps;
  for (const Json& step : record.at("steps")) {
    steps.push_back({step.at("ids"), step.at("logits"), step.at(other)});
  }
  return steps;
}

Json recorded(const char* file) {
  std::ifstream in(std::string(QUIPU_TEST_DATA "/engine/") + file);
  return Json::parse(in);
}

/// Differences of two sets of logits.
struct Apart {
  double largest = 0, squares = 0;
  std::size_t count = 0;
  void add(double a, double b) {
    const double gap = std::isfinite(a - b) ? std::abs(a - b) : HUGE_VAL;
    largest = (std::max)(largest, gap);
    squares += gap * gap;
    ++count;
  }
  double rms() const { return std::sqrt(squares / static_cast<double>(count)); }
  friend std::ostream& operator<<(std::ostream& out, const Apart& a) {
    return out << "rms " << a.rms() << ", largest " << a.largest;
  }
};

/// How far llama.cpp's rounding takes the logits of the candidates from exact ones.
Apart rounding_of(std::span<const Step> steps) {
  Apart apart;
  for (const Step& step : steps) {
    for (std::size_t i = 0; i < step.ids.size(); ++i) apart.add(step.logits[i], step.other[i]);
  }
  return apart;
}

class SmolLm2 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string path;
    if (const char* named = std::getenv("QUIPU_SMOLLM2_GGUF")) {
      path = named;
    } else if (const char* home = std::getenv("HOME")) {
      path = std::string(home) + "/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    if (std::ifstream(path).good()) loaded().emplace(test_engine::engine().load(path));
  }
  static void TearDownTestSuite() { loaded().reset(); }
  void SetUp() override {
    if (!loaded()) {
      GTEST_SKIP() << "SmolLM2-135M-Instruct.Q4_1.gguf was not found (QUIPU_SMOLLM2_GGUF)";
    }
  }
  static std::optional<quipu::Model>& loaded() {
    static std::optional<quipu::Model> one;
    return one;
  }
  static const quipu::Model& model() { return *loaded(); }

  static quipu::Session session(ActivationMode activations) {
    quipu::SessionOptions options;
    options.capacity = 128;
    options.chunk = 128;
    options.activations = activations;
    return quipu::Session(model(), options);
  }

  /// How far our logits are from the recorded ones when the same tokens are given: `tokens`, and
  /// the steps' logits are those of the last tokens, one each.
  static Apart distance(ActivationMode activations, const std::vector<TokenId>& tokens,
                        const std::vector<Step>& steps) {
    quipu::Session s = session(activations);
    const std::size_t vocabulary = model().architecture().vocab_size;
    std::vector<float> logits(tokens.size() * vocabulary);
    const quipu::Feed feed{0, tokens, std::nullopt};
    s.forward({&feed, 1}, quipu::LogitsWanted::all, logits);
    Apart apart;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const float* row = logits.data() + (tokens.size() - steps.size() + i) * vocabulary;
      for (std::size_t c = 0; c < steps[i].ids.size(); ++c) {
        apart.add(static_cast<double>(row[steps[i].ids[c]]), steps[i].logits[c]);
      }
    }
    return apart;
  }
};

TEST_F(SmolLm2, IsChosenAndCountedByItsOwnFile) {
  EXPECT_EQ(model().name(), "smollm2_135m");
  EXPECT_EQ(model().parameters(), 134'515'008u);
  EXPECT_EQ(model().tokenizer().size(), 49'152u);
}

class SmolLm2Mode : public SmolLm2, public ::testing::WithParamInterface<ActivationMode> {
 protected:
  static bool exact() { return GetParam() == ActivationMode::f32; }
  /// How far one of our logits may be from the exact one. Float32: logits reach 30, so one unit in
  /// the last place is 2e-6, and the sums of 30 layers leave some 20 of those (found: 5e-5). int8:
  /// the tail of errors whose rms is llama.cpp's (found: up to 6 times it).
  static double own_error(std::span<const Step> theirs) {
    return exact() ? 2e-4 : 8 * rounding_of(theirs).rms();
  }
};

TEST_P(SmolLm2Mode, GivesTheLogitsOfFloat64) {
  for (const Json& record : recorded("smollm2_float64.json")) {
    std::vector<TokenId> tokens = record.at("prompt");
    const std::vector<TokenId> fed = record.at("fed");
    tokens.insert(tokens.end(), fed.begin(), fed.end());
    const std::vector<Step> steps = steps_of(record, "llama_cpp");
    ASSERT_EQ(steps.size(), 32u);
    ASSERT_EQ(steps[0].ids.size(), 20u);
    const Apart ours = distance(GetParam(), tokens, steps), theirs = rounding_of(steps);
    EXPECT_LE(ours.largest, own_error(steps));
    // Rounded by llama.cpp's rule, to 127 levels per 32 inputs, but falling to other sides here and
    // there: errors of the same size (found: 1.03 and 1.05 times llama.cpp's).
    if (!exact()) {
      EXPECT_LE(ours.rms(), 1.25 * theirs.rms());
    }
    std::cout << "from float64: " << ours << "; llama.cpp: " << theirs << '\n';
  }
}

/// Ours and llama.cpp's logits are each within an error of the exact ones, so within the sum D of
/// both errors of each other; and where the likeliest token differs, two logits have moved towards
/// each other by at most D each, so llama.cpp chose by a gap of no more than 2 D. In int8, whose D
/// is only statistical, the four errors in that gap have one size r: 2 r together, and three times
/// that is allowed (found: 2.7 r).
TEST_P(SmolLm2Mode, ContinuesAsLlamaCpp) {
  std::size_t prompts = 0, same = 0;
  for (const Json& record : recorded("smollm2_llama_cpp.json")) {
    const std::vector<TokenId> prompt = record.at("prompt");
    const std::string text = record.at("text");
    quipu::EncodeOptions encode;
    encode.allowed_special = quipu::SpecialSet::all();
    EXPECT_EQ(model().tokenizer().encode(text, encode), prompt) << text;

    const std::vector<Step> steps = steps_of(record, "exact");
    ASSERT_EQ(steps.size(), 32u);
    std::vector<TokenId> tokens = prompt;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) tokens.push_back(steps[i].ids[0]);
    const Apart found = distance(GetParam(), tokens, steps);
    const double allowed = rounding_of(steps).largest + own_error(steps);
    EXPECT_LE(found.largest, allowed) << text;

    quipu::Session s = session(GetParam());
    quipu::GenerationSettings settings;
    settings.sampling.temperature = 0;
    settings.max_tokens = steps.size();
    quipu::Generator generator(s, settings);
    generator.feed(prompt);
    std::size_t step = 0;
    for (; step < steps.size(); ++step) {
      const std::optional<TokenId> token = generator.next();
      ASSERT_TRUE(token) << text;
      const Step& there = steps[step];
      if (*token == there.ids[0]) continue;
      const auto at = std::find(there.ids.begin(), there.ids.end(), *token);
      ASSERT_NE(at, there.ids.end()) << text << ": step " << step << " chose " << *token;
      const auto other = static_cast<std::size_t>(at - there.ids.begin());
      const double gap = there.logits[0] - there.logits[other];
      const double exact_gap = there.other[0] - there.other[other];
      const double close = exact() ? 2 * (rounding_of({&there, 1}).largest + own_error(steps))
                                   : 6 * rounding_of(steps).rms();
      EXPECT_LE(gap, close) << text << ": step " << step << " chose " << *token;
      // In float32 it is llama.cpp that parts: the exact logits choose as we do.
      if (exact()) {
        EXPECT_LE(exact_gap, 2 * own_error(steps)) << text << ": step " << step;
      }
      std::cout << "parts at step " << step << ": gap " << gap << " (close: " << close
                << "), of exact logits " << exact_gap << '\n';
      break;
    }
    std::cout << "equal for " << step << " steps; from llama.cpp: " << found << " (allowed "
              << allowed << ")\n";
    ++prompts;
    same += step;
  }
  EXPECT_EQ(prompts, 5u);
  // Few steps are close (found: 98 steps equal in float32, 88 in int8): parting early in most
  // prompts would be a fault.
  EXPECT_GE(same, 60u);
}

INSTANTIATE_TEST_SUITE_P(Activations, SmolLm2Mode,
                         ::testing::Values(ActivationMode::f32, ActivationMode::int8),
                         [](const auto& mode) {
                           return mode.param == ActivationMode::f32 ? "f32" : "int8";
                         });

}  // namespace
}  // namespace quipu_test
