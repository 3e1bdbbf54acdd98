// Scratch memory in one allocation, laid out by a plan that is known before anything is allocated.
//
// Siblings: aligned_buffer.hpp, test/runtime/arena_test.cpp.
// A plan is arithmetic only, usable in constant expressions; the arena allocates what it says.
#pragma once

#include <cstddef>
#include <type_traits>

#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/shape/checked.hpp"

namespace quipu {

/// Where a planned piece stands: for so many elements of T from this byte on.
template <class T>
struct ArenaSlot {
  std::size_t offset = 0;
  std::size_t count = 0;
};

/// Collects pieces and says where each stands and how large the whole is. Each piece starts at a
/// multiple of 64 bytes. Pieces that are never alive together may share memory: take mark() before
/// the first user and rewind() to it before the next; total() is the largest extent ever reached.
class ArenaPlan {
 public:
  /// The offset of a new piece of so many bytes; SizeError if the sum does not fit a size_t.
  constexpr std::size_t add(std::size_t bytes) {
    const std::size_t offset = next_;
    next_ = checked_add(next_, round_up(bytes, memory_alignment, "scratch plan"), "scratch plan");
    if (next_ > total_) total_ = next_;
    return offset;
  }

  /// A new piece of `count` elements of T.
  template <class T>
  constexpr ArenaSlot<T> add_array(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= memory_alignment);
    return {add(checked_mul(count, sizeof(T), "scratch plan")), count};
  }

  constexpr std::size_t mark() const { return next_; }
  constexpr void rewind(std::size_t mark) { next_ = mark; }

  /// Bytes of the whole.
  constexpr std::size_t total() const { return total_; }

 private:
  std::size_t next_ = 0;
  std::size_t total_ = 0;
};

/// Owns the memory of a plan, zeroed. Contents of shared pieces are the users' business.
class Arena {
 public:
  Arena() = default;
  /// SizeError if the memory cannot be had.
  explicit Arena(const ArenaPlan& plan) : buffer_(plan.total(), "scratch memory") {
    // A block of prepared rows meets few sets of the second-level cache otherwise: products of 512
    // rows were 1.1 to 1.2 times slower on 4 KB pages.
    advise_huge_pages(buffer_);
  }

  /// The elements of a piece; ArgumentError if it is not within this arena (another plan's slot).
  template <class T>
  T* at(ArenaSlot<T> slot) const {
    const std::size_t bytes = checked_mul(slot.count, sizeof(T), "scratch piece");
    if (slot.offset > bytes_total() || bytes > bytes_total() - slot.offset) {
      raise<ArgumentError>("scratch memory: a piece of " + std::to_string(bytes) +
                           " bytes from byte " + std::to_string(slot.offset) +
                           " on is outside the arena's " + std::to_string(bytes_total()));
    }
    return reinterpret_cast<T*>(buffer_.data() + slot.offset);
  }

  /// What is allocated: the plan's total.
  std::size_t bytes_total() const noexcept { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
};

}  // namespace quipu
