// One owned piece of zeroed memory that starts at a cache line.
//
// Siblings: arena.hpp and kv_cache.hpp, which own one each; test/runtime/arena_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "quipu/shape/checked.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// Bytes of a cache line and of the widest vector: every planned piece of memory starts at one.
inline constexpr std::size_t memory_alignment = 64;

/// `bytes` zeroed bytes from a 64-byte boundary on; movable, not copyable. The memory comes from
/// calloc, so that large untouched parts (a cache for positions never reached) take no pages.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;

  /// SizeError, naming `what` and the size, if the memory cannot be had.
  AlignedBuffer(std::size_t bytes, const char* what) : bytes_(bytes) {
    if (bytes == 0) return;
    allocation_ = std::calloc(checked_add(bytes, memory_alignment - 1, what), 1);
    if (allocation_ == nullptr) {
      raise<SizeError>(std::string(what) + ": " + std::to_string(bytes) +
                       " bytes of memory cannot be had");
    }
    const auto address = reinterpret_cast<std::uintptr_t>(allocation_);
    const std::size_t gap = static_cast<std::size_t>(
        (memory_alignment - address % memory_alignment) % memory_alignment);
    data_ = static_cast<std::byte*>(allocation_) + gap;
  }

  AlignedBuffer(AlignedBuffer&& other) noexcept
      : allocation_(std::exchange(other.allocation_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(allocation_, other.allocation_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AlignedBuffer() { std::free(allocation_); }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  void* allocation_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace quipu
