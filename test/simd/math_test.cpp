// The exponential against double precision, on every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace math_test {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
void Exponentials(const float* x, std::size_t n, float* y) {
  const quipu::HWY_NAMESPACE::LaneTag d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(quipu::HWY_NAMESPACE::Exp(d, hn::LoadU(d, x + i)), d, y + i);
  }
}
}  // namespace HWY_NAMESPACE
}  // namespace math_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace math_test {
HWY_EXPORT(Exponentials);

std::vector<float> exponentials(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(Exponentials)(x.data(), x.size(), y.data());
  return y;
}

// 400,000 values over the whole range, dense near zero.
std::vector<float> arguments() {
  std::vector<float> x;
  for (int i = 0; i < 200000; ++i) x.push_back(-87.33f + 175.3f * float(i) / 200000);
  for (int i = 0; i < 200000; ++i) x.push_back(-1.0f + 2.0f * float(i) / 200000);
  return x;
}

TEST(Exp, WithinTwoUnitsOfTheTrueValue) {
  const std::vector<float> x = arguments();
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> y = exponentials(x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = (std::max)(worst, quipu_test::ulps(y[i], std::exp(double(x[i]))));
    }
    EXPECT_LT(worst, 2.0);
    testing::Test::RecordProperty("worst_ulps", std::to_string(worst));
  });
}

TEST(Exp, SameBitsOnFusingTargets) {
  const std::vector<float> x = arguments();
  quipu_test::for_each_target([&](std::int64_t target) {
    if (!quipu_test::fuses_multiply_add(target)) return;
    const std::vector<float> y = exponentials(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], quipu_test::canonical_exp(x[i])) << x[i];
    }
  });
}

TEST(Exp, SpecialArguments) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float most = (std::numeric_limits<float>::max)();
  std::vector<float> x = {0.0f, -0.0f, -87.34f, -100.0f, -1e9f, -most, nan, 1e-40f};
  x.resize(16);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> y = exponentials(x);
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(y[i], 0.0f) << x[i];
    EXPECT_TRUE(std::isnan(y[6]));
    EXPECT_EQ(y[7], 1.0f);
  });
}

}  // namespace math_test
#endif
