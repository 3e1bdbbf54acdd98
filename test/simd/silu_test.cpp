// The feed-forward gate against double precision.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "silu_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/silu-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace silu_test {
namespace HWY_NAMESPACE {
void Gate(const float* gate, const float* up, std::size_t n, float* y, quipu::NumericMode mode) {
  quipu::HWY_NAMESPACE::ApplySiluGate(gate, up, n, y, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace silu_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace silu_test {
HWY_EXPORT(Gate);
using quipu::NumericMode;

std::vector<float> gate(const std::vector<float>& w1, const std::vector<float>& w3,
                        NumericMode mode) {
  std::vector<float> y(w1.size());
  HWY_DYNAMIC_DISPATCH(Gate)(w1.data(), w3.data(), w1.size(), y.data(), mode);
  return y;
}

TEST(SiluGate, Float32AgainstDouble) {
  for (const std::size_t n : {1u, 3u, 8u, 17u, 224u, 1536u}) {
    const std::vector<float> w1 = quipu_test::random_floats(n, unsigned(n), 12.0f);
    const std::vector<float> w3 = quipu_test::random_floats(n, 5);
    quipu_test::for_each_target([&](std::int64_t) {
      const std::vector<float> y = gate(w1, w3, NumericMode::f32);
      for (std::size_t i = 0; i < n; ++i) {
        const double exact = w1[i] / (1 + std::exp(-double(w1[i]))) * w3[i];
        // Two units of the exponential (four roundings), twice where it is in numerator and
        // denominator; numerator, denominator, quotient and product round once each.
        ASSERT_NEAR(y[i], exact, 12 * quipu_test::kRounding * std::abs(exact)) << w1[i];
      }
    });
  }
}

TEST(SiluGate, LargeGatesStayFinite) {
  std::vector<float> w1 = {-3e38f, -1e4f, -100, -88, 88, 100, 1e4f, 3e38f, 0, -0.0f};
  const std::vector<float> w3(w1.size(), 1.0f);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> y = gate(w1, w3, NumericMode::f32);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], 0.0f, 1e-30f) << w1[i];
    for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(y[i], w1[i]);
    EXPECT_EQ(y[8], 0.0f);
    EXPECT_EQ(y[9], 0.0f);
  });
}

TEST(SiluGate, Bf16RoundsSiluAndProduct) {
  const std::size_t n = 301;
  const std::vector<float> w1 = quipu_test::bf16_values(quipu_test::random_floats(n, 1, 6.0f));
  const std::vector<float> w3 = quipu_test::bf16_values(quipu_test::random_floats(n, 2, 2.0f));
  const std::vector<float> ones(n, 1.0f);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> silu = gate(w1, ones, NumericMode::f32);
    const std::vector<float> y = gate(w1, w3, NumericMode::bf16);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], quipu_test::nearest_bf16(quipu_test::nearest_bf16(silu[i]) * w3[i])) << i;
    }
  });
}

TEST(SiluGate, EveryLengthAndInPlaceIsTheSame) {
  const std::vector<float> w1 = quipu_test::random_floats(150, 1, 20.0f);
  const std::vector<float> w3 = quipu_test::random_floats(150, 2);
  quipu_test::for_each_target([&](std::int64_t) {
    for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
      std::vector<float> alone(w1.size());
      for (std::size_t i = 0; i < w1.size(); ++i)
        HWY_DYNAMIC_DISPATCH(Gate)(&w1[i], &w3[i], 1, &alone[i], mode);
      for (std::size_t n = 1; n <= w1.size(); ++n) {
        std::vector<float> first = w1, second = w3;
        HWY_DYNAMIC_DISPATCH(Gate)(first.data(), w3.data(), n, first.data(), mode);
        HWY_DYNAMIC_DISPATCH(Gate)(w1.data(), second.data(), n, second.data(), mode);
        for (std::size_t i = 0; i < w1.size(); ++i) {
          ASSERT_EQ(first[i], i < n ? alone[i] : w1[i]) << i << " of " << n;
          ASSERT_EQ(second[i], i < n ? alone[i] : w3[i]) << i << " of " << n;
        }
      }
    }
  });
}

}  // namespace silu_test
#endif
