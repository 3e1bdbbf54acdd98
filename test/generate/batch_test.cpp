// Batches against the reference's runs in golden/generation, for both of its loops, and against
// each sequence alone.
#include "quipu/generate/batch.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "quipu/generate/generator.hpp"
#include "support/compare.hpp"
#include "tiny_session.hpp"

namespace quipu_test {
namespace {

using nlohmann::json;
using quipu::BatchGenerator;
using quipu::BatchSettings;
using quipu::FinishReason;
using quipu::Session;
using quipu::TokenId;

using Prompts = std::vector<std::vector<TokenId>>;

// Log-probabilities: logits of at most 6 with errors of 1e-6 (scalar_forward_test.cpp) and a
// rounding of float32 at 7.
constexpr double score_tolerance = 1e-5;

BatchSettings settings_of(const json& run) {
  BatchSettings settings;
  settings.max_tokens = run["max_gen_len"].get<std::size_t>();
  settings.stop_ids = run["stop_tokens"].get<std::vector<TokenId>>();
  settings.log_probabilities = run["logprobs"];
  settings.echo = run["echo"];
  settings.pad_id = run["pad_id"];
  settings.reference_unshifted_scores = true;
  return settings;
}

Session session_of(const quipu::Model& model, const json& run) {
  quipu::SessionOptions options;
  options.batch = run["prompts"].size();
  options.capacity = run["max_seq_len"];
  options.chunk = 7;
  return Session(model, options);
}

std::vector<json> golden_runs(const std::string& api) {
  std::ifstream file(find_golden("generation/generate_T1.json"));
  std::vector<json> runs;
  for (const json& run : json::parse(file)) {
    if (run["api"] == api) runs.push_back(run);
  }
  return runs;
}

/// Passes of the model and tokens computed.
struct Work {
  std::size_t passes = 0, tokens = 0;
  explicit Work(Session& session) {
    quipu::TraceHook hook;
    hook.context = this;
    hook.wants = [](void*, std::string_view id) { return id == "tok_embeddings"; };
    hook.call = [](void* context, const quipu::TracedTensor& tensor) {
      ++static_cast<Work*>(context)->passes;
      static_cast<Work*>(context)->tokens += tensor.elements() / 64;
    };
    session.set_trace(hook);
  }
  Work(const Work&) = delete;
};

TEST(Batch, GivesWhatTheReferenceDoes) {
  const quipu::Model model = load_tiny();
  const std::vector<json> runs = golden_runs("llama3");
  ASSERT_GE(runs.size(), 15u);
  for (const json& run : runs) {
    for (const bool lock_step : {false, true}) {
      const std::string name = run["name"].get<std::string>() + (lock_step ? ", in lock step" : "");
      Session session = session_of(model, run);
      const Work work(session);
      BatchSettings settings = settings_of(run);
      settings.lock_step = lock_step;
      const auto results = quipu::generate_batch(session, run["prompts"].get<Prompts>(), settings);
      ASSERT_EQ(results.size(), run["out_tokens"].size()) << name;
      for (std::size_t row = 0; row < results.size(); ++row) {
        EXPECT_EQ(json(results[row].tokens), run["out_tokens"][row]) << name;
        if (run["out_logprobs"].is_null()) continue;
        EXPECT_TRUE(close(name, results[row].log_probabilities,
                          run["out_logprobs"][row].get<std::vector<float>>(),
                          {.max_abs = score_tolerance}));
      }
      // The reference computes every row at every call.
      std::size_t reference = 0;
      for (const json& call : run["forward_calls_start_len"]) {
        reference += call[1].get<std::size_t>() * results.size();
      }
      EXPECT_LE(work.tokens, reference) << name;
    }
  }
}

TEST(Batch, YieldsInLockStepWhatTheReferenceDoes) {
  const quipu::Model model = load_tiny();
  const std::vector<json> runs = golden_runs("llama-models");
  ASSERT_GE(runs.size(), 7u);
  for (const json& run : runs) {
    const std::string name = run["name"];
    Session session = session_of(model, run);
    BatchSettings settings = settings_of(run);
    settings.lock_step = true;
    if (settings.max_tokens == 0u) settings.max_tokens.reset();  // the reference's "no limit"
    BatchGenerator generator(session, settings);
    generator.feed(run["prompts"].get<Prompts>());
    std::size_t step = 0;
    for (auto now = generator.next(); !now.empty(); now = generator.next(), ++step) {
      ASSERT_LT(step, run["events"].size()) << name;
      const json& expected = run["events"][step];
      ASSERT_EQ(now.size(), expected.size()) << name;
      for (std::size_t row = 0; row < now.size(); ++row) {
        const json& event = expected[row];
        const std::string where = name + ", step " + std::to_string(step);
        EXPECT_EQ(now[row].row, event["batch_idx"]) << where;
        EXPECT_EQ(now[row].token, event["token"]) << where;
        EXPECT_EQ(now[row].input, event["source"] == "input") << where;
        EXPECT_EQ(now[row].ignore, event["ignore_token"]) << where;
        EXPECT_EQ(now[row].finished, event["finished"]) << where;
        if (event["logprobs"].is_null()) continue;
        EXPECT_NEAR(now[row].log_probability, event["logprobs"][0].get<float>(), score_tolerance)
            << where;
      }
    }
    EXPECT_EQ(step, run["events"].size()) << name;
    EXPECT_TRUE(generator.next().empty()) << "ended for good";
  }
}

Prompts ragged() {
  Prompts prompts;
  for (const std::size_t length : {1u, 50u, 7u, 16u, 33u, 2u}) {
    prompts.push_back(some_tokens(length, length));
  }
  return prompts;
}

TEST(Batch, OfSixPromptsIsEachAlone) {
  const quipu::Model model = load_tiny();
  const Prompts prompts = ragged();
  for (const float temperature : {0.0f, 0.9f}) {
    BatchSettings settings;
    settings.sampling = {.temperature = temperature, .top_k = 50, .top_p = 0.95f, .seed = 4};
    settings.max_tokens = 24;
    settings.stop_ids.resize(40);  // ids 0 to 39: some rows meet one, some do not
    std::iota(settings.stop_ids.begin(), settings.stop_ids.end(), 0);
    settings.log_probabilities = true;
    quipu::SessionOptions options{.batch = 6, .capacity = 100};
    Session together(model, options);
    const auto results = quipu::generate_batch(together, prompts, settings);
    Session alone(model, options);
    std::size_t stopped = 0;
    for (std::size_t row = 0; row < prompts.size(); ++row) {
      quipu::Generator one(
          alone, {.sampling = settings.sampling, .max_tokens = 24, .stop_ids = settings.stop_ids},
          row);
      one.feed(prompts[row]);
      std::vector<TokenId> tokens;
      std::vector<float> scores;
      while (const auto token = one.next()) {
        tokens.push_back(*token);
        scores.push_back(quipu::log_probability(one.logits(), *token));
      }
      EXPECT_EQ(results[row].tokens, tokens) << "row " << row;
      EXPECT_TRUE(same_bits("scores", results[row].log_probabilities, scores)) << "row " << row;
      EXPECT_EQ(results[row].finish, one.finish_reason()) << "row " << row;
      stopped += results[row].finish == FinishReason::stop_token;
    }
    EXPECT_GT(stopped, 0u);
    EXPECT_LT(stopped, 6u);
  }
}

TEST(Batch, ComputesNoPaddingAndNoEndedRow) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 2, .capacity = 64});
  const Work work(session);
  const Prompts prompts = {some_tokens(3, 1), some_tokens(20, 2)};
  BatchSettings settings;
  settings.max_tokens = 5;
  quipu::generate_batch(session, prompts, settings);
  EXPECT_EQ(work.passes, 1u + 4u);  // the last token chosen is never computed
  EXPECT_EQ(work.tokens, 23u + 2 * 4u);
}

TEST(Batch, EndsByCapacityByCountAndByCancelling) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 2, .capacity = 16});
  BatchSettings settings;
  settings.max_tokens = 26;  // ten more than the capacity
  const auto full =
      quipu::generate_batch(session, Prompts{{1, 2, 3}, some_tokens(16, 5)}, settings);
  EXPECT_EQ(full[0].tokens.size(), 13u);
  EXPECT_EQ(full[0].finish, FinishReason::capacity);
  EXPECT_EQ(full[1].tokens.size(), 0u);
  EXPECT_EQ(full[1].finish, FinishReason::capacity);
  settings.max_tokens = 4;
  const auto few = quipu::generate_batch(session, Prompts{{1, 2, 3}}, settings);
  EXPECT_EQ(few[0].finish, FinishReason::max_tokens);
  EXPECT_TRUE(std::equal(few[0].tokens.begin(), few[0].tokens.end(), full[0].tokens.begin()));

  // Both ends at once: the one asked for, as Generator has it.
  settings.max_tokens = 13;
  EXPECT_EQ(quipu::generate_batch(session, Prompts{{1, 2, 3}}, settings)[0].finish,
            FinishReason::max_tokens);
  Session single(model, {.capacity = 16});
  quipu::Generator one(single, {.max_tokens = 13});
  one.feed(std::vector<TokenId>{1, 2, 3});
  while (one.next()) {
  }
  EXPECT_EQ(one.finish_reason(), FinishReason::max_tokens);

  BatchGenerator generator(session, settings);
  generator.cancel();
  generator.feed(Prompts{{1, 2, 3}, {4}});
  EXPECT_TRUE(generator.next().empty());
  EXPECT_EQ(generator.results()[0].finish, FinishReason::cancelled);
  generator.feed(Prompts{{1, 2, 3}, {4}});
  EXPECT_EQ(generator.next().size(), 2u);
  std::thread([&] { generator.cancel(); }).join();
  EXPECT_TRUE(generator.next().empty());
  EXPECT_TRUE(generator.next().empty());
  EXPECT_EQ(generator.results()[1].finish, FinishReason::cancelled);
  EXPECT_EQ(generator.results()[1].tokens.size(), 1u);
}

TEST(Batch, ScoresAPromptShiftedUnlessParityIsAskedFor) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 1, .capacity = 130});
  const Prompts prompt = {some_tokens(130, 3)};
  BatchSettings settings;
  settings.max_tokens = 0;
  settings.log_probabilities = settings.echo = true;
  const auto scored = quipu::generate_batch(session, prompt, settings)[0].log_probabilities;
  // The same from single logits; 130 positions are three slices of scoring.
  std::vector<float> expected = {0};
  session.truncate(0, 0);
  for (std::size_t i = 0; i + 1 < 130; ++i) {
    const auto logits = session.forward(std::span(prompt[0]).subspan(i, 1));
    expected.push_back(quipu::log_probability(logits, prompt[0][i + 1]));
  }
  EXPECT_TRUE(same_bits("scores", scored, expected));
}

TEST(Batch, TakesAHookForEachRow) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 2, .capacity = 16});
  BatchSettings settings;
  settings.max_tokens = 3;
  BatchGenerator generator(session, settings);
  generator.feed(Prompts{{1, 2}, {3}});
  generator.sampler(1).set_hook(quipu::allow_tokens({42}));
  while (!generator.next().empty()) {
  }
  EXPECT_EQ(generator.results()[1].tokens, (std::vector<TokenId>{42, 42, 42}));
  EXPECT_NE(generator.results()[0].tokens, (std::vector<TokenId>{42, 42, 42}));
}

// llama-models' pad id is an id of the vocabulary: a prompt's token of this id is not yet known.
TEST(Batch, ChoosesAtAPadIdInsideAPromptInLockStep) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 2, .capacity = 32});
  BatchSettings settings;
  settings.max_tokens = 2;
  settings.pad_id = 9;
  settings.lock_step = settings.echo = true;
  const Prompts prompts = {{1, 9, 2}, {5, 6, 7, 8, 9, 10}};
  const auto results = quipu::generate_batch(session, prompts, settings);
  Session alone(model, {.capacity = 32});
  const auto fifth = quipu::argmax(alone.forward(std::span(prompts[1]).first(4)));
  ASSERT_EQ(results[1].tokens.size(), 8u);
  EXPECT_EQ(results[1].tokens[4], fifth);
  EXPECT_NE(fifth, 9);
  EXPECT_EQ(results[1].tokens[5], 10);
  EXPECT_EQ(results[0].tokens[1], 9) << "before the end of the shortest prompt it is fed as it is";
}

TEST(Batch, RefusesPromptsThatItCannotTake) {
  const quipu::Model model = load_tiny();
  Session session(model, {.batch = 2, .capacity = 8});
  BatchGenerator generator(session, {});
  const auto refused = [&](const Prompts& prompts) {
    return message_of<quipu::ArgumentError>([&] { generator.feed(prompts); });
  };
  EXPECT_EQ(refused({}), "prompts: expected 1 to 2 (the batch of the session), found 0");
  EXPECT_EQ(refused({{1}, {1}, {1}}),
            "prompts: expected 1 to 2 (the batch of the session), found 3");
  EXPECT_EQ(refused({{1}, {}}),
            "prompt 1: expected 1 to 8 tokens (the capacity of the session), found 0");
  EXPECT_EQ(refused({some_tokens(9, 1)}),
            "prompt 0: expected 1 to 8 tokens (the capacity of the session), found 9");
  EXPECT_EQ(refused({{1, 512}}), "prompt 0: expected tokens from 0 to 512 (exclusive), found 512");
  BatchSettings settings;
  settings.sampling.top_p = 2;
  EXPECT_THROW(BatchGenerator(session, settings), quipu::ArgumentError);
}

}  // namespace
}  // namespace quipu_test
