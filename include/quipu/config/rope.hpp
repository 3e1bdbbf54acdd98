// Rotary inverse frequencies at compile time, bit for bit those of the reference.
//
// The reference computes in float32: exponent 2i / head_dim, theta to that power, reciprocal, then
// for Llama 3.1 the three bands. theta^e is correctly rounded to float32 here by computing it in
// double (error some 1e-15, so it rounds like the exact value unless that lies within 1e-15 of a
// tie). Recomputing the table at run time with contraction or -march=native gives other bits.
// Source: meta-llama/llama3 a0940f9cf706, llama/model.py 49-54; scaling: meta-llama/llama-models
// a9c89c471f79, models/llama3/model.py 45-62.
// Sibling: test/static/rope.cpp (golden tables).
#pragma once

#include <array>
#include <cstddef>

#include "quipu/config/dims.hpp"

namespace quipu {

namespace detail {

inline constexpr double ln2 = 0.693147180559945309417232121458;

/// Natural logarithm of x >= 1, error below 1e-15 relative to the result's scale.
constexpr double constexpr_log(double x) {
  int e = 0;
  while (x > 1.4142135623730951) {
    x *= 0.5;
    ++e;
  }
  // log(x) = 2 atanh(t), t = (x - 1) / (x + 1), |t| < 0.172: 12 terms leave t^25 < 1e-19.
  const double t = (x - 1) / (x + 1);
  const double t2 = t * t;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * t2 + 1.0 / k;
  return 2 * t * sum + e * ln2;
}

/// e^x for 0 <= x < 700.
constexpr double constexpr_exp(double x) {
  int k = static_cast<int>(x / ln2);
  double r = x - k * ln2;
  double sum = 1;
  for (int n = 20; n >= 1; --n) sum = 1 + r * sum / n;
  for (; k > 0; --k) sum *= 2;
  return sum;
}

}  // namespace detail

/// theta^(-2i / head_dim) for i = 0 .. head_dim / 2 - 1, rounded as the reference rounds.
template <std::size_t HeadDim>
constexpr std::array<float, HeadDim / 2> unscaled_inverse_frequencies(double theta) {
  std::array<float, HeadDim / 2> f{};
  const double log_theta = detail::constexpr_log(theta);
  for (std::size_t i = 0; i < HeadDim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(HeadDim);
    const float power =
        static_cast<float>(detail::constexpr_exp(log_theta * static_cast<double>(exponent)));
    f[i] = 1.0f / power;
  }
  return f;
}

/// Llama 3.1's scaling of one inverse frequency (radians a position): short wavelengths are kept,
/// long ones divided by the factor, those between blended.
constexpr float scaled_inverse_frequency(float f, llama3_scaling s) {
  const float wavelength = static_cast<float>(2 * 3.14159265358979323846) / f;
  const float low_wavelength = static_cast<float>(s.original_positions / s.low);
  const float high_wavelength = static_cast<float>(s.original_positions / s.high);
  if (wavelength < high_wavelength) return f;
  const float factor = static_cast<float>(s.factor);
  if (wavelength > low_wavelength) return f / factor;
  const float smooth =
      (static_cast<float>(s.original_positions) / wavelength - static_cast<float>(s.low)) /
      static_cast<float>(s.high - s.low);
  return (1.0f - smooth) * f / factor + smooth * f;
}
/// Unscaled: the frequency itself.
constexpr float scaled_inverse_frequency(float f, none) { return f; }

/// The inverse frequencies of a configuration: head_dim / 2 values, radians a position.
template <class M>
inline constexpr auto inverse_frequencies = [] {
  auto f = unscaled_inverse_frequencies<dims<M>::head_dim>(static_cast<double>(M::rope_theta));
  for (float& x : f) x = scaled_inverse_frequency(x, detail::scaling_of<M>());
  return f;
}();

}  // namespace quipu
