// The packed layout of weights, Layout::panels: outputs side by side in the vector lanes.
//
// A panel holds 16 outputs (rows; missing ones are zeros) and follows the former without a gap.
// Along k a panel is a sequence of units, each a whole number of inputs, so that any range of
// units is contiguous in memory and a product reads it as one stream. Siblings:
// simd/product_weights-inl.hpp reads the units, test/simd/packing_test.cpp.
//
// Units, where [16] is the output and a half is an IEEE half:
//   f32         1 input:  float [16]
//   f16         1 input:  half [16]
//   bf16        2 inputs: bf16 [16][2], the pair side by side: the even input is word << 16, the
//               odd one word & 0xffff0000; the last odd input is padded with zero
//   q8_0       32 inputs: half scale [16]; int8 [8][16][4]
//   q4_0       32 inputs: half scale [16]; nibbles
//   q4_1       32 inputs: half scale [16], half minimum [16]; nibbles
//   q5_0       32 inputs: half scale [16]; nibbles; fifth bits
//   q5_1       32 inputs: half scale [16], half minimum [16]; nibbles; fifth bits
//   q4_k      256 inputs: half d [16], half dmin [16]; then 8 times (32 inputs each)
//               uint8 scale [16], uint8 minimum [16]; nibbles
//   q5_k      256 inputs: as q4_k, each of the 8 with fifth bits after the nibbles
//   q6_k      256 inputs: half d [16]; then 8 times int8 scale [2][16] (of 16 inputs each);
//               nibbles; high pairs
//   nibbles     uint8 [4][16][4]: chunk c has input 4c+j in its low and 16+4c+j in its high nibble
//   fifth bits  uint8 [16][4]: byte j has in bit g the fifth bit of input 4g+j
//   high pairs  uint8 [2][16][4]: plane p, byte j has in bits 2g, 2g+1 the high pair of 16p+4g+j
//
// Four inputs of one output in one 32-bit lane suit the byte dot products as well as float32 (one
// shift each). Halves stay halves: their conversion is one instruction for 8 outputs, and reading
// float scales would cost 6 (q8_0) to 11 % (q4_0) more memory traffic. Sizes per 16 x 32 weights
// equal those of the file except for q4_k and q5_k, whose 6-bit scales become bytes (+2.8, +2.3 %).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "quipu/shape/checked.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/simd/dequantize.hpp"
#include "quipu/simd/packing_steps.hpp"

namespace quipu {

/// The version of the layout above, kept in packed files (checkpoint/packed_file.hpp): raise it
/// with every change of a unit's bytes or of the order of units.
inline constexpr std::uint32_t packed_layout_version = 1;

/// Inputs and bytes of one unit of a packed panel.
struct PackedUnit {
  std::size_t inputs;
  std::size_t bytes;
};

constexpr PackedUnit packed_unit(ElementType type) {
  constexpr std::size_t halves = 2 * panel_outputs, nibbles = 256, fifth_bits = 64,
                        high_pairs = 128;
  switch (type) {
    case ElementType::f32:
      return {1, 4 * panel_outputs};
    case ElementType::bf16:
      return {2, 4 * panel_outputs};
    case ElementType::f16:
      return {1, halves};
    case ElementType::q8_0:
      return {32, halves + 512};
    case ElementType::q4_0:
      return {32, halves + nibbles};
    case ElementType::q4_1:
      return {32, 2 * halves + nibbles};
    case ElementType::q5_0:
      return {32, halves + nibbles + fifth_bits};
    case ElementType::q5_1:
      return {32, 2 * halves + nibbles + fifth_bits};
    case ElementType::q4_k:
      return {256, 2 * halves + 8 * (2 * panel_outputs + nibbles)};
    case ElementType::q5_k:
      return {256, 2 * halves + 8 * (2 * panel_outputs + nibbles + fifth_bits)};
    case ElementType::q6_k:
      return {256, halves + 8 * (2 * panel_outputs + nibbles + high_pairs)};
  }
  return {1, 0};
}

/// Panels of a matrix of `rows` outputs.
constexpr std::size_t packed_panels(std::size_t rows) { return ceil_div(rows, panel_outputs); }

/// Bytes of one panel of a matrix with `cols` inputs.
constexpr std::size_t packed_panel_bytes(ElementType type, std::size_t cols) {
  const PackedUnit unit = packed_unit(type);
  return checked_mul(ceil_div(cols, unit.inputs), unit.bytes, "bytes of a packed panel");
}

/// Bytes of a packed matrix.
constexpr std::size_t packed_bytes(ElementType type, std::size_t rows, std::size_t cols) {
  return checked_mul(packed_panels(rows), packed_panel_bytes(type, cols),
                     "bytes of a packed matrix");
}

/// The view of a packed matrix that starts at `data`.
inline MatrixView packed_view(const void* data, ElementType type, std::size_t rows,
                              std::size_t cols) {
  return {static_cast<const std::byte*>(data), rows, cols,
          packed_panel_bytes(type, cols),      type, Layout::panels};
}

namespace detail {

// Unpacking, which only single rows need, goes word by word and element by element.
inline void unpack_words(const std::uint8_t* unit, std::uint8_t* words, std::size_t lane,
                         std::size_t count) {
  for (std::size_t c = 0; c < count; ++c) std::memcpy(words + 4 * c, unit + 64 * c + 4 * lane, 4);
}
inline void set_bits(std::uint8_t& byte, unsigned value, unsigned shift) {
  byte = static_cast<std::uint8_t>(byte | value << shift);
}
inline const std::uint8_t* fifth_bit_byte(const std::uint8_t* bits, std::size_t lane,
                                          std::size_t k) {
  return bits + 4 * lane + k % 4;
}
inline const std::uint8_t* high_pair_byte(const std::uint8_t* pairs, std::size_t lane,
                                          std::size_t k) {
  return pairs + k / 16 * 64 + 4 * lane + k % 4;
}
inline unsigned high_pair_shift(std::size_t k) { return static_cast<unsigned>(2 * (k / 4 % 4)); }
inline const std::uint8_t* nibble_byte(const std::uint8_t* nibbles, std::size_t lane,
                                       std::size_t k) {
  return nibbles + k % 16 / 4 * 64 + 4 * lane + k % 4;
}
inline unsigned nibble_shift(std::size_t k) { return k < 16 ? 0 : 4; }

inline void unpack_block_of_32(ElementType type, const std::uint8_t* unit, std::size_t lane,
                               std::uint8_t* out) {
  const bool has_minimum = type == ElementType::q4_1 || type == ElementType::q5_1;
  const bool has_fifth = type == ElementType::q5_0 || type == ElementType::q5_1;
  std::memcpy(out, unit + 2 * lane, 2);
  if (has_minimum) std::memcpy(out + 2, unit + 32 + 2 * lane, 2);
  const std::size_t halves = has_minimum ? 2 : 1;
  const std::uint8_t* quants = unit + 32 * halves;
  out += 2 * halves;
  if (has_fifth) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 32; ++k) {
      bits |= (*fifth_bit_byte(quants + 256, lane, k) >> (k / 4) & 1u) << k;
    }
    std::memcpy(out, &bits, 4);
    out += 4;
  }
  unpack_words(quants, out, lane, type == ElementType::q8_0 ? 8 : 4);
}

inline void unpack_block_k45(bool has_fifth, const std::uint8_t* unit, std::size_t lane,
                             std::uint8_t* out) {
  std::memset(out, 0, has_fifth ? 176 : 144);
  std::memcpy(out, unit + 2 * lane, 2);
  std::memcpy(out + 2, unit + 32 + 2 * lane, 2);
  const std::size_t sub_bytes = 32 + 256 + (has_fifth ? 64 : 0);
  std::uint8_t* nibbles = out + (has_fifth ? 48 : 16);
  for (std::size_t s = 0; s < 8; ++s) {
    const std::uint8_t* sub = unit + 64 + s * sub_bytes;
    pack_six_bits(out + 4, s, {sub[lane], sub[16 + lane]});
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned nibble = *nibble_byte(sub + 32, lane, k) >> nibble_shift(k) & 15u;
      set_bits(nibbles[s / 2 * 32 + k], nibble, s % 2 == 0 ? 0 : 4);
      if (has_fifth) {
        set_bits(out[16 + k], *fifth_bit_byte(sub + 288, lane, k) >> (k / 4) & 1u,
                 static_cast<unsigned>(s));
      }
    }
  }
}

inline void unpack_block_k6(const std::uint8_t* unit, std::size_t lane, std::uint8_t* out) {
  std::memset(out, 0, 210);
  std::memcpy(out + 208, unit + 2 * lane, 2);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::uint8_t* sub = unit + 32 + e / 32 * 416;
    const SixBitPlace at = place_of_q6(e);
    const std::size_t k = e % 32;
    if (k % 16 == 0) out[192 + e / 16] = sub[k + lane];
    set_bits(out[at.low_byte], *nibble_byte(sub + 32, lane, k) >> nibble_shift(k) & 15u,
             at.low_shift);
    set_bits(out[128 + at.high_byte],
             *high_pair_byte(sub + 288, lane, k) >> high_pair_shift(k) & 3u, at.high_shift);
  }
}

inline void unpack_block(ElementType type, const std::uint8_t* unit, std::size_t lane,
                         std::uint8_t* out) {
  switch (type) {
    case ElementType::q4_k:
      return unpack_block_k45(false, unit, lane, out);
    case ElementType::q5_k:
      return unpack_block_k45(true, unit, lane, out);
    case ElementType::q6_k:
      return unpack_block_k6(unit, lane, out);
    default:
      return unpack_block_of_32(type, unit, lane, out);
  }
}

/// Bytes that are collected in the first-level cache before they go to memory.
inline constexpr std::size_t packed_at_once = 7168;

/// How far ahead of a step the next bytes of its rows are fetched: the processor follows 16 streams
/// badly on its own (q8_0, q6_k 1.3 to 1.7 times faster with it; 256 to 1024 bytes are alike).
inline constexpr std::size_t packing_ahead = 512;

/// Writes whole lines past the caches: nothing reads a packed matrix before all of it is written,
/// and memory would be read first to fill the lines otherwise (packing became 1.3 to 1.6 times
/// faster). `bytes` is a multiple of 32.
inline void store_past_caches(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes) {
#if defined(__SSE2__)
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    for (std::size_t i = 0; i < bytes; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}
/// After the last of them, before another thread may read.
inline void finish_stores_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// Where packed bytes go: to memory for good, or to scratch that is read next.
enum class PackTo : unsigned char { memory, caches };

/// Packs a panel of `lanes` rows by steps, each of which turns RowBytes bytes of 16 rows into
/// PackedBytes bytes: rows of row_bytes bytes, `stride` apart, to packed_bytes bytes.
template <std::size_t RowBytes, std::size_t PackedBytes, class Step>
void pack_by_steps(const std::uint8_t* rows, std::size_t stride, std::size_t lanes,
                   std::size_t row_bytes, std::uint8_t* out, std::size_t packed_bytes, PackTo where,
                   Step step) {
  // An even number: whole lines of 64 bytes, as units are multiples of 32.
  constexpr std::size_t steps = packed_at_once / PackedBytes / 2 * 2, run_bytes = steps * RowBytes;
  static_assert(steps > 0 && PackedBytes % 32 == 0);
  alignas(64) std::uint8_t collected[steps * PackedBytes];
  for (std::size_t offset = 0; offset < row_bytes; offset += run_bytes) {
    const std::size_t run = (std::min)(run_bytes, row_bytes - offset);
    const std::size_t count = ceil_div(run, RowBytes), done = offset / RowBytes * PackedBytes;
    const bool whole = lanes == panel_outputs && run % RowBytes == 0;
    std::uint8_t* to = whole && where == PackTo::caches ? out + done : collected;
    if (whole) {
      // At their ends rows of a whole matrix go on in the next panel.
      const bool ends = where == PackTo::memory && offset + packing_ahead >= row_bytes;
      const std::size_t ahead = packing_ahead + (ends ? panel_outputs * stride - row_bytes : 0);
      for (std::size_t i = 0; i < count; ++i) {
        // The lines that begin in the step's bytes, if rows began at lines.
        for (std::size_t line = i * RowBytes / 64; line < (i + 1) * RowBytes / 64; ++line) {
          const std::uint8_t* next = rows + offset + 64 * line + ahead;
          for (std::size_t lane = 0; lane < panel_outputs; ++lane)
            __builtin_prefetch(next + lane * stride);
        }
        step(rows + offset + i * RowBytes, stride, to + i * PackedBytes);
      }
    } else {
      // Missing rows, and what is missing of the last step, are zeros.
      std::uint8_t filled[panel_outputs * run_bytes] = {};
      for (std::size_t lane = 0; lane < lanes; ++lane)
        std::memcpy(filled + lane * run_bytes, rows + lane * stride + offset, run);
      for (std::size_t i = 0; i < count; ++i)
        step(filled + i * RowBytes, run_bytes, to + i * PackedBytes);
    }
    const std::size_t bytes = (std::min)(count * PackedBytes, packed_bytes - done);
    if (where == PackTo::memory) {
      store_past_caches(to, out + done, bytes);
    } else if (to == collected) {
      std::memcpy(out + done, to, bytes);
    }
  }
}

/// Packs inputs [begin, end) of one panel of a matrix of one type.
template <ElementType Type>
void pack_panel_slice(const MatrixView& from, std::size_t panel, std::size_t begin, std::size_t end,
                      std::uint8_t* out, PackTo where) {
  const std::size_t first = panel * panel_outputs;
  const auto* rows = reinterpret_cast<const std::uint8_t*>(from.data) + first * from.row_stride +
                     row_bytes(Type, begin);
  const auto by_steps = [&]<std::size_t RowBytes, std::size_t PackedBytes>(auto step) {
    pack_by_steps<RowBytes, PackedBytes>(
        rows, from.row_stride, (std::min)(panel_outputs, from.rows - first),
        row_bytes(Type, end - begin), out, packed_panel_bytes(Type, end - begin), where, step);
  };
  if constexpr (Type == ElementType::f32 || Type == ElementType::bf16) {  // pairs stay pairs
    by_steps.template operator()<64, 1024>(&pack_words<4>);
  } else if constexpr (Type == ElementType::f16) {
    by_steps.template operator()<64, 1024>(&pack_halves);
  } else {
    by_steps.template operator()<info(Type).block_bytes, packed_unit(Type).bytes>(
        &pack_block<Type>);
  }
}

using PackPanelSlice = void (*)(const MatrixView&, std::size_t, std::size_t, std::size_t,
                                std::uint8_t*, PackTo);
template <std::size_t... Types>
constexpr PackPanelSlice pack_panel_slice_of(ElementType type, std::index_sequence<Types...>) {
  constexpr PackPanelSlice table[] = {&pack_panel_slice<static_cast<ElementType>(Types)>...};
  return table[static_cast<std::size_t>(type)];
}

/// Packs inputs [begin, end) of one panel; begin is a multiple of the unit, end too or the last
/// column. `out` receives the units from begin on. Before another thread reads what went to memory,
/// finish_stores_past_caches().
inline void pack_panel_slice(const MatrixView& from, std::size_t panel, std::size_t begin,
                             std::size_t end, std::uint8_t* out, PackTo where) {
  pack_panel_slice_of(from.type, std::make_index_sequence<element_type_count>())(from, panel, begin,
                                                                                 end, out, where);
}

}  // namespace detail

/// Packs panels [first_panel, last_panel) of a row-major matrix into `out`, the start of the whole
/// packed matrix (packed_bytes long). Ranges of panels are independent: a loader packs them in
/// parallel. ArgumentError if `from` is not row-major or its rows are not whole blocks.
inline void pack(const MatrixView& from, std::byte* out, std::size_t first_panel,
                 std::size_t last_panel) {
  if (from.layout != Layout::row_major) {
    raise<ArgumentError>("pack: expected a row-major matrix, found one packed already");
  }
  if (!row_is_whole_blocks(from.type, from.cols)) {
    raise<ArgumentError>("pack: expected rows of a multiple of " +
                         std::to_string(info(from.type).block_elements) + " elements for " +
                         std::string(name(from.type)) + ", found " + std::to_string(from.cols));
  }
  const std::size_t panel_bytes = packed_panel_bytes(from.type, from.cols);
  for (std::size_t panel = first_panel; panel < last_panel; ++panel) {
    detail::pack_panel_slice(from, panel, 0, from.cols,
                             reinterpret_cast<std::uint8_t*>(out) + panel * panel_bytes,
                             detail::PackTo::memory);
  }
  detail::finish_stores_past_caches();
}

/// Writes row `row` of either layout as a file stores it (row_bytes(type, cols) bytes): the inverse
/// of pack.
inline void unpack_row(const MatrixView& from, std::size_t row, void* out_bytes) {
  auto* out = static_cast<std::uint8_t*>(out_bytes);
  const auto* data = reinterpret_cast<const std::uint8_t*>(from.data);
  if (from.layout == Layout::row_major) {
    std::memcpy(out, data + row * from.row_stride, row_bytes(from.type, from.cols));
    return;
  }
  const std::uint8_t* panel = data + row / panel_outputs * from.row_stride;
  const std::size_t lane = row % panel_outputs;
  switch (from.type) {
    case ElementType::f32:
      for (std::size_t k = 0; k < from.cols; ++k)
        std::memcpy(out + 4 * k, panel + 64 * k + 4 * lane, 4);
      return;
    case ElementType::f16:
      for (std::size_t k = 0; k < from.cols; ++k)
        std::memcpy(out + 2 * k, panel + 32 * k + 2 * lane, 2);
      return;
    case ElementType::bf16:
      for (std::size_t k = 0; k < from.cols; ++k) {
        std::memcpy(out + 2 * k, panel + k / 2 * 64 + 4 * lane + 2 * (k % 2), 2);
      }
      return;
    default:
      break;
  }
  const PackedUnit unit = packed_unit(from.type);
  for (std::size_t k = 0; k < from.cols; k += unit.inputs) {
    detail::unpack_block(from.type, panel + k / unit.inputs * unit.bytes, lane,
                         out + k / unit.inputs * info(from.type).block_bytes);
  }
}

/// Writes row `row` of either layout as float32: the exact values of the format (an embedding).
inline void dequantize_row(const MatrixView& from, std::size_t row, float* out) {
  if (from.layout == Layout::row_major) {
    dequantize_row(from.type, from.data + row * from.row_stride, out, from.cols);
    return;
  }
  // Block by block through the file's own form, so that there is one decoder.
  const std::size_t step = (std::max)(std::size_t{32}, info(from.type).block_elements);
  std::uint8_t bytes[256];
  MatrixView slice = from;
  for (std::size_t k = 0; k < from.cols; k += step) {
    slice.data = from.data + row / panel_outputs * from.row_stride +
                 k / packed_unit(from.type).inputs * packed_unit(from.type).bytes;
    slice.cols = (std::min)(step, from.cols - k);
    unpack_row(slice, row % panel_outputs, bytes);
    dequantize_row(from.type, bytes, out + k, slice.cols);
  }
}

}  // namespace quipu
