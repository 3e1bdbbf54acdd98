// Token embedding: rows of the table as float32.
//
// Siblings: model/token_embedding.hpp, packing.hpp (a row of any layout), dequantize.hpp,
// test/simd/embedding_test.cpp, bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_EMBEDDING_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_EMBEDDING_INL_HPP_
#undef QUIPU_SIMD_EMBEDDING_INL_HPP_
#else
#define QUIPU_SIMD_EMBEDDING_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/shape/matrix.hpp"
#include "quipu/simd/packing.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Writes the table's row of each token to dense rows of table.cols floats. Every token must be
// below table.rows (whoever takes tokens from a user checks it). A table in bf16 is copied exactly;
// any other is rounded in the bf16 mode.
inline void EmbedTokens(const MatrixView& table, const std::int32_t* tokens, std::size_t count,
                        float* out, NumericMode mode) {
  for (std::size_t t = 0; t < count; ++t) {
    float* row = out + t * table.cols;
    const auto token = static_cast<std::size_t>(tokens[t]);
    if (table.layout == Layout::row_major && table.type == ElementType::bf16) {
      ConvertToFloat(reinterpret_cast<const bf16*>(table.data + token * table.row_stride),
                     table.cols, row);
      continue;
    }
    dequantize_row(table, token, row);
    if (mode == NumericMode::bf16) RoundToBf16(row, table.cols);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
