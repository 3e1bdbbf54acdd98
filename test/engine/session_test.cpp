// What a session refuses, and that it refuses before any work; its memory is what its plan says.
#include "quipu/engine/session.hpp"

#include <gtest/gtest.h>

#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"
#include "test_engine.hpp"
#include "tiny_models.hpp"

namespace quipu_test {
namespace {

using quipu::Feed;
using quipu::LogitsWanted;
using quipu::TokenId;

quipu::Model load() {
  quipu::LoadOptions options;
  options.threads = 2;
  return test_engine::engine().load(find_golden("models/T1/hf-f32"), options);
}

template <class F>
std::string refusal(F&& f) {
  return message_of<quipu::ArgumentError>(f);
}

TEST(Session, TheLastPositionWorksAndOnePastItIsRefusedBeforeAnyWork) {
  const quipu::Model model = load();
  quipu::SessionOptions options;
  options.capacity = 20;
  quipu::Session session(model, options), full(model, options);
  const std::vector<TokenId> text(20, 7);
  const auto expected = full.forward(text);
  session.forward(std::span(text).first(17));
  const std::string message = refusal([&] { session.forward(std::span(text).first(4)); });
  EXPECT_NE(message.find("4 tokens from position 17 on do not fit the capacity of 20"),
            message.npos)
      << message;
  EXPECT_EQ(session.length(), 17u);
  for (std::size_t i = 17; i < 19; ++i) session.forward(std::span(text).subspan(i, 1));
  EXPECT_TRUE(same_bits("last position", session.forward(std::span(text).last(1)), expected));
  EXPECT_NE(refusal([&] { session.forward(std::span(text).first(1)); }).find("capacity of 20"),
            std::string::npos);
}

TEST(Session, RefusesWhatItCannotCompute) {
  const quipu::Model model = load();
  quipu::Session session(model, {.batch = 2, .capacity = 8});
  std::vector<float> logits(2 * 512);
  const TokenId good[] = {1, 2}, negative[] = {1, -1}, large[] = {512};
  const auto forward = [&](std::vector<Feed> feeds) {
    return refusal([&] { session.forward(feeds, LogitsWanted::last, logits); });
  };
  EXPECT_NE(forward({{2, good, {}}}).find("row 2: the session has 2"), std::string::npos);
  EXPECT_NE(forward({{0, good, {}}, {0, good, {}}}).find("fed twice"), std::string::npos);
  EXPECT_NE(forward({{1, {}, {}}}).find("row 1: no tokens"), std::string::npos);
  EXPECT_NE(forward({{0, negative, {}}}).find("token 1 has the id -1"), std::string::npos);
  EXPECT_NE(forward({{0, large, {}}}).find("id 512, the vocabulary has 512"), std::string::npos);
  EXPECT_NE(forward({{0, good, 1}}).find("start position 1 is past the 0 positions"),
            std::string::npos);
  const Feed feed{0, good, {}};
  EXPECT_NE(refusal([&] {
              session.forward({&feed, 1}, LogitsWanted::all, std::span(logits).first(512));
            }).find("room for 512 values, needed 1024"),
            std::string::npos);
  EXPECT_EQ(session.length(0), 0u);
  EXPECT_NE(refusal([&] { session.truncate(0, 1); }).find("0 positions, asked to keep 1"),
            std::string::npos);
  EXPECT_NE(refusal([&] { quipu::Session(model, {.capacity = 0}); }).find("capacity"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              quipu::Session(model, {.cache = quipu::ElementType::q8_0});
            }).find("f32 or bf16"),
            std::string::npos);
  EXPECT_THROW(quipu::Session(model, {.capacity = std::size_t{1} << 62}), quipu::SizeError);
}

// The plan is a constant of (architecture, rows, capacity, workers).
using A = quipu::architecture_of<tiny::T1>;
constexpr quipu::ForwardPlan plan = quipu::forward_plan(quipu::architecture_facts<A>, 64, 100, 2);
static_assert(plan.stream.count == 64 * 64 && plan.gate.count == 64 * 224 &&
              plan.k.count == 64 * 32);

TEST(Session, AllocatesWhatThePlanSays) {
  const quipu::Model model = load();
  for (const quipu::ElementType cache : {quipu::ElementType::f32, quipu::ElementType::bf16}) {
    quipu::Session session(model, {.batch = 3, .capacity = 100, .chunk = 64, .cache = cache});
    EXPECT_EQ(session.scratch_bytes(), plan.arena.total());
    // 2 layers, 2 kv heads, 16 features; keys in whole blocks of 16 positions.
    const std::size_t element = cache == quipu::ElementType::f32 ? 4 : 2;
    EXPECT_EQ(session.cache_bytes(), 3 * 2 * 2 * (112 + 100) * 16 * element);
  }
}

TEST(Session, GapsHoldZerosIfAllowed) {
  const quipu::Model model = load();
  quipu::Session fresh(model, {.capacity = 64, .allow_gaps = true}),
      used(model, {.capacity = 64, .allow_gaps = true});
  const std::vector<TokenId> text(40, 3);
  used.forward(text);
  used.truncate(0, 2);
  fresh.forward(std::span(text).first(2));
  std::vector<float> a(512), b(512);
  const Feed feed{0, std::span(text).first(1), 30};
  fresh.forward({&feed, 1}, LogitsWanted::last, a);
  used.forward({&feed, 1}, LogitsWanted::last, b);
  EXPECT_TRUE(same_bits("after a gap", b, a));
}

TEST(Session, TwoSessionsAndTwoModelsSideBySide) {
  const quipu::Model model = load(), other = load();
  const std::vector<TokenId> text{1, 2, 3, 4, 5};
  quipu::Session alone(model, {.capacity = 16});
  const auto expected = alone.forward(text);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      quipu::Session session(i % 2 == 0 ? model : other, {.capacity = 16});
      for (int n = 0; n < 20; ++n) {
        session.truncate(0, 0);
        results[i] = session.forward(text);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& result : results) EXPECT_TRUE(same_bits("session", result, expected));
}

/// One worker that takes tasks in reverse order.
struct Backwards {
  static constexpr std::size_t concurrency() { return 1; }
  template <class F>
  void run(std::size_t tasks, F&& f) const {
    for (std::size_t i = tasks; i-- > 0;) f(i, std::size_t{0});
  }
};

TEST(Session, RunsOnAnExecutorOfTheCallers) {
  Backwards executor;
  quipu::LoadOptions options;
  options.executor = quipu::ExecutorRef(executor);
  const quipu::Model model = test_engine::engine().load(find_golden("models/T1/hf-f32"), options);
  const std::vector<TokenId> text{9, 8, 7};
  quipu::Session a(model, {.capacity = 8}), b(load(), {.capacity = 8});
  EXPECT_TRUE(same_bits("own executor", a.forward(text), b.forward(text)));
}

}  // namespace
}  // namespace quipu_test
