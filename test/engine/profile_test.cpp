// The profile of a pass: every component has a time, and taking it changes no bit of the logits.
#include <gtest/gtest.h>

#include <set>

#include "quipu/engine/session.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

using quipu::TokenId;

quipu::Model load() {
  quipu::LoadOptions options;
  options.threads = 2;
  return test_engine::engine().load(find_golden("models/T1/hf-f32"), options);
}

const std::vector<TokenId> some_tokens{1, 7, 300, 42, 5};

TEST(Profile, HasEveryComponentOfEveryLayerOnce) {
  const quipu::Model model = load();
  quipu::Session session(model, {.capacity = 64});
  quipu::PassTimes times;
  session.set_profile(times.hook());
  session.forward(some_tokens);
  session.forward(std::vector<TokenId>{9});

  std::set<std::string> expected{"freqs_cis", "tok_embeddings", "norm", "output"};
  for (std::size_t layer = 0; layer < model.architecture().n_layers; ++layer) {
    for (const char* name :
         {"attention_norm", "attention.wq", "attention.wk", "attention.wv", "attention.rope",
          "attention.cache", "attention.scaled_dot_product", "attention.wo", "attention_residual",
          "ffn_norm", "feed_forward.w1", "feed_forward.w3", "feed_forward.silu_gate",
          "feed_forward.w2", "feed_forward_residual"}) {
      expected.insert(quipu::trace_id(layer, name));
    }
  }
  std::set<std::string> found;
  for (const auto& component : times.components()) {
    found.insert(component.id());
    EXPECT_EQ(component.seconds.size(), 2u) << component.id();
  }
  EXPECT_EQ(times.passes(), 2u);
  EXPECT_EQ(found, expected);
}

TEST(Profile, ChangesNoBitAndCanBeTurnedOff) {
  const quipu::Model model = load();
  for (const auto mode : {quipu::NumericMode::f32, quipu::NumericMode::bf16}) {
    quipu::Session plain(model, {.capacity = 64, .mode = mode});
    quipu::Session profiled(model, {.capacity = 64, .mode = mode});
    quipu::PassTimes times;
    profiled.set_profile(times.hook());
    EXPECT_TRUE(
        same_bits("under a profile", profiled.forward(some_tokens), plain.forward(some_tokens)));
    profiled.set_profile({});
    profiled.forward(some_tokens);
    EXPECT_EQ(times.passes(), 1u);
  }
}

}  // namespace
}  // namespace quipu_test
