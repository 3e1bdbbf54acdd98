// The packed layout: packing is the inverse of unpacking for every type, and the bytes stand where
// packing.hpp says.
#include "quipu/simd/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "quipu/simd/quantize.hpp"

namespace {

using quipu::ElementType;
using quipu::MatrixView;

std::vector<std::uint8_t> random_bytes(std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  std::uint32_t state = 12345;
  for (std::uint8_t& b : bytes)
    b = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

struct Case {
  ElementType type;
  std::size_t rows, cols;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t t = 0; t < quipu::element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    const std::size_t block = quipu::info(type).block_elements;
    for (const std::size_t rows : {1u, 15u, 16u, 37u}) {
      for (const std::size_t blocks : {1u, 3u, 5u, 209u})
        all.push_back({type, rows, block * blocks});
    }
  }
  return all;
}

// Any bytes at all must survive, not only those a quantiser makes.
TEST(Packing, UnpackingGivesTheRowsBack) {
  for (const Case& c : cases()) {
    const std::size_t row_bytes = quipu::row_bytes(c.type, c.cols);
    const std::vector<std::uint8_t> bytes = random_bytes(row_bytes * c.rows);
    const MatrixView from = quipu::row_major_view(bytes.data(), c.type, c.rows, c.cols);
    std::vector<std::byte> packed(quipu::packed_bytes(c.type, c.rows, c.cols), std::byte{0xee});
    // In two ranges, the later first: ranges are independent.
    const std::size_t panels = quipu::packed_panels(c.rows);
    quipu::pack(from, packed.data(), panels / 2, panels);
    quipu::pack(from, packed.data(), 0, panels / 2);
    const MatrixView view = quipu::packed_view(packed.data(), c.type, c.rows, c.cols);
    std::vector<std::uint8_t> row(row_bytes);
    std::vector<float> expected(c.cols), found(c.cols);
    for (std::size_t r = 0; r < c.rows; ++r) {
      quipu::unpack_row(view, r, row.data());
      ASSERT_TRUE(std::equal(row.begin(), row.end(), bytes.data() + r * row_bytes))
          << quipu::name(c.type) << " row " << r << " of " << c.rows << " x " << c.cols;
      quipu::unpack_row(from, r, row.data());
      ASSERT_TRUE(std::equal(row.begin(), row.end(), bytes.data() + r * row_bytes));
      quipu::dequantize_row(from, r, expected.data());
      quipu::dequantize_row(view, r, found.data());
      ASSERT_EQ(std::memcmp(expected.data(), found.data(), c.cols * sizeof(float)), 0)
          << quipu::name(c.type);
    }
  }
}

// A block of any type as levels, scales and so on, bit by bit as GGUF's formats say, to be written
// where packing.hpp says, one element at a time.
void pack_plainly(ElementType type, const std::uint8_t* b, std::uint8_t* unit, std::size_t lane) {
  const auto copy = [&](std::size_t bytes, const std::uint8_t* from, std::uint8_t* to) {
    std::copy(from, from + bytes, to);
  };
  const auto half = [&](const std::uint8_t* from, std::size_t at) {
    copy(2, from, unit + at + 2 * lane);
  };
  const auto put = [](std::uint8_t& byte, unsigned bits, std::size_t shift) {
    byte = static_cast<std::uint8_t>(byte | bits << shift);
  };
  const auto put_nibble = [&](std::uint8_t* nibbles, std::size_t k, unsigned level) {
    put(nibbles[k % 16 / 4 * 64 + 4 * lane + k % 4], level & 15u, k < 16 ? 0 : 4);
  };
  const auto put_fifth = [&](std::uint8_t* bits, std::size_t k, unsigned level) {
    put(bits[4 * lane + k % 4], level >> 4, k / 4);
  };
  switch (type) {
    case ElementType::f32:
      return copy(4, b, unit + 4 * lane);
    case ElementType::f16:
      return half(b, 0);
    case ElementType::bf16:
      return copy(4, b, unit + 4 * lane);
    case ElementType::q8_0:
      half(b, 0);
      for (std::size_t k = 0; k < 32; ++k) unit[32 + k / 4 * 64 + 4 * lane + k % 4] = b[2 + k];
      return;
    case ElementType::q4_0:
    case ElementType::q4_1:
    case ElementType::q5_0:
    case ElementType::q5_1: {
      const bool minimum = type == ElementType::q4_1 || type == ElementType::q5_1;
      const bool fifth = type == ElementType::q5_0 || type == ElementType::q5_1;
      half(b, 0);
      if (minimum) half(b + 2, 32);
      const std::uint8_t* bits = b + (minimum ? 4 : 2);
      const std::uint8_t* nibbles = bits + (fifth ? 4 : 0);
      std::uint8_t* to = unit + (minimum ? 64 : 32);
      for (std::size_t k = 0; k < 32; ++k) {
        const unsigned low = k < 16 ? nibbles[k] & 15u : nibbles[k - 16] >> 4u;
        const unsigned high = fifth ? bits[k / 8] >> k % 8 & 1u : 0u;
        put_nibble(to, k, low);
        if (fifth) put_fifth(to + 256, k, low | high << 4);
      }
      return;
    }
    case ElementType::q4_k:
    case ElementType::q5_k: {
      const bool fifth = type == ElementType::q5_k;
      half(b, 0);
      half(b + 2, 32);
      const std::uint8_t* nibbles = b + (fifth ? 48 : 16);
      for (std::size_t s = 0; s < 8; ++s) {
        std::uint8_t* to = unit + 64 + s * (fifth ? 352 : 288);
        const auto pair = quipu::detail::unpack_six_bits(b + 4, s);
        to[lane] = pair.scale;
        to[16 + lane] = pair.minimum;
        for (std::size_t k = 0; k < 32; ++k) {
          const unsigned low = nibbles[s / 2 * 32 + k] >> s % 2 * 4 & 15u;
          const unsigned high = fifth ? b[16 + k] >> s & 1u : 0u;
          put_nibble(to + 32, k, low);
          if (fifth) put_fifth(to + 288, k, low | high << 4);
        }
      }
      return;
    }
    case ElementType::q6_k:
      half(b + 208, 0);
      for (std::size_t e = 0; e < 256; ++e) {
        std::uint8_t* to = unit + 32 + e / 32 * 416;
        const std::size_t k = e % 32;
        if (k % 16 == 0) to[k + lane] = b[192 + e / 16];
        const quipu::detail::SixBitPlace at = quipu::detail::place_of_q6(e);
        put_nibble(to + 32, k, b[at.low_byte] >> at.low_shift);
        put(to[288 + k / 16 * 64 + 4 * lane + k % 4], b[128 + at.high_byte] >> at.high_shift & 3u,
            2 * (k / 4 % 4));
      }
      return;
  }
}

// Unpacking undoes packing even if both take a bit for another one; this does not. Also rows
// further apart than they are long, and packed bytes at an odd address.
TEST(Packing, BytesStandWhereTheLayoutSays) {
  for (const Case& c : cases()) {
    const std::size_t stride = quipu::row_bytes(c.type, c.cols) + 6;
    const std::vector<std::uint8_t> bytes = random_bytes(stride * c.rows);
    MatrixView from = quipu::row_major_view(bytes.data(), c.type, c.rows, c.cols);
    from.row_stride = stride;
    const auto unit = quipu::packed_unit(c.type);
    const std::size_t size = quipu::packed_bytes(c.type, c.rows, c.cols);
    const std::size_t panel = quipu::packed_panel_bytes(c.type, c.cols);
    std::vector<std::uint8_t> expected(size, 0);
    const std::size_t block = quipu::info(c.type).block_bytes;
    const std::size_t step = c.type == ElementType::bf16 ? 2 * block : block;
    for (std::size_t r = 0; r < c.rows; ++r) {
      for (std::size_t i = 0; i * unit.inputs < c.cols; ++i) {
        std::uint8_t whole[256] = {};  // with a zero after the odd last input of bf16
        const std::uint8_t* in = bytes.data() + r * stride + i * step;
        std::copy(in, in + (std::min)(step, stride - 6 - i * step), whole);
        pack_plainly(c.type, whole, expected.data() + r / 16 * panel + i * unit.bytes, r % 16);
      }
    }
    for (const std::size_t offset : {0u, 1u}) {
      std::vector<std::byte> packed(size + 64, std::byte{0xee});
      const auto gap = std::size_t{16} - reinterpret_cast<std::uintptr_t>(packed.data()) % 16;
      std::byte* out = packed.data() + gap + offset;
      quipu::pack(from, out, 0, quipu::packed_panels(c.rows));
      ASSERT_EQ(std::memcmp(out, expected.data(), size), 0)
          << quipu::name(c.type) << " " << c.rows << " x " << c.cols << " at " << offset;
      // A slice for scratch: from the second unit to the end.
      if (c.cols > unit.inputs) {
        std::vector<std::uint8_t> slice(panel - unit.bytes);
        quipu::detail::pack_panel_slice(from, 0, unit.inputs, c.cols, slice.data(),
                                        quipu::detail::PackTo::caches);
        ASSERT_EQ(std::memcmp(slice.data(), expected.data() + unit.bytes, slice.size()), 0)
            << quipu::name(c.type) << " " << c.rows << " x " << c.cols;
      }
      for (const std::byte* p = packed.data(); p != packed.data() + packed.size(); ++p) {
        ASSERT_TRUE((p >= out && p < out + size) || *p == std::byte{0xee}) << quipu::name(c.type);
      }
    }
  }
}

// Rows beyond the last and the odd last input of bf16 are zeros, also over old contents.
TEST(Packing, PadsWithZeros) {
  const std::vector<std::uint8_t> bytes = random_bytes(quipu::row_bytes(ElementType::bf16, 5) * 3);
  std::vector<std::byte> packed(quipu::packed_bytes(ElementType::bf16, 3, 5), std::byte{0xee});
  ASSERT_EQ(packed.size(), 3u * 64u);
  quipu::pack(quipu::row_major_view(bytes.data(), ElementType::bf16, 3, 5), packed.data(), 0, 1);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const std::size_t k = i / 64 * 2 + i % 4 / 2, lane = i % 64 / 4;
    if (lane >= 3 || k >= 5) {
      EXPECT_EQ(packed[i], std::byte{0}) << i;
    } else {
      EXPECT_EQ(packed[i], static_cast<std::byte>(bytes[lane * 10 + 2 * k + i % 2])) << i;
    }
  }
}

// One block of q4_1 by hand.
TEST(Packing, NibblesStandAsDocumented) {
  std::vector<std::uint8_t> bytes = random_bytes(20 * 16);
  std::vector<std::byte> packed(quipu::packed_bytes(ElementType::q4_1, 16, 32));
  quipu::pack(quipu::row_major_view(bytes.data(), ElementType::q4_1, 16, 32), packed.data(), 0, 1);
  const auto* p = reinterpret_cast<const std::uint8_t*>(packed.data());
  for (std::size_t lane = 0; lane < 16; ++lane) {
    const std::uint8_t* block = bytes.data() + 20 * lane;
    EXPECT_EQ(p[2 * lane], block[0]);
    EXPECT_EQ(p[32 + 2 * lane + 1], block[3]);
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned level = k < 16 ? block[4 + k] & 15u : block[4 + k - 16] >> 4;
      const unsigned byte = p[64 + k % 16 / 4 * 64 + 4 * lane + k % 4];
      EXPECT_EQ(k < 16 ? byte & 15u : byte >> 4, level);
    }
  }
}

TEST(Packing, SizesAreThoseOfTheFileButForSixBitScales) {
  for (std::size_t t = 0; t < quipu::element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    const std::size_t file = quipu::row_bytes(type, 4096) * 64;
    const std::size_t packed = quipu::packed_bytes(type, 64, 4096);
    const bool six_bit_scales = type == ElementType::q4_k || type == ElementType::q5_k;
    EXPECT_EQ(packed, six_bit_scales ? file + 64 * 16 * 4 : file) << quipu::name(type);
  }
  static_assert(quipu::packed_bytes(ElementType::q4_0, 17, 64) == 2 * 2 * 288);
  static_assert(quipu::packed_bytes(ElementType::bf16, 16, 3) == 2 * 64);
}

TEST(Packing, RefusesWhatItCannotPack) {
  const std::vector<std::uint8_t> bytes(1024);
  std::vector<std::byte> out(4096);
  MatrixView view = quipu::row_major_view(bytes.data(), ElementType::q8_0, 1, 33);
  EXPECT_THROW(quipu::pack(view, out.data(), 0, 1), quipu::ArgumentError);
  view = quipu::packed_view(bytes.data(), ElementType::q8_0, 1, 32);
  EXPECT_THROW(quipu::pack(view, out.data(), 0, 1), quipu::ArgumentError);
}

}  // namespace
