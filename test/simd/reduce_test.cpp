// Sums in the canonical order, and the largest value.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/reduce-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace reduce_test {
namespace HWY_NAMESPACE {
float SumOfSquares(const float* x, std::size_t n) {
  return quipu::HWY_NAMESPACE::SumOfSquares(x, n);
}
float Sum(const float* x, std::size_t n) { return quipu::HWY_NAMESPACE::Sum(x, n); }
float Largest(const float* x, std::size_t n) { return quipu::HWY_NAMESPACE::Largest(x, n); }
}  // namespace HWY_NAMESPACE
}  // namespace reduce_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "canonical.hpp"
#include "per_target.hpp"

namespace reduce_test {
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(Sum);
HWY_EXPORT(Largest);

const std::size_t kSizes[] = {1, 2, 7, 15, 16, 17, 31, 32, 48, 63, 576, 577, 4096, 14336};

TEST(Reduce, SumsAreCloseEverywhereAndExactOnFusingTargets) {
  for (const std::size_t n : kSizes) {
    SCOPED_TRACE(n);
    const std::vector<float> x = quipu_test::random_floats(n, unsigned(n));
    double squares = 0;
    double sum = 0;
    double magnitude = 0;
    for (const float v : x) {
      squares += double(v) * v;
      sum += v;
      magnitude += std::abs(v);
    }
    // A lane adds n / 16 terms, the tree four more; a product that is not fused rounds once.
    const double terms = double(n) / 16 + 6;
    quipu_test::for_each_target([&](std::int64_t target) {
      const float got_squares = HWY_DYNAMIC_DISPATCH(SumOfSquares)(x.data(), n);
      const float got_sum = HWY_DYNAMIC_DISPATCH(Sum)(x.data(), n);
      EXPECT_NEAR(got_squares, squares, terms * quipu_test::kRounding * squares);
      EXPECT_NEAR(got_sum, sum, terms * quipu_test::kRounding * magnitude);
      EXPECT_EQ(got_sum, quipu_test::canonical_sum(x.data(), n));
      if (quipu_test::fuses_multiply_add(target)) {
        EXPECT_EQ(got_squares, quipu_test::canonical_sum_of_squares(x.data(), n));
      }
    });
  }
}

TEST(Reduce, LargestAtEveryPlace) {
  for (std::size_t n = 1; n < 70; ++n) {
    std::vector<float> x = quipu_test::random_floats(n, 3, 5.0f);
    for (float& v : x) v -= 20;
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> y = x;
      y[at] = -3;
      quipu_test::for_each_target([&](std::int64_t) {
        ASSERT_EQ(HWY_DYNAMIC_DISPATCH(Largest)(y.data(), n), -3.0f) << at << " of " << n;
      });
    }
  }
}

}  // namespace reduce_test
#endif
