// Quantisation, dequantisation, half and bfloat16 conversions.
//
// Expected bytes of the block formats come from ggml's Python package `gguf` (quants.quantize),
// which is written from ggml's reference code; here as 64-bit FNV-1a hashes over rows of the
// generator below and in full for one block each.
#include "quipu/simd/quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using quipu::ElementType;

std::vector<ElementType> all_types() {
  std::vector<ElementType> types;
  for (std::size_t i = 0; i < quipu::element_type_count; ++i)
    types.push_back(static_cast<ElementType>(i));
  return types;
}

// 24 random bits to (-1, 1) times a scale that is a power of two: exact in float32 and in Python.
float value_at(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z = z ^ (z >> 31);
  return (static_cast<float>(z >> 40) * 0x1p-23f - 1.0f) *
         std::ldexp(1.0f, static_cast<int>(i / 256 % 9) - 6);
}

std::vector<float> values(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = value_at(i);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0;      // no scale
  for (std::size_t i = 32; i < 64; ++i) x[i] = 1.5f;  // no spread
  for (std::size_t i = 64; i < 96; ++i) x[i] = -x[i - 32];
  for (std::size_t i = 96; i < 128; ++i)
    x[i] = static_cast<float>(static_cast<int>(i) - 112) / 16;  // ties
  return x;
}

std::uint64_t fnv1a(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::uint8_t b : bytes) h = (h ^ b) * 0x100000001b3u;
  return h;
}

std::vector<std::uint8_t> quantized(ElementType type, const std::vector<float>& x) {
  std::vector<std::uint8_t> bytes(quipu::row_bytes(type, x.size()));
  quipu::quantize_row(type, x.data(), bytes.data(), x.size());
  return bytes;
}

std::vector<float> dequantized(ElementType type, const std::vector<std::uint8_t>& bytes,
                               std::size_t n) {
  std::vector<float> y(n);
  quipu::dequantize_row(type, bytes.data(), y.data(), n);
  return y;
}

struct Golden {
  ElementType type;
  std::uint64_t quantized_hash;
};

constexpr Golden goldens[] = {
    {ElementType::bf16, 0xb675dbdfc4d3c63bu}, {ElementType::f16, 0x1557a68d97642149u},
    {ElementType::q8_0, 0xa8e62acddc02b675u}, {ElementType::q4_0, 0x902bac879a273d6bu},
    {ElementType::q4_1, 0x2d8c77e2e5739881u}, {ElementType::q5_0, 0xead071c3f8b691a3u},
    {ElementType::q5_1, 0x059db5727c85f3e0u},
};

TEST(Quantize, BytesEqualGgmlsReference) {
  const std::vector<float> x = values(9 * 256 * 4);
  for (const Golden& golden : goldens) {
    EXPECT_EQ(fnv1a(quantized(golden.type, x)), golden.quantized_hash) << quipu::name(golden.type);
  }
}

struct DequantizedGolden {
  ElementType type;
  std::uint64_t hash;
};
constexpr DequantizedGolden dequantized_goldens[] = {
    {ElementType::q8_0, 0xb7d4adf14b7ba06du}, {ElementType::q4_0, 0x2e82f4e17bc96ea1u},
    {ElementType::q4_1, 0xbc67a23b9fbc8cc6u}, {ElementType::q5_0, 0x322f3b6a8cd8ad1eu},
    {ElementType::q5_1, 0x0cbf2c3de55ecc71u}, {ElementType::q4_k, 0xf7741301f3180199u},
    {ElementType::q5_k, 0x9501c9c5a783a646u}, {ElementType::q6_k, 0x728307fa8b80c9e5u},
};

// Random bytes as blocks: every field takes every value (halves of the scales are kept finite).
TEST(Dequantize, RandomBlocksEqualGgmlsValues) {
  for (const DequantizedGolden& golden : dequantized_goldens) {
    const std::size_t blocks = 256;
    const quipu::ElementTypeInfo& facts = quipu::info(golden.type);
    std::vector<std::uint8_t> bytes(blocks * facts.block_bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(
          static_cast<int>(static_cast<double>(value_at(i)) * 4096 + 65536) & 0xff);
    }
    // Clear the exponent's top bit of each half, as the generator of the goldens did.
    const bool two = golden.type == ElementType::q4_1 || golden.type == ElementType::q5_1 ||
                     golden.type == ElementType::q4_k || golden.type == ElementType::q5_k;
    const std::size_t first = golden.type == ElementType::q6_k ? 208 : 0;
    for (std::size_t b = 0; b < blocks; ++b) {
      bytes[b * facts.block_bytes + first + 1] &= 0xbf;
      if (two) bytes[b * facts.block_bytes + first + 3] &= 0xbf;
    }
    const std::vector<float> y = dequantized(golden.type, bytes, blocks * facts.block_elements);
    std::vector<std::uint8_t> image(y.size() * 4);
    std::memcpy(image.data(), y.data(), image.size());
    EXPECT_EQ(fnv1a(image), golden.hash) << quipu::name(golden.type);
  }
}

// Half a step of the coarsest scale of the block, with room for the rounding of the scale to a half
// (2^-11) and, for the kinds of 256, of scales to 6 bits (half of 1/63 of the largest).
TEST(Quantize, ErrorIsAtMostHalfAStep) {
  const std::size_t n = 256 * 9;
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = value_at(i);
  const auto steps = [](ElementType type) -> float {
    switch (type) {
      case ElementType::f32:
        return 0;
      case ElementType::bf16:
        return 2 * 0x1p-8f;
      case ElementType::f16:
        return 2 * 0x1p-11f;
      case ElementType::q8_0:
        return 1.0f / 127;
      case ElementType::q4_0:
        return 1.0f / 8 * 2;  // the level 16 above -8 is missing: one step
      case ElementType::q4_1:
        return 2.0f / 15;
      case ElementType::q5_0:
        return 1.0f / 16 * 2;
      case ElementType::q5_1:
        return 2.0f / 31;
      case ElementType::q4_k:
        return 2.0f / 15 + 2 * 2.0f / 63;
      case ElementType::q5_k:
        return 2.0f / 31 + 2 * 2.0f / 63;
      case ElementType::q6_k:
        return 1.0f / 32 * 2 + 1.0f / 64;
    }
    return 0;
  };
  for (const ElementType type : all_types()) {
    const std::vector<float> y = dequantized(type, quantized(type, x), n);
    for (std::size_t i = 0; i < n; ++i) {
      const float range = std::ldexp(1.0f, static_cast<int>(i / 256 % 9) - 6);
      ASSERT_NEAR(x[i], y[i], range * (steps(type) / 2 + 0x1p-10f))
          << quipu::name(type) << " " << i;
    }
  }
}

/// A scale that float16 holds as 0 has an inverse past float32's range; a span past it has an
/// infinite scale. Neither is converted to an integer (the sanitizers would say so).
TEST(Quantize, ScalesOutsideFloat16AreNoIntegers) {
  for (const ElementType type : all_types()) {
    if (quipu::info(type).block_elements == 1) continue;
    const std::size_t n = quipu::info(type).block_elements;
    std::vector<float> x(n, 1e-41f);
    x[1] = -x[1];
    x[2] = 1e-9f;
    for (const float value : dequantized(type, quantized(type, x), n)) EXPECT_EQ(value, 0.0f);
    x[3] = 3e38f;
    x[4] = -x[3];
    quantized(type, x);
  }
}

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const quipu::f16 half{static_cast<std::uint16_t>(bits)};
    const float value = quipu::to_float(half);
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(quipu::to_float(quipu::to_f16(value))));
      continue;
    }
    EXPECT_EQ(quipu::to_f16(value).bits, bits);
    const int exponent = static_cast<int>(bits >> 10 & 31);
    if (exponent == 31) continue;
    const double expected = std::ldexp(exponent == 0 ? bits & 1023 : 1024 + (bits & 1023),
                                       (exponent == 0 ? 1 : exponent) - 25);
    EXPECT_EQ(std::fabs(value), expected);
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
  }
}

// Between neighbours: the middle goes to the even one, a little less or more to the nearer one.
TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = quipu::to_float(quipu::f16{static_cast<std::uint16_t>(bits)});
    const float high = quipu::to_float(quipu::f16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;
    ASSERT_EQ(quipu::to_f16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(quipu::to_f16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(quipu::to_f16(std::nextafter(middle, 1e9f)).bits, bits + 1);
  }
  EXPECT_EQ(quipu::to_f16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(quipu::to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(quipu::to_f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(quipu::to_f16(-1e-30f).bits, 0x8000);
}

TEST(Bfloat16, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; bits += 7) {
    const float low = quipu::to_float(quipu::bf16{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(quipu::to_bf16(low).bits, bits);
    const auto middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    ASSERT_EQ(quipu::to_bf16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(quipu::to_bf16(-std::bit_cast<float>(bits << 16 | 0x7fffu)).bits, bits | 0x8000);
    ASSERT_EQ(quipu::to_bf16(std::bit_cast<float>(bits << 16 | 0x8001u)).bits, bits + 1);
  }
  EXPECT_EQ(quipu::to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(quipu::to_bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  EXPECT_TRUE(std::isnan(quipu::to_float(quipu::to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
