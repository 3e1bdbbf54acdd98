// The KV cache: byte counts at compile time, layout, ownership.
#include "quipu/runtime/kv_cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace {

using quipu::ElementType;
using quipu::KvCacheShape;

// Llama 3 8B in bf16: 128 KiB a position, 512 MiB at 4096, 16 GiB at 131072.
constexpr KvCacheShape llama(std::size_t capacity) {
  return {.batch = 1,
          .layers = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .capacity = capacity,
          .element = ElementType::bf16};
}
static_assert(llama(4096).bytes() == 4096ull * 131072);
static_assert(llama(131072).bytes() == 16ull << 30);
// Keys go by blocks of 16 positions.
static_assert(llama(1).bytes() == 32ull * 8 * (16 * 128 * 2 + 128 * 2));

TEST(KvCache, AllocatesWhatTheShapeSays) {
  for (const ElementType element : {ElementType::f32, ElementType::bf16}) {
    const KvCacheShape shape{2, 3, 2, 12, 33, element};
    const quipu::KvCache cache(shape);
    EXPECT_EQ(cache.bytes(), shape.bytes());
    EXPECT_EQ(cache.shape().capacity, 33u);
  }
}

// Every (row, layer, head, position, feature) has a place of its own within the allocation.
TEST(KvCache, PlacesAreDistinctAndInside) {
  for (const ElementType element : {ElementType::f32, ElementType::bf16}) {
    const KvCacheShape shape{2, 2, 3, 6, 17, element};
    const quipu::KvCache cache(shape);
    const std::size_t bytes = quipu::info(element).block_bytes;
    std::set<const std::byte*> places;
    std::size_t count = 0;
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t layer = 0; layer < 2; ++layer) {
        for (std::size_t h = 0; h < 3; ++h) {
          const quipu::KvHeadView head = cache.head(row, layer, h);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(head.keys) % 64, 0u);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(head.values) % 64, 0u);
          for (std::size_t p = 0; p < 17; ++p) {
            for (std::size_t d = 0; d < 6; ++d) {
              places.insert(head.keys + head.key_index(p, d) * bytes);
              places.insert(head.values + head.value_index(p, d) * bytes);
              EXPECT_EQ(head.key(p, d), 0.0f);
              EXPECT_EQ(head.value(p, d), 0.0f);
              count += 2;
            }
          }
        }
      }
    }
    EXPECT_EQ(places.size(), count);
    const std::byte* first = cache.head(0, 0, 0).keys;
    EXPECT_EQ(*places.begin(), first);
    EXPECT_LE(*places.rbegin() + bytes, first + cache.bytes());
  }
}

TEST(KvCache, KeysStandInBlocksOfSixteenPositions) {
  const quipu::KvCache cache(KvCacheShape{1, 1, 1, 4, 40, ElementType::f32});
  const quipu::KvHeadView head = cache.head(0, 0, 0);
  EXPECT_EQ(head.key_index(0, 0), 0u);
  EXPECT_EQ(head.key_index(1, 0), 1u);
  EXPECT_EQ(head.key_index(0, 1), 16u);
  EXPECT_EQ(head.key_index(17, 3), 64u + 3 * 16 + 1);
  EXPECT_EQ(head.value_index(17, 3), 17u * 4 + 3);
}

TEST(KvCache, ReadsBf16) {
  const quipu::KvCache cache(KvCacheShape{1, 1, 1, 2, 2, ElementType::bf16});
  const quipu::KvHeadView head = cache.head(0, 0, 0);
  const std::uint16_t minus_two = 0xC000;
  std::memcpy(head.values + 2 * head.value_index(1, 1), &minus_two, 2);
  std::memcpy(head.keys + 2 * head.key_index(1, 0), &minus_two, 2);
  EXPECT_EQ(head.value(1, 1), -2.0f);
  EXPECT_EQ(head.key(1, 0), -2.0f);
}

std::string message_of(const KvCacheShape& shape) {
  try {
    const quipu::KvCache cache(shape);
  } catch (const quipu::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(KvCache, RefusesByName) {
  EXPECT_NE(message_of({1, 1, 0, 8, 8, ElementType::f32}).find("kv_heads"), std::string::npos);
  EXPECT_NE(message_of({1, 1, 1, 8, 0, ElementType::f32}).find("capacity"), std::string::npos);
  EXPECT_NE(message_of({1, 1, 1, 8, 8, ElementType::q8_0}).find("q8_0"), std::string::npos);
  const std::size_t huge = (std::numeric_limits<std::size_t>::max)() / 64;
  EXPECT_NE(message_of({1, 1, 1, 128, huge, ElementType::f32}).find("KV cache"), std::string::npos);
}

}  // namespace
