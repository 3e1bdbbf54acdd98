// Statistics of timings against values worked out by hand.
#include "quipu/runtime/statistics.hpp"

#include <gtest/gtest.h>

namespace quipu {
namespace {

using Values = std::vector<double>;

TEST(Statistics, MedianOfOddEvenAndNone) {
  EXPECT_EQ(median(Values{3, 1, 2}), 2.0);
  EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(Values{7}), 7.0);
  EXPECT_EQ(median(Values{}), 0.0);
}

TEST(Statistics, MedianIgnoresOneOutlier) { EXPECT_EQ(median(Values{1, 1, 1, 1, 1000}), 1.0); }

TEST(Statistics, CoefficientOfVariationIsOfASample) {
  // Mean 5, sum of squares 32 over 7: sqrt(32 / 7) / 5.
  EXPECT_NEAR(coefficient_of_variation(Values{2, 4, 4, 4, 5, 5, 7, 9}), 0.4276179870598791, 1e-15);
  EXPECT_EQ(coefficient_of_variation(Values{3, 3, 3}), 0.0);
  EXPECT_EQ(coefficient_of_variation(Values{3}), 0.0);
}

TEST(Statistics, QuantileIsLinearBetweenValues) {
  const Values v{40, 10, 30, 20};
  EXPECT_EQ(quantile(v, 0), 10.0);
  EXPECT_EQ(quantile(v, 1), 40.0);
  EXPECT_EQ(quantile(v, 0.5), 25.0);
  EXPECT_EQ(quantile(v, 0.5), median(v));
  EXPECT_NEAR(quantile(v, 0.99), 39.7, 1e-12);
  EXPECT_EQ(quantile(Values{}, 0.5), 0.0);
}

}  // namespace
}  // namespace quipu
