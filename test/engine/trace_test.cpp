// A recorded trace is what the forward pass computed: against golden files read back from the
// written file, whole against chunked, and its statistics, selection and refusals.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/trace_writer.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"
#include "support/safetensors.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

using quipu::TokenId;
using quipu::TracePhase;
using quipu::TraceRecorder;
using quipu::TraceSelection;

class TraceFile : public ::testing::Test {
 protected:
  ~TraceFile() override { std::remove(path().c_str()); }

  static std::string path() {
    return ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
           ".safetensors";
  }
  static quipu::Model load(const char* name) {
    quipu::LoadOptions options;
    options.threads = 2;
    return test_engine::engine().load(find_golden(std::string("models/") + name + "/hf-f32"),
                                      options);
  }
  static TensorFile record(const quipu::Model& model, std::vector<TracePhase> phases,
                           std::size_t chunk, std::vector<std::string> select = {},
                           quipu::NumericMode mode = quipu::NumericMode::f32) {
    const std::size_t capacity = TraceRecorder::check(phases);
    quipu::SessionOptions options;
    options.batch = phases[0].rows.size();
    options.capacity = capacity;
    options.chunk = chunk * options.batch;
    options.mode = mode;
    options.allow_gaps = true;
    quipu::Session session(model, options);
    TraceRecorder recorder(TraceSelection(std::move(select)), true);
    for (const TracePhase& phase : phases) recorder.run(session, phase, chunk);
    EXPECT_EQ(recorder.first_not_finite(), nullptr);
    recorder.write(path(), {});
    return TensorFile(path());
  }
};

/// The phases of a golden file, to be run again.
std::vector<TracePhase> phases_of(const TensorFile& golden) {
  std::vector<TracePhase> phases;
  for (const std::string name : {"prefill", "decode0", "decode1", "decode2", "chunk", "far"}) {
    if (!golden.has(name + "/tokens")) continue;
    const auto& ids = golden.at(name + "/tokens").integers;
    const auto half = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
    TracePhase phase{name, {{ids.begin(), half}, {half, ids.end()}}, std::nullopt};
    // `far` leaves a gap; the others follow each other.
    if (name == "far") phase.start = golden.at("far/start_pos").integers.at(0);
    phases.push_back(phase);
  }
  return phases;
}

TEST_F(TraceFile, HoldsTheGoldenTensorsUnderTheIdsWithPhases) {
  const TensorFile golden(find_golden("models/T2/acts/f32.safetensors"));
  const TensorFile file = record(load("T2"), phases_of(golden), 3);
  for (const auto& [name, expected] : golden.all()) {
    std::string ours = name;  // prefill/layers.0/attention/xq -> prefill/layers.0.attention.xq
    std::replace(ours.begin() + static_cast<std::ptrdiff_t>(name.find('/')) + 1, ours.end(), '/',
                 '.');
    ASSERT_TRUE(file.has(ours)) << ours;
    const Tensor& actual = file.at(ours);
    EXPECT_EQ(actual.dtype, expected.dtype) << ours;
    EXPECT_EQ(actual.shape, expected.shape) << ours;
    EXPECT_EQ(actual.integers, expected.integers) << ours;
    // Places are judged here; golden_test.cpp judges the arithmetic.
    EXPECT_TRUE(close(ours, actual.values, expected.values, {.rel_rms = 1e-4}));
  }
  EXPECT_EQ(file.all().size(), golden.all().size());
}

TEST_F(TraceFile, ChunksGiveTheSameTensors) {
  const quipu::Model model = load("T1");
  const std::vector<TracePhase> phases = {{"", {{1, 2, 3, 4, 5, 6, 7}, {9, 8, 7, 6, 5, 4, 3}}, 2}};
  const TensorFile whole = record(model, phases, 7);
  ASSERT_EQ(whole.at("layers.1.attention.probs").shape, (std::vector<std::size_t>{2, 4, 7, 9}));
  for (const std::size_t chunk : {1u, 2u, 3u, 6u}) {
    const TensorFile cut = record(model, phases, chunk);
    ASSERT_EQ(cut.all().size(), whole.all().size());
    for (const auto& [name, expected] : whole.all()) {
      EXPECT_EQ(cut.at(name).shape, expected.shape) << name;
      EXPECT_TRUE(same_bits(name + ", chunk " + std::to_string(chunk), cut.at(name).values,
                            expected.values));
    }
  }
}

TEST_F(TraceFile, Bf16RunsAreStoredAsBf16) {
  const TensorFile file =
      record(load("T3"), {{"", {{1, 2, 3}}, {}}}, 3, {}, quipu::NumericMode::bf16);
  EXPECT_EQ(file.at("layers.0.out").dtype, "BF16");
  EXPECT_EQ(file.at("layers.1.attention.probs").dtype, "BF16");
  EXPECT_EQ(file.at("layers.1.attention.probs_f32").dtype, "F32");
  EXPECT_EQ(file.at("logits").dtype, "F32");
}

TEST_F(TraceFile, SelectsByPatternAndByTheAtlasNames) {
  const TensorFile file =
      record(load("T1"), {{"", {{5, 6}}, {}}}, 2,
             {"layers.1.attention.update", "layers.*.feed_forward.update", "layers.0.h"});
  std::set<std::string> names;
  for (const auto& [name, tensor] : file.all()) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"tokens", "start_pos", "layers.1.attention.wo",
                                          "layers.0.feed_forward.w2", "layers.1.feed_forward.w2",
                                          "layers.0.h"}));
}

template <class F>
std::string refusal(F&& f) {
  return message_of<quipu::ArgumentError>(f);
}

TEST_F(TraceFile, RefusesByName) {
  const quipu::Model model = load("T1");
  const auto refused = [&](std::vector<TracePhase> phases, std::vector<std::string> select = {}) {
    return refusal([&] { record(model, std::move(phases), 4, std::move(select)); });
  };
  EXPECT_NE(refused({{"", {{1}}, {}}}, {"norm", "layers.2.*"}).find("like \"layers.2.*\""),
            std::string::npos);
  EXPECT_NE(refused({{"a", {{1, 2}, {1}}, {}}}).find("phase a: sequences of 2 and 1 tokens"),
            std::string::npos);
  EXPECT_NE(refused({{"a", {{1}}, {}}, {"b", {{1}, {2}}, {}}}).find("phase b: 2 sequences"),
            std::string::npos);
  EXPECT_NE(refused({{"a", {{1}}, {}}, {"a", {{1}}, {}}}).find("given twice"), std::string::npos);
  EXPECT_NE(refused({{"", {{1, 512}}, {}}}).find("id 512"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

/// More tokens in a pass than the session was made for are refused before anything is computed, and
/// a refused or failed run leaves the session without the recorder.
TEST_F(TraceFile, RefusesChunksThatTheSessionWouldCutAndLetsGoAfterAnError) {
  const quipu::Model model = load("T1");
  quipu::Session session(model, {.batch = 2, .capacity = 8, .chunk = 4});
  {
    TraceRecorder recorder(TraceSelection{}, true);
    const TracePhase phase{"", {{1, 2, 3}, {4, 5, 6}}, {}};
    EXPECT_NE(refusal([&] { recorder.run(session, phase, 3); }).find("6 tokens in one pass"),
              std::string::npos);
    EXPECT_NE(refusal([&] { recorder.run(session, phase, 0); }).find("0 tokens"),
              std::string::npos);
    const TracePhase wrong{"", {{1, 512}, {1, 1}}, {}};
    EXPECT_NE(refusal([&] { recorder.run(session, wrong, 1); }).find("id 512"), std::string::npos);
  }
  // Without a recorder: a hook that was left would use one that is gone.
  const std::vector<TokenId> ids = {7};
  session.forward(std::vector<quipu::Feed>{{0, ids, 0}, {1, ids, 0}}, quipu::LogitsWanted::none,
                  {});
  TraceRecorder recorder(TraceSelection{}, true);
  recorder.run(session, {"", {{1, 2, 3}, {4, 5, 6}}, 1}, 2);
  EXPECT_FALSE(recorder.statistics().empty());
}

TEST(TensorStatistics, CountWhatIsNotFiniteApart) {
  const float inf = std::numeric_limits<float>::infinity();
  const float first[] = {1, -3, inf}, second[] = {std::nanf(""), 5, -inf};
  quipu::TensorStatistics s;
  s.add(first, 3);
  s.add(second, 3);
  EXPECT_EQ(s.elements, 6u);
  EXPECT_EQ(s.nan, 1u);
  EXPECT_EQ(s.infinite, 2u);
  EXPECT_EQ(s.finite(), 3u);
  EXPECT_EQ(s.least, -3);
  EXPECT_EQ(s.largest, 5);
  EXPECT_EQ(s.mean(), 1);
}

/// A weight so large that w3's output overflows in the second block of T1, nowhere before.
TEST_F(TraceFile, NamesTheFirstTensorThatIsNotFinite) {
  const std::string folder = find_golden("models/T1/hf-f32");
  const quipu::Checkpoint original = quipu::open_checkpoint(folder);
  std::vector<std::byte> bytes(original.files[0].bytes().begin(), original.files[0].bytes().end());
  const quipu::TensorRecord* w3 = original.find("model.layers.1.mlp.up_proj.weight");
  const float huge = 3e38f;
  for (std::size_t i = 0; i < 64; ++i) {
    std::memcpy(bytes.data() + (w3->data - original.files[0].bytes().data()) + 4 * i, &huge, 4);
  }
  std::ifstream config(folder + "/config.json");
  const std::string text(std::istreambuf_iterator<char>(config), {});
  const quipu::Model model =
      test_engine::engine().load(quipu::checkpoint_from_bytes(bytes, "damaged", text));
  quipu::Session session(model, {.capacity = 4});
  TraceRecorder recorder(TraceSelection{}, false);
  recorder.run(session, {"", {{1, 2, 3}}, {}}, 3);
  ASSERT_NE(recorder.first_not_finite(), nullptr);
  EXPECT_EQ(recorder.first_not_finite()->name, "layers.1.feed_forward.w3");
}

}  // namespace
}  // namespace quipu_test
