// The kernels of a block over all rows of a pass: what transformer-inl.hpp calls, without the
// model's type, so that each is compiled once for any number of models.
//
// Rows are handed to the executor in even runs; a single row (decoding) is computed by the caller,
// since waking a worker costs more than a few thousand elements.
// Siblings: the kernels included below, simd/transformer-inl.hpp.
#if defined(QUIPU_SIMD_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_ROWS_INL_HPP_
#undef QUIPU_SIMD_ROWS_INL_HPP_
#else
#define QUIPU_SIMD_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "hwy/highway.h"
#include "quipu/simd/forward_call.hpp"
#include "quipu/simd/kv_append-inl.hpp"
#include "quipu/simd/product-inl.hpp"
#include "quipu/simd/residual-inl.hpp"
#include "quipu/simd/rms_norm-inl.hpp"
#include "quipu/simd/rotary-inl.hpp"
#include "quipu/simd/round-inl.hpp"
#include "quipu/simd/silu-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {

template <class F>
HWY_INLINE void ForRows(const ForwardCall& call, std::size_t rows, F&& f) {
  const std::size_t tasks = rows == 1 ? 1 : (std::min)(rows, call.executor.concurrency());
  call.executor.run(tasks, [&](std::size_t task, std::size_t)
                               HWY_ATTR { f(task * rows / tasks, (task + 1) * rows / tasks); });
}

// Products that share x, in one parallel region, or each for itself under a profile; the bf16 mode
// rounds each output.
HWY_NOINLINE inline void ProjectRows(const ForwardCall& call, std::size_t layer,
                                     const std::string_view* names, const Product* products,
                                     std::size_t count, const float* x, std::size_t width,
                                     std::size_t rows) {
  if (call.profile && count > 1) {
    for (std::size_t i = 0; i < count; ++i)
      ProjectRows(call, layer, names + i, products + i, 1, x, width, rows);
    return;
  }
  MatMul(products, count, x, width, rows, call.activations, call.executor,
         call.scratch->at(call.plan->product));
  for (std::size_t i = 0; call.mode == NumericMode::bf16 && i < count; ++i) {
    const Product& p = products[i];
    ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
      RoundToBf16(p.y + first * p.y_stride, (last - first) * p.y_stride);
    });
  }
  call.profile.lap(layer, names[0]);
}

HWY_NOINLINE inline void NormaliseRows(const ForwardCall& call, const MatrixView& weight,
                                       const float* x, std::size_t width, std::size_t rows,
                                       float* y) {
  const auto* w = reinterpret_cast<const float*>(weight.data);
  ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
    ApplyRmsNorm(x + first * width, w, call.norm_eps, width, last - first, y + first * width,
                 call.mode);
  });
}

HWY_NOINLINE inline void AddRows(const ForwardCall& call, float* stream, const float* update,
                                 std::size_t width, std::size_t rows) {
  ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
    AddResidual(stream + first * width, update + first * width, (last - first) * width, call.mode);
  });
}

HWY_NOINLINE inline void RotateRows(const ForwardCall& call, float* x, std::size_t heads,
                                    std::size_t head_dim, std::size_t rows) {
  const float* table = call.scratch->at(call.plan->rotary);
  const std::size_t width = heads * head_dim;
  ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
    ApplyRotary(x + first * width, width, heads, head_dim, last - first,
                table + first * rotary_row_floats(head_dim), call.mode);
  });
}

HWY_NOINLINE inline void AppendRows(const ForwardCall& call, std::size_t layer, const float* k,
                                    const float* v, std::size_t width) {
  for (const SequenceChunk& chunk : call.chunks) {
    AppendKeysValues(*call.cache, layer, chunk, k, width, v, width);
  }
}

HWY_NOINLINE inline void GateRows(const ForwardCall& call, const float* gate, const float* up,
                                  std::size_t width, std::size_t rows, float* y) {
  ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
    ApplySiluGate(gate + first * width, up + first * width, (last - first) * width,
                  y + first * width, call.mode);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();

#endif  // toggle
