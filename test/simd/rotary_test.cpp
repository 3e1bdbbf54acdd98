// The rotary embedding of interleaved pairs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rotary_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/rotary-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rotary_test {
namespace HWY_NAMESPACE {
void Rotate(float* x, std::size_t stride, std::size_t heads, std::size_t head_dim, std::size_t rows,
            const float* table, quipu::NumericMode mode) {
  quipu::HWY_NAMESPACE::ApplyRotary(x, stride, heads, head_dim, rows, table, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace rotary_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace rotary_test {
HWY_EXPORT(Rotate);
using quipu::NumericMode;

// The reference's complex product, each operation rounded on its own: bits on every target.
TEST(Rotary, EqualsTheComplexProductBitForBit) {
  for (const std::size_t head_dim : {2u, 6u, 8u, 12u, 16u, 48u, 64u, 128u}) {
    SCOPED_TRACE(head_dim);
    const std::size_t heads = 5;  // four together and one
    const std::size_t rows = 4;
    const std::size_t stride = heads * head_dim + 5;
    const std::vector<float> x = quipu_test::random_floats(rows * stride, unsigned(head_dim), 4.0f);
    std::vector<float> frequencies(head_dim / 2);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      frequencies[i] = float(std::pow(500000.0, -2.0 * double(i) / double(head_dim)));
    }
    std::vector<float> table(rows * quipu::rotary_row_floats(head_dim));
    quipu::fill_rotary_rows(frequencies.data(), head_dim,
                            {.cache_row = 0, .start = 4093, .tokens = rows, .first_row = 0},
                            table.data());
    for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
      quipu_test::for_each_target([&](std::int64_t) {
        std::vector<float> y = x;
        HWY_DYNAMIC_DISPATCH(Rotate)(y.data(), stride, heads, head_dim, rows, table.data(), mode);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t row = i / stride;
          const std::size_t feature = i % stride % head_dim;
          if (i % stride >= heads * head_dim) {
            ASSERT_EQ(y[i], x[i]) << "past the heads";
            continue;
          }
          const float angle = float(4093 + row) * frequencies[feature / 2];
          const auto c = float(std::cos(double(angle)));
          const auto s = float(std::sin(double(angle)));
          const std::size_t pair = i - feature % 2;
          volatile float first = (feature % 2 == 0 ? x[pair] : x[pair + 1]) * c;
          volatile float second = (feature % 2 == 0 ? x[pair + 1] : x[pair]) * s;
          const float expected = feature % 2 == 0 ? first - second : first + second;
          ASSERT_EQ(y[i], mode == NumericMode::bf16 ? quipu_test::nearest_bf16(expected) : expected)
              << "row " << row << " feature " << feature;
        }
      });
    }
  }
}

TEST(Rotary, PositionZeroChangesNothingAndLengthsStay) {
  const std::size_t head_dim = 64;
  std::vector<float> frequencies(32, 0.37f);
  std::vector<float> table(2 * quipu::rotary_row_floats(head_dim));
  quipu::fill_rotary_rows(frequencies.data(), head_dim, {.start = 0, .tokens = 2, .first_row = 0},
                          table.data());
  const std::vector<float> x = quipu_test::random_floats(2 * head_dim, 3);
  quipu_test::for_each_target([&](std::int64_t) {
    std::vector<float> y = x;
    HWY_DYNAMIC_DISPATCH(Rotate)
    (y.data(), head_dim, 1, head_dim, 2, table.data(), NumericMode::f32);
    for (std::size_t i = 0; i < head_dim; ++i) EXPECT_EQ(y[i], x[i]);
    for (std::size_t i = head_dim; i < 2 * head_dim; i += 2) {
      EXPECT_NE(y[i], x[i]);
      EXPECT_NEAR(std::hypot(y[i], y[i + 1]), std::hypot(x[i], x[i + 1]), 1e-6);
    }
  });
}

}  // namespace rotary_test
#endif
