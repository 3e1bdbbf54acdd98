// What a component costs: FLOPs and bytes, computed from its shapes for a given amount of work.
//
// A multiply-add counts as two FLOPs. Weight bytes are read once per call whatever the batch (that
// is what batching saves). Additions, norms and activations count their arithmetic as stated beside
// each component; exponentials, roots and divisions count one each.
// Siblings: the component headers of this folder. Test: test/static/cost.cpp.
#pragma once

#include <cstddef>

#include "quipu/shape/element_type.hpp"

namespace quipu {

/// One call of the forward pass: `positions` new positions for each of `batch` sequences, the first
/// at `start` (0: an empty cache).
struct Work {
  std::size_t batch = 1;
  std::size_t positions = 1;
  std::size_t start = 0;
  ElementType weights = ElementType::bf16;
  std::size_t cache_element_bytes = 2;

  constexpr std::size_t rows() const { return checked_mul(batch, positions, "rows of work"); }
  /// Sum over the new positions of the number of keys that each sees (itself included): causal.
  constexpr std::size_t visible_keys() const {
    const std::size_t triangle =
        checked_mul(positions, checked_add(positions, 1, "visible keys"), "visible keys") / 2;
    const std::size_t per_sequence =
        checked_add(checked_mul(positions, start, "visible keys"), triangle, "visible keys");
    return checked_mul(batch, per_sequence, "visible keys");
  }
};

/// FLOPs and bytes of one instance of a component (or of a whole model).
struct Cost {
  std::size_t flops = 0;
  std::size_t weight_bytes = 0;       ///< read
  std::size_t cache_read_bytes = 0;   ///< keys and values read
  std::size_t cache_write_bytes = 0;  ///< keys and values written

  constexpr std::size_t bytes() const {
    return weight_bytes + cache_read_bytes + cache_write_bytes;
  }

  friend constexpr Cost operator+(const Cost& a, const Cost& b) {
    return {checked_add(a.flops, b.flops, "FLOPs"),
            checked_add(a.weight_bytes, b.weight_bytes, "bytes"),
            checked_add(a.cache_read_bytes, b.cache_read_bytes, "bytes"),
            checked_add(a.cache_write_bytes, b.cache_write_bytes, "bytes")};
  }
  friend constexpr Cost operator*(std::size_t n, const Cost& c) {
    return {checked_mul(n, c.flops, "FLOPs"), checked_mul(n, c.weight_bytes, "bytes"),
            checked_mul(n, c.cache_read_bytes, "bytes"),
            checked_mul(n, c.cache_write_bytes, "bytes")};
  }
  friend constexpr bool operator==(const Cost&, const Cost&) = default;
};

/// Bytes of n weights [out, in] stored in a type; the last block of a row may be partial here,
/// since a prediction may be asked for a type that a row could not be stored in.
constexpr std::size_t predicted_weight_bytes(ElementType type, std::size_t out, std::size_t in) {
  return checked_mul(out,
                     checked_mul(ceil_div(in, info(type).block_elements), info(type).block_bytes,
                                 "bytes of a row"),
                     "bytes of a weight");
}

}  // namespace quipu
