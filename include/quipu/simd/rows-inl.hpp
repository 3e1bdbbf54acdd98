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
#include <cstdint>
#include <string_view>

#include "hwy/highway.h"
#include "quipu/simd/embedding-inl.hpp"
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
      for (std::size_t row = first; row < last; ++row) {
        RoundToBf16(p.y + row * p.y_stride, p.w.rows);
      }
    });
  }
  call.profile.lap(layer, names[0]);
}

// Where the ranks of a model-parallel run meet: each has a part of every element's sum, and all get
// the whole, added in the order of ranks; the bf16 mode rounds it. As in the forward functions of
// RowParallelLinear and VocabParallelEmbedding, fairscale 50b06d251730,
// nn/model_parallel/layers.py.
HWY_NOINLINE inline void SumOverRanks(const ForwardCall& call, std::size_t layer,
                                      std::string_view name, float* x, std::size_t width,
                                      std::size_t rows) {
  if (call.communicator.ranks() == 1) return;
  call.communicator.all_reduce_sum(x, rows * width);
  if (call.mode == NumericMode::bf16) {
    ForRows(call, rows, [&](std::size_t first, std::size_t last) HWY_ATTR {
      RoundToBf16(x + first * width, (last - first) * width);
    });
  }
  call.profile.lap(layer, name);
}

// The rows of the tokens in this rank's part of the table, zeros for the others', summed over
// ranks.
HWY_NOINLINE inline void EmbedRows(const ForwardCall& call, const MatrixView& table, float* out) {
  const std::size_t rows = call.tokens.size();
  if (call.communicator.ranks() == 1) {
    EmbedTokens(table, call.tokens.data(), rows, out, call.mode);
    call.profile.lap(no_layer, "tok_embeddings");
    return;
  }
  const std::size_t first = call.communicator.rank() * table.rows;
  for (std::size_t t = 0; t < rows; ++t) {
    float* row = out + t * table.cols;
    const auto token = static_cast<std::size_t>(call.tokens[t]);
    if (token < first || token - first >= table.rows) {
      std::fill_n(row, table.cols, 0.0f);
      continue;
    }
    const auto own = static_cast<std::int32_t>(token - first);
    EmbedTokens(table, &own, 1, row, call.mode);
  }
  SumOverRanks(call, no_layer, "tok_embeddings", out, table.cols, rows);
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
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
