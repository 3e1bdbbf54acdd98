// The closed-form generator of the golden data's full-width weights: element i of a tensor depends
// on its seed and i alone, so that 200 million weights need no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/float_bits.hpp"

namespace quipu_test {

/// 64 well mixed bits for element i of a tensor with this seed (SplitMix64).
inline std::uint64_t generated_bits(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// base + a value in [-scale, scale): 24 bits are exact in float32, so that the product with the
/// scale and the sum with the base (of norm weights only) are all that rounds.
inline float generated(std::uint64_t seed, std::uint64_t i, float scale, float base = 0) {
  const auto u = static_cast<float>(generated_bits(seed, i) >> 40);
  const float value = (u * 0x1p-24f * 2 - 1) * scale;
  if (base == 0) return value;
  const volatile float rounded = value;  // the product rounds by itself where FMA would fuse it
  return base + rounded;
}

inline std::vector<float> generated_tensor(std::uint64_t seed, std::size_t count, float scale,
                                           float base = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = generated(seed, i, scale, base);
  return values;
}

}  // namespace quipu_test
