// Ranks that are processes: a communicator over MPI. The only file that includes MPI; programs that
// use it link quipu::mpi. Starting and ending MPI is the program's business, as is ending all
// ranks when one fails: MPI's own errors end them by default, and a program does so with MPI_Abort
// where it catches an exception (examples/generate_mpi.cpp).
// Siblings: communicator.hpp (the concept), test/parallel/mpi_run.cpp.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "quipu/parallel/communicator.hpp"

namespace quipu {

/// Models Communicator over the ranks of an MPI communicator, which must outlive it.
class MpiCommunicator {
 public:
  explicit MpiCommunicator(MPI_Comm communicator = MPI_COMM_WORLD) : communicator_(communicator) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    rank_ = static_cast<std::size_t>(rank);
    ranks_ = static_cast<std::size_t>(ranks);
  }

  std::size_t rank() const noexcept { return rank_; }
  std::size_t ranks() const noexcept { return ranks_; }

  /// Gathered and added here, since MPI leaves the order of a reduction open.
  void all_reduce_sum(float* data, std::size_t count) {
    constexpr std::size_t block = std::size_t{1} << 16;  // 256 KB a rank
    parts_.resize((std::min)(count, block) * ranks_);
    for (std::size_t at = 0; at < count; at += block) {
      const std::size_t size = (std::min)(block, count - at);
      MPI_Allgather(data + at, static_cast<int>(size), MPI_FLOAT, parts_.data(),
                    static_cast<int>(size), MPI_FLOAT, communicator_);
      std::copy_n(parts_.data(), size, data + at);
      for (std::size_t r = 1; r < ranks_; ++r) {
        for (std::size_t i = 0; i < size; ++i) data[at + i] += parts_[r * size + i];
      }
    }
  }

  void all_gather_columns(float* whole, std::size_t rows, std::size_t width) {
    for (std::size_t row = 0; row < rows; ++row) {
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole + row * ranks_ * width,
                    static_cast<int>(width), MPI_FLOAT, communicator_);
    }
  }

  void broadcast(void* data, std::size_t bytes) {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, communicator_);
  }

 private:
  MPI_Comm communicator_;
  std::size_t rank_ = 0;
  std::size_t ranks_ = 1;
  std::vector<float> parts_;
};
static_assert(Communicator<MpiCommunicator>);

}  // namespace quipu
