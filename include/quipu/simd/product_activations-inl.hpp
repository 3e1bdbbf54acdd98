// The activations of a product as its tiles read them: a block of rows, packed tile by tile, as
// floats or rounded to int8. Siblings: product-inl.hpp (the driver), product_floats-inl.hpp,
// product_bytes-inl.hpp (the tiles).

#if defined(QUIPU_SIMD_PRODUCT_ACTIVATIONS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_ACTIVATIONS_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_ACTIVATIONS_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_ACTIVATIONS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/simd/product_bytes-inl.hpp"
#include "quipu/simd/product_floats-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of x cut into tiles of at most `most` rows, as equal as can be: 8 rows are 4 + 4, not 6 + 2.
struct RowTiles {
  std::size_t rows;
  std::size_t count;

  HWY_INLINE RowTiles(std::size_t all_rows, std::size_t most)
      : rows(all_rows), count((all_rows + most - 1) / most) {}
  HWY_INLINE std::size_t Begin(std::size_t tile) const {
    return tile * (rows / count) + (std::min)(tile, rows % count);
  }
};

// A block of rows of x as the tiles read it. Offsets for a tile of R rows at row `begin` and a
// panel of `n` inputs at input k: floats at k * rows + begin * n, per-block values likewise
// over 32.
struct Prepared {
  std::size_t rows = 0;
  std::size_t cols = 0;
  const float* floats = nullptr;  // [k][R] of each tile
  const float* sums = nullptr;    // [block][R]
  const std::int8_t* q = nullptr;
  const float* scale = nullptr;
  const float* scaled_sum = nullptr;
  const std::int32_t* minus_sum = nullptr;

  HWY_INLINE std::size_t Offset(std::size_t k, std::size_t begin, std::size_t n) const {
    return k * rows + begin * n;
  }
  HWY_INLINE std::size_t BlockOffset(std::size_t k, std::size_t begin, std::size_t n) const {
    return k / 32 * rows + begin * (n / 32);
  }
  HWY_INLINE ByteActivations Bytes(std::size_t k, std::size_t begin, std::size_t n) const {
    const std::size_t block = BlockOffset(k, begin, n);
    return {q + Offset(k, begin, n), scale + block, scaled_sum + block, minus_sum + 3 * block};
  }
};

// What the products of one call need of x.
struct Needs {
  bool floats = false;
  bool sums = false;
  bool bytes = false;
};

HWY_INLINE bool IsBlockType(ElementType type) { return info(type).block_elements > 1; }
HWY_INLINE bool HasMinimum(ElementType type) {
  return type == ElementType::q4_1 || type == ElementType::q5_1 || type == ElementType::q4_k ||
         type == ElementType::q5_k;
}

// Splits a scratch area into parts that start on cache lines.
class Carver {
 public:
  HWY_INLINE explicit Carver(float* from) {
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    next_ = from + (64 - address % 64) % 64 / sizeof(float);
  }
  HWY_INLINE float* Take(std::size_t floats) {
    float* part = next_;
    next_ += (floats + 15) / 16 * 16;
    return part;
  }

 private:
  float* next_;
};

// Writes what tile `tile` of the rows needs.
HWY_NOINLINE inline void PrepareFloats(const float* x, std::size_t x_stride, const Prepared& to,
                                       bool copy, bool with_sums, std::size_t tile) {
  const RowTiles tiles(to.rows, kFloatTileRows);
  const std::size_t begin = tiles.Begin(tile);
  const std::size_t r_count = tiles.Begin(tile + 1) - begin;
  auto* floats = const_cast<float*>(to.floats);
  auto* sums = const_cast<float*>(to.sums);
  for (std::size_t k = 0; k < to.cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, to.cols - k);
    for (std::size_t r = 0; r < r_count; ++r) {
      const float* HWY_RESTRICT from = x + (begin + r) * x_stride + k;
      if (copy) {
        float* HWY_RESTRICT out = floats + to.Offset(k, begin, n) + r;
        for (std::size_t i = 0; i < n; ++i) out[i * r_count] = from[i];
      }
      if (with_sums) {
        float* out = sums + to.BlockOffset(k, begin, n) + r;
        for (std::size_t b = 0; b < n / 32; ++b) {
          float sum = 0;
          for (std::size_t i = 0; i < 32; ++i) sum += from[32 * b + i];
          out[b * r_count] = sum;
        }
      }
    }
  }
}

HWY_NOINLINE inline void PrepareBytes(const float* x, std::size_t x_stride, const Prepared& to,
                                      std::size_t tile) {
  const RowTiles tiles(to.rows, kByteTileRows);
  const std::size_t begin = tiles.Begin(tile);
  const std::size_t r_count = tiles.Begin(tile + 1) - begin;
  for (std::size_t k = 0; k < to.cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, to.cols - k);
    const ByteActivations at = to.Bytes(k, begin, n);
    for (std::size_t r = 0; r < r_count; ++r) {
      const float* from = x + (begin + r) * x_stride + k;
      for (std::size_t b = 0; b < n / 32; ++b) {
        const std::size_t i = b * r_count + r;
        QuantizeBlock(from + 32 * b, const_cast<std::int8_t*>(at.q) + 32 * i,
                      const_cast<float*>(at.scale) + i, const_cast<float*>(at.scaled_sum) + i,
                      const_cast<std::int32_t*>(at.minus_sum) + 3 * b * r_count + r, r_count);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
