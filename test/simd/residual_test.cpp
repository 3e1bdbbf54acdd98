// The residual addition in both modes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "residual_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/residual-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace residual_test {
namespace HWY_NAMESPACE {
void Add(float* stream, const float* update, std::size_t n, quipu::NumericMode mode) {
  quipu::HWY_NAMESPACE::AddResidual(stream, update, n, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace residual_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace residual_test {
HWY_EXPORT(Add);
using quipu::NumericMode;

TEST(Residual, AddsAndRoundsWhereAsked) {
  for (std::size_t n = 0; n < 40; ++n) {
    const std::vector<float> h = quipu_test::bf16_values(quipu_test::random_floats(n, 1, 9.0f));
    const std::vector<float> update = quipu_test::bf16_values(quipu_test::random_floats(n, 2));
    quipu_test::for_each_target([&](std::int64_t) {
      std::vector<float> plain = h;
      std::vector<float> rounded = h;
      HWY_DYNAMIC_DISPATCH(Add)(plain.data(), update.data(), n, NumericMode::f32);
      HWY_DYNAMIC_DISPATCH(Add)(rounded.data(), update.data(), n, NumericMode::bf16);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(plain[i], h[i] + update[i]);
        ASSERT_EQ(rounded[i], quipu_test::nearest_bf16(h[i] + update[i]));
      }
    });
  }
}

}  // namespace residual_test
#endif
