// The helpers of test/support and the properties of the scalar forward pass that need no golden
// activations: what judges the library is tested first.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/scalar_forward.hpp"
#include "support/compare.hpp"
#include "support/generator.hpp"
#include "support/golden.hpp"
#include "support/safetensors.hpp"

namespace quipu_test {
namespace {

TEST(FloatBits, RoundsToNearestEven) {
  EXPECT_EQ(bf16_bits(1.0f), 0x3f80);
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3f808000u)), 0x3f80) << "a tie goes to the even one";
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3f818000u)), 0x3f82) << "a tie goes to the even one";
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x7f7fffffu)), 0x7f80) << "past the largest: infinity";
  EXPECT_EQ(bf16_bits(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(round_bf16(std::bit_cast<float>(0x7f800001u)))) << "NaN stays NaN";
  EXPECT_EQ(bf16_steps(-0.0f, 0.0f), 0);
  EXPECT_EQ(bf16_steps(from_bf16_bits(0x8001), from_bf16_bits(0x0001)), 2) << "across zero";
}

struct Vector {
  std::uint64_t seed, i, z;
  std::uint32_t value, scaled, with_base;
  std::uint16_t scaled_bf16, with_base_bf16;
};

TEST(Generator, GivesTheTestVectorsOfTheGoldenData) {
  const Vector vectors[] = {
      {0, 0, 0xe220a8397b1dcdaf, 0x3f444150, 0x3cbc67a9, 0x3f89d011, 0x3cbc, 0x3f8a},
      {0, 1, 0x6e789e6aa1b965f4, 0xbe0c3b10, 0xbb869f19, 0x3f7c7e86, 0xbb87, 0x3f7c},
      {0, 2, 0x06c45d188009454f, 0xbf727746, 0xbce8c46c, 0x3f67c0df, 0xbce9, 0x3f68},
      {0, 3, 0xf88bb8a8724c81ec, 0x3f711770, 0x3ce772a9, 0x3f8c0df9, 0x3ce7, 0x3f8c},
      {0, 4, 0x1b39896a51a8749b, 0xbf498cee, 0xbcc17d0d, 0x3f6bd84f, 0xbcc1, 0x3f6c},
      {0x1001, 0, 0xe9ef5e7ba7738315, 0x3f53debc, 0x3ccb652f, 0x3f8a97f0, 0x3ccb, 0x3f8b},
      {0x1001, 1, 0x3f40d28ed7fee3e6, 0xbf017e5c, 0xbc78a0b0, 0x3f730cf7, 0xbc79, 0x3f73},
      {0x1001, 2, 0x54d2ad5a0ceca95d, 0xbeacb54c, 0xbc25ccc4, 0x3f775d56, 0xbc26, 0x3f77},
      {0x1001, 3, 0xdf1e511bcbd0185f, 0x3f3e3ca2, 0x3cb6a09b, 0x3f898308, 0x3cb7, 0x3f8a},
      {0x1001, 4, 0x9e93fa100c320839, 0x3e749fd0, 0x3bead6dc, 0x3f830ecc, 0x3beb, 0x3f83}};
  for (const Vector& v : vectors) {
    const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    EXPECT_EQ(generated_bits(v.seed, v.i), v.z);
    EXPECT_EQ(bits(generated(v.seed, v.i, 1)), v.value);
    EXPECT_EQ(bits(generated(v.seed, v.i, 0.03f)), v.scaled);
    EXPECT_EQ(bits(generated(v.seed, v.i, 0.1f, 1)), v.with_base);
    EXPECT_EQ(bf16_bits(generated(v.seed, v.i, 0.03f)), v.scaled_bf16);
    EXPECT_EQ(bf16_bits(generated(v.seed, v.i, 0.1f, 1)), v.with_base_bf16);
  }
}

TEST(Compare, SaysWhereAndHowMuch) {
  const std::vector<float> expected = {1, 2, 3, 4}, actual = {1, 2, 3.5f, 4};
  EXPECT_TRUE(close("x", expected, expected, {.rel_rms = 0, .max_abs = 0}));
  const ::testing::AssertionResult result = close("x", actual, expected, {.max_abs = 0.4});
  EXPECT_FALSE(result);
  for (const char* part : {"x: over", "[max_abs]", "element 2", "expected 3", "found 3.5"}) {
    EXPECT_NE(std::string(result.message()).find(part), std::string::npos) << result.message();
  }
  EXPECT_FALSE(close("x", actual, expected, {.rel_rms = 0.05}));
  EXPECT_TRUE(close("x", actual, expected, {.rel_rms = 0.1}));
  EXPECT_FALSE(close("x", actual, expected, {.equal_bf16 = 0.8}));
  EXPECT_FALSE(close("x", std::vector<float>{1}, expected, {})) << "other sizes";
  EXPECT_FALSE(same_bits("x", std::vector<float>{0.0f}, std::vector<float>{-0.0f}));
}

TEST(Compare, NeverLetsANanPass) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> expected = {1, 2};
  EXPECT_FALSE(close("x", std::vector<float>{1, nan}, expected, {}));
  EXPECT_FALSE(close("x", std::vector<float>{nan, 2}, expected, {.max_abs = 1e9}));
  EXPECT_FALSE(close("x", expected, std::vector<float>{1, nan}, {}));
}

TEST(TensorFile, NamesWhatIsMissing) {
  QUIPU_GOLDEN_OR_SKIP(path, "rope/rope_tables.safetensors");
  const TensorFile file(path);
  EXPECT_EQ(file.at("positions").integers.back(), 131071);
  EXPECT_THROW(
      try { file.at("none"); } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("no tensor none"), std::string::npos);
        throw;
      },
      std::runtime_error);
  EXPECT_THROW(TensorFile("/nowhere.safetensors"), std::runtime_error);
}

TEST(ScalarRotary, FrequenciesAreThoseOfTheReference) {
  QUIPU_GOLDEN_OR_SKIP(path, "rope/rope_tables.safetensors");
  const TensorFile file(path);
  for (const std::size_t head_dim : {64u, 128u}) {
    for (const auto& [kind, factor] :
         {std::pair{"unscaled", 1.0f}, {"scaled", 8.0f}, {"scaled32_derived", 32.0f}}) {
      ScalarConfig config{};
      config.head_dim = head_dim;
      config.rope_factor = factor;
      const std::string id = "hd" + std::to_string(head_dim) + "/" + kind + "/";
      const std::vector<float> frequencies = inverse_frequencies(config);
      EXPECT_TRUE(same_bits(id + "inv_freq", frequencies, file.at(id + "inv_freq").values));
      std::vector<float> cosines, sines;
      for (const std::int64_t position : file.at("positions").integers) {
        for (const float f : frequencies) {
          const double angle = static_cast<float>(position) * f;
          cosines.push_back(static_cast<float>(std::cos(angle)));
          sines.push_back(static_cast<float>(std::sin(angle)));
        }
      }
      // Both sides are one rounding (6e-8) from the cosine of the same float32 angle.
      EXPECT_TRUE(close(id + "cos", cosines, file.at(id + "cos").values, {.max_abs = 1.2e-7}));
      EXPECT_TRUE(close(id + "sin", sines, file.at(id + "sin").values, {.max_abs = 1.2e-7}));
    }
  }
}

// Its sums depend on nothing but their own terms, so that these are equalities.
TEST(ScalarForward, IsTheSameWholeChunkedAndInABatch) {
  const ScalarModel model = generated_model({.dim = 24,
                                             .n_layers = 2,
                                             .n_heads = 6,
                                             .n_kv_heads = 3,
                                             .head_dim = 4,
                                             .ffn = 40,
                                             .vocab_size = 19,
                                             .rope_factor = 8},
                                            7, 0.3f);
  const std::vector<std::int64_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6},
                                  other = {2, 7, 1, 8, 2, 8, 1, 8};
  for (const Rounding rounding : {Rounding::float32, Rounding::bf16}) {
    ScalarLlama<> whole(model.config, model.weights, rounding, 1, 8);
    const std::vector<float> expected = whole.forward(tokens, 0);

    ScalarLlama<> chunked(model.config, model.weights, rounding, 1, 8);
    std::vector<float> logits;
    for (std::size_t start = 0; start < 8;) {
      const std::size_t count = start == 0 ? 3 : start == 3 ? 4 : 1;
      const std::vector<float> part =
          chunked.forward(std::span(tokens).subspan(start, count), start);
      logits.insert(logits.end(), part.begin(), part.end());
      start += count;
    }
    EXPECT_TRUE(same_bits("chunked", logits, expected));

    std::vector<std::int64_t> both = other;
    both.insert(both.end(), tokens.begin(), tokens.end());
    ScalarLlama<> batched(model.config, model.weights, rounding, 2, 8);
    const std::vector<float> rows = batched.forward(both, 0);
    EXPECT_TRUE(same_bits("second row", std::span(rows).subspan(expected.size()), expected));
    EXPECT_THROW(whole.forward(tokens, 1), std::out_of_range) << "one past the capacity";
  }
}

}  // namespace
}  // namespace quipu_test
