// A measured run over the cards. The profile is hand-made: block l of six takes 1 + l/10 of round
// times, so that what follows can be stated here.
#include "quipu/atlas/profile.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "quipu/atlas/card_text.hpp"
#include "support/message_of.hpp"

namespace {

using namespace quipu;

constexpr const atlas::ModelEntry& stories = atlas::model_entry<models::stories15m>;
const std::string sample = std::string(QUIPU_TEST_DATA) + "/atlas/stories15m.profile.json";

std::string sample_text() {
  std::ostringstream text;
  text << std::ifstream(sample).rdbuf();
  return text.str();
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = sample_text();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

atlas::Measured of(const atlas::Profile& profile, const char* id) {
  const auto m = atlas::measured(stories, atlas::find_card(stories, id), profile);
  EXPECT_TRUE(m) << id;
  return m.value_or(atlas::Measured{});
}

// Times of the file have nine decimals: sums of some hundred agree far below a nanosecond.
constexpr double exact = 1e-12;

TEST(Profile, BlocksAddUpToOneCard) {
  const atlas::Profile profile = atlas::open_profile(stories, sample);
  EXPECT_EQ(profile.work.start, 63u);
  EXPECT_EQ(profile.work.cache_element_bytes, 4u);
  const atlas::Measured wq = of(profile, "layers.N.attention.wq");
  EXPECT_EQ(wq.blocks, 6u);
  EXPECT_NEAR(wq.seconds, 75e-6, exact);  // 10 + 11 + ... + 15
  EXPECT_NEAR(wq.least, 10e-6, exact);
  EXPECT_NEAR(wq.median, 12.5e-6, exact);
  EXPECT_NEAR(wq.greatest, 15e-6, exact);
  EXPECT_EQ(wq.bytes, 6 * 288 * 9 * 34);
  EXPECT_EQ(wq.flops, 6 * 2 * 288 * 288);
}

TEST(Profile, PredictionIsTheCostFunctionAtTheCeilings) {
  const atlas::Profile profile = atlas::open_profile(stories, sample);
  const atlas::Measured wq = of(profile, "layers.N.attention.wq");
  EXPECT_EQ(wq.predicted_bytes, wq.bytes);
  EXPECT_EQ(wq.predicted_flops, wq.flops);
  // 528,768 bytes at 15 GB/s take longer than 995,328 FLOPs at 100 GFLOP/s.
  EXPECT_TRUE(wq.memory_bound);
  EXPECT_NEAR(wq.least_seconds, 528768 / 1.5e10, exact);
  EXPECT_NEAR(wq.efficiency(), 528768 / 1.5e10 / 75e-6, 1e-6);
  // Attention reads and writes the cache; the two times of the file belong to one card.
  const atlas::Measured scores = of(profile, "layers.N.attention.scaled_dot_product");
  EXPECT_NEAR(scores.seconds, 150e-6, exact);
  EXPECT_EQ(scores.predicted_bytes, 6 * 2 * 288 * 4 * (64 + 1));
  EXPECT_EQ(scores.predicted_bytes, scores.bytes);
  EXPECT_EQ(scores.predicted_flops, scores.flops);
  // Five blocks hold w2 in q8_0, the last in float32.
  const atlas::Measured w2 = of(profile, "layers.N.feed_forward.w2");
  EXPECT_EQ(w2.predicted_bytes, 5 * 288 * 24 * 34 + 4 * 288 * 768);
  EXPECT_EQ(w2.predicted_bytes, w2.bytes);
  EXPECT_FALSE(of(profile, "layers.N.feed_forward.silu_gate").memory_bound);
}

TEST(Profile, ComponentsWithPartsAreTheirSum) {
  const atlas::Profile profile = atlas::open_profile(stories, sample);
  const atlas::Measured attention = of(profile, "layers.N.attention");
  EXPECT_EQ(attention.blocks, 6u);
  EXPECT_NEAR(attention.least, 61e-6, exact);  // 3 * 10 + 1 + 1 + 19 + 10
  EXPECT_NEAR(attention.seconds, 7.5 * 61e-6, exact);
  const atlas::Measured all = of(profile, "transformer");
  EXPECT_EQ(all.blocks, 1u);
  // A block: 61 for attention, 92 for the feed-forward network, 4 for norms and additions.
  EXPECT_NEAR(all.seconds, 1003e-6 + 7.5 * 157e-6, exact);
  EXPECT_NEAR(all.share, 1, 1e-12);
  double shares = 0;
  for (const atlas::Card& card : stories.cards) {
    if (atlas::has_parts(stories, card)) continue;
    if (const auto m = atlas::measured(stories, card, profile)) shares += m->share;
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  // Not timed: nothing is said.
  EXPECT_FALSE(
      atlas::measured(stories, atlas::find_card(stories, "layers.N.attention.update"), profile));
}

TEST(Profile, ProductsOfInt8ActivationsAreHeldAgainstInt8) {
  const atlas::Profile profile = atlas::read_profile(
      stories, replaced("\"activations\": \"f32\"", "\"activations\": \"int8\""), "p.json");
  using atlas::detail::arithmetic_ceiling;
  auto ceiling = [&](const char* id) {
    return arithmetic_ceiling(profile, atlas::find_card(stories, id));
  };
  EXPECT_EQ(ceiling("output"), 3e11);
  EXPECT_EQ(ceiling("norm"), 1e11);
  EXPECT_EQ(ceiling("layers.N.attention.scaled_dot_product"), 1e11);
}

TEST(Profile, TextCardSaysIt) {
  const atlas::Profile profile = atlas::read_profile(stories, sample_text(), "p.json");
  atlas::Request request;
  request.profile = &profile;
  const std::string text = atlas::render_text(
      atlas::document(stories, atlas::find_card(stories, "layers.N.attention.wq"), request));
  for (const char* part :
       {"\nMeasured\n",
        "p.json: 20 passes on AVX2, threads 2; batch 1, positions 1 from position 63", "75.0 µs",
        "6 blocks together", "12.5 µs", "10.0 µs to 15.0 µs", "35.3 µs", "reading takes longest",
        "47.0 %", "7.05 GB/s", "47.0 % of 15.0 GB/s", "the model predicts 528,768 bytes",
        "13.3 GFLOP/s", "13.3 % of 100 GFLOP/s", "995,328 FLOPs"}) {
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("the profile counts"), text.npos);
  // Other bytes than the model's are said, not hidden.
  const atlas::Profile other =
      atlas::read_profile(stories, replaced("\"bytes\": 88128", "\"bytes\": 88129"), "p.json");
  request.profile = &other;
  EXPECT_NE(
      atlas::render_text(
          atlas::document(stories, atlas::find_card(stories, "layers.N.attention.wq"), request))
          .find("the profile counts 528,769"),
      std::string::npos);
}

// A ceiling is of memory: a small model's weights come faster, from a cache. The card says so.
TEST(Profile, AboveTheCeilingIsExplained) {
  const atlas::Profile profile =
      atlas::read_profile(stories, replaced("15000000000.0", "1000000000.0"), "p.json");
  const atlas::Card& card = atlas::find_card(stories, "layers.N.attention.wq");
  const auto lines = atlas::detail::measured_lines(card, of(profile, card.id.data()), profile);
  EXPECT_EQ(lines[3][1], "705.0 %");
  EXPECT_NE(lines[3][2].find("stays in a cache"), std::string::npos);
  const atlas::Profile slow = atlas::open_profile(stories, sample);
  EXPECT_EQ(atlas::detail::measured_lines(card, of(slow, card.id.data()), slow)[3][2],
            "least time to measured time");
}

template <class E>
void refuses(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message =
      quipu_test::message_of<E>([&] { atlas::read_profile(stories, text, "p.json"); });
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Profile, OfAnotherModelNamesBoth) {
  refuses<MismatchError>(replaced("stories15m", "llama3_8b"),
                         {"p.json", "llama3_8b", "stories15m"});
}

// A file may come from a machine, or a version of Highway, that this one has never heard of.
TEST(Profile, TargetMayBeUnknown) {
  const atlas::Profile profile =
      atlas::read_profile(stories, replaced("\"AVX2\"", "\"AVX10_2\""), "p.json");
  EXPECT_EQ(profile.target, "AVX10_2");
}

TEST(Profile, MalformedFilesAreNamedErrors) {
  const std::tuple<const char*, const char*, const char*> faults[] = {
      {"quipu-profile-1", "quipu-profile-2", "format: expected quipu-profile-1"},
      {"\"threads\"", "\"thread\"", "threads is missing"},
      {"\"threads\": 2", "\"threads\": 0", "threads: expected a whole number, 1 or more"},
      {"\"batch\": 1", "\"batch\": \"one\"", "batch: expected a whole number"},
      {"\"passes\": 20", "\"passes\": 2.5", "passes: expected a whole number"},
      {"\"q8_0\"", "\"q9_9\"",
       "weights: expected names of element types, found the string \"q9_9\""},
      {"\"cache\": \"f32\"", "\"cache\": \"q8_0\"", "cache: expected f32 or bf16 or f16"},
      {"\"AVX2\"", "\"AVX2<script>\"", "target: expected the name of a SIMD target, such as AVX2"},
      {"\"AVX2\"", "\"A234567890123456789012345678901234567890\"", "at most 32 letters"},
      {"\"activations\": \"f32\"", "\"activations\": \"f64\"",
       "activations: expected f32 or int8, found the string \"f64\""},
      {"\"mode\": \"f32\"", "\"mode\": \"\"", "mode: expected a text"},
      {"\"mode\": \"f32\"", "\"mode\": \"fast\"", "mode: expected f32 or bf16"},
      {"15000000000.0", "0", "ceilings.read_bytes_per_second: expected a number above 0"},
      {"\"ceilings\": {", "\"ceilings\": 3, \"x\": {", "expected an object, found 3"},
      {"\"seconds\": 1e-06", "\"seconds\": -1", "components[0].seconds: expected a number above 0"},
      {"tok_embeddings", "tok_embedding", "components[1].id: expected a component"},
      {"layers.0.attention.wq", "layers.6.attention.wq", "a block's number below 6"},
      {"layers.0.attention.wq", "layers.N.attention.wq", "a block's number below 6"},
      {"layers.0.attention.wq", "layers.0.attention", "without parts"},
      {"layers.1.attention.wq", "layers.0.attention.wq", "each component once"},
      {"]}", "", "not valid JSON"}};
  for (const auto& [from, to, part] : faults) {
    refuses<FormatError>(replaced(from, to), {"p.json", part});
  }
}

}  // namespace
