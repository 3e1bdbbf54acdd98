// RMS normalisation against double precision and the canonical order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rms_norm_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/rms_norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rms_norm_test {
namespace HWY_NAMESPACE {
void Norm(const float* x, const float* weight, float eps, std::size_t n, std::size_t rows, float* y,
          quipu::NumericMode mode) {
  quipu::HWY_NAMESPACE::ApplyRmsNorm(x, weight, eps, n, rows, y, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace rms_norm_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace rms_norm_test {
HWY_EXPORT(Norm);
using quipu::NumericMode;

std::vector<float> norm(const std::vector<float>& x, const std::vector<float>& weight, float eps,
                        NumericMode mode) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(Norm)
  (x.data(), weight.data(), eps, weight.size(), x.size() / weight.size(), y.data(), mode);
  return y;
}

TEST(RmsNorm, Float32AgainstDouble) {
  for (const std::size_t n : {2u, 12u, 16u, 17u, 63u, 64u, 288u, 576u, 4096u}) {
    SCOPED_TRACE(n);
    const std::size_t rows = 7;  // pairs with and without another pair to come, and a single row
    const std::vector<float> x = quipu_test::random_floats(rows * n, unsigned(n), 3.0f);
    const std::vector<float> weight = quipu_test::random_floats(n, 7);
    const float eps = 1e-5f;
    quipu_test::for_each_target([&](std::int64_t target) {
      const std::vector<float> y = norm(x, weight, eps, NumericMode::f32);
      for (std::size_t row = 0; row < rows; ++row) {
        const float* in = x.data() + row * n;
        double squares = 0;
        for (std::size_t i = 0; i < n; ++i) squares += double(in[i]) * in[i];
        const double scale = 1 / std::sqrt(squares / double(n) + double(eps));
        // The sum is off by n / 16 + 6 roundings at most, its root by half of that; mean, eps,
        // root, reciprocal and the two products round once each.
        const double bound = (double(n) / 32 + 9) * quipu_test::kRounding;
        const float mean = quipu_test::canonical_sum_of_squares(in, n) / float(n);
        const float canonical = 1.0f / std::sqrt(mean + eps);
        for (std::size_t i = 0; i < n; ++i) {
          const double exact = in[i] * scale * weight[i];
          ASSERT_NEAR(y[row * n + i], exact, bound * std::abs(exact)) << row << ' ' << i;
          if (quipu_test::fuses_multiply_add(target)) {
            ASSERT_EQ(y[row * n + i], in[i] * canonical * weight[i]) << row << ' ' << i;
          }
        }
      }
    });
  }
}

TEST(RmsNorm, Bf16RoundsBeforeAndAfterTheWeight) {
  const std::size_t n = 67;
  const std::vector<float> x = quipu_test::bf16_values(quipu_test::random_floats(2 * n, 5, 3.0f));
  const std::vector<float> weight = quipu_test::bf16_values(quipu_test::random_floats(n, 6));
  quipu_test::for_each_target([&](std::int64_t target) {
    if (!quipu_test::fuses_multiply_add(target)) return;
    const std::vector<float> y = norm(x, weight, 1e-5f, NumericMode::bf16);
    std::size_t once_would_do = 0;
    for (std::size_t row = 0; row < 2; ++row) {
      const float* in = x.data() + row * n;
      const float mean = quipu_test::canonical_sum_of_squares(in, n) / float(n);
      const float scale = 1.0f / std::sqrt(mean + 1e-5f);
      for (std::size_t i = 0; i < n; ++i) {
        const float normal = quipu_test::nearest_bf16(in[i] * scale);
        ASSERT_EQ(y[row * n + i], quipu_test::nearest_bf16(normal * weight[i]));
        once_would_do += y[row * n + i] == quipu_test::nearest_bf16(in[i] * scale * weight[i]);
      }
    }
    EXPECT_LT(once_would_do, 2 * n);  // the data tell the two roundings from one
  });
}

// Sums of squares in bf16 would lose all but the first few hundred of 4096 equal values, and a
// large mean hides a small spread.
TEST(RmsNorm, SquaresAreSummedInFloat32InEitherMode) {
  const std::vector<float> weight(4096, 1.0f);
  const std::vector<float> equal(4096, 3.0f);
  std::vector<float> shifted = quipu_test::random_floats(4096, 1, 0.5f);
  for (float& v : shifted) v = quipu_test::nearest_bf16(v + 100);
  quipu_test::for_each_target([&](std::int64_t) {
    for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
      for (const float v : norm(equal, weight, 0.0f, mode)) ASSERT_NEAR(v, 1.0f, 1e-6f);
    }
    const std::vector<float> y = norm(shifted, weight, 0.0f, NumericMode::bf16);
    double squares = 0;
    for (const float v : shifted) squares += double(v) * v;
    const double scale = 1 / std::sqrt(squares / 4096);
    for (std::size_t i = 0; i < 4096; ++i) {
      ASSERT_EQ(y[i], quipu_test::nearest_bf16(float(shifted[i] * scale)));
    }
  });
}

TEST(RmsNorm, EpsilonMatters) {
  const std::vector<float> weight(16, 1.0f);
  const std::vector<float> x(16, 1e-3f);
  quipu_test::for_each_target([&](std::int64_t) {
    const float a = norm(x, weight, 1e-5f, NumericMode::f32)[0];
    const float b = norm(x, weight, 1e-6f, NumericMode::f32)[0];
    EXPECT_NEAR(a, 1e-3 / std::sqrt(1e-6 + 1e-5), 1e-6);
    EXPECT_NEAR(b, 1e-3 / std::sqrt(1e-6 + 1e-6), 1e-6);
  });
}

TEST(RmsNorm, RowsAloneTogetherAndInPlaceAreTheSame) {
  for (const std::size_t n : {37u, 64u}) {
    const std::vector<float> weight = quipu_test::random_floats(n, 8);
    for (std::size_t rows = 1; rows < 8; ++rows) {
      const std::vector<float> x = quipu_test::random_floats(rows * n, 9);
      quipu_test::for_each_target([&](std::int64_t) {
        for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
          std::vector<float> alone = x;
          for (std::size_t row = 0; row < rows; ++row) {
            float* y = alone.data() + row * n;
            HWY_DYNAMIC_DISPATCH(Norm)(x.data() + row * n, weight.data(), 1e-5f, n, 1, y, mode);
          }
          EXPECT_EQ(norm(x, weight, 1e-5f, mode), alone);
          std::vector<float> y = x;
          HWY_DYNAMIC_DISPATCH(Norm)(y.data(), weight.data(), 1e-5f, n, rows, y.data(), mode);
          EXPECT_EQ(y, alone);
        }
      });
    }
  }
}

}  // namespace rms_norm_test
#endif
