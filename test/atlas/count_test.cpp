// The independent count from a checkpoint's tensors.
#include "quipu/atlas/count.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "quipu/atlas/layer_statistics.hpp"
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

TEST(Statistics, OfKnownNumbers) {
  const std::array<float, 6> values{1, -3, 2, std::numeric_limits<float>::infinity(), 0, 5};
  TensorRecord record;
  record.name = "norm.weight";
  record.type = ElementType::f32;
  record.type_name = "F32";
  record.extents = {2, 3};
  record.data = reinterpret_cast<const std::byte*>(values.data());
  record.bytes = sizeof values;
  const atlas::LayerStatistics s = atlas::statistics_of(record);
  EXPECT_EQ(s.elements, 6u);
  EXPECT_EQ(s.not_finite, 1u);
  EXPECT_EQ(s.least, -3);
  EXPECT_EQ(s.greatest, 5);
  EXPECT_DOUBLE_EQ(s.mean, 1);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(39.0 / 5 - 1));
}

TEST(Statistics, OneLineALayer) {
  QUIPU_GOLDEN_OR_SKIP(path, "models/T1/hf-f32");
  const Checkpoint checkpoint = open_checkpoint(path);
  const auto& entry = atlas::model_entry<tiny>;
  const auto norms = atlas::layer_statistics(
      entry, atlas::find_card(entry, "layers.N.attention_norm"), checkpoint);
  ASSERT_EQ(norms.size(), 2u);
  for (const atlas::LayerStatistics& s : norms) {
    // Weights of norms are 1 + 0.1 normal: of 64 the mean lies within 0.1 of 1 (8 deviations).
    EXPECT_NEAR(s.mean, 1.0, 0.1) << s.tensor;
    EXPECT_NEAR(s.deviation, 0.1, 0.05) << s.tensor;
  }
}

TEST(Count, LayersOfNames) {
  EXPECT_EQ(atlas::with_any_layer("blk.17.attn_q.weight"), "blk.N.attn_q.weight");
  EXPECT_EQ(atlas::with_any_layer("output.weight"), "output.weight");
}

}  // namespace
