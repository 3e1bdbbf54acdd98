// Matrix products: what a caller needs without Highway. The kernels are in product-inl.hpp.
//
// The canonical order of sums, which holds for both layouts and does not depend on the number of
// rows of x, on threads or on the target (given fused multiply-add):
//   panels of 512 inputs: the sum of each is made as below, then panel sums are added in order.
//   plain weights         sum = fma(w, x, sum) in order of k.
//   block weights, x as float32
//                         per 32 inputs (q6_k: 16): s = fma(q, x, s) in order of k, q the integer
//                         level; then sum = fma(scale, s, sum); kinds with a minimum then sum =
//                         fma(minimum, sum of the block's x in order of k, sum).
//   block weights, x as int8
//                         x is rounded per 32 inputs to xs * (-127..127), xs = largest magnitude /
//                         127; s = the exact integer dot product per 32 (q6_k: 16); sum = fma(scale
//                         * xs, s, sum), then minima: sum = fma(minimum, xs * (sum of the integers
//                         of x), sum).
// Siblings: product-inl.hpp, packing.hpp, test/simd/product_test.cpp, bench/product_bench.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "quipu/runtime/executor.hpp"
#include "quipu/shape/checked.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/simd/packing.hpp"

namespace quipu {

/// One product y = x W^T of several that share x: y[m * y_stride + n] for output n of row m.
struct Product {
  MatrixView w;
  float* y = nullptr;
  std::size_t y_stride = 0;  ///< floats from row to row of y
};

/// How block-quantised weights meet the activations. f32 is exact in x; int8 rounds x per 32
/// inputs, as other GGUF engines do, and is several times faster. Plain weights always take
/// float32.
enum class ActivationMode : unsigned char { f32, int8 };

namespace detail {

/// Rows of x that are prepared at a time: 144 rows of a panel of 512 inputs are 288 KiB of floats,
/// which stay in a second-level cache of 512 KiB. A multiple of every tile height (1, 2, 3, 4, 6,
/// 12).
inline constexpr std::size_t product_row_block = 144;

/// Panels of weights that meet these rows together, one after the other for each 512 inputs: x then
/// comes from the third-level cache once for 8 panels, and their totals of 144 rows are 72 KiB.
inline constexpr std::size_t product_group_panels = 8;

/// Scratch floats of one worker: a decoded slab of 512 inputs of two panels; for weights that are
/// not packed, the same of four packed panels; the totals of a group of panels for a block of
/// rows.
inline constexpr std::size_t product_slab_floats = 2 * sum_panel * panel_outputs + 2048;
inline constexpr std::size_t product_room_floats = 4 * sum_panel * panel_outputs;
inline constexpr std::size_t product_worker_floats =
    product_slab_floats + product_room_floats +
    product_row_block * product_group_panels * panel_outputs;

/// Floats of the prepared activations of `rows` rows: packed floats, block sums, int8 values (a
/// quarter), int8 scales, scaled sums, and three integer sums per block; each part on a cache line.
constexpr std::size_t prepared_floats(std::size_t cols, std::size_t rows) {
  const std::size_t blocks = ceil_div(cols, 32);
  const std::size_t per_row = checked_add(cols, checked_mul(blocks, 8 + 6), "scratch of a product");
  return checked_add(checked_mul(per_row, rows, "scratch of a product"), 6 * 16,
                     "scratch of a product");
}

}  // namespace detail

/// Floats of scratch that MatMul needs for at most `max_cols` inputs, `max_m` rows of x and
/// `threads` workers.
constexpr std::size_t product_scratch_floats(std::size_t max_cols, std::size_t max_m,
                                             std::size_t threads) {
  const std::size_t rows = (std::min)(max_m, detail::product_row_block);
  return checked_add(
      checked_add(16, detail::prepared_floats(max_cols, rows), "scratch of a product"),
      checked_mul(detail::product_worker_floats, threads, "scratch of a product"),
      "scratch of a product");
}

}  // namespace quipu
