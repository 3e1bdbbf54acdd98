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
      for (const std::size_t blocks : {1u, 3u, 5u}) all.push_back({type, rows, block * blocks});
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
