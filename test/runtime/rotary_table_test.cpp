// The rotary rows against higher precision, and that the angle is the float32 product.
#include "quipu/runtime/rotary_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

TEST(RotaryTable, RowsAreTheRoundedCosinesOfTheFloatAngle) {
  const std::vector<float> frequencies = {1.0f, 0.6636744f, 0.013f, 2.0e-6f};
  const std::size_t head_dim = 8;
  for (const std::size_t position : {0u, 1u, 7u, 8191u, 131071u}) {
    std::vector<float> row(quipu::rotary_row_floats(head_dim));
    quipu::fill_rotary_row(frequencies.data(), head_dim, position, row.data());
    for (std::size_t i = 0; i < 4; ++i) {
      const float angle = float(position) * frequencies[i];
      const long double c = std::cos(static_cast<long double>(angle));
      const long double s = std::sin(static_cast<long double>(angle));
      // Half a unit in the last place of a value below 1 is at most 2^-25.
      EXPECT_NEAR(row[2 * i], double(c), 0x1p-25) << position;
      EXPECT_NEAR(row[head_dim + 2 * i + 1], double(s), 0x1p-25) << position;
      EXPECT_EQ(row[2 * i + 1], row[2 * i]);
      EXPECT_EQ(row[head_dim + 2 * i], -row[head_dim + 2 * i + 1]);
    }
  }
}

TEST(RotaryTable, ChunksFillTheirOwnRows) {
  const float frequency = 0.5f;
  std::vector<float> table(6 * quipu::rotary_row_floats(2), -9);
  quipu::fill_rotary_rows(&frequency, 2, {.start = 0, .tokens = 2, .first_row = 0}, table.data());
  quipu::fill_rotary_rows(&frequency, 2, {.start = 40, .tokens = 3, .first_row = 2}, table.data());
  EXPECT_EQ(table[0], 1.0f);
  EXPECT_EQ(table[2 * 4], static_cast<float>(std::cos(20.0)));
  EXPECT_EQ(table[4 * 4], static_cast<float>(std::cos(21.0)));
  EXPECT_EQ(table[5 * 4], -9.0f);
}

}  // namespace
