// A word to the system about memory that will be used whole. Sibling: aligned_buffer.hpp.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "quipu/runtime/aligned_buffer.hpp"

namespace quipu {

/// Asks for large pages: filling the memory then takes a fault for every 2 MB instead of every 4
/// KB, and reading it misses the TLB less. Nothing happens where the system has none.
inline void advise_huge_pages(const AlignedBuffer& buffer) noexcept {
#if defined(MADV_HUGEPAGE)
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + buffer.size()) / page * page;
  // A hint that the system does not take is not an error.
  if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  (void)buffer;
#endif
}

}  // namespace quipu
