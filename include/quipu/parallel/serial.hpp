// The communicator of a run of one rank: there is nobody to meet.
// Sibling: communicator.hpp (the concept).
#pragma once

#include <cstddef>

#include "quipu/parallel/communicator.hpp"

namespace quipu {

/// Models Communicator for programs that are written for any number of ranks.
class SerialCommunicator {
 public:
  static constexpr std::size_t rank() noexcept { return 0; }
  static constexpr std::size_t ranks() noexcept { return 1; }
  static constexpr void all_reduce_sum(float*, std::size_t) noexcept {}
  static constexpr void all_gather_columns(float*, std::size_t, std::size_t) noexcept {}
  static constexpr void broadcast(void*, std::size_t) noexcept {}
};
static_assert(Communicator<SerialCommunicator>);

}  // namespace quipu
