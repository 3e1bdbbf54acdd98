// Every card of every model of the catalogue: counts are the types', ids are complete, sources
// stand, cost constants give what the cost functions give.
#include "quipu/atlas/catalogue.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "quipu/atlas/card_text.hpp"
#include "quipu/atlas/cost_model.hpp"
#include "quipu/atlas/find.hpp"
#include "support/golden.hpp"

namespace {

using namespace quipu;
using atlas::Card;
using atlas::ModelEntry;

constexpr std::span<const ModelEntry> entries = atlas::entries<atlas::Catalogue>;

TEST(Catalogue, EveryModelHasEveryCardOnce) {
  ASSERT_EQ(entries.size(), 17u);
  for (const ModelEntry& entry : entries) {
    std::set<std::string_view> ids;
    for (const Card& card : entry.cards) {
      EXPECT_TRUE(ids.insert(card.id).second) << card.id;
    }
    EXPECT_EQ(ids.size(), 40u);
  }
}

// The weights of a model's cards are the reference's state dict: names and shapes.
TEST(Catalogue, WeightsAreTheReferencesStateDict) {
  QUIPU_GOLDEN_OR_SKIP(path, "params/parameter_counts.json");
  const nlohmann::json golden = nlohmann::json::parse(std::ifstream(path));
  std::size_t compared = 0;
  for (const auto& architecture : golden["architectures"]) {
    const auto& arguments = architecture["arch_args"];
    for (const ModelEntry& entry : entries) {
      const auto& f = entry.facts;
      if (arguments["dim"] != f.dim || arguments["n_layers"] != f.n_layers ||
          arguments["n_heads"] != f.n_heads || arguments["n_kv_heads"] != f.n_kv_heads ||
          arguments["vocab_size"] != f.vocab_size ||
          architecture["counts"]["ffn_hidden"] != f.ffn) {
        continue;
      }
      std::map<std::string, std::vector<std::size_t>> ours, theirs;
      for (const Card& card : entry.cards) {
        if (!card.has_weight || card.id.substr(0, 9) != "layers.N.") continue;
        std::vector<std::size_t> shape{card.weight.out, card.weight.in};
        if (card.weight.is_vector) shape.erase(shape.begin());
        ours[std::string(card.id.substr(9)) + ".weight"] = shape;
      }
      for (const auto& [name, shape] : architecture["counts"]["layer_shapes"].items()) {
        theirs[name] = shape.get<std::vector<std::size_t>>();
      }
      EXPECT_EQ(ours, theirs) << f.name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 8u);
}

// Every tensor that the golden activations name is found, as itself or as what its component makes.
TEST(Catalogue, EveryNamedTensorIsFound) {
  const ModelEntry& entry = atlas::find_model(entries, "llama3_8b");
  for (const char* id : {"tokens",
                         "tok_embeddings",
                         "layers.0.attention_norm",
                         "layers.0.attention.xq",
                         "layers.0.attention.xk",
                         "layers.0.attention.xv",
                         "layers.0.attention.xq_rope",
                         "layers.0.attention.xk_rope",
                         "layers.0.attention.probs",
                         "layers.0.attention.merged",
                         "layers.0.attention.wo",
                         "layers.0.h",
                         "layers.0.ffn_norm",
                         "layers.0.feed_forward.w1",
                         "layers.0.feed_forward.w3",
                         "layers.0.feed_forward.act",
                         "layers.0.feed_forward.w2",
                         "layers.0.out",
                         "norm",
                         "logits",
                         "layers.31.attention.update",
                         "layers.31.feed_forward.update"}) {
    EXPECT_NO_THROW(atlas::find_card(entry, id)) << id;
  }
}

TEST(Catalogue, IdsOutsideTheModelAreRefusedByName) {
  const ModelEntry& entry = atlas::find_model(entries, "llama3_8b");
  EXPECT_EQ(atlas::find_card(entry, "layers.7.attention.wk").id, "layers.N.attention.wk");
  EXPECT_EQ(atlas::find_card(entry, "layers.31").id, "layers.N");
  for (const char* id : {"layers.32.attention.wk", "layers.99999999999999999999.h", "attention.wk",
                         "layers.N.attention.wx", "", "layers."}) {
    EXPECT_THROW(atlas::find_card(entry, id), ArgumentError) << id;
  }
  EXPECT_THROW(atlas::find_model(entries, "llama4_8b"), ArgumentError);
}

// Card counts against closed formulas that stand here independently of the types.
TEST(Catalogue, CountsAreTheClosedFormulas) {
  for (const ModelEntry& entry : entries) {
    const auto& f = entry.facts;
    const std::size_t q = f.n_heads * f.head_dim, kv = f.n_kv_heads * f.head_dim;
    const std::map<std::string_view, std::size_t> expected{
        {"tok_embeddings", f.vocab_size * f.dim},
        {"output", f.vocab_size * f.dim},
        {"norm", f.dim},
        {"layers.N.attention_norm", f.dim},
        {"layers.N.ffn_norm", f.dim},
        {"layers.N.attention.wq", f.dim * q},
        {"layers.N.attention.wk", f.dim * kv},
        {"layers.N.attention.wv", f.dim * kv},
        {"layers.N.attention.wo", f.dim * q},
        {"layers.N.attention", 2 * f.dim * (q + kv)},
        {"layers.N.feed_forward.w1", f.dim * f.ffn},
        {"layers.N.feed_forward.w2", f.dim * f.ffn},
        {"layers.N.feed_forward.w3", f.dim * f.ffn},
        {"layers.N.feed_forward", 3 * f.dim * f.ffn},
        {"layers.N", 2 * f.dim * (q + kv) + 3 * f.dim * f.ffn + 2 * f.dim},
        {"transformer", f.parameters}};
    for (const Card& card : entry.cards) {
      const auto at = expected.find(card.id);
      EXPECT_EQ(card.parameters, at == expected.end() ? 0 : at->second) << f.name << " " << card.id;
      EXPECT_EQ(notation::total(card.account), card.parameters) << f.name << " " << card.id;
      const std::size_t instances = card.id.substr(0, 8) == "layers.N" ? f.n_layers : 1;
      EXPECT_EQ(card.instances, instances) << f.name << " " << card.id;
    }
  }
}

TEST(Catalogue, RanksTogetherHoldTheModel) {
  for (const ModelEntry& entry : entries) {
    for (const Card& card : entry.cards) {
      if (card.parameters == 0) continue;
      for (std::size_t i = 0; i < entry.facts.parallel_size_count; ++i) {
        const std::size_t n = entry.facts.parallel_sizes[i];
        std::size_t whole = 0;  // what each rank holds a copy of
        for (const auto& line : card.account) {
          if (line.shard == ShardAxis::none) whole += line.parameters();
        }
        EXPECT_EQ(n * atlas::parameters_of_rank(card, n), card.parameters + (n - 1) * whole)
            << entry.facts.name << " " << card.id << " over " << n;
      }
    }
  }
}

TEST(Catalogue, EverySourceStandsOnce) {
  for (const ModelEntry& entry : entries) {
    for (const Card& card : entry.cards) {
      ASSERT_GT(card.sources.size(), 0u) << card.id;
      std::set<std::string> seen;
      for (const notation::Source& s : card.sources) {
        EXPECT_TRUE(seen.insert(std::string(s.id) + " " + std::string(s.file.repository) + " " +
                                atlas::lines_text(s.lines))
                        .second)
            << card.id << " " << s.id;
      }
    }
  }
}

// The constants that a page computes with give what the component's function gives.
TEST(Catalogue, CostConstantsGiveTheCostFunction) {
  for (const ModelEntry& entry : entries) {
    for (const Card& card : entry.cards) {
      if (card.cost == nullptr) continue;
      const atlas::CostModel model = atlas::cost_model(card.cost);
      for (std::size_t batch : {1u, 3u}) {
        for (std::size_t positions : {1u, 7u, 512u}) {
          for (std::size_t start : {0u, 5u, 4095u}) {
            for (ElementType type : {ElementType::f32, ElementType::bf16, ElementType::q4_k}) {
              const Work work{batch, positions, start, type, 2};
              EXPECT_EQ(model.at(work), card.cost(work)) << entry.facts.name << " " << card.id;
            }
          }
        }
      }
    }
  }
}

TEST(Catalogue, FilesThatCardsNameAreThere) {
  const std::string root = std::string(QUIPU_TEST_DATA) + "/../../";
  for (const Card& card : entries[0].cards) {
    for (const std::string& path :
         {"include/" + std::string(card.header), "include/" + std::string(card.kernel),
          std::string(card.test)}) {
      EXPECT_TRUE(std::ifstream(root + path).good()) << card.id << ": " << path;
    }
  }
}

TEST(Find, ListsEveryTensorWithAnExtent) {
  const ModelEntry& entry = atlas::find_model(entries, "llama3_8b");
  std::set<std::string> ids;
  for (const atlas::Found& f : atlas::find_extent(entry, 14336)) {
    ids.insert(std::string(f.card->id) + " " + f.what);
  }
  EXPECT_EQ(ids, (std::set<std::string>{
                     "layers.N.feed_forward.w1 weight", "layers.N.feed_forward.w1 output",
                     "layers.N.feed_forward.w3 weight", "layers.N.feed_forward.w3 output",
                     "layers.N.feed_forward.w2 weight", "layers.N.feed_forward.silu_gate output",
                     "layers.N.feed_forward.act tensor"}));
  EXPECT_TRUE(atlas::find_extent(entry, 14337).empty());
}

// The questions that a reader brings.
TEST(Questions, AreAnswered) {
  const ModelEntry& llama3 = atlas::find_model(entries, "llama3_8b");
  EXPECT_EQ(atlas::find_card(llama3, "layers.N.attention.wk").parameters, 4'194'304u);
  const Work decode{1, 1, 4095, ElementType::bf16, 2};
  EXPECT_EQ(atlas::find_card(llama3, "transformer").cost(decode).cache_read_bytes,
            4096u * 131'072u);
  const ModelEntry& small = atlas::find_model(entries, "llama3_2_1b");
  const Card& head = atlas::find_card(small, "output");
  EXPECT_TRUE(head.shares_embedding);
  EXPECT_EQ(head.mistake.right_figure, 1'235'814'400);
  EXPECT_EQ(head.mistake.wrong_figure, 1'498'482'688);
  EXPECT_EQ(atlas::parameters_of_rank(atlas::find_card(llama3, "layers.N.attention.wq"), 8),
            2'097'152u);
  const Card& scores = atlas::find_card(llama3, "layers.N.attention.scaled_dot_product");
  EXPECT_EQ(scores.mistake.wrong_figure, 4 * scores.mistake.right_figure);
  const Card& rope =
      atlas::find_card(atlas::find_model(entries, "llama3_1_8b"), "layers.N.attention.rope");
  EXPECT_EQ(rope.sources[0].id, "rope-scaling");
  EXPECT_EQ(atlas::lines_text(rope.sources[0].lines), "45–62, 65–72");
  // A card of 3.2 says both factors.
  const std::string text = atlas::render_text(
      atlas::document(small, atlas::find_card(small, "layers.N.attention.rope"), {}));
  EXPECT_NE(text.find("factor 32"), text.npos);
  EXPECT_NE(text.find("applies 8"), text.npos);
}

}  // namespace
