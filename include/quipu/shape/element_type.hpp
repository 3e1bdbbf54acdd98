// Element types of tensors as they stand in files and in packed weights.
//
// The block formats are GGUF's (ggml): a block is a run of consecutive elements of one row that
// share a scale. A row of n elements takes n / block_elements blocks and n must divide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "quipu/shape/checked.hpp"

namespace quipu {

/// bfloat16 and IEEE half as bit patterns; arithmetic happens in float32.
struct bf16 {
  std::uint16_t bits;
};
/// IEEE half; see bf16.
struct f16 {
  std::uint16_t bits;
};

/// What an element of a stored tensor is. The order is ours, not that of any file format.
enum class ElementType : std::uint8_t {
  f32,
  bf16,
  f16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k
};

/// How many element types there are.
inline constexpr std::size_t element_type_count = 11;

/// Facts of an element type: elements of a block and bytes of a block (1 and sizeof for plain
/// types).
struct ElementTypeInfo {
  std::string_view name;
  std::size_t block_elements;
  std::size_t block_bytes;
};

namespace detail {
// Block bytes: a half scale (2) and, for the _1 kinds, a half minimum (2); q5 adds 32 high bits
// (4); K-kinds are super-blocks of 256: q4_k = 2 halves + 12 bytes of 6-bit scales + 128; q5_k adds
// 32; q6_k = 128 low + 64 high + 16 scales + 1 half.
inline constexpr std::array<ElementTypeInfo, element_type_count> element_type_table{{
    {"f32", 1, 4},
    {"bf16", 1, 2},
    {"f16", 1, 2},
    {"q8_0", 32, 34},
    {"q4_0", 32, 18},
    {"q4_1", 32, 20},
    {"q5_0", 32, 22},
    {"q5_1", 32, 24},
    {"q4_k", 256, 144},
    {"q5_k", 256, 176},
    {"q6_k", 256, 210},
}};
}  // namespace detail

/// The facts of an element type.
constexpr const ElementTypeInfo& info(ElementType type) {
  return detail::element_type_table[static_cast<std::size_t>(type)];
}

/// Its name as files and options write it: "q8_0".
constexpr std::string_view name(ElementType type) { return info(type).name; }

/// The type of a name ("q8_0"), or nothing.
constexpr std::optional<ElementType> element_type_named(std::string_view text) {
  for (std::size_t t = 0; t < element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (name(type) == text) return type;
  }
  return std::nullopt;
}

/// Bytes of a row of n elements as a file stores it; n must be a multiple of the block.
constexpr std::size_t row_bytes(ElementType type, std::size_t n) {
  return checked_mul(n / info(type).block_elements, info(type).block_bytes, "bytes of a row");
}

/// True if a row of n elements is whole blocks of the type.
constexpr bool row_is_whole_blocks(ElementType type, std::size_t n) {
  return n % info(type).block_elements == 0;
}

}  // namespace quipu
