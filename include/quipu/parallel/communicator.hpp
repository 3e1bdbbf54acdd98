// How the ranks of a model-parallel run meet: the Communicator concept and a type-erased reference
// to one.
//
// Siblings: serial.hpp (one rank), threads.hpp (ranks in one process), mpi.hpp (ranks that are
// processes; optional), model/sharding.hpp (what a rank holds), simd/rows-inl.hpp (where a forward
// pass meets). Tests: test/parallel/threads_test.cpp, test/parallel/mpi_run.cpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "quipu/shape/error.hpp"

namespace quipu {

/// A rank of a model-parallel run has failed, and the others cannot go on without it.
class ParallelError : public Error {
 public:
  using Error::Error;
};

/// What ranks do together. Every rank calls the same functions in the same order with the same
/// counts; a call returns when the result stands in the caller's memory and nobody reads it any
/// more.
///   rank(), ranks()                 who this is, 0 <= rank < ranks; constant
///   all_reduce_sum(data, count)     data[i] becomes the sum of all ranks' data[i], added in the
///                                   order of ranks in float32: ((p0 + p1) + p2) + ..., the same
///                                   bits on every rank and in every run
///   all_gather_columns(whole, rows, width)
///                                   whole is [rows, ranks * width]; rank r has filled columns
///                                   [r * width, (r + 1) * width) of every row; afterwards all
///                                   are filled. Ranks may share one `whole`.
///   broadcast(data, bytes)          the bytes of rank 0 on every rank
template <class C>
concept Communicator = requires(C& c, const C& k, float* data, void* bytes, std::size_t n) {
  { k.rank() } -> std::convertible_to<std::size_t>;
  { k.ranks() } -> std::convertible_to<std::size_t>;
  c.all_reduce_sum(data, n);
  c.all_gather_columns(data, n, n);
  c.broadcast(bytes, n);
};

/// A reference to any communicator, cheap to copy; one made by default is the only rank of a run,
/// which never calls anything. The communicator must outlive it.
class CommunicatorRef {
 public:
  CommunicatorRef() = default;

  template <class C>
  requires(!std::same_as<std::remove_const_t<C>, CommunicatorRef> && Communicator<C>)
      // Implicit on purpose, as ExecutorRef.
      CommunicatorRef(C& communicator)
      : object_(std::addressof(communicator)),
        functions_(&functions<C>),
        rank_(static_cast<std::size_t>(communicator.rank())),
        ranks_(static_cast<std::size_t>(communicator.ranks())) {}

  std::size_t rank() const { return rank_; }
  std::size_t ranks() const { return ranks_; }

  void all_reduce_sum(float* data, std::size_t count) const {
    if (ranks_ > 1) functions_->all_reduce_sum(object_, data, count);
  }
  void all_gather_columns(float* whole, std::size_t rows, std::size_t width) const {
    if (ranks_ > 1) functions_->all_gather_columns(object_, whole, rows, width);
  }
  void broadcast(void* data, std::size_t bytes) const {
    if (ranks_ > 1) functions_->broadcast(object_, data, bytes);
  }

 private:
  struct Functions {
    void (*all_reduce_sum)(void*, float*, std::size_t);
    void (*all_gather_columns)(void*, float*, std::size_t, std::size_t);
    void (*broadcast)(void*, void*, std::size_t);
  };
  template <class C>
  static constexpr Functions functions = {
      [](void* c, float* data, std::size_t count) {
        static_cast<C*>(c)->all_reduce_sum(data, count);
      },
      [](void* c, float* whole, std::size_t rows, std::size_t width) {
        static_cast<C*>(c)->all_gather_columns(whole, rows, width);
      },
      [](void* c, void* data, std::size_t bytes) { static_cast<C*>(c)->broadcast(data, bytes); }};

  void* object_ = nullptr;
  const Functions* functions_ = nullptr;
  std::size_t rank_ = 0;
  std::size_t ranks_ = 1;
};

}  // namespace quipu
