// The canonical order of sums, stated once more in plain scalar code with std::fma: kernels must
// give these bits on every target that fuses multiply-add. Random data and distances for the tests.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace quipu_test {

/// Half a unit in the last place, relative: the error of one rounding to float32.
inline constexpr double kRounding = 0x1p-24;

inline std::vector<float> random_floats(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::vector<float> values(n);
  for (float& v : values) {
    v = scale * (static_cast<float>(engine() >> 8) * 0x1p-23f - 1);  // [-1, 1)
  }
  return values;
}

/// The value's nearest bf16, by arithmetic instead of bits: Veltkamp's splitting with 2^16 + 1.
inline float nearest_bf16(float x) {
  const double d = x;
  int exponent;
  std::frexp(d, &exponent);
  if (exponent < -125) exponent = -125;  // subnormals share the least exponent
  const double unit = std::ldexp(1.0, exponent - 8);
  return static_cast<float>(std::nearbyint(d / unit) * unit);
}

inline std::vector<float> bf16_values(std::vector<float> values) {
  for (float& v : values) v = nearest_bf16(v);
  return values;
}

/// Sixteen lanes, element i to lane i mod 16 by add(value, lane), then 8 + 8, 4 + 4, 2 + 2, 1 + 1.
template <class Add>
float sixteen_lanes(const float* x, std::size_t n, Add add) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % 16] = add(x[i], lanes[i % 16]);
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}
inline float canonical_sum_of_squares(const float* x, std::size_t n) {
  return sixteen_lanes(x, n, [](float v, float sum) { return std::fma(v, v, sum); });
}
inline float canonical_sum(const float* x, std::size_t n) {
  return sixteen_lanes(x, n, [](float v, float sum) {
    volatile float result = v + sum;
    return float(result);
  });
}

/// The exponential of math-inl.hpp, step by step.
inline float canonical_exp(float x) {
  if (x < -87.336f) return 0;
  volatile float scaled = x * 1.44269504f;
  const float n = std::nearbyint(scaled);
  float r = std::fma(-n, 0.693359375f, x);
  r = std::fma(-n, -2.12194440e-4f, r);
  float p = 1.0f / 5040;
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    p = std::fma(p, r, c);
  }
  return std::ldexp(p, static_cast<int>(n));
}

/// Units in the last place of `exact` (normal range) between it and a float32.
inline double ulps(float value, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, exponent - 24);
}

}  // namespace quipu_test
