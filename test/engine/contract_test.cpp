// The numeric contract: logits have the same bits for any number of threads, for a sequence alone
// or in a batch, whole or in chunks, with cached or recomputed keys; at any fixed number of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quipu/engine/session.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

using quipu::Feed;
using quipu::LogitsWanted;
using quipu::TokenId;

struct Variant {
  quipu::ElementType cache;
  quipu::NumericMode mode;
  std::size_t ranks = 1;
};

class Contract : public ::testing::TestWithParam<Variant> {
 protected:
  static quipu::Model load(std::size_t threads) {
    quipu::LoadOptions options;
    options.threads = threads;
    options.ranks = GetParam().ranks;
    return test_engine::engine().load(find_golden("models/T2/hf-f32"), options);
  }
  static quipu::SessionOptions options(std::size_t batch, std::size_t chunk) {
    quipu::SessionOptions o;
    o.batch = batch;
    o.capacity = 600;  // more than one block of 512 positions
    o.chunk = chunk;
    o.cache = GetParam().cache;
    o.mode = GetParam().mode;
    return o;
  }
  static std::vector<TokenId> tokens(std::size_t n, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::vector<TokenId> out(n);
    for (TokenId& t : out) t = static_cast<TokenId>(random() % 320);
    return out;
  }
  /// Logits of all positions of one sequence.
  static std::vector<float> all_logits(quipu::Session& session, std::span<const TokenId> tokens) {
    std::vector<float> logits(tokens.size() * 320);
    const Feed feed{0, tokens, std::nullopt};
    session.forward({&feed, 1}, LogitsWanted::all, logits);
    for (float x : logits) EXPECT_TRUE(std::isfinite(x));
    return logits;
  }
};

TEST_P(Contract, BitsDoNotDependOnThreads) {
  const auto text = tokens(17);
  const quipu::Model one = load(1), three = load(3);
  quipu::Session a(one, options(1, 512)), b(three, options(1, 512));
  EXPECT_TRUE(same_bits("3 threads", all_logits(b, text), all_logits(a, text)));
}

TEST_P(Contract, BitsDoNotDependOnChunks) {
  const auto text = tokens(560);
  const quipu::Model model = load(2);
  quipu::Session whole(model, options(1, 600));
  const auto expected = all_logits(whole, text);
  for (const std::size_t chunk : {1u, 2u, 17u, 100u, 512u}) {
    quipu::Session session(model, options(1, chunk));
    EXPECT_TRUE(
        same_bits("chunks of " + std::to_string(chunk), all_logits(session, text), expected));
  }
}

TEST_P(Contract, BitsDoNotDependOnTheBatch) {
  const quipu::Model model = load(2);
  std::vector<std::vector<TokenId>> texts;
  for (unsigned i = 0; i < 6; ++i) texts.push_back(tokens(1 + 9 * i, i));  // lengths 1 to 46
  quipu::Session batch(model, options(texts.size(), 64));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < texts.size(); ++i) feeds.push_back({i, texts[i], std::nullopt});
  std::vector<float> together(texts.size() * 320);
  batch.forward(feeds, LogitsWanted::last, together);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    quipu::Session alone(model, options(1, 512));
    const auto all = all_logits(alone, texts[i]);
    EXPECT_TRUE(same_bits("row " + std::to_string(i), std::span(together).subspan(i * 320, 320),
                          std::span(all).last(320)));
  }
}

TEST_P(Contract, CachedAndRecomputedKeysGiveTheSameBits) {
  const auto text = tokens(40);
  const quipu::Model model = load(2);
  quipu::Session whole(model, options(1, 512));
  const auto expected = all_logits(whole, text);
  quipu::Session session(model, options(1, 512));
  session.forward(std::span(text).first(23));
  session.truncate(0, 11);  // forget, then compute the same positions again
  std::vector<float> logits;
  for (std::size_t i = 11; i < text.size(); ++i) {
    logits = session.forward(std::span(text).subspan(i, 1));
    EXPECT_TRUE(same_bits("position " + std::to_string(i), logits,
                          std::span(expected).subspan(i * 320, 320)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Contract,
    ::testing::Values(Variant{quipu::ElementType::f32, quipu::NumericMode::f32},
                      Variant{quipu::ElementType::f32, quipu::NumericMode::f32, 2},
                      Variant{quipu::ElementType::bf16, quipu::NumericMode::bf16, 2},
                      Variant{quipu::ElementType::bf16, quipu::NumericMode::f32},
                      Variant{quipu::ElementType::bf16, quipu::NumericMode::bf16}));

}  // namespace
}  // namespace quipu_test
