// GGUF's numbers: the types of metadata values and of tensor elements.
// Source: docs/gguf.md and the tensor types of ggml-org/ggml. Siblings: gguf.hpp, gguf_writer.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "quipu/shape/element_type.hpp"

namespace quipu {

/// Types of metadata values, with the numbers of the format.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

constexpr bool is_gguf_type(std::uint32_t number) { return number <= 12; }

constexpr std::string_view name(GgufType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<std::uint32_t>(type)];
}

/// Bytes of a value of that type; 0 for strings and arrays, whose length varies.
constexpr std::size_t gguf_scalar_bytes(GgufType type) {
  constexpr unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<std::uint32_t>(type)];
}

/// The GGUF type of a C++ type: the arithmetic types of fixed size, bool and std::string_view.
template <class T>
constexpr GgufType gguf_type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return GgufType::boolean;
  } else if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, std::string>) {
    return GgufType::string;
  } else if constexpr (std::is_same_v<T, float>) {
    return GgufType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return GgufType::f64;
  } else {
    static_assert(std::is_integral_v<T>, "not a type of GGUF metadata");
    constexpr GgufType signed_types[] = {GgufType::i8, GgufType::i16, GgufType::i32, GgufType::i64};
    constexpr GgufType unsigned_types[] = {GgufType::u8, GgufType::u16, GgufType::u32,
                                           GgufType::u64};
    constexpr std::size_t log2_size = sizeof(T) == 1   ? 0
                                      : sizeof(T) == 2 ? 1
                                      : sizeof(T) == 4 ? 2
                                                       : 3;
    return std::is_signed_v<T> ? signed_types[log2_size] : unsigned_types[log2_size];
  }
}

/// A tensor type of ggml: its number in the file, its name, and its blocks.
struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  std::size_t block_elements;
  std::size_t block_bytes;
};

namespace detail {
inline constexpr GgmlType ggml_types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};
struct GgmlNumber {
  ElementType type;
  std::uint32_t number;
};
inline constexpr GgmlNumber ggml_numbers[] = {
    {ElementType::f32, 0},   {ElementType::f16, 1},   {ElementType::q4_0, 2},
    {ElementType::q4_1, 3},  {ElementType::q5_0, 6},  {ElementType::q5_1, 7},
    {ElementType::q8_0, 8},  {ElementType::q4_k, 12}, {ElementType::q5_k, 13},
    {ElementType::q6_k, 14}, {ElementType::bf16, 30},
};
static_assert(sizeof(ggml_numbers) / sizeof(ggml_numbers[0]) == element_type_count);
}  // namespace detail

/// The number of ggml's type I8: bytes that are no weights of a known type.
inline constexpr std::uint32_t ggml_i8 = 24;

/// The ggml type of that number; null if this list does not have it.
constexpr const GgmlType* find_ggml_type(std::uint32_t number) {
  for (const GgmlType& type : detail::ggml_types) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

/// quipu's element type for a ggml number, where quipu computes with it.
constexpr std::optional<ElementType> element_type_of_ggml(std::uint32_t number) {
  for (const auto& [type, n] : detail::ggml_numbers) {
    if (n == number) return type;
  }
  return std::nullopt;
}

/// The ggml number of an element type.
constexpr std::uint32_t ggml_number(ElementType type) {
  for (const auto& entry : detail::ggml_numbers) {
    if (entry.type == type) return entry.number;
  }
  return 0;
}

namespace detail {
// The two tables of block sizes (shape/element_type.hpp and the one above) agree.
constexpr bool ggml_blocks_agree() {
  std::size_t agree = 0;
  for (const auto& [type, number] : ggml_numbers) {
    for (const GgmlType& ggml : ggml_types) {
      agree += ggml.number == number && ggml.block_elements == info(type).block_elements &&
               ggml.block_bytes == info(type).block_bytes;
    }
  }
  return agree == element_type_count;
}
static_assert(ggml_blocks_agree());
}  // namespace detail

}  // namespace quipu
