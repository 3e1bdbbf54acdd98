// Writes new keys and values into the KV cache.
//
// Siblings: runtime/kv_cache.hpp (the layout), attention-inl.hpp, test/simd/kv_append_test.cpp,
// bench/elementwise_bench.cpp.
#if defined(QUIPU_SIMD_KV_APPEND_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_KV_APPEND_INL_HPP_
#undef QUIPU_SIMD_KV_APPEND_INL_HPP_
#else
#define QUIPU_SIMD_KV_APPEND_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/runtime/kv_cache.hpp"
#include "quipu/runtime/sequence_chunk.hpp"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/packing_steps.hpp"
#include "quipu/simd/round-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void StoreCacheRow(const float* values, std::size_t n, float* to) {
  std::copy(values, values + n, to);
}
HWY_INLINE void StoreCacheRow(const float* values, std::size_t n, bf16* to) {
  ConvertToBf16(values, n, to);
}

// Keys are transposed a block of 16 positions at a time: the block's lanes of a feature are
// neighbours. Of a whole block, these write as many features as they have steps for and return how
// many those are; transposing is the work of packing weights with as many rows.
static_assert(kv_block == panel_outputs);
HWY_INLINE std::size_t TransposeKeys(const float* k, std::size_t k_stride, std::size_t features,
                                     float* to) {
  const std::size_t whole = features - features % 16;
  for (std::size_t f = 0; f < whole; f += 16) {
    detail::pack_words<4>(reinterpret_cast<const std::uint8_t*>(k + f), k_stride * sizeof(float),
                          reinterpret_cast<std::uint8_t*>(to + f * kv_block));
  }
  return whole;
}
// Two positions of bf16 are put into one word first, which halves what is to be transposed.
HWY_INLINE std::size_t TransposeKeys(const float* k, std::size_t k_stride, std::size_t features,
                                     bf16* to) {
  constexpr std::size_t kStep = 32;
  constexpr std::size_t kPairs = kv_block / 2;
  const LaneTag d;
  const hn::RebindToUnsigned<LaneTag> du;
  const std::size_t whole = features - features % kStep;
  for (std::size_t f = 0; f < whole; f += kStep) {
    HWY_ALIGN std::uint32_t words[kPairs][kStep];
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const float* even = k + 2 * pair * k_stride + f;
      for (std::size_t i = 0; i < kStep; i += 2 * kTagLanes) {
        const hn::Vec<LaneTag> v[] = {hn::LoadU(d, even + i), hn::LoadU(d, even + k_stride + i),
                                      hn::LoadU(d, even + i + kTagLanes),
                                      hn::LoadU(d, even + k_stride + i + kTagLanes)};
        hn::Vec<hn::RebindToUnsigned<LaneTag>> bits[4];
        AllBf16InUpperHalf(d, v, bits);
        for (std::size_t half = 0; half < 2; ++half) {
          const auto odd = hn::And(bits[2 * half + 1], hn::Set(du, 0xffff0000u));
          hn::Store(hn::Or(hn::ShiftRight<16>(bits[2 * half]), odd), du,
                    words[pair] + i + half * kTagLanes);
        }
      }
    }
    auto* block = reinterpret_cast<std::uint8_t*>(to + f * kv_block);
    for (std::size_t i = 0; i < kStep; i += 4) {
      for (std::size_t four = 0; four < 2; ++four) {
        detail::WordVector w[4];
        detail::load_words(reinterpret_cast<const std::uint8_t*>(words[4 * four] + i),
                           sizeof words[0], w);
        for (std::size_t j = 0; j < 4; ++j)
          detail::store_vector(w[j], block + (i + j) * kv_block * sizeof(bf16) + 16 * four);
      }
    }
  }
  return whole;
}

// Keys of some positions of one block and one head.
template <class Element>
HWY_INLINE void AppendKeys(const float* k, std::size_t k_stride, std::size_t run,
                           std::size_t head_dim, Element* to) {
  std::size_t feature = run == kv_block ? TransposeKeys(k, k_stride, head_dim, to) : 0;
  while (feature < head_dim) {
    constexpr std::size_t kStep = 64;
    const std::size_t count = (std::min)(kStep, head_dim - feature);
    for (std::size_t t = 0; t < run; ++t) {
      Element row[kStep];
      StoreCacheRow(k + t * k_stride + feature, count, row);
      for (std::size_t i = 0; i < count; ++i) to[(feature + i) * kv_block + t] = row[i];
    }
    feature += count;
  }
}

// Rows k and v of the chunk's positions, of all heads. Rows are read from end to end as far as the
// layout allows: values by position, keys by blocks of positions.
template <class Element>
HWY_INLINE void AppendPositions(const KvCache& cache, std::size_t layer, const SequenceChunk& chunk,
                                const float* k, std::size_t k_stride, const float* v,
                                std::size_t v_stride) {
  const std::size_t kv_heads = cache.shape().kv_heads, head_dim = cache.shape().head_dim;
  for (std::size_t t = 0; t < chunk.tokens;) {
    const std::size_t position = chunk.start + t;
    const std::size_t run = (std::min)(chunk.tokens - t, kv_block - position % kv_block);
    for (std::size_t i = 0; i < run; ++i) {
      for (std::size_t h = 0; h < kv_heads; ++h) {
        const KvHeadView head = cache.head(chunk.cache_row, layer, h);
        StoreCacheRow(v + (t + i) * v_stride + h * head_dim, head_dim,
                      reinterpret_cast<Element*>(head.values) + head.value_index(position + i, 0));
      }
    }
    for (std::size_t h = 0; h < kv_heads; ++h) {
      const KvHeadView head = cache.head(chunk.cache_row, layer, h);
      const float* from = k + t * k_stride + h * head_dim;
      AppendKeys(from, k_stride, run, head_dim,
                 reinterpret_cast<Element*>(head.keys) + head.key_index(position, 0));
    }
    t += run;
  }
}

// Writes a chunk's keys (after the rotary embedding) and values: activation row r, kv head h, at
// k + r * k_stride + h * head_dim, likewise v. A bf16 cache rounds to nearest even. The positions
// must be within the capacity (whoever takes positions from a user checks it).
inline void AppendKeysValues(const KvCache& cache, std::size_t layer, const SequenceChunk& chunk,
                             const float* k, std::size_t k_stride, const float* v,
                             std::size_t v_stride) {
  k += chunk.first_row * k_stride;
  v += chunk.first_row * v_stride;
  if (cache.shape().element == ElementType::bf16) {
    AppendPositions<bf16>(cache, layer, chunk, k, k_stride, v, v_stride);
  } else {
    AppendPositions<float>(cache, layer, chunk, k, k_stride, v, v_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
