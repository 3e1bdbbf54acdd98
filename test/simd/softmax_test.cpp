// Softmax, put together as attention does it, against double precision and the canonical order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "softmax_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace softmax_test {
namespace HWY_NAMESPACE {
void Softmax(float* x, std::size_t n, quipu::NumericMode mode) {
  namespace kernels = quipu::HWY_NAMESPACE;
  const float largest = kernels::Largest(x, n);
  float sum = 0;
  for (std::size_t begin = 0; begin < n; begin += quipu::sum_panel) {
    const std::size_t left = n - begin;
    sum += kernels::ExpBlock(x + begin, left < quipu::sum_panel ? left : quipu::sum_panel, largest);
  }
  kernels::DivideRow(x, n, sum, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace softmax_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "canonical.hpp"
#include "per_target.hpp"

namespace softmax_test {
HWY_EXPORT(Softmax);
using quipu::NumericMode;

std::vector<float> softmax(std::vector<float> x, NumericMode mode = NumericMode::f32) {
  HWY_DYNAMIC_DISPATCH(Softmax)(x.data(), x.size(), mode);
  return x;
}

std::vector<float> canonical_softmax(std::vector<float> x) {
  const float largest = *std::max_element(x.begin(), x.end());
  for (float& v : x) v = quipu_test::canonical_exp(v - largest);
  float sum = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 512) {
    sum +=
        quipu_test::canonical_sum(x.data() + begin, (std::min)(x.size() - begin, std::size_t{512}));
  }
  for (float& v : x) v /= sum;
  return x;
}

TEST(Softmax, AgainstDoubleAndCanonicalBits) {
  for (const std::size_t n : {1u, 2u, 3u, 15u, 16u, 17u, 511u, 512u, 513u, 1024u, 5000u}) {
    for (const float scale : {0.1f, 1.0f, 30.0f}) {
      SCOPED_TRACE(n);
      const std::vector<float> x = quipu_test::random_floats(n, unsigned(n), scale);
      const double largest = *std::max_element(x.begin(), x.end());
      double sum = 0;
      for (const float v : x) sum += std::exp(v - largest);
      quipu_test::for_each_target([&](std::int64_t target) {
        const std::vector<float> y = softmax(x);
        const std::vector<float> canonical = canonical_softmax(x);
        for (std::size_t i = 0; i < n; ++i) {
          const double exact = std::exp(x[i] - largest) / sum;
          // The difference to the largest rounds once, which moves an exponential by |difference|
          // roundings; two units (four roundings) each for an exponential above and those below;
          // the sum of a block by lanes, of blocks in order; the division.
          const double roundings = 2 * scale + 8 + (512.0 / 16 + 6) + double(n) / 512 + 1;
          ASSERT_NEAR(y[i], exact, roundings * quipu_test::kRounding * exact) << i;
          if (quipu_test::fuses_multiply_add(target)) {
            ASSERT_EQ(y[i], canonical[i]) << i;
          }
        }
      });
    }
  }
}

TEST(Softmax, FarBelowTheLargestIsExactlyZeroAndNothingOverflows) {
  std::vector<float> x = {3e38f, -3e38f, 0.0f, 2.9e38f};
  quipu_test::for_each_target([&](std::int64_t) {
    EXPECT_EQ(softmax(x), (std::vector<float>{1, 0, 0, 0}));
    EXPECT_EQ(softmax({-3e38f, -3e38f}), (std::vector<float>{0.5f, 0.5f}));
  });
}

TEST(Softmax, Bf16RoundsTheProbabilities) {
  const std::vector<float> x = quipu_test::random_floats(77, 4, 2.0f);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> exact = softmax(x);
    const std::vector<float> y = softmax(x, NumericMode::bf16);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], quipu_test::nearest_bf16(exact[i]));
    }
  });
}

}  // namespace softmax_test
#endif
