// The first index of the largest value; NaN never wins.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "argmax_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/argmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace argmax_test {
namespace HWY_NAMESPACE {
std::size_t ArgMax(const float* x, std::size_t n) { return quipu::HWY_NAMESPACE::ArgMax(x, n); }
}  // namespace HWY_NAMESPACE
}  // namespace argmax_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace argmax_test {
HWY_EXPORT(ArgMax);

std::size_t argmax(const std::vector<float>& x) {
  return HWY_DYNAMIC_DISPATCH(ArgMax)(x.data(), x.size());
}

const float kNaN = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

TEST(ArgMax, FindsEveryPlaceAndTheFirstOfEquals) {
  quipu_test::for_each_target([&](std::int64_t) {
    for (std::size_t n = 1; n < 70; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, -5.0f);
        x[at] = -1;
        ASSERT_EQ(argmax(x), at) << n;
        for (std::size_t later = at; later < n; later += 7) x[later] = -1;
        ASSERT_EQ(argmax(x), at) << n;
      }
      ASSERT_EQ(argmax(std::vector<float>(n, 0.0f)), 0u);
    }
  });
}

TEST(ArgMax, NaNIsNeverTheLargest) {
  quipu_test::for_each_target([&](std::int64_t) {
    for (std::size_t n = 1; n < 40; ++n) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, kNaN);
        x[at] = -2;
        ASSERT_EQ(argmax(x), at) << n;
        x[at] = -kInfinity;
        ASSERT_EQ(argmax(x), at) << n;
        std::vector<float> y(n, 1.0f);
        y[at] = kNaN;
        ASSERT_EQ(argmax(y), at == 0 && n > 1 ? 1u : 0u) << n;
      }
      ASSERT_EQ(argmax(std::vector<float>(n, kNaN)), 0u);
    }
  });
}

TEST(ArgMax, Infinities) {
  quipu_test::for_each_target([&](std::int64_t) {
    std::vector<float> x(50, -kInfinity);
    EXPECT_EQ(argmax(x), 0u);
    x[33] = -(std::numeric_limits<float>::max)();
    EXPECT_EQ(argmax(x), 33u);
    x[41] = kInfinity;
    EXPECT_EQ(argmax(x), 41u);
  });
}

}  // namespace argmax_test
#endif
