// Ranks in one process: each is a thread, and they meet in shared memory.
//
// RankThreads runs a function once for every rank at the same time; rank 0 is the caller. A rank
// that throws ends the run for all: whoever waits for it, or will, gets a ParallelError instead of
// waiting for ever, and the caller gets the exception that came first. Nobody spins for longer than
// a moment: who has waited that long sleeps until the last one arrives.
// Siblings: communicator.hpp (the concept), runtime/thread_pool.hpp (the threads),
// test/parallel/threads_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "quipu/parallel/communicator.hpp"
#include "quipu/runtime/affinity.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace quipu {

namespace detail {

/// What the ranks of one process share: a barrier that can fail, and a place a rank for the pointer
/// that it shows the others.
class RankMeeting {
 public:
  explicit RankMeeting(std::size_t ranks)
      : ranks_(ranks), spin_(ranks <= default_thread_count()), shown_(ranks) {}

  std::size_t ranks() const noexcept { return ranks_; }

  /// Returns when every rank has called it; ParallelError if one has failed.
  void meet() {
    const std::size_t meeting = meeting_.load(std::memory_order_acquire);
    const auto over = [&] {
      return meeting_.load(std::memory_order_acquire) != meeting ||
             failed_.load(std::memory_order_acquire);
    };
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
      arrived_.store(0, std::memory_order_relaxed);
      {
        // Under the lock, so that nobody falls asleep between looking and waiting.
        const std::lock_guard<std::mutex> lock(mutex_);
        meeting_.store(meeting + 1, std::memory_order_release);
      }
      arrival_.notify_all();
    } else if (!look_for(over)) {
      std::unique_lock<std::mutex> lock(mutex_);
      arrival_.wait(lock, over);
    }
    if (meeting_.load(std::memory_order_acquire) == meeting) {
      raise<ParallelError>("another rank of the model-parallel run has failed");
    }
  }

  /// Ends this meeting and all later ones of a run.
  void fail() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      failed_.store(true, std::memory_order_release);
    }
    arrival_.notify_all();
  }

  /// Between runs, when no rank is inside.
  void reset() {
    arrived_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
  }

  /// Read by others between two meetings only.
  void*& shown(std::size_t rank) { return shown_[rank].data; }

 private:
  template <class Condition>
  bool look_for(Condition condition) const {
    // Ranks reach a meeting within microseconds of each other if each has a processor; if not, to
    // look would only keep the one who is waited for from running.
    if (!spin_) return condition();
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    do {
      for (int i = 0; i < 64; ++i) {
        if (condition()) return true;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return condition();
  }

  struct alignas(64) Shown {
    void* data = nullptr;
  };

  std::size_t ranks_;
  bool spin_;
  alignas(64) std::atomic<std::size_t> arrived_{0};
  alignas(64) std::atomic<std::size_t> meeting_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable arrival_;
  std::vector<Shown> shown_;
};

}  // namespace detail

/// One rank of RankThreads. Models Communicator.
class ThreadCommunicator {
 public:
  ThreadCommunicator(detail::RankMeeting& meeting, std::size_t rank)
      : meeting_(&meeting), rank_(rank) {}

  std::size_t rank() const noexcept { return rank_; }
  std::size_t ranks() const noexcept { return meeting_->ranks(); }

  /// Each rank adds up its share of the elements, for everybody.
  void all_reduce_sum(float* data, std::size_t count) {
    show(data);
    const std::size_t n = ranks();
    const std::size_t first = count / n * rank_ + (std::min)(rank_, count % n);
    const std::size_t last = count / n * (rank_ + 1) + (std::min)(rank_ + 1, count % n);
    // A block at a time, whose sums stay in the first-level cache until everybody has them.
    constexpr std::size_t block = 1024;
    float sum[block];
    for (std::size_t at = first; at < last; at += block) {
      const std::size_t size = (std::min)(block, last - at);
      std::copy_n(floats(0) + at, size, sum);
      for (std::size_t r = 1; r < n; ++r) {
        const float* part = floats(r) + at;
        for (std::size_t i = 0; i < size; ++i) sum[i] += part[i];
      }
      for (std::size_t r = 0; r < n; ++r) std::copy_n(sum, size, floats(r) + at);
    }
    meeting_->meet();
  }

  void all_gather_columns(float* whole, std::size_t rows, std::size_t width) {
    show(whole);
    const std::size_t stride = ranks() * width;
    for (std::size_t r = 0; r < ranks(); ++r) {
      const float* from = floats(r);
      if (from == whole) continue;
      for (std::size_t row = 0; row < rows; ++row) {
        std::copy_n(from + row * stride + r * width, width, whole + row * stride + r * width);
      }
    }
    meeting_->meet();
  }

  void broadcast(void* data, std::size_t bytes) {
    show(data);
    const void* from = meeting_->shown(0);
    if (from != data) std::memcpy(data, from, bytes);
    meeting_->meet();
  }

 private:
  void show(void* data) {
    meeting_->shown(rank_) = data;
    meeting_->meet();
  }
  float* floats(std::size_t rank) const { return static_cast<float*>(meeting_->shown(rank)); }

  detail::RankMeeting* meeting_;
  std::size_t rank_;
};
static_assert(Communicator<ThreadCommunicator>);

/// The ranks of a run as threads of this process.
class RankThreads {
 public:
  /// ArgumentError if a thread cannot be started.
  explicit RankThreads(std::size_t ranks)
      : meeting_(ranks), pool_(ranks), errors_(ranks), failed_(ranks) {
    for (std::size_t r = 0; r < ranks; ++r) communicators_.emplace_back(meeting_, r);
  }

  std::size_t ranks() const noexcept { return meeting_.ranks(); }
  /// The communicator of a rank, for use inside run() by that rank.
  ThreadCommunicator& communicator(std::size_t rank) { return communicators_[rank]; }

  /// Calls f(rank) for every rank, each on a thread of its own, and returns when all are done. If
  /// any has thrown, throws the exception of the first to do so. One run at a time.
  ///
  /// A pool of as many threads as tasks gives every thread its own task first, and takes another's
  /// only when that is done. A rank is done after everybody has arrived at its last meeting, or
  /// when it has failed and meetings are over: nobody waits for a task that no thread runs.
  template <class F>
  void run(F&& f) {
    meeting_.reset();
    std::fill(errors_.begin(), errors_.end(), nullptr);
    order_.store(0, std::memory_order_relaxed);
    pool_.run(ranks(), [&](std::size_t rank, std::size_t) noexcept {
#if defined(__cpp_exceptions)
      try {
        f(rank);
      } catch (...) {
        errors_[rank] = std::current_exception();
        failed_[rank] = order_.fetch_add(1, std::memory_order_relaxed);
        meeting_.fail();
      }
#else
      f(rank);
#endif
    });
    if (order_.load(std::memory_order_relaxed) == 0) return;
    for (std::size_t r = 0; r < ranks(); ++r) {
      if (errors_[r] && failed_[r] == 0) std::rethrow_exception(errors_[r]);
    }
  }

 private:
  detail::RankMeeting meeting_;
  ThreadPool pool_;
  std::vector<ThreadCommunicator> communicators_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::size_t> failed_;
  std::atomic<std::size_t> order_{0};
};

}  // namespace quipu
