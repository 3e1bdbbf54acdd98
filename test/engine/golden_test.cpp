// The library's forward pass against what Meta's reference computed, at every named tensor of every
// phase of T1..T4: loaded as a user's own models from Hugging Face's layout, on each SIMD target
// that this processor has.
#include "engine/golden_run.hpp"

#include <gtest/gtest.h>

#include "engine/parity_table.hpp"
#include "hwy/targets.h"
#include "support/compare.hpp"
#include "test_engine.hpp"

namespace quipu_test {
namespace {

struct Case {
  const char* model;
  const char* weights;  ///< folder beside acts/
  const char* acts;
  bool pack;
  std::size_t ranks = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << '/' << c.weights << " against " << c.acts << (c.pack ? "" : ", in place")
             << (c.ranks == 1 ? "" : ", ranks: " + std::to_string(c.ranks));
}

/// The targets compiled in that this processor has, slowest first; each is made the only choice.
class EachTarget {
 public:
  EachTarget() {
    for (std::int64_t bits = hwy::SupportedTargets() & HWY_TARGETS; bits != 0; bits &= bits - 1) {
      targets_.push_back(bits & -bits);
    }
  }
  ~EachTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  template <class F>
  void run(F&& f) {
    for (const std::int64_t target : targets_) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().DeInit();
      ASSERT_EQ(test_engine::engine().target(), hwy::TargetName(target));
      f(hwy::TargetName(target));
    }
  }

 private:
  std::vector<std::int64_t> targets_;
};

/// float32 against float32 of another order of sums: the argument of the scalar reference's test
/// (test/reference/scalar_forward_test.cpp): the reference itself is 5e-7 away from float64, T2's
/// peaked attention 5e-6, twice that and a margin of two. `far` sums some hundred equal terms.
Limits float32_limits(const Case& c, const std::string& phase) {
  const bool peaked = std::string(c.model) == "T2";
  Limits limits{.rel_rms = peaked ? 1e-5 : 3e-6, .max_abs_of_largest = peaked ? 2e-5 : 5e-6};
  if (phase == "far") {
    limits.rel_rms += 502 * 0x1p-24;
    limits.max_abs_of_largest += 502 * 0x1p-24;
  }
  return limits;
}

/// The group of the parity table that a case belongs to.
std::string group(const Case& c, const std::string& mode) {
  return mode + (std::string(c.model) == "T2" ? ", T2" : ", T1 T3 T4") +
         (c.ranks == 1 ? "" : ", several ranks");
}

// Made before main: it must be known before the tests run.
ParityTable& table = ParityTable::instance();

#define QUIPU_LOAD_OR_SKIP(c)                                              \
  const std::string base = std::string("models/") + (c).model;             \
  QUIPU_GOLDEN_OR_SKIP(folder, base + "/" + (c).weights);                  \
  QUIPU_GOLDEN_OR_SKIP(acts, base + "/acts/" + (c).acts + ".safetensors"); \
  const TensorFile golden(acts);                                           \
  quipu::LoadOptions load;                                                 \
  load.pack = (c).pack;                                                    \
  load.threads = 2;                                                        \
  load.ranks = (c).ranks;                                                  \
  const quipu::Model model = test_engine::engine().load(folder, load);     \
  ASSERT_EQ(model.name(), (c).model)

class GoldenFloat32 : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenFloat32, MatchesEveryTensorOnEveryTarget) {
  const Case& c = GetParam();
  QUIPU_LOAD_OR_SKIP(c);
  EachTarget targets;
  targets.run([&](const char* target) {
    double worst = 0;
    const auto missing = run_golden(
        model, {}, golden,
        [&](const std::string& phase, const std::string& id, auto actual, auto expected) {
          EXPECT_TRUE(close(std::string(target) + " " + phase + " " + id, actual, expected,
                            float32_limits(c, phase)));
          const Difference d = difference(actual, expected);
          table.add(group(c, "float32"), id, d, expected.size(), float32_limits(c, phase).rel_rms);
          worst = (std::max)(worst, d.rel_rms);
        });
    EXPECT_TRUE(missing.empty()) << "not traced: " << *missing.begin();
    std::cout << c << ", " << target << ": worst rel_rms " << worst << '\n';
  });
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, GoldenFloat32,
    ::testing::Values(Case{"T1", "hf-f32", "f32", true}, Case{"T2", "hf-f32", "f32", true},
                      Case{"T3", "hf-f32", "f32", true}, Case{"T4", "hf-f32", "f32", true},
                      Case{"T2", "hf-f32", "f32", false}, Case{"T1", "hf-bf16", "bf16w-f32c", true},
                      Case{"T2", "hf-bf16", "bf16w-f32c", true},
                      Case{"T3", "hf-bf16", "bf16w-f32c", true},
                      Case{"T4", "hf-bf16", "bf16w-f32c", true},
                      Case{"T1", "meta-f32", "f32", true}, Case{"T2", "meta-mp2-f32", "f32", true},
                      Case{"T3", "hf-sharded-f32", "f32", true},
                      Case{"T4", "meta-f32", "f32", true}));

// Ranks: every tensor of the one-rank data (parts are gathered for the trace), and the reference's
// own two-rank runs. A sum over inputs that is cut in two or four differs as any other order of
// sums does, so the limits are the same. Files of one, two and three cuts are cut anew for each.
INSTANTIATE_TEST_SUITE_P(
    Ranks, GoldenFloat32,
    ::testing::Values(
        Case{"T1", "hf-f32", "mp2-f32", true, 2}, Case{"T2", "hf-f32", "mp2-f32", true, 2},
        Case{"T3", "hf-f32", "mp2-f32", true, 2}, Case{"T1", "hf-f32", "f32", true, 2},
        Case{"T2", "hf-f32", "f32", true, 2}, Case{"T4", "hf-f32", "f32", true, 2},
        Case{"T3", "hf-f32", "f32", true, 4}, Case{"T2", "hf-f32", "mp2-f32", false, 2},
        Case{"T1", "meta-mp2-f32", "mp2-f32", true, 2}, Case{"T2", "meta-f32", "mp2-f32", true, 2},
        Case{"T3", "meta-mp2-f32", "f32", true, 4}, Case{"T1", "meta-mp2-f32", "f32", true, 1},
        Case{"T3", "hf-sharded-f32", "f32", true, 4},
        Case{"T1", "hf-bf16", "bf16w-f32c", true, 2}));

class GoldenBf16 : public ::testing::TestWithParam<Case> {};

/// The reference's own rounding points: elements differ only where two orders of a float32 sum fall
/// on different sides of the middle between two bf16 values, by one step, which later layers
/// spread.
TEST_P(GoldenBf16, HasTheRoundingPointsOfTheReference) {
  const Case& c = GetParam();
  QUIPU_LOAD_OR_SKIP(c);
  const bool peaked = std::string(c.model) == "T2";
  EachTarget targets;
  targets.run([&](const char* target) {
    double equal = 0, worst = 0;
    std::size_t elements = 0;
    quipu::SessionOptions options;
    options.mode = quipu::NumericMode::bf16;
    options.cache = quipu::ElementType::bf16;
    const auto missing = run_golden(
        model, options, golden,
        [&](const std::string& phase, const std::string& id, auto actual, auto expected) {
          Limits limits{.rel_rms = peaked ? 3e-2 : 1e-2};
          if (phase == "prefill" && id.starts_with("layers.0."))
            limits.equal_bf16 = 0.99, limits.bf16_steps = 2;
          EXPECT_TRUE(
              close(std::string(target) + " " + phase + " " + id, actual, expected, limits));
          const Difference d = difference(actual, expected);
          table.add(group(c, "bf16"), id, d, expected.size(), limits.rel_rms);
          worst = (std::max)(worst, d.rel_rms);
          equal += d.equal_bf16 * static_cast<double>(expected.size());
          elements += expected.size();
        });
    EXPECT_TRUE(missing.empty()) << "not traced: " << *missing.begin();
    const double share = equal / static_cast<double>(elements);
    EXPECT_GE(share, 0.97);
    std::cout << c << ", " << target << ": bit-equal " << 100 * share << " %, worst rel_rms "
              << worst << '\n';
  });
}

INSTANTIATE_TEST_SUITE_P(Tiny, GoldenBf16,
                         ::testing::Values(Case{"T1", "hf-bf16", "bf16", true},
                                           Case{"T2", "hf-bf16", "bf16", true},
                                           Case{"T3", "hf-bf16", "bf16", true},
                                           Case{"T4", "hf-bf16", "bf16", true},
                                           Case{"T3", "meta-bf16", "bf16", true}));

// Two ranks, whose partial results are rounded each, summed in float32 and rounded once.
INSTANTIATE_TEST_SUITE_P(Ranks, GoldenBf16,
                         ::testing::Values(Case{"T1", "hf-bf16", "mp2-bf16", true, 2},
                                           Case{"T2", "hf-bf16", "mp2-bf16", true, 2},
                                           Case{"T3", "hf-bf16", "mp2-bf16", true, 2},
                                           Case{"T1", "meta-mp2-bf16", "mp2-bf16", true, 2},
                                           Case{"T3", "meta-mp2-bf16", "mp2-bf16", true, 2}));

}  // namespace
}  // namespace quipu_test
