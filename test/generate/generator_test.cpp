// The generator: stepped, streamed, cancelled, rolled back, fed again; why it ends; what a seed
// fixes; and stop strings in text that comes in pieces.
#include "quipu/generate/generator.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include "quipu/generate/stop_text.hpp"
#include "support/compare.hpp"
#include "tiny_session.hpp"

namespace quipu_test {
namespace {

using quipu::FinishReason;
using quipu::GenerationSettings;
using quipu::Generator;
using quipu::Session;
using quipu::TokenId;
using Tokens = std::vector<TokenId>;

const quipu::SamplingSettings warm{.temperature = 0.9f, .top_k = 60, .top_p = 0.95f, .seed = 21};

Tokens all_of(Generator& generator) {
  Tokens tokens;
  while (const auto token = generator.next()) tokens.push_back(*token);
  return tokens;
}

Tokens generate(Session& session, const GenerationSettings& settings, const Tokens& prompt) {
  Generator generator(session, settings);
  generator.feed(prompt);
  return all_of(generator);
}

TEST(Generator, StepsThroughWhatTheLogitsSay) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64}), plain(model, {.capacity = 64});
  const Tokens prompt = some_tokens(9, 1);
  Generator generator(session, {.max_tokens = 10});
  generator.feed(prompt);
  std::vector<float> logits = plain.forward(prompt);
  for (int i = 0; i < 10; ++i) {
    const TokenId expected = quipu::argmax(logits);
    ASSERT_EQ(generator.next(), expected);
    EXPECT_TRUE(same_bits("logits", generator.logits(), logits));
    logits = plain.forward(std::span(&expected, 1));
  }
  EXPECT_EQ(generator.finish_reason(), FinishReason::not_finished);
  EXPECT_EQ(generator.next(), std::nullopt);
  EXPECT_EQ(generator.next(), std::nullopt);
  EXPECT_EQ(generator.finish_reason(), FinishReason::max_tokens);
  EXPECT_EQ(generator.generated(), 10u);
  EXPECT_EQ(generator.tokens().size(), 19u);
  EXPECT_EQ(session.length(), 18u) << "the last token is not computed before it is needed";
}

TEST(Generator, EndsAtTheCapacityWithThatReason) {
  const quipu::Model model = load_tiny();
  for (std::size_t capacity = 15; capacity <= 18; ++capacity) {  // around a block of keys
    Session session(model, {.capacity = capacity});
    for (const std::size_t prompt : {std::size_t{1}, capacity - 1, capacity}) {
      Generator generator(session, {.max_tokens = capacity + 10});
      generator.feed(some_tokens(prompt, 2));
      EXPECT_EQ(all_of(generator).size(), capacity - prompt);
      EXPECT_EQ(generator.finish_reason(), FinishReason::capacity);
      EXPECT_EQ(generator.tokens().size(), capacity);
    }
    Generator generator(session, {});
    EXPECT_NE(message_of<quipu::ArgumentError>([&] {
                generator.feed(some_tokens(capacity + 1, 2));
              }).find(std::to_string(capacity + 1) + " tokens from position 0 on do not fit"),
              std::string::npos);
    EXPECT_TRUE(generator.tokens().empty());
  }
}

TEST(Generator, EndsAtAStopTokenAndNamesIt) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64});
  const Tokens prompt = some_tokens(5, 3);
  const Tokens free = generate(session, {.max_tokens = 20}, prompt);
  const TokenId stop = free[4];
  const auto first = std::find(free.begin(), free.end(), stop);
  Generator generator(session, {.max_tokens = 20, .stop_ids = {-5, stop}});
  generator.feed(prompt);
  EXPECT_EQ(all_of(generator), Tokens(free.begin(), first));
  EXPECT_EQ(generator.finish_reason(), FinishReason::stop_token);
  EXPECT_EQ(generator.stop_token(), stop);
  generator.roll_back(prompt.size());
  EXPECT_EQ(generator.stop_token(), std::nullopt);
}

TEST(Generator, IsFixedByItsSeed) {
  const quipu::Model model = load_tiny(2), serial = load_tiny(1);
  Session a(model, {.capacity = 64}), b(serial, {.capacity = 64, .chunk = 2});
  const Tokens prompt = some_tokens(7, 4);
  GenerationSettings settings{.sampling = warm, .max_tokens = 30};
  const Tokens tokens = generate(a, settings, prompt);
  EXPECT_EQ(generate(b, settings, prompt), tokens) << "threads and chunks change nothing";
  EXPECT_EQ(generate(a, settings, prompt), tokens) << "a row is emptied for a new generator";
  settings.sampling.seed = 22;
  EXPECT_NE(generate(a, settings, prompt), tokens);
}

TEST(Generator, TakesTemperaturesFromNoneToExtreme) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64});
  const Tokens prompt = some_tokens(7, 4);
  const auto at = [&](float temperature, std::uint64_t seed) {
    return generate(session,
                    {.sampling = {.temperature = temperature, .seed = seed}, .max_tokens = 12},
                    prompt);
  };
  const Tokens greedy = at(0, 1);
  for (const float temperature : {1e-45f, 1e-9f, 1e-6f}) EXPECT_EQ(at(temperature, 7), greedy);
  for (const float temperature : {1.0f, 100.0f, (std::numeric_limits<float>::max)()}) {
    const Tokens tokens = at(temperature, 7);
    EXPECT_EQ(tokens.size(), 12u);
    EXPECT_NE(tokens, greedy);
    EXPECT_NE(tokens, at(temperature, 8));
  }
  EXPECT_THROW(at(-1, 7), quipu::ArgumentError);
  EXPECT_THROW(at(std::numeric_limits<float>::quiet_NaN(), 7), quipu::ArgumentError);
}

TEST(Generator, RollsBackAndDrawsAnew) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64});
  const Tokens prompt = some_tokens(7, 5);
  Generator generator(session, {.sampling = warm, .max_tokens = 20});
  generator.feed(prompt);
  const Tokens first = all_of(generator);
  const std::uint64_t drawn = generator.sampler().random().drawn();
  EXPECT_EQ(drawn, 20u);

  generator.roll_back(prompt.size() + 8);
  EXPECT_EQ(generator.generated(), 8u);
  const Tokens other = all_of(generator);
  EXPECT_EQ(other.size(), 12u);
  EXPECT_NE(other, Tokens(first.begin() + 8, first.end())) << "other draws";

  generator.roll_back(prompt.size() + 8);
  generator.sampler().random().rewind_to(8);
  EXPECT_EQ(all_of(generator), Tokens(first.begin() + 8, first.end())) << "the same draws";

  // Into the prompt, and to its first token: as if fed only so far.
  for (const std::size_t kept : {3u, 1u}) {
    generator.roll_back(kept);
    generator.sampler().random().rewind_to(0);
    Session fresh(model, {.capacity = 64});
    EXPECT_EQ(all_of(generator), generate(fresh, {.sampling = warm, .max_tokens = 20},
                                          Tokens(prompt.begin(), prompt.begin() + int(kept))));
  }
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { generator.roll_back(0); }),
            "roll back: there are 21 tokens, asked to keep 0");
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { generator.roll_back(22); }),
            "roll back: there are 21 tokens, asked to keep 22");
}

TEST(Generator, IsFedTheNextTurnOfADialog) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64, .chunk = 4}), whole(model, {.capacity = 64});
  Generator generator(session, {.max_tokens = 6});
  generator.feed(some_tokens(5, 6));
  all_of(generator);
  const Tokens second = some_tokens(9, 7);
  generator.feed(second);
  EXPECT_EQ(generator.generated(), 0u);
  // The same as the whole dialog fed at once.
  const Tokens dialog(generator.tokens().begin(), generator.tokens().end());
  EXPECT_EQ(dialog.size(), 5u + 6 + 9);
  EXPECT_TRUE(same_bits("logits", generator.logits(), whole.forward(dialog)));
  EXPECT_EQ(all_of(generator), generate(whole, {.max_tokens = 6}, dialog));
  // What does not fit changes nothing.
  const std::size_t before = generator.tokens().size();
  EXPECT_THROW(generator.feed(some_tokens(60, 8)), quipu::ArgumentError);
  EXPECT_THROW(generator.feed(Tokens{1, 512}), quipu::ArgumentError);
  EXPECT_EQ(generator.tokens().size(), before);
  EXPECT_EQ(session.length(), before - 1);
}

TEST(Generator, IsCancelledFromAnotherThreadAndGoesOn) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 4096});
  Generator generator(session, {});
  generator.feed(some_tokens(3, 9));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    generator.cancel();
  });
  const Tokens tokens = all_of(generator);
  other.join();
  EXPECT_EQ(generator.finish_reason(), FinishReason::cancelled);
  EXPECT_EQ(generator.generated(), tokens.size());
  const std::size_t length = generator.tokens().size();
  generator.feed(some_tokens(2, 10));
  EXPECT_TRUE(generator.next().has_value());
  EXPECT_EQ(generator.tokens().size(), length + 3);
}

TEST(Generator, IsCancelledWhileALongPromptIsComputed) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64, .chunk = 8});
  Generator generator(session, {.max_tokens = 3});
  const Tokens prompt = some_tokens(60, 11);
  std::size_t computed = 0;
  generator.feed(prompt, [&](std::string_view, std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 60u);
    computed = done;
    if (done >= 16) generator.cancel();
  });
  EXPECT_EQ(computed, 16u);
  EXPECT_EQ(generator.finish_reason(), FinishReason::cancelled);
  EXPECT_EQ(generator.next(), std::nullopt);
  EXPECT_TRUE(generator.tokens().empty());
  EXPECT_EQ(session.length(), 0u);
  generator.feed(prompt);
  Session fresh(model, {.capacity = 64});
  EXPECT_EQ(all_of(generator), generate(fresh, {.max_tokens = 3}, prompt));
}

// One worker that counts its tasks and makes a call before one of them.
struct Counting {
  std::size_t calls = 0, at = 0;
  std::function<void()> then;
  std::size_t concurrency() const { return 1; }
  void run(std::size_t tasks, quipu::TaskRef task) {
    for (std::size_t i = 0; i < tasks; ++i) {
      if (++calls == at) then();
      task(i, 0);
    }
  }
};

TEST(Generator, IsCancelledInTheMiddleOfAPass) {
  Counting worker;
  quipu::LoadOptions options;
  options.executor = worker;
  const quipu::Model model = test_engine::engine().load(find_golden("models/T1/hf-f32"), options);
  const Tokens prompt = some_tokens(60, 11);
  Session fresh(model, {.capacity = 64}), session(model, {.capacity = 64});
  worker.calls = 0;
  const Tokens expected = generate(fresh, {.max_tokens = 3}, prompt);
  const std::size_t whole = worker.calls;  // of a prompt in one pass and two tokens

  Generator generator(session, {.max_tokens = 3});
  worker = {.at = 3, .then = [&] { generator.cancel(); }};
  generator.feed(prompt);
  EXPECT_EQ(generator.finish_reason(), FinishReason::cancelled);
  EXPECT_TRUE(generator.tokens().empty());
  EXPECT_EQ(session.length(), 0u);
  EXPECT_LT(worker.calls, whole / 4) << "the region's other tasks are handed out, and do nothing";

  generator.feed(prompt);
  const Tokens first{generator.next().value()};
  worker = {.at = 3, .then = [&] { generator.cancel(); }};
  EXPECT_EQ(generator.next(), std::nullopt);
  EXPECT_EQ(generator.finish_reason(), FinishReason::cancelled);
  EXPECT_EQ(generator.tokens().size(), 61u);
  generator.roll_back(61);  // goes on where it was cancelled
  EXPECT_EQ(first.front(), expected[0]);
  EXPECT_EQ(generator.next(), expected[1]);
  EXPECT_EQ(generator.next(), expected[2]);
}

TEST(Generator, ACancelBeforeTheWorkHoldsForTheNextCallAndNoOther) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 64});
  Generator generator(session, {.max_tokens = 3});
  generator.cancel();
  generator.feed(some_tokens(4, 12));
  EXPECT_EQ(generator.finish_reason(), FinishReason::cancelled);
  EXPECT_EQ(session.length(), 0u);
  generator.feed(some_tokens(4, 12));
  EXPECT_EQ(all_of(generator).size(), 3u);
  EXPECT_EQ(generator.finish_reason(), FinishReason::max_tokens);
}

TEST(Generator, AsksAHookAndChoosesAgainAfterAnError) {
  const quipu::Model model = load_tiny();
  Session session(model, {.capacity = 16}), plain(model, {.capacity = 16});
  Generator generator(session, {.max_tokens = 2});
  EXPECT_THROW(generator.next(), quipu::ArgumentError) << "nothing was fed";
  generator.feed(Tokens{1, 2, 3});
  generator.sampler().set_hook(quipu::allow_tokens({}));
  EXPECT_THROW(generator.next(), quipu::LogitsError);
  generator.sampler().set_hook(quipu::allow_tokens({77}));
  EXPECT_EQ(generator.next(), 77);
  generator.sampler().set_hook({});
  EXPECT_EQ(generator.next(), quipu::argmax(plain.forward(Tokens{1, 2, 3, 77})));
}

TEST(StopText, EndsBeforeAStopStringHoweverTheTextIsCut) {
  const std::string text = "One, two.\n\nUser: three";
  const std::vector<std::string> strings = {"\n\nUser:", "User", "##"};
  for (std::size_t size = 1; size <= text.size(); ++size) {
    quipu::StopText stop(strings);
    std::string shown;
    for (std::size_t at = 0; at < text.size(); at += size)
      shown += stop.push(text.substr(at, size));
    EXPECT_TRUE(stop.stopped());
    EXPECT_EQ(shown + stop.flush(), "One, two.\n\n")
        << "\"User\" is complete first; cut by " << size;
  }
}

TEST(StopText, HoldsBackNoMoreThanMayBeginOne) {
  quipu::StopText stop({"abcd", "bcx"});
  EXPECT_EQ(stop.push("xyz"), "xyz");
  EXPECT_EQ(stop.push("ab"), "");
  EXPECT_EQ(stop.push("c"), "");
  EXPECT_EQ(stop.push("e"), "abce");
  EXPECT_EQ(stop.push("zab"), "z");
  EXPECT_EQ(stop.push("ab"), "ab");
  EXPECT_EQ(stop.push("cx"), "a");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.flush(), "");
  quipu::StopText tail({"end"});
  EXPECT_EQ(tail.push("the en"), "the ");
  EXPECT_EQ(tail.flush(), "en");
  quipu::StopText none;
  EXPECT_EQ(none.push("all"), "all");
  EXPECT_THROW(quipu::StopText({"a", ""}), quipu::ArgumentError);
}

}  // namespace
}  // namespace quipu_test
