// From float32 to stored elements, one row at a time.
//
// q8_0 and the q4/q5 kinds of 32 follow ggml's reference quantisation so exactly that the bytes
// equal those of its Python package `gguf` (test/simd/quantize_test.cpp). The K kinds have no one
// definition (ggml searches); ours fits each sub-block by least squares over a few candidate
// scales, and is meant for generated models and tests. Siblings: simd/dequantize.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quipu/simd/dequantize.hpp"

namespace quipu {
namespace detail {

inline void store_half(std::uint8_t* p, float value) {
  const f16 half = to_f16(value);
  std::memcpy(p, &half.bits, 2);
}

/// Whether a block's scale says nothing: its half is 0, so the block reads back as zeros (or its
/// minimum) whatever the levels are, and the inverse may be infinite; or it is infinite itself.
inline bool no_scale(float d) { return !std::isfinite(d) || (to_f16(d).bits & 0x7fff) == 0; }

inline std::uint8_t clamped(float level, int most) {
  return static_cast<std::uint8_t>((std::min)(static_cast<int>(level), most));
}

inline void quantize_q8_0(const float* x, std::uint8_t* b) {
  float most = 0;
  for (std::size_t i = 0; i < 32; ++i) most = (std::max)(most, std::fabs(x[i]));
  const float d = most / 127;
  const float inverse = no_scale(d) ? 0 : 1 / d;
  store_half(b, d);
  for (std::size_t i = 0; i < 32; ++i) {
    b[2 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::round(x[i] * inverse)));
  }
}

/// The 32 levels of a kind with a scale only: the element of largest magnitude becomes level 0,
/// zero is level `half` (8 or 16). Returns the scale. In double, where x * inverse is exact: the
/// reference's float sum depends on whether the compiler fuses it.
inline float levels_around_zero(const float* x, int half, std::uint8_t* level) {
  float extreme = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  const float d = extreme / static_cast<float>(-half);
  const double inverse = no_scale(d) ? 0 : 1 / d;
  for (std::size_t i = 0; i < 32; ++i) {
    const double shifted = static_cast<double>(x[i]) * inverse + (half + 0.5);
    level[i] = clamped(static_cast<float>(shifted), 2 * half - 1);
  }
  return d;
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

/// The 32 levels of a kind with a minimum: least element at level 0, largest at `most` (15 or 31).
inline ScaleAndMinimum levels_above_minimum(const float* x, int most, std::uint8_t* level) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = (*high - *low) / static_cast<float>(most);
  if (no_scale(d)) {
    std::memset(level, 0, 32);
    return {d, *low};
  }
  const float inverse = 1 / d;
  for (std::size_t i = 0; i < 32; ++i) {
    // Product and sum rounded to float32 one after the other, as the reference does; through double
    // so that no compiler fuses them.
    const auto scaled = static_cast<float>(static_cast<double>(x[i] - *low) * inverse);
    level[i] = clamped(static_cast<float>(static_cast<double>(scaled) + 0.5), most);
  }
  return {d, *low};
}

inline void store_nibbles(const std::uint8_t* level, std::uint8_t* out) {
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<std::uint8_t>((level[i] & 15) | (level[i + 16] & 15) << 4);
  }
}
inline void store_fifth_bits(const std::uint8_t* level, std::uint8_t* out) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) bits |= (level[i] >> 4 & 1u) << i;
  std::memcpy(out, &bits, 4);
}

inline void quantize_q4_0(const float* x, std::uint8_t* b) {
  std::uint8_t level[32];
  store_half(b, levels_around_zero(x, 8, level));
  store_nibbles(level, b + 2);
}
inline void quantize_q5_0(const float* x, std::uint8_t* b) {
  std::uint8_t level[32];
  store_half(b, levels_around_zero(x, 16, level));
  store_fifth_bits(level, b + 2);
  store_nibbles(level, b + 6);
}
inline void quantize_q4_1(const float* x, std::uint8_t* b) {
  std::uint8_t level[32];
  const auto [d, m] = levels_above_minimum(x, 15, level);
  store_half(b, d);
  store_half(b + 2, m);
  store_nibbles(level, b + 4);
}
inline void quantize_q5_1(const float* x, std::uint8_t* b) {
  std::uint8_t level[32];
  const auto [d, m] = levels_above_minimum(x, 31, level);
  store_half(b, d);
  store_half(b + 2, m);
  store_fifth_bits(level, b + 4);
  store_nibbles(level, b + 8);
}

inline int nearest_level(float x, float scale, int low, int high) {
  if (scale == 0) return 0;
  // In this order a NaN (of an infinite scale) becomes `low`.
  const float level = (std::max)(static_cast<float>(low), std::round(x / scale));
  return static_cast<int>((std::min)(level, static_cast<float>(high)));
}

/// Scale and (non-negative) minimum with x ~ scale * level - minimum, level 0..most: of a few
/// scales around the full range's, the one whose least-squares fit leaves the smallest error.
inline ScaleAndMinimum fit_scale_and_minimum(const float* x, int most) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float floor = (std::min)(*low, 0.0f);
  const float range = *high - floor;
  if (!(range > 0)) return {0, -floor};
  ScaleAndMinimum best{range / static_cast<float>(most), -floor};
  double best_error = -1;
  for (int step = -4; step <= 8; ++step) {
    const float scale = range / (static_cast<float>(most) + 0.125f * static_cast<float>(step));
    double n = 32, sl = 0, sll = 0, sx = 0, slx = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const double l = nearest_level(x[i] - floor, scale, 0, most);
      sl += l, sll += l * l, sx += x[i], slx += l * x[i];
    }
    const double determinant = n * sll - sl * sl;
    if (determinant <= 0) continue;
    double fitted = (n * slx - sl * sx) / determinant;
    double minimum = -(sx - fitted * sl) / n;
    if (minimum < 0) minimum = 0, fitted = slx / sll;
    double error = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const int l =
          nearest_level(x[i] + static_cast<float>(minimum), static_cast<float>(fitted), 0, most);
      const double gap = fitted * l - minimum - x[i];
      error += gap * gap;
    }
    if (fitted > 0 && (best_error < 0 || error < best_error)) {
      best_error = error;
      best = {static_cast<float>(fitted), static_cast<float>(minimum)};
    }
  }
  return best;
}

/// q4_k (most = 15) and q5_k (most = 31).
inline void quantize_k45(const float* x, int most, std::uint8_t* b) {
  const bool has_fifth = most == 31;
  std::memset(b, 0, has_fifth ? 176 : 144);
  ScaleAndMinimum sub[8];
  float most_scale = 0, most_minimum = 0;
  for (std::size_t s = 0; s < 8; ++s) {
    sub[s] = fit_scale_and_minimum(x + 32 * s, most);
    most_scale = (std::max)(most_scale, sub[s].scale);
    most_minimum = (std::max)(most_minimum, sub[s].minimum);
  }
  store_half(b, most_scale / 63);
  store_half(b + 2, most_minimum / 63);
  const float d = load_half(b), dmin = load_half(b + 2);
  std::uint8_t* nibbles = b + (has_fifth ? 48 : 16);
  for (std::size_t s = 0; s < 8; ++s) {
    const SixBitPair pair{static_cast<std::uint8_t>(nearest_level(sub[s].scale, d, 0, 63)),
                          static_cast<std::uint8_t>(nearest_level(sub[s].minimum, dmin, 0, 63))};
    pack_six_bits(b + 4, s, pair);
    const float scale = d * pair.scale, minimum = dmin * pair.minimum;
    for (std::size_t i = 0; i < 32; ++i) {
      const auto level =
          static_cast<unsigned>(nearest_level(x[32 * s + i] + minimum, scale, 0, most));
      std::uint8_t& byte = nibbles[s / 2 * 32 + i];
      byte = static_cast<std::uint8_t>(byte | (level & 15u) << (s % 2 == 0 ? 0 : 4));
      if (has_fifth) b[16 + i] = static_cast<std::uint8_t>(b[16 + i] | (level >> 4) << s);
    }
  }
}
inline void quantize_q4_k(const float* x, std::uint8_t* b) { quantize_k45(x, 15, b); }
inline void quantize_q5_k(const float* x, std::uint8_t* b) { quantize_k45(x, 31, b); }

/// Scale with x ~ scale * level, level -32..31, chosen like fit_scale_and_minimum.
inline float fit_scale(const float* x) {
  float extreme = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (extreme == 0) return 0;
  float best = 0;
  double best_gain = -1;
  for (int step = -4; step <= 4; ++step) {
    const float scale = extreme / (-32.0f - 0.25f * static_cast<float>(step));
    double sll = 0, slx = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      const double l = nearest_level(x[i], scale, -32, 31);
      sll += l * l, slx += l * x[i];
    }
    if (sll > 0 && slx * slx / sll > best_gain) {
      best_gain = slx * slx / sll;
      best = static_cast<float>(slx / sll);
    }
  }
  return best;
}
inline void quantize_q6_k(const float* x, std::uint8_t* b) {
  std::memset(b, 0, 210);
  float sub[16];
  float extreme = 0;
  for (std::size_t s = 0; s < 16; ++s) {
    sub[s] = fit_scale(x + 16 * s);
    if (std::fabs(sub[s]) > std::fabs(extreme)) extreme = sub[s];
  }
  store_half(b + 208, extreme / -128);
  const float d = load_half(b + 208);
  for (std::size_t e = 0; e < 256; ++e) {
    const int scale = nearest_level(sub[e / 16], d, -128, 127);
    b[192 + e / 16] = static_cast<std::uint8_t>(static_cast<std::int8_t>(scale));
    const auto level =
        static_cast<unsigned>(nearest_level(x[e], d * static_cast<float>(scale), -32, 31) + 32);
    const SixBitPlace at = place_of_q6(e);
    std::uint8_t& low = b[at.low_byte];
    std::uint8_t& high = b[128 + at.high_byte];
    low = static_cast<std::uint8_t>(low | (level & 15u) << at.low_shift);
    high = static_cast<std::uint8_t>(high | (level >> 4) << at.high_shift);
  }
}

template <class Block>
inline void quantize_blocks(ElementType type, const float* in, std::uint8_t* out, std::size_t n,
                            Block block) {
  const ElementTypeInfo& facts = info(type);
  for (std::size_t i = 0; i < n; i += facts.block_elements, out += facts.block_bytes) {
    block(in + i, out);
  }
}

}  // namespace detail

/// Writes `n` finite float32 elements as a row of `type`, row_bytes(type, n) bytes; n is a whole
/// number of blocks.
inline void quantize_row(ElementType type, const float* in, void* row, std::size_t n) {
  auto* out = static_cast<std::uint8_t*>(row);
  switch (type) {
    case ElementType::f32:
      std::memcpy(out, in, n * sizeof(float));
      return;
    case ElementType::bf16:
      for (std::size_t i = 0; i < n; ++i) {
        const bf16 value = to_bf16(in[i]);
        std::memcpy(out + 2 * i, &value.bits, 2);
      }
      return;
    case ElementType::f16:
      for (std::size_t i = 0; i < n; ++i) detail::store_half(out + 2 * i, in[i]);
      return;
    case ElementType::q8_0:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q8_0);
    case ElementType::q4_0:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q4_0);
    case ElementType::q4_1:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q4_1);
    case ElementType::q5_0:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q5_0);
    case ElementType::q5_1:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q5_1);
    case ElementType::q4_k:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q4_k);
    case ElementType::q5_k:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q5_k);
    case ElementType::q6_k:
      return detail::quantize_blocks(type, in, out, n, detail::quantize_q6_k);
  }
}

}  // namespace quipu
