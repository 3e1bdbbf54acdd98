// The scalar forward pass against what Meta's reference computed: every named tensor of every
// phase of T1 to T4, in float32, with bfloat16 weights, in bfloat16, and as two ranks.
#include "reference/scalar_forward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "support/compare.hpp"
#include "support/golden.hpp"

namespace quipu_test {
namespace {

struct GoldenRun {
  const char* model;  ///< T1 .. T4
  const char* file;   ///< of models/<model>/acts
  Rounding rounding;
  bool bf16_weights;
  std::size_t ranks;
};

std::ostream& operator<<(std::ostream& out, const GoldenRun& run) {
  return out << run.model << '/' << run.file;
}

/// `layers.0.attention.xq` to the golden file's `layers.0/attention/xq`.
std::string golden_name(std::string id) {
  const std::size_t layer_end = id.starts_with("layers.") ? id.find('.', 7) : 0;
  std::replace(id.begin() + static_cast<std::ptrdiff_t>(layer_end), id.end(), '.', '/');
  return id;
}

/// Runs all phases through one cache and gives each golden tensor with what was computed for it
/// to check(phase, id, actual, expected). Every golden tensor has to be seen.
template <class Sum, class Check>
void run_phases(const GoldenRun& run, const std::string& golden, const std::string& folder,
                Check check) {
  const ScalarModel model = load_hugging_face(folder);
  const ScalarWeights weights = run.bf16_weights ? round_bf16(model.weights) : model.weights;
  const TensorFile file(golden);
  ScalarLlama<Sum> llama(model.config, weights, run.rounding, 2, 512, run.ranks);
  std::size_t seen = 0;
  for (const std::string phase : {"prefill", "decode0", "decode1", "decode2", "chunk", "far"}) {
    if (!file.has(phase + "/tokens")) continue;
    seen += 2;  // tokens and start_pos
    const auto start = static_cast<std::size_t>(file.at(phase + "/start_pos").integers.at(0));
    llama.forward(file.at(phase + "/tokens").integers, start,
                  [&](const std::string& id, const std::vector<std::size_t>& extents,
                      std::span<const float> values) {
                    const std::string name = phase + "/" + golden_name(id);
                    if (!file.has(name)) return;  // the two-rank files hold whole tensors only
                    ++seen;
                    EXPECT_EQ(extents, file.at(name).shape) << name;
                    check(phase, id, values, file.at(name).values);
                  });
  }
  EXPECT_EQ(seen, file.all().size()) << "golden tensors without a counterpart";
}

class ScalarForward : public ::testing::TestWithParam<GoldenRun> {};

std::string name_of(const ::testing::TestParamInfo<GoldenRun>& info) {
  std::string name = std::string(info.param.model) + "_" + info.param.file;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

#define QUIPU_LOAD_OR_SKIP()                                   \
  const GoldenRun& run = GetParam();                           \
  const std::string base = std::string("models/") + run.model; \
  QUIPU_GOLDEN_OR_SKIP(folder, base + "/hf-f32");              \
  QUIPU_GOLDEN_OR_SKIP(golden, base + "/acts/" + run.file + ".safetensors")

/// float32: both sides round each of some hundred operations on a path to 2^-24 relative; against
/// float64 the reference is off by 5e-7 at worst (T1, T3, T4), and 5e-6 for T2, whose attention is
/// peaked: its scores reach tens, so that an error of a score enters its exponential many times
/// over. Two such errors and a margin of two give the limits. In `far` 486 of 502 scores are
/// equal, and adding equal terms one after the other in float32 errs to one side: up to 502 times
/// 2^-24 more with such sums, which is why exact sums are the judge.
Limits float32_limits(const std::string& model) {
  if (model == "T2") return {.rel_rms = 1e-5, .max_abs_of_largest = 2e-5};
  return {.rel_rms = 3e-6, .max_abs_of_largest = 5e-6};
}

class Float32Forward : public ScalarForward {};

TEST_P(Float32Forward, MatchesEveryTensor) {
  QUIPU_LOAD_OR_SKIP();
  for (const bool exact_sums : {false, true}) {
    double worst = 0;
    const auto check = [&](const std::string& phase, const std::string& id,
                           std::span<const float> actual, std::span<const float> expected) {
      Limits limits = float32_limits(run.model);
      if (phase == "far" && !exact_sums) {
        limits.rel_rms += 502 * 0x1p-24;
        limits.max_abs_of_largest += 502 * 0x1p-24;
      }
      EXPECT_TRUE(close(phase + " " + id, actual, expected, limits));
      worst = (std::max)(worst, difference(actual, expected).rel_rms);
    };
    if (exact_sums) {
      run_phases<double>(run, golden, folder, check);
    } else {
      run_phases<float>(run, golden, folder, check);
    }
    std::cout << run << (exact_sums ? ", exact sums" : ", float32 sums") << ": worst rel_rms "
              << worst << '\n';
  }
}

const auto float32 = Rounding::float32;
INSTANTIATE_TEST_SUITE_P(Golden, Float32Forward,
                         ::testing::Values(GoldenRun{"T1", "f32", float32, false, 1},
                                           GoldenRun{"T2", "f32", float32, false, 1},
                                           GoldenRun{"T3", "f32", float32, false, 1},
                                           GoldenRun{"T4", "f32", float32, false, 1},
                                           GoldenRun{"T1", "bf16w-f32c", float32, true, 1},
                                           GoldenRun{"T2", "bf16w-f32c", float32, true, 1},
                                           GoldenRun{"T3", "bf16w-f32c", float32, true, 1},
                                           GoldenRun{"T4", "bf16w-f32c", float32, true, 1},
                                           GoldenRun{"T1", "mp2-f32", float32, false, 2},
                                           GoldenRun{"T2", "mp2-f32", float32, false, 2},
                                           GoldenRun{"T3", "mp2-f32", float32, false, 2}),
                         name_of);

class Bf16Forward : public ScalarForward {};

/// With the reference's own rounding points two runs differ only where a float32 sum, taken in
/// another order, falls on the other side of the middle between two bfloat16 values: the sums
/// differ by some 2^-22 relative and the middle is 2^-9 away, which is one element in some
/// thousands. It is off by one step then, and later layers spread that (with sums one after the
/// other most so in `far`, see above).
TEST_P(Bf16Forward, HasTheRoundingPointsOfTheReference) {
  QUIPU_LOAD_OR_SKIP();
  const bool peaked = std::string(run.model) == "T2";
  for (const bool exact_sums : {false, true}) {
    std::size_t elements = 0;
    double equal = 0, worst = 0;
    const auto check = [&](const std::string& phase, const std::string& id,
                           std::span<const float> actual, std::span<const float> expected) {
      Limits limits{.rel_rms = peaked ? 3e-2 : 1e-2};
      if (phase == "prefill" && id.starts_with("layers.0.")) {
        limits.equal_bf16 = 0.99;
        limits.bf16_steps = 2;
      }
      EXPECT_TRUE(close(phase + " " + id, actual, expected, limits));
      const Difference d = difference(actual, expected);
      worst = (std::max)(worst, d.rel_rms);
      equal += d.equal_bf16 * static_cast<double>(expected.size());
      elements += expected.size();
    };
    if (exact_sums) {
      run_phases<double>(run, golden, folder, check);
    } else {
      run_phases<float>(run, golden, folder, check);
    }
    const double share = equal / static_cast<double>(elements);
    EXPECT_GE(share, exact_sums ? 0.999 : 0.97) << "bit-equal over all tensors and phases";
    RecordProperty(exact_sums ? "equal_share_exact_sums" : "equal_share", std::to_string(share));
    std::cout << run << (exact_sums ? ", exact sums" : ", float32 sums") << ": equal "
              << 100 * share << " %, worst rel_rms " << worst << '\n';
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Bf16Forward,
                         ::testing::Values(GoldenRun{"T1", "bf16", Rounding::bf16, true, 1},
                                           GoldenRun{"T2", "bf16", Rounding::bf16, true, 1},
                                           GoldenRun{"T3", "bf16", Rounding::bf16, true, 1},
                                           GoldenRun{"T4", "bf16", Rounding::bf16, true, 1},
                                           GoldenRun{"T1", "mp2-bf16", Rounding::bf16, true, 2},
                                           GoldenRun{"T2", "mp2-bf16", Rounding::bf16, true, 2},
                                           GoldenRun{"T3", "mp2-bf16", Rounding::bf16, true, 2}),
                         name_of);

}  // namespace
}  // namespace quipu_test
