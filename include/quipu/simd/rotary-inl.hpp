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

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/runtime/rotary_table.hpp"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kHeads heads, one after the other: (x0, x1) becomes (x0 c - x1 s, x1 c + x0 s), each product and
// the sum rounded on its own, as a complex product is in the reference. Cosines and sines are
// loaded once for all heads, since loads are what limits this in the caches. Several heads at a
// time are several streams within a page, which hardware does not fetch ahead: as many floats from
// `ahead` on are fetched, in order.
template <NumericMode kMode, std::size_t kHeads>
HWY_INLINE void RotateHeads(float* x, std::size_t head_dim, const float* cosines,
                            const float* sines, [[maybe_unused]] const float* ahead) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const LaneTag d;
  constexpr std::size_t kLine = 16;  // floats
  constexpr std::size_t kLineVectors = kLine / kTagLanes;
  for (; i + kLine <= head_dim; i += kLine) {
    hn::Vec<LaneTag> c[kLineVectors], s[kLineVectors];
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kLineVectors; ++k) {
      c[k] = hn::LoadU(d, cosines + i + k * kTagLanes);
      s[k] = hn::LoadU(d, sines + i + k * kTagLanes);
    }
    QUIPU_UNROLL
    for (std::size_t h = 0; h < kHeads; ++h) {
      PrefetchNear(ahead + i * kHeads + h * kLine);
      QUIPU_UNROLL
      for (std::size_t k = 0; k < kLineVectors; ++k) {
        float* at = x + h * head_dim + i + k * kTagLanes;
        auto v = hn::LoadU(d, at);
        PinRegister(v);  // not loaded again to be shuffled
        const auto turned = hn::Add(hn::Mul(v, c[k]), hn::Mul(hn::Shuffle2301(v), s[k]));
        hn::StoreU(kMode == NumericMode::bf16 ? RoundBf16(d, turned) : turned, d, at);
      }
    }
  }
#endif
  for (; i < head_dim; i += 2) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      float* at = x + h * head_dim + i;
      const float even = at[0] * cosines[i] + at[1] * sines[i];
      const float odd = at[1] * cosines[i + 1] + at[0] * sines[i + 1];
      at[0] = kMode == NumericMode::bf16 ? to_float(to_bf16(even)) : even;
      at[1] = kMode == NumericMode::bf16 ? to_float(to_bf16(odd)) : odd;
    }
  }
}

template <NumericMode kMode>
HWY_INLINE void RotateStridedRows(float* x, std::size_t row_stride, std::size_t heads,
                                  std::size_t head_dim, std::size_t rows, const float* table) {
  constexpr std::size_t kTogether = 4;
  for (std::size_t row = 0; row < rows; ++row, x += row_stride) {
    const float* cosines = table + row * rotary_row_floats(head_dim);
    const std::size_t left = (rows - 1 - row) * row_stride + heads * head_dim;
    std::size_t h = 0;
    for (; h + kTogether <= heads; h += kTogether) {
      const std::size_t at = h * head_dim, floats = kTogether * head_dim;
      RotateHeads<kMode, kTogether>(x + at, head_dim, cosines, cosines + head_dim,
                                    x + (std::min)(at + 4 * floats, left - floats));
    }
    for (; h < heads; ++h) {
      float* head = x + h * head_dim;
      RotateHeads<kMode, 1>(head, head_dim, cosines, cosines + head_dim, head);
    }
  }
}

// Rotates `heads` heads of each of `rows` rows, `row_stride` floats apart. `table` has one row of
// rotary_row_floats(head_dim) per row of x. The bf16 mode rounds the result.
inline void ApplyRotary(float* x, std::size_t row_stride, std::size_t heads, std::size_t head_dim,
                        std::size_t rows, const float* table, NumericMode mode) {
  if (mode == NumericMode::bf16) {
    RotateStridedRows<NumericMode::bf16>(x, row_stride, heads, head_dim, rows, table);
  } else {
    RotateStridedRows<NumericMode::f32>(x, row_stride, heads, head_dim, rows, table);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
