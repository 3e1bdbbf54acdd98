// The independent count from a checkpoint's tensors.
#include "quipu/atlas/count.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace {

using namespace quipu;

// T1 of the golden data: dim 64, 2 layers, 4 heads, 2 kv heads, ffn 224, vocabulary 512.
struct tiny : models::llama3_8b {
  static constexpr int dim = 64, n_layers = 2, n_heads = 4, n_kv_heads = 2, vocab_size = 512;
  static constexpr ffn_rule ffn{.multiple_of = 32, .ffn_dim_multiplier = 1.3};
};
// T4: tied.
struct tiny_tied : models::llama3_2_1b {
  static constexpr int dim = 48, n_layers = 1, n_heads = 4, n_kv_heads = 2, vocab_size = 128;
  static constexpr ffn_rule ffn{.multiple_of = 8, .ffn_dim_multiplier = 1.5};
};

void every_card_agrees(const atlas::ModelEntry& entry, const std::string& path) {
  const Checkpoint checkpoint = open_checkpoint(path);
  for (const atlas::Card& card : entry.cards) {
    if (card.parameters == 0) continue;
    EXPECT_EQ(atlas::count_parameters(entry, card, checkpoint), card.parameters * card.instances)
        << path << " " << card.id;
  }
}

TEST(Count, HuggingFaceFile) {
  QUIPU_GOLDEN_OR_SKIP(path, "models/T1/hf-f32");
  every_card_agrees(atlas::model_entry<tiny>, path);
}

TEST(Count, TiedFile) {
  QUIPU_GOLDEN_OR_SKIP(path, "models/T4/hf-f32");
  every_card_agrees(atlas::model_entry<tiny_tied>, path);
}

TEST(Count, ModelParallelFiles) {
  QUIPU_GOLDEN_OR_SKIP(path, "models/T1/meta-mp2-bf16");
  every_card_agrees(atlas::model_entry<tiny>, path);
}

TEST(Count, ShowsADifference) {
  QUIPU_GOLDEN_OR_SKIP(path, "models/T1/hf-f32");
  const auto& other = atlas::model_entry<models::llama3_8b>;
  const Checkpoint checkpoint = open_checkpoint(path);
  EXPECT_NE(atlas::count_parameters(other, atlas::find_card(other, "output"), checkpoint),
            525'336'576u);
}

// A model derived from a catalogue entry inherits its names but is not that model.
TEST(OwnModel, GoesByItsOwnName) {
  const atlas::ModelFacts& facts = atlas::model_entry<tiny>.facts;
  EXPECT_EQ(atlas::title(facts), "tiny");
  EXPECT_EQ(facts.core_model_id, "");
  const atlas::Card& card = atlas::find_card(atlas::model_entry<tiny>, "output");
  EXPECT_EQ(card.parameters, 64u * 512u);
  for (const notation::Source& s : card.sources) {
    EXPECT_NE(s.evidence, notation::Evidence::direct) << s.id;
    EXPECT_NE(s.id, "config");
  }
}

TEST(Count, LayersOfNames) {
  EXPECT_EQ(atlas::with_any_layer("blk.17.attn_q.weight"), "blk.N.attn_q.weight");
  EXPECT_EQ(atlas::with_any_layer("output.weight"), "output.weight");
}

}  // namespace
