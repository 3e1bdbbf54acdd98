// Matrices to measure products with: several packed copies of one, used in turn, so that weights
// come from memory as they do in a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/simd/packing.hpp"
#include "quipu/simd/quantize.hpp"

namespace bench {

struct MatrixShape {
  std::size_t rows, cols;
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// More than the caches hold.
inline constexpr std::size_t cold_bytes = std::size_t{256} << 20;

/// n values from -1 to 1, the same every time.
inline std::vector<float> noise(std::size_t n) {
  std::vector<float> x(n);
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return x;
}

/// Packed copies of one matrix, of together `at_least` bytes or more; the first 16 rows are
/// quantised noise, which repeats, for a quick start.
class PackedCopies {
 public:
  PackedCopies(quipu::ElementType type, MatrixShape shape, std::size_t at_least)
      : type_(type), shape_(shape), bytes_(quipu::packed_bytes(type, shape.rows, shape.cols)) {
    count_ = (std::max)(std::size_t{1}, quipu::ceil_div(at_least, bytes_));
    const std::size_t row_bytes = quipu::row_bytes(type, shape.cols);
    std::vector<std::byte> rows(row_bytes * 16);
    const std::vector<float> values = noise(shape.cols * 16);
    for (std::size_t r = 0; r < 16; ++r) {
      quipu::quantize_row(type, values.data() + r * shape.cols, rows.data() + r * row_bytes,
                          shape.cols);
    }
    const std::size_t panel = quipu::packed_panel_bytes(type, shape.cols);
    data_ = quipu::AlignedBuffer(bytes_ * count_, "matrices of a benchmark");
    quipu::advise_huge_pages(data_);  // as an engine's packed weights are
    std::byte* first = data_.data();
    quipu::pack(quipu::row_major_view(rows.data(), type, 16, shape.cols), first, 0, 1);
    for (std::size_t at = panel; at < bytes_ * count_; at += panel)
      std::copy(first, first + panel, first + at);
  }
  /// The i-th copy, round and round.
  quipu::MatrixView view(std::size_t i) const {
    return quipu::packed_view(data_.data() + i % count_ * bytes_, type_, shape_.rows, shape_.cols);
  }
  /// Bytes of one copy.
  std::size_t bytes() const { return bytes_; }

 private:
  quipu::ElementType type_;
  MatrixShape shape_;
  std::size_t bytes_, count_;
  quipu::AlignedBuffer data_;
};

}  // namespace bench
