// A model run by several ranks in one process: what may be asked for, what a session of one is, and
// that a failure in one rank ends a pass for all. (Numbers: golden_test.cpp, contract_test.cpp.)
#include <gtest/gtest.h>

#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/session.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

using quipu::Feed;
using quipu::LogitsWanted;
using quipu::TokenId;

quipu::Model load(const std::string& model, std::size_t ranks, std::size_t threads = 2,
                  bool pack = true) {
  quipu::LoadOptions options;
  options.threads = threads;
  options.ranks = ranks;
  options.pack = pack;
  return test_engine::engine().load(find_golden("models/" + model + "/hf-f32"), options);
}

const std::vector<TokenId> text{5, 17, 3, 99, 0, 127, 64, 31, 2};

TEST(Ranks, ANumberThatWillNotDoIsRefusedWithThoseThatWould) {
  using quipu::ArgumentError;
  EXPECT_EQ(message_of<ArgumentError>([] { load("T1", 3); }),
            "ranks: T1 cannot be cut for 3 ranks; it can for: 1, 2");
  EXPECT_EQ(message_of<ArgumentError>([] { load("T1", 0); }),
            "ranks: T1 cannot be cut for 0 ranks; it can for: 1, 2");
  // smollm2_135m has 3 kv heads; an engine without RANKS has 1 only.
  quipu::ModelEntry entry = test_engine::engine().models()[6];
  EXPECT_EQ(entry.name, "smollm2_135m");
  EXPECT_EQ(quipu::choose_ranks(entry, 3).architecture.n_heads, 3u);
  entry.rank_entries = {};
  EXPECT_EQ(message_of<ArgumentError>([&] { quipu::choose_ranks(entry, 3); }),
            "ranks: smollm2_135m is not compiled in for 3 ranks, but for: 1; RANKS 3 in "
            "quipu_add_engine adds it");
  EXPECT_EQ(quipu::choose_ranks(entry, 1).architecture, entry.architecture);
}

TEST(Ranks, EachHasItsPartAndAllTogetherTheWhole) {
  const quipu::Model one = load("T3", 1), four = load("T3", 4);
  EXPECT_EQ(four.ranks(), 4u);
  EXPECT_EQ(four.local_ranks(), 4u);
  EXPECT_EQ(four.part().n_heads, 1u);
  EXPECT_EQ(four.part().vocab_size, 64u);
  EXPECT_EQ(four.architecture(), one.architecture());
  EXPECT_EQ(four.weights().weight_bytes, one.weights().weight_bytes);
  quipu::Session a(one, {.capacity = 32}), b(four, {.capacity = 32});
  EXPECT_EQ(a.cache_bytes(), b.cache_bytes());
  const auto expected = a.forward(text), actual = b.forward(text);
  // Other orders of the sums of wo and w2, as in golden_test.cpp.
  EXPECT_TRUE(close("4 ranks", actual, expected, {.rel_rms = 3e-6}));
  EXPECT_FALSE(same_bits("4 ranks", actual, expected)) << "the ranks have not added up anything";
}

TEST(Ranks, ThreadsAndPackingDoNotChangeABit) {
  quipu::Session a(load("T1", 2, 1), {.capacity = 32}), b(load("T1", 2, 5), {.capacity = 32}),
      c(load("T1", 2, 2, false), {.capacity = 32});
  const auto expected = a.forward(text);
  EXPECT_TRUE(same_bits("5 threads", b.forward(text), expected));
  EXPECT_TRUE(same_bits("in place", c.forward(text), expected));
}

TEST(Ranks, ASavedSessionContinuesBitEqualAndOnlyAtItsNumberOfRanks) {
  const quipu::Model two = load("T1", 2);
  for (const quipu::ElementType cache : {quipu::ElementType::f32, quipu::ElementType::bf16}) {
    quipu::Session session(two, {.capacity = 64, .cache = cache});
    const std::vector<TokenId> longer(21, 7);  // more than one block of keys
    session.forward(longer);
    const auto saved = session.save();
    const auto expected = session.forward(text);
    quipu::Session other(load("T1", 2, 4), {.batch = 2, .capacity = 33, .cache = cache});
    other.restore(saved, 1);
    EXPECT_EQ(other.save(1), saved);
    EXPECT_TRUE(same_bits("continued", other.forward(text, 1), expected));

    quipu::Session one(load("T1", 1), {.capacity = 64, .cache = cache});
    EXPECT_EQ(message_of<quipu::MismatchError>([&] { one.restore(saved, 0, "talk"); }),
              "talk: ranks: it was saved with 2, here is 1");
    one.forward(longer);
    const auto whole = one.save();
    EXPECT_EQ(message_of<quipu::MismatchError>([&] { session.restore(whole, 0, "talk"); }),
              "talk: ranks: it was saved with 1, here is 2");
  }
}

TEST(Ranks, AFailureInAHookEndsThePassAndTheSessionGoesOn) {
  quipu::Session session(load("T1", 2), {.capacity = 32}), fresh(load("T1", 2), {.capacity = 32});
  const auto expected = fresh.forward(text);
  quipu::TraceHook hook;
  hook.call = [](void*, const quipu::TracedTensor& tensor) {
    if (tensor.id == "layers.1.attention.xk_rope") quipu::raise<quipu::FileError>("disk full");
  };
  session.set_trace(hook);
  EXPECT_EQ(message_of<quipu::FileError>([&] { session.forward(text); }), "disk full");
  EXPECT_EQ(session.length(), 0u);
  session.set_trace({});
  EXPECT_TRUE(same_bits("after the failure", session.forward(text), expected));
}

TEST(Ranks, ATraceAsksTheHookOfRankZeroOnly) {
  struct Seen {
    std::vector<std::string> asked, told;
    std::thread::id thread = std::this_thread::get_id();
  } seen;
  quipu::TraceHook hook;
  hook.context = &seen;
  hook.wants = [](void* context, std::string_view id) {
    auto& s = *static_cast<Seen*>(context);
    EXPECT_EQ(std::this_thread::get_id(), s.thread);
    s.asked.emplace_back(id);
    return id == "layers.0.attention.probs" || id == "layers.1.feed_forward.act";
  };
  hook.call = [](void* context, const quipu::TracedTensor& tensor) {
    auto& s = *static_cast<Seen*>(context);
    EXPECT_EQ(std::this_thread::get_id(), s.thread);
    s.told.push_back(std::string(tensor.id) + " " + std::to_string(tensor.elements()));
  };
  quipu::Session session(load("T1", 2), {.capacity = 32});
  session.set_trace(hook);
  session.forward(text);
  // 4 heads x 9 x 9 and 9 x 224: whole tensors.
  EXPECT_EQ(seen.told, (std::vector<std::string>{"layers.0.attention.probs 324",
                                                 "layers.1.feed_forward.act 2016"}));
  EXPECT_GT(seen.asked.size(), 20u);
}

TEST(Ranks, AnExecutorOfTheCallersServesOneRankOnly) {
  quipu::SerialExecutor executor;
  quipu::LoadOptions options;
  options.executor = quipu::ExecutorRef(executor);
  options.ranks = 2;
  EXPECT_NE(message_of<quipu::ArgumentError>([&] {
              test_engine::engine().load(find_golden("models/T1/hf-f32"), options);
            }).find("executor: 2 ranks"),
            std::string::npos);
}

}  // namespace
}  // namespace quipu_test
