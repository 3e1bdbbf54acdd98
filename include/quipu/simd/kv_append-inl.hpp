// Writes new keys and values into the KV cache.
//
// Siblings: runtime/kv_cache.hpp (the layout), attention-inl.hpp, test/simd/kv_append_test.cpp,
// bench/attention_bench.cpp.
#if defined(QUIPU_SIMD_KV_APPEND_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_KV_APPEND_INL_HPP_
#undef QUIPU_SIMD_KV_APPEND_INL_HPP_
#else
#define QUIPU_SIMD_KV_APPEND_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "quipu/runtime/kv_cache.hpp"
#include "quipu/runtime/sequence_chunk.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void StoreCacheElement(float value, float* to) { *to = value; }
HWY_INLINE void StoreCacheElement(float value, bf16* to) { *to = to_bf16(value); }
HWY_INLINE void StoreCacheRow(const float* values, std::size_t n, float* to) {
  std::copy(values, values + n, to);
}
HWY_INLINE void StoreCacheRow(const float* values, std::size_t n, bf16* to) {
  ConvertToBf16(values, n, to);
}

// One head. Keys are transposed a block of 16 positions at a time: the block's lanes of a feature
// are neighbours, so that a cache line of the block is written while it is near.
template <class Element>
HWY_INLINE void AppendHead(const KvHeadView& head, std::size_t start, std::size_t tokens,
                           const float* k, std::size_t k_stride, const float* v,
                           std::size_t v_stride) {
  auto* keys = reinterpret_cast<Element*>(head.keys);
  auto* values = reinterpret_cast<Element*>(head.values);
  for (std::size_t t = 0; t < tokens;) {
    const std::size_t position = start + t;
    const std::size_t run = (std::min)(tokens - t, kv_block - position % kv_block);
    for (std::size_t feature = 0; feature < head.head_dim; ++feature) {
      Element* to = keys + head.key_index(position, feature);
      const float* from = k + t * k_stride + feature;
      for (std::size_t i = 0; i < run; ++i) StoreCacheElement(from[i * k_stride], to + i);
    }
    t += run;
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    StoreCacheRow(v + t * v_stride, head.head_dim, values + head.value_index(start + t, 0));
  }
}

// Writes a chunk's keys (after the rotary embedding) and values: activation row r, kv head h, at
// k + r * k_stride + h * head_dim, likewise v. A bf16 cache rounds to nearest even. The positions
// must be within the capacity (whoever takes positions from a user checks it).
inline void AppendKeysValues(const KvCache& cache, std::size_t layer, const SequenceChunk& chunk,
                             const float* k, std::size_t k_stride, const float* v,
                             std::size_t v_stride) {
  for (std::size_t h = 0; h < cache.shape().kv_heads; ++h) {
    const KvHeadView head = cache.head(chunk.cache_row, layer, h);
    const float* head_k = k + chunk.first_row * k_stride + h * head.head_dim;
    const float* head_v = v + chunk.first_row * v_stride + h * head.head_dim;
    if (head.element == ElementType::bf16) {
      AppendHead<bf16>(head, chunk.start, chunk.tokens, head_k, k_stride, head_v, v_stride);
    } else {
      AppendHead<float>(head, chunk.start, chunk.tokens, head_k, k_stride, head_v, v_stride);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
