// bfloat16 rounding for tests, written apart from the library's own.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quipu_test {

/// The bit pattern of the bfloat16 nearest to x, ties to even.
inline std::uint16_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float from_bf16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// x rounded to bfloat16 and widened again.
inline float round_bf16(float x) { return from_bf16_bits(bf16_bits(x)); }

inline std::vector<float> round_bf16(std::vector<float> values) {
  for (float& x : values) x = round_bf16(x);
  return values;
}

/// Steps from a to b on the line of bfloat16 values (0 and -0 are the same point).
inline int bf16_steps(float a, float b) {
  const auto place = [](float x) {
    const int bits = bf16_bits(x);
    return (bits & 0x8000) != 0 ? -(bits & 0x7fff) : bits;
  };
  return std::abs(place(a) - place(b));
}

}  // namespace quipu_test
