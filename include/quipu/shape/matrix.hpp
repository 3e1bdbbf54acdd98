// A weight matrix in memory: logical extents with a run-time element type and layout.
//
// Logical shape is always [out, in]: `rows` outputs by `cols` inputs. Two layouts:
//   row_major  as files have it: row r starts at data + r * row_stride bytes.
//   panels     packed for the kernels: panels of 16 outputs whose elements stand side by side, so
//              that outputs are in the vector lanes (quipu/simd/packing.hpp defines the bytes).
// A MatrixView owns nothing. A vector (a norm's weight) is a matrix of one row.
#pragma once

#include <cstddef>

#include "quipu/shape/element_type.hpp"

namespace quipu {

/// How a matrix lies in memory: row by row, or packed in panels of panel_outputs rows.
enum class Layout : unsigned char { row_major, panels };

/// Outputs side by side in a packed panel: the float32 lanes of AVX-512, two AVX2 vectors, four of
/// NEON or SSE. A constant on every target, so that a packed file serves all of them.
inline constexpr std::size_t panel_outputs = 16;

/// Inputs of a constant panel of the canonical order of sums: products are added in order of k
/// within a panel of 512, panels are added in order.
inline constexpr std::size_t sum_panel = 512;

/// A weight [rows, cols] = [out, in] in memory that someone else owns, of any element type.
struct MatrixView {
  const std::byte* data = nullptr;
  std::size_t rows = 0;        ///< outputs
  std::size_t cols = 0;        ///< inputs
  std::size_t row_stride = 0;  ///< bytes from row to row (row_major) or panel to panel (panels)
  ElementType type = ElementType::f32;
  Layout layout = Layout::row_major;

  constexpr bool empty() const { return data == nullptr; }
};

/// The view of a row-major matrix whose rows follow each other without a gap.
inline MatrixView row_major_view(const void* data, ElementType type, std::size_t rows,
                                 std::size_t cols) {
  return {static_cast<const std::byte*>(data),
          rows,
          cols,
          row_bytes(type, cols),
          type,
          Layout::row_major};
}

}  // namespace quipu
