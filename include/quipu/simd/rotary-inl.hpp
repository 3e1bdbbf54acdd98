// The rotary embedding of interleaved pairs, in place.
//
// Siblings: model/rotary_embedding.hpp, runtime/rotary_table.hpp (the rows of cosines and sines),
// test/simd/rotary_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_ROTARY_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ROTARY_INL_HPP_
#undef QUIPU_SIMD_ROTARY_INL_HPP_
#else
#define QUIPU_SIMD_ROTARY_INL_HPP_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/runtime/rotary_table.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One head: (x0, x1) becomes (x0 c - x1 s, x1 c + x0 s), each product and the sum rounded on its
// own, as a complex product is in the reference.
template <NumericMode kMode>
HWY_INLINE void RotateHead(float* x, std::size_t head_dim, const float* cosines,
                           const float* sines) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const LaneTag d;
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= head_dim; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto turned = hn::Add(hn::Mul(v, hn::LoadU(d, cosines + i)),
                                hn::Mul(hn::Shuffle2301(v), hn::LoadU(d, sines + i)));
    hn::StoreU(kMode == NumericMode::bf16 ? RoundBf16(d, turned) : turned, d, x + i);
  }
#endif
  for (; i < head_dim; i += 2) {
    const float even = x[i] * cosines[i] + x[i + 1] * sines[i];
    const float odd = x[i + 1] * cosines[i + 1] + x[i] * sines[i + 1];
    x[i] = kMode == NumericMode::bf16 ? to_float(to_bf16(even)) : even;
    x[i + 1] = kMode == NumericMode::bf16 ? to_float(to_bf16(odd)) : odd;
  }
}

// Rotates `heads` heads of each of `rows` rows, `row_stride` floats apart. `table` has one row of
// rotary_row_floats(head_dim) per row of x. The bf16 mode rounds the result.
inline void ApplyRotary(float* x, std::size_t row_stride, std::size_t heads, std::size_t head_dim,
                        std::size_t rows, const float* table, NumericMode mode) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float* cosines = table + row * rotary_row_floats(head_dim);
    for (std::size_t h = 0; h < heads; ++h) {
      float* head = x + row * row_stride + h * head_dim;
      if (mode == NumericMode::bf16) {
        RotateHead<NumericMode::bf16>(head, head_dim, cosines, cosines + head_dim);
      } else {
        RotateHead<NumericMode::f32>(head, head_dim, cosines, cosines + head_dim);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
