// The profile of a pass: every component has a time, and taking it changes no bit of the logits.
#include <gtest/gtest.h>

#include <set>

#include "quipu/engine/profile.hpp"
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

// T1: [512, dim] and so on in f32, so bytes are parameters times 4.
TEST(Profile, CostsAreThoseOfTheModel) {
  const quipu::Model model = load();
  const quipu::ArchitectureFacts& a = model.architecture();
  const std::size_t position = 2 * a.n_layers * a.n_kv_heads * a.head_dim * 2;  // bf16
  std::size_t bytes = 0;
  std::set<std::string> ids;
  for (const auto& c : quipu::pass_costs(model, quipu::ElementType::bf16, {3, 1, 10})) {
    bytes += c.bytes;
    EXPECT_TRUE(ids.insert(c.id).second) << c.id;
  }
  // Every weight once (of the embedding three rows), 11 positions read and one written a sequence.
  std::size_t weights = 3 * a.dim;
  for (const quipu::TensorSlot& slot : model.weights().ranks.front().slots)
    weights += slot.embedding ? 0 : slot.elements();
  EXPECT_EQ(bytes, 4 * weights + 3 * 12 * position);
}

TEST(Profile, HoldsTheSumAndTheWholeOfItsPasses) {
  const quipu::Model model = load();
  quipu::Session session(model, {.batch = 2, .capacity = 64, .allow_gaps = true});
  quipu::PassTimes times;
  session.set_profile(times.hook());
  std::vector<float> logits(2 * model.architecture().vocab_size);
  const std::vector<TokenId> token{3};
  for (int i = 0; i < 5; ++i) {
    const quipu::Feed feeds[] = {{0, token, 40}, {1, token, 40}};
    session.forward(feeds, quipu::LogitsWanted::last, logits);
  }
  const quipu::Ceilings ceilings =
      quipu::measure_ceilings(model.probes(), model.executor(), {1, 1 << 20, 1 << 10});
  EXPECT_GT(ceilings.read_bytes_per_second, 1e6);
  EXPECT_GT(ceilings.fma_flops_per_second, 1e6);
  EXPECT_GT(ceilings.int8_ops_per_second, 1e6);
  EXPECT_GT(ceilings.signed_int8_ops_per_second, 1e6);
  const quipu::Profile p = quipu::make_profile(session, times, {2, 1, 40}, ceilings);
  EXPECT_EQ(p.passes, 5u);
  EXPECT_EQ(times.pass_seconds().size(), 5u);
  EXPECT_EQ(p.components.size(), 4 + 15 * model.architecture().n_layers);
  // In each pass the components are disjoint pieces of it, and nearly all of it: what they lack is
  // reading the clock, a tenth even of passes as short as these.
  std::vector<double> accounted;
  for (std::size_t pass = 0; pass < 5; ++pass) {
    double sum = 0;
    for (const auto& c : times.components()) sum += c.seconds[pass];
    EXPECT_GT(sum, 0.0);
    EXPECT_LE(sum, times.pass_seconds()[pass]);
    accounted.push_back(sum / times.pass_seconds()[pass]);
  }
  EXPECT_GT(quipu::median(accounted), 0.8);
  const nlohmann::ordered_json json = quipu::to_json(p);
  EXPECT_EQ(json["format"], "quipu-profile-1");
  EXPECT_EQ(json["model"], "T1");
  EXPECT_EQ(json["at"], 40);
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["weights"], nlohmann::ordered_json::array({"f32"}));
  EXPECT_EQ(json["components"].size(), p.components.size());
  for (const auto& c : json["components"]) {
    const std::string id = c["id"];
    EXPECT_EQ(c["bytes"] > 0, id.find(".w") != id.npos || id.find("norm") != id.npos ||
                                  id == "tok_embeddings" || id == "output" ||
                                  id.ends_with("cache") || id.ends_with("scaled_dot_product"))
        << id;
  }
}

}  // namespace
}  // namespace quipu_test
