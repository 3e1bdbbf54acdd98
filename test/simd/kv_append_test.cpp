// Keys and values written to the cache come back from their places.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kv_append_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/kv_append-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace kv_append_test {
namespace HWY_NAMESPACE {
void Append(const quipu::KvCache& cache, std::size_t layer, const quipu::SequenceChunk& chunk,
            const float* k, std::size_t k_stride, const float* v, std::size_t v_stride) {
  quipu::HWY_NAMESPACE::AppendKeysValues(cache, layer, chunk, k, k_stride, v, v_stride);
}
}  // namespace HWY_NAMESPACE
}  // namespace kv_append_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace kv_append_test {
HWY_EXPORT(Append);
using quipu::ElementType;

// Heads without whole vectors, of whole steps of a transposition, and of some steps and a rest.
class KvAppend : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(HeadDims, KvAppend, testing::Values(12, 44, 64));

TEST_P(KvAppend, EveryElementInItsPlaceAndNothingElse) {
  const std::size_t head_dim = GetParam();
  const quipu::KvCacheShape shape{2, 2, 3, head_dim, 50, ElementType::f32};
  const std::size_t stride = 3 * head_dim + 2;
  const std::vector<float> k = quipu_test::random_floats(60 * stride, 1);
  const std::vector<float> v = quipu_test::random_floats(60 * stride, 2);
  // Chunks that begin and end inside, at and across blocks of 16, the last one at the capacity.
  const quipu::SequenceChunk chunks[] = {
      {0, 0, 7, 0}, {0, 7, 9, 7}, {0, 16, 1, 16}, {0, 17, 33, 17}, {1, 3, 2, 50}};
  for (const ElementType element : {ElementType::f32, ElementType::bf16}) {
    quipu_test::for_each_target([&](std::int64_t) {
      quipu::KvCacheShape own = shape;
      own.element = element;
      const quipu::KvCache cache(own);
      for (const auto& chunk : chunks) {
        HWY_DYNAMIC_DISPATCH(Append)(cache, 1, chunk, k.data(), stride, v.data(), stride);
      }
      std::vector<std::vector<bool>> written(2, std::vector<bool>(50, false));
      for (const auto& chunk : chunks) {
        for (std::size_t t = 0; t < chunk.tokens; ++t) {
          written[chunk.cache_row][chunk.start + t] = true;
          for (std::size_t h = 0; h < 3; ++h) {
            const quipu::KvHeadView head = cache.head(chunk.cache_row, 1, h);
            for (std::size_t d = 0; d < head_dim; ++d) {
              const std::size_t from = (chunk.first_row + t) * stride + h * head_dim + d;
              const bool round = element == ElementType::bf16;
              ASSERT_EQ(head.key(chunk.start + t, d),
                        round ? quipu_test::nearest_bf16(k[from]) : k[from]);
              ASSERT_EQ(head.value(chunk.start + t, d),
                        round ? quipu_test::nearest_bf16(v[from]) : v[from]);
            }
          }
        }
      }
      for (std::size_t row = 0; row < 2; ++row) {
        for (std::size_t layer = 0; layer < 2; ++layer) {
          for (std::size_t h = 0; h < 3; ++h) {
            for (std::size_t p = 0; p < 50; ++p) {
              if (layer == 1 && written[row][p]) continue;
              for (std::size_t d = 0; d < head_dim; ++d) {
                ASSERT_EQ(cache.head(row, layer, h).key(p, d), 0.0f);
                ASSERT_EQ(cache.head(row, layer, h).value(p, d), 0.0f);
              }
            }
          }
        }
      }
    });
  }
}

}  // namespace kv_append_test
#endif
