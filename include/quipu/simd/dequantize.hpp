// From stored elements to float32, one row at a time: the exact values that GGUF's formats define.
//
// Plain scalar code: the judge of the kernels' own decoding, and good enough for embedding rows.
// Siblings: simd/quantize.hpp (the other way), simd/packing.hpp (the packed layout),
// test/simd/quantize_test.cpp. Formats: ggml-common.h and ggml-quants.c of ggml; the values are
// tested against its Python package `gguf`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quipu/shape/element_type.hpp"

namespace quipu {

/// The float32 with the same value.
constexpr float to_float(bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// The float32 with the same value; subnormals, infinities and NaN included.
constexpr float to_float(f16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude + 0x1c000u) << 13));
  // A subnormal half is magnitude * 2^-24, which float32 holds as a normal number.
  const float value_without_sign = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value_without_sign));
}

/// Nearest bf16, ties to even. A NaN stays a (quiet) NaN.
constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Nearest half, ties to even; too large values become infinity. A NaN stays a (quiet) NaN.
constexpr f16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  // 65520 is half way between the largest half and the next power of two: from there on, infinity.
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal result: adding 0.5 leaves units of 2^-24 in the low bits, rounded to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13))};
}

namespace detail {

inline std::uint16_t load_u16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline std::uint32_t load_u32(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline float load_half(const std::uint8_t* p) { return to_float(f16{load_u16(p)}); }

/// The 6-bit scale and minimum of sub-block `s` (0..7) in the 12 bytes of a q4_k or q5_k block.
struct SixBitPair {
  std::uint8_t scale;
  std::uint8_t minimum;
};
constexpr SixBitPair unpack_six_bits(const std::uint8_t* bytes, std::size_t s) {
  if (s < 4) {
    return {static_cast<std::uint8_t>(bytes[s] & 63), static_cast<std::uint8_t>(bytes[s + 4] & 63)};
  }
  return {static_cast<std::uint8_t>((bytes[s + 4] & 15) | ((bytes[s - 4] >> 6) << 4)),
          static_cast<std::uint8_t>((bytes[s + 4] >> 4) | ((bytes[s] >> 6) << 4))};
}

/// The inverse: writes the pair of sub-block `s` into 12 bytes that were zero before the first.
constexpr void pack_six_bits(std::uint8_t* bytes, std::size_t s, SixBitPair pair) {
  const auto put = [&](std::size_t i, unsigned bits) {
    bytes[i] = static_cast<std::uint8_t>(bytes[i] | bits);
  };
  if (s < 4) {
    put(s, pair.scale);
    put(s + 4, pair.minimum);
  } else {
    put(s + 4, (pair.scale & 15u) | ((pair.minimum & 15u) << 4));
    put(s - 4, (pair.scale / 16u) << 6);
    put(s, (pair.minimum / 16u) << 6);
  }
}

/// Where element e (0..255) of a q6_k block keeps its six bits.
struct SixBitPlace {
  std::size_t low_byte;   ///< of the 128 bytes of low nibbles
  unsigned low_shift;     ///< 0 or 4
  std::size_t high_byte;  ///< of the 64 bytes of high pairs
  unsigned high_shift;    ///< 0, 2, 4 or 6
};
constexpr SixBitPlace place_of_q6(std::size_t e) {
  const std::size_t half = e / 128, quarter = e % 128 / 32, l = e % 32;
  return {half * 64 + (quarter & 1) * 32 + l, quarter >= 2 ? 4u : 0u, half * 32 + l,
          static_cast<unsigned>(2 * quarter)};
}

// One block each: `b` its bytes, `out` its 32 or 256 elements. The arithmetic (one multiplication,
// then for the kinds with a minimum one addition, each rounded) is that of ggml. With contraction
// the sum could be fused; the product of a small integer and a half (or a half times 6 bits) fits
// in 24 bits, so it is exact and both ways round once.
inline void dequantize_q8_0(const std::uint8_t* b, float* out) {
  const float d = load_half(b);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<std::int8_t>(b[2 + i])) * d;
  }
}
inline void dequantize_q4_0(const std::uint8_t* b, float* out) {
  const float d = load_half(b);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((b[2 + i] & 15) - 8) * d;
    out[i + 16] = static_cast<float>((b[2 + i] >> 4) - 8) * d;
  }
}
inline void dequantize_q4_1(const std::uint8_t* b, float* out) {
  const float d = load_half(b), m = load_half(b + 2);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(b[4 + i] & 15) * d + m;
    out[i + 16] = static_cast<float>(b[4 + i] >> 4) * d + m;
  }
}
inline void dequantize_q5_0(const std::uint8_t* b, float* out) {
  const float d = load_half(b);
  const std::uint32_t high = load_u32(b + 2);
  for (std::size_t i = 0; i < 16; ++i) {
    const int low_half = static_cast<int>((b[6 + i] & 15u) | ((high >> i & 1u) << 4));
    const int high_half = static_cast<int>((b[6 + i] / 16u) | ((high >> (i + 16) & 1u) << 4));
    out[i] = static_cast<float>(low_half - 16) * d;
    out[i + 16] = static_cast<float>(high_half - 16) * d;
  }
}
inline void dequantize_q5_1(const std::uint8_t* b, float* out) {
  const float d = load_half(b), m = load_half(b + 2);
  const std::uint32_t high = load_u32(b + 4);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((b[8 + i] & 15u) | ((high >> i & 1u) << 4)) * d + m;
    out[i + 16] = static_cast<float>((b[8 + i] / 16u) | ((high >> (i + 16) & 1u) << 4)) * d + m;
  }
}
inline void dequantize_q4_k(const std::uint8_t* b, float* out) {
  const float d = load_half(b), dmin = load_half(b + 2);
  for (std::size_t s = 0; s < 8; ++s) {
    const SixBitPair pair = unpack_six_bits(b + 4, s);
    const float scale = d * pair.scale, minimum = dmin * pair.minimum;
    const std::uint8_t* q = b + 16 + s / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      out[s * 32 + i] = scale * static_cast<float>(s % 2 == 0 ? q[i] & 15 : q[i] >> 4) - minimum;
    }
  }
}
inline void dequantize_q5_k(const std::uint8_t* b, float* out) {
  const float d = load_half(b), dmin = load_half(b + 2);
  for (std::size_t s = 0; s < 8; ++s) {
    const SixBitPair pair = unpack_six_bits(b + 4, s);
    const float scale = d * pair.scale, minimum = dmin * pair.minimum;
    const std::uint8_t* high = b + 16;
    const std::uint8_t* q = b + 48 + s / 2 * 32;
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned low = s % 2 == 0 ? q[i] & 15u : q[i] / 16u;
      out[s * 32 + i] = scale * static_cast<float>(low | ((high[i] >> s & 1u) << 4)) - minimum;
    }
  }
}
inline void dequantize_q6_k(const std::uint8_t* b, float* out) {
  const float d = load_half(b + 208);
  for (std::size_t e = 0; e < 256; ++e) {
    const SixBitPlace at = place_of_q6(e);
    const unsigned low = b[at.low_byte] >> at.low_shift & 15u;
    const unsigned high = b[128 + at.high_byte] >> at.high_shift & 3u;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(b[192 + e / 16]));
    out[e] = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

template <class Block>
inline void dequantize_blocks(ElementType type, const std::uint8_t* in, float* out, std::size_t n,
                              Block block) {
  const ElementTypeInfo& facts = info(type);
  for (std::size_t i = 0; i < n; i += facts.block_elements, in += facts.block_bytes) {
    block(in, out + i);
  }
}

}  // namespace detail

/// Writes the `n` elements of a row as float32. `row` is the row as a file stores it; n is a whole
/// number of blocks.
inline void dequantize_row(ElementType type, const void* row, float* out, std::size_t n) {
  const auto* in = static_cast<const std::uint8_t*>(row);
  switch (type) {
    case ElementType::f32:
      std::memcpy(out, in, n * sizeof(float));
      return;
    case ElementType::bf16:
      for (std::size_t i = 0; i < n; ++i) out[i] = to_float(bf16{detail::load_u16(in + 2 * i)});
      return;
    case ElementType::f16:
      for (std::size_t i = 0; i < n; ++i) out[i] = detail::load_half(in + 2 * i);
      return;
    case ElementType::q8_0:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q8_0);
    case ElementType::q4_0:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q4_0);
    case ElementType::q4_1:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q4_1);
    case ElementType::q5_0:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q5_0);
    case ElementType::q5_1:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q5_1);
    case ElementType::q4_k:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q4_k);
    case ElementType::q5_k:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q5_k);
    case ElementType::q6_k:
      return detail::dequantize_blocks(type, in, out, n, detail::dequantize_q6_k);
  }
}

}  // namespace quipu
