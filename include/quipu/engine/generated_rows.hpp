// Weights that are made up: of any model, in any element type, for measuring and testing at full
// size where no checkpoint is at hand.
//
// Norm weights lie near 1, the elements of a matrix have mean 0 and standard deviation
// 1 / sqrt(inputs), so that activations keep their size through any number of layers. A row depends
// on seed, tensor and row alone, never on the order in which rows are asked for.
// Siblings: engine/convert.hpp (generate_checkpoint), engine/written_tensor.hpp.
// Test: test/engine/packed_test.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "quipu/simd/quantize.hpp"

namespace quipu {

/// Rows of one made-up tensor.
class GeneratedRows {
 public:
  /// `path` tells the tensors of a model apart ("layers.0.attention.wq").
  GeneratedRows(std::uint64_t seed, std::string_view path, ElementType type, std::size_t cols,
                bool norm)
      : tensor_(mixed(seed)),
        type_(type),
        cols_(cols),
        mean_(norm ? 1.0f : 0.0f),
        deviation_(norm ? 0.1f : 1.0f / std::sqrt(static_cast<float>(cols))) {
    for (const char c : path) tensor_ = mixed(tensor_ ^ static_cast<unsigned char>(c));
  }

  /// Writes row `row`, row_bytes(type, cols) bytes.
  void operator()(std::size_t row, std::byte* out) const {
    std::uint64_t state = mixed(tensor_ ^ row);
    auto* to = reinterpret_cast<std::uint8_t*>(out);
    const ElementTypeInfo& facts = info(type_);
    if (facts.block_elements == 1) return plain(state, to);
    for (std::size_t k = 0; k < cols_; k += facts.block_elements, to += facts.block_bytes) {
      block(state, to);
    }
  }

 private:
  // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
  static std::uint64_t mixed(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  static std::uint64_t next(std::uint64_t& state) {
    const std::uint64_t z = mixed(state);
    state += 0x9e3779b97f4a7c15u;
    return z;
  }
  static void fill(std::uint64_t& state, std::uint8_t* out, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = next(state);
      std::memcpy(out + i, &word, (std::min)(std::size_t{8}, bytes - i));
    }
  }

  // Four bytes added and centred: a bell from -510 to 510 with deviation 147.8.
  static constexpr float bell_deviation = 147.8f;
  static int bell(std::uint32_t word) {
    const std::uint32_t pairs = (word & 0x00ff00ffu) + (word >> 8 & 0x00ff00ffu);
    return static_cast<int>((pairs & 0xffffu) + (pairs >> 16)) - 510;
  }

  void plain(std::uint64_t state, std::uint8_t* out) const {
    const float scale = deviation_ / bell_deviation;
    for (std::size_t k = 0; k < cols_; ++k) {
      const std::uint64_t word = next(state);
      // Both halves of a word are used, the second for the next element.
      put(out, k, mean_ + scale * static_cast<float>(bell(static_cast<std::uint32_t>(word))));
      if (++k < cols_) {
        put(out, k,
            mean_ + scale * static_cast<float>(bell(static_cast<std::uint32_t>(word >> 32))));
      }
    }
  }
  void put(std::uint8_t* out, std::size_t k, float value) const {
    if (type_ == ElementType::f32) {
      std::memcpy(out + 4 * k, &value, 4);
    } else {
      const std::uint16_t bits =
          type_ == ElementType::bf16 ? to_bf16(value).bits : to_f16(value).bits;
      std::memcpy(out + 2 * k, &bits, 2);
    }
  }

  // A scale between 3/4 and 5/4 of what gives the deviation for levels of deviation `levels`, of
  // either sign.
  float scale(std::uint64_t& state, float levels) const {
    const std::uint64_t word = next(state);
    const float size = 0.75f + static_cast<float>(word & 0xffffu) / 0x1p17f;
    return (word >> 63 != 0 ? -size : size) * deviation_ / levels;
  }

  // Blocks are made as they are stored: q8_0's levels bell-shaped, the others' uniform.
  void block(std::uint64_t& state, std::uint8_t* b) const {
    constexpr float of_16 = 4.61f, of_32 = 9.23f, of_64 = 18.47f;  // deviations of uniform levels
    constexpr float mean_scale = 47.5f;                            // of the K kinds' 32 to 63
    switch (type_) {
      case ElementType::q8_0:
        detail::store_half(b, scale(state, bell_deviation / 4));
        for (std::size_t i = 0; i < 32; i += 2) {
          const std::uint64_t word = next(state);
          b[2 + i] = static_cast<std::uint8_t>(bell(static_cast<std::uint32_t>(word)) / 4);
          b[3 + i] = static_cast<std::uint8_t>(bell(static_cast<std::uint32_t>(word >> 32)) / 4);
        }
        return;
      case ElementType::q4_0:
      case ElementType::q5_0:
        detail::store_half(b, scale(state, type_ == ElementType::q4_0 ? of_16 : of_32));
        return fill(state, b + 2, info(type_).block_bytes - 2);
      case ElementType::q4_1:
      case ElementType::q5_1: {
        const bool four = type_ == ElementType::q4_1;
        const float d = scale(state, four ? of_16 : of_32);
        detail::store_half(b, d);
        detail::store_half(b + 2, d * (four ? -7.5f : -15.5f));
        return fill(state, b + 4, info(type_).block_bytes - 4);
      }
      case ElementType::q4_k:
      case ElementType::q5_k: {
        // A minimum equal to the scale, of which it is 7.5 or 15.5 times as large: mean 0.
        const bool four = type_ == ElementType::q4_k;
        const float d = scale(state, (four ? of_16 : of_32) * mean_scale);
        detail::store_half(b, d);
        detail::store_half(b + 2, d * (four ? 7.5f : 15.5f));
        std::memset(b + 4, 0, 12);
        std::uint64_t word = next(state);
        for (std::size_t s = 0; s < 8; ++s, word >>= 8) {
          const auto level = static_cast<std::uint8_t>(32 + (word & 31u));
          detail::pack_six_bits(b + 4, s, {level, level});
        }
        return fill(state, b + 16, info(type_).block_bytes - 16);
      }
      default: {  // q6_k
        fill(state, b, 192);
        const std::uint64_t words[2] = {next(state), next(state)};
        for (std::size_t s = 0; s < 16; ++s) {
          const auto level = static_cast<int>(words[s / 8] >> 8 * (s % 8) & 0xffu);
          const int size = 32 + level % 32;
          b[192 + s] = static_cast<std::uint8_t>(level >= 128 ? -size : size);
        }
        return detail::store_half(b + 208, scale(state, of_64 * mean_scale));
      }
    }
  }

  std::uint64_t tensor_;
  ElementType type_;
  std::size_t cols_;
  float mean_, deviation_;
};

}  // namespace quipu
