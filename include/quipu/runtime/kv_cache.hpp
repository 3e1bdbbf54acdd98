// The keys and values of all positions seen, laid out for the attention kernel.
//
// Siblings: simd/kv_append-inl.hpp (writes it), simd/attention-inl.hpp (reads it),
// model/scaled_dot_product.hpp, test/runtime/kv_cache_test.cpp.
//
// Per batch row, layer and kv head:
//   keys    [ceil(capacity / 16)][head_dim][16]  blocks of 16 positions, positions side by side, so
//           that a vector holds one feature of many positions and a score needs no sum across lanes
//   values  [capacity][head_dim]                 so that a vector holds many features of a position
// All keys of a layer's head are contiguous, and so are all its values: attention reads both once,
// in order, and never copies or repeats them for the heads of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/shape/checked.hpp"
#include "quipu/shape/element_type.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// Positions side by side in a block of keys.
inline constexpr std::size_t kv_block = 16;

/// Extents of a cache and what they cost, known before anything is allocated.
struct KvCacheShape {
  std::size_t batch = 1;
  std::size_t layers = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t capacity = 0;                ///< positions per batch row
  ElementType element = ElementType::f32;  ///< f32 or bf16

  constexpr std::size_t element_bytes() const { return info(element).block_bytes; }
  /// Bytes of the keys of one head: capacity rounded up to whole blocks.
  constexpr std::size_t key_bytes() const {
    const std::size_t positions = round_up(capacity, kv_block, "positions of the KV cache");
    return round_up(checked_mul(checked_mul(positions, head_dim, what), element_bytes(), what),
                    memory_alignment, what);
  }
  /// Bytes of the values of one head.
  constexpr std::size_t value_bytes() const {
    return round_up(checked_mul(checked_mul(capacity, head_dim, what), element_bytes(), what),
                    memory_alignment, what);
  }
  /// Pairs of a key area and a value area.
  constexpr std::size_t heads_total() const {
    return checked_mul(checked_mul(batch, layers, what), kv_heads, what);
  }
  /// Bytes of the whole cache, exactly what KvCache allocates.
  constexpr std::size_t bytes() const {
    return checked_mul(heads_total(), checked_add(key_bytes(), value_bytes(), what), what);
  }

 private:
  static constexpr const char* what = "bytes of the KV cache";
};

/// One batch row's keys and values of one layer and kv head. Owns nothing.
struct KvHeadView {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  std::size_t head_dim = 0;
  std::size_t capacity = 0;
  ElementType element = ElementType::f32;

  /// Index of an element among the keys, and among the values.
  constexpr std::size_t key_index(std::size_t position, std::size_t feature) const {
    return (position / kv_block * head_dim + feature) * kv_block + position % kv_block;
  }
  constexpr std::size_t value_index(std::size_t position, std::size_t feature) const {
    return position * head_dim + feature;
  }

  /// One element as float32: for tests, traces and inspection.
  float key(std::size_t position, std::size_t feature) const {
    return load(keys, key_index(position, feature));
  }
  float value(std::size_t position, std::size_t feature) const {
    return load(values, value_index(position, feature));
  }

 private:
  float load(const std::byte* data, std::size_t index) const {
    float result;
    if (element == ElementType::bf16) {
      std::uint16_t high;
      std::memcpy(&high, data + index * sizeof high, sizeof high);
      const std::uint32_t bits = static_cast<std::uint32_t>(high) << 16;
      std::memcpy(&result, &bits, sizeof result);
    } else {
      std::memcpy(&result, data + index * sizeof result, sizeof result);
    }
    return result;
  }
};

/// Owns the cache, zeroed at the start. Which positions are filled is known to whoever appends;
/// forgetting the last positions (a rollback) is appending from an earlier position on.
/// In large pages where the system has them: a token reads all of it, which at 8192 positions of
/// Llama 3.1 8B went at 49 to 65 % of the reading ceiling in small pages, at 58 to 82 % in large
/// ones. A capacity of more than a page a head that is never used takes no memory still.
class KvCache {
 public:
  KvCache() = default;

  /// ArgumentError for an extent of zero or an element type other than f32 and bf16; SizeError if
  /// the memory cannot be had.
  explicit KvCache(const KvCacheShape& shape)
      : shape_(checked(shape)), buffer_(shape.bytes(), "KV cache") {
    advise_huge_pages(buffer_);
  }

  const KvCacheShape& shape() const noexcept { return shape_; }
  /// Bytes allocated: shape().bytes().
  std::size_t bytes() const noexcept { return buffer_.size(); }

  /// Zeroes positions [from, to) of a batch row in all layers, as in a fresh cache.
  void clear(std::size_t row, std::size_t from, std::size_t to) {
    const std::size_t bytes = shape_.element_bytes();
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::size_t h = 0; h < shape_.kv_heads; ++h) {
        const KvHeadView view = head(row, layer, h);
        for (std::size_t p = from; p < to; ++p) {
          std::memset(view.values + view.value_index(p, 0) * bytes, 0, shape_.head_dim * bytes);
          for (std::size_t f = 0; f < shape_.head_dim; ++f) {
            std::memset(view.keys + view.key_index(p, f) * bytes, 0, bytes);
          }
        }
      }
    }
  }

  /// The view of one head. Indices are not checked: this is the kernels' way in.
  KvHeadView head(std::size_t row, std::size_t layer, std::size_t kv_head) const {
    const std::size_t index = (row * shape_.layers + layer) * shape_.kv_heads + kv_head;
    std::byte* keys = buffer_.data() + index * (shape_.key_bytes() + shape_.value_bytes());
    return {keys, keys + shape_.key_bytes(), shape_.head_dim, shape_.capacity, shape_.element};
  }

 private:
  static const KvCacheShape& checked(const KvCacheShape& shape) {
    const auto at_least_one = [](std::size_t extent, const char* name) {
      if (extent == 0)
        raise<ArgumentError>(std::string("KV cache: ") + name + " must be at least 1, found 0");
    };
    at_least_one(shape.batch, "batch");
    at_least_one(shape.layers, "layers");
    at_least_one(shape.kv_heads, "kv_heads");
    at_least_one(shape.head_dim, "head_dim");
    at_least_one(shape.capacity, "capacity");
    if (shape.element != ElementType::f32 && shape.element != ElementType::bf16) {
      raise<ArgumentError>("KV cache: the element type must be f32 or bf16, found " +
                           std::string(name(shape.element)));
    }
    return shape;
  }

  KvCacheShape shape_;
  AlignedBuffer buffer_;
};

}  // namespace quipu
