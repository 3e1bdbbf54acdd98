// Rounding to bf16 against arithmetic and against the scalar conversion.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "round_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace round_test {
namespace HWY_NAMESPACE {
void RoundToBf16(float* x, std::size_t n) { quipu::HWY_NAMESPACE::RoundToBf16(x, n); }
void ConvertToBf16(const float* x, std::size_t n, quipu::bf16* y) {
  quipu::HWY_NAMESPACE::ConvertToBf16(x, n, y);
}
void ConvertToFloat(const quipu::bf16* x, std::size_t n, float* y) {
  quipu::HWY_NAMESPACE::ConvertToFloat(x, n, y);
}
}  // namespace HWY_NAMESPACE
}  // namespace round_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace round_test {
HWY_EXPORT(RoundToBf16);
HWY_EXPORT(ConvertToBf16);
HWY_EXPORT(ConvertToFloat);

// Every upper half (all signs, exponents, the 7 bits that stay) with lower halves around the tie.
std::vector<float> bit_patterns() {
  std::vector<float> x;
  for (std::uint32_t high = 0; high < 0x10000; high += 1) {
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      x.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  x.push_back(1.0f);  // a size that fills no vector
  return x;
}

TEST(RoundBf16, NearestEvenForAllExponents) {
  const std::vector<float> x = bit_patterns();
  quipu_test::for_each_target([&](std::int64_t) {
    std::vector<float> y = x;
    HWY_DYNAMIC_DISPATCH(RoundToBf16)(y.data(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(y[i]));
      } else if (std::isinf(x[i])) {
        ASSERT_EQ(y[i], x[i]);
      } else {
        // The arithmetic judge gives 2^128 where bf16 has no finite value: that is infinity.
        ASSERT_EQ(y[i], quipu_test::nearest_bf16(x[i])) << std::bit_cast<std::uint32_t>(x[i]);
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]) & 0xffffu, 0u);
    }
  });
}

TEST(RoundBf16, ConversionsAgreeWithTheScalarOnes) {
  const std::vector<float> x = bit_patterns();
  quipu_test::for_each_target([&](std::int64_t) {
    std::vector<quipu::bf16> y(x.size());
    HWY_DYNAMIC_DISPATCH(ConvertToBf16)(x.data(), x.size(), y.data());
    std::vector<float> z(x.size());
    HWY_DYNAMIC_DISPATCH(ConvertToFloat)(y.data(), y.size(), z.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, quipu::to_bf16(x[i]).bits) << std::bit_cast<std::uint32_t>(x[i]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(z[i]), std::uint32_t(y[i].bits) << 16);
    }
  });
}

}  // namespace round_test
#endif
