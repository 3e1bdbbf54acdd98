// The library's own executor: a pool of threads in which the caller takes part.
//
// Siblings: executor.hpp (the concept), affinity.hpp (the default size),
// test/runtime/thread_pool_test.cpp, bench/thread_pool_bench.cpp.
//
// A region's tasks are cut into one range per worker, and worker w starts with range w: with as
// many tasks as workers, task w meets the same worker in every region and finds its part of the
// weights in that core's caches. Who has finished takes from the ranges of others, so a worker that
// the system does not schedule (more threads than cores, a busy machine) costs nothing: the caller
// alone would complete the region. What is waited for is only tasks that somebody has begun.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "quipu/runtime/affinity.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/shape/error.hpp"

#if defined(__linux__)
#include <pthread.h>
#endif
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace quipu {

/// How a pool behaves. The defaults suit a library: nothing pinned, no thread busy when idle.
struct ThreadPoolOptions {
  std::size_t threads = 0;  ///< the caller included; 0: default_thread_count()
  bool pin = false;         ///< bind worker w > 0 to the w-th CPU of the mask (Linux only)
  /// How long a worker looks for the next region before it sleeps. The gaps within a forward pass
  /// are far below it; a pool with more threads than CPUs does not look at all.
  std::chrono::microseconds spin{200};
};

/// Models Executor. run() may be called from several threads: they take turns. Called from inside a
/// task of the same pool it runs the tasks right there, on that worker. The destructor joins.
class ThreadPool {
 public:
  /// ArgumentError if a thread cannot be started or more than max_threads are asked for.
  explicit ThreadPool(ThreadPoolOptions options)
      : concurrency_(options.threads == 0 ? default_thread_count() : options.threads) {
    if (concurrency_ > max_threads) {
      raise<ArgumentError>("ThreadPool: at most " + std::to_string(max_threads) +
                           " threads are possible, asked for " + std::to_string(concurrency_));
    }
    spin_ = concurrency_ > default_thread_count() ? std::chrono::microseconds(0) : options.spin;
    ranges_ = std::make_unique<Range[]>(concurrency_);
    // Asked before any thread runs: from start_threads() on nothing but itself may fail.
    const std::vector<int> cpus = options.pin ? affinity_cpus() : std::vector<int>();
    start_threads();
    pin_threads(cpus);
  }
  /// A pool of so many threads, the caller included; 0: default_thread_count().
  explicit ThreadPool(std::size_t threads = 0)
      : ThreadPool(ThreadPoolOptions{.threads = threads}) {}

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { stop_threads(); }

  static constexpr std::size_t max_threads = 4096;

  /// Workers, the caller included.
  std::size_t concurrency() const noexcept { return concurrency_; }

  /// Calls f(task, worker) for every task in [0, tasks); returns when all are done.
  template <class F>
  void run(std::size_t tasks, F&& f) {
    run_erased(tasks, task_ref(f));
  }

 private:
  // One cache line each: the count is written by its owner at every task.
  struct alignas(64) Range {
    std::atomic<std::size_t> remaining{0};
  };

  // The task that this thread is running: of which pool, as which worker.
  struct Current {
    const ThreadPool* pool = nullptr;
    std::size_t worker = 0;
  };
  static Current& current() noexcept {
    static thread_local Current value;
    return value;
  }

  std::size_t range_begin(std::size_t range) const noexcept {
    const std::size_t each = tasks_ / concurrency_;
    const std::size_t longer = tasks_ % concurrency_;
    return range * each + (range < longer ? range : longer);
  }

  void run_erased(std::size_t tasks, TaskRef task) {
    const Current outer = current();
    if (outer.pool == this) {
      for (std::size_t i = 0; i < tasks; ++i) task(i, outer.worker);
      return;
    }
    const std::lock_guard<std::mutex> turn(turn_mutex_);
    current() = {this, 0};
    if (concurrency_ == 1 || tasks <= 1) {
      for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
    } else {
      // Nobody reads these fields now: a worker does only between taking a task and reporting it.
      task_ = task;
      tasks_ = tasks;
      pending_.store(tasks, std::memory_order_relaxed);
      for (std::size_t r = 0; r < concurrency_; ++r) {
        ranges_[r].remaining.store(range_begin(r + 1) - range_begin(r), std::memory_order_release);
      }
      wake_workers();
      work(0);
      wait_for_pending();
    }
    current() = outer;
  }

  /// Takes one task of a range. On success the region cannot end before the task is reported, so
  /// the fields of the region are stable; before it nothing of them is read.
  bool take(std::size_t range, std::size_t& remaining) noexcept {
    std::atomic<std::size_t>& count = ranges_[range].remaining;
    remaining = count.load(std::memory_order_relaxed);
    while (remaining != 0) {
      if (count.compare_exchange_weak(remaining, remaining - 1, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  /// Runs tasks, first of the worker's own range, until no range has any left.
  void work(std::size_t worker) noexcept {
    std::size_t done = 0;
    for (std::size_t i = 0; i < concurrency_; ++i) {
      const std::size_t range = worker + i < concurrency_ ? worker + i : worker + i - concurrency_;
      for (std::size_t remaining; take(range, remaining); ++done) {
        task_(range_begin(range + 1) - remaining, worker);
      }
    }
    if (done != 0 && pending_.fetch_sub(done, std::memory_order_seq_cst) == done &&
        caller_sleeps_.load(std::memory_order_seq_cst)) {
      const std::lock_guard<std::mutex> lock(sleep_mutex_);
      done_.notify_one();
    }
  }

  // Sleeping. Each side first announces its own change and then looks at the other's, with
  // sequentially consistent operations, so that one of the two always sees the other.
  void wake_workers() {
    region_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) {
      const std::lock_guard<std::mutex> lock(sleep_mutex_);
      wake_.notify_all();
    }
  }

  void wait_for_pending() {
    if (spin_until([&] { return pending_.load(std::memory_order_acquire) == 0; })) return;
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    done_.wait(lock, [&] { return pending_.load(std::memory_order_seq_cst) == 0; });
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }

  void wait_for_region(std::uint64_t seen) {
    const auto changed = [&] { return region_.load(std::memory_order_seq_cst) != seen; };
    if (spin_until(changed)) return;
    std::unique_lock<std::mutex> lock(sleep_mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, changed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  template <class Condition>
  bool spin_until(Condition condition) const {
    if (condition()) return true;
    if (spin_.count() <= 0) {
      std::this_thread::yield();
      return condition();
    }
    // Where somebody else wants this CPU, a yield every few microseconds lets him have it.
    const auto end = std::chrono::steady_clock::now() + spin_;
    do {
      for (int i = 0; i < 32; ++i) {
        relax();
        if (condition()) return true;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return condition();
  }

  static void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    asm volatile("yield");
#endif
  }

  void worker_loop(std::size_t worker) {
    current() = {this, worker};
    std::uint64_t seen = 0;
    for (;;) {
      wait_for_region(seen);
      // Read before the ranges: a region published from here on is a new number.
      seen = region_.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_acquire)) return;
      work(worker);
    }
  }

  void start_threads() {
    threads_.reserve(concurrency_ - 1);
    for (std::size_t worker = 1; worker < concurrency_; ++worker) {
#if defined(__cpp_exceptions)
      try {
        threads_.emplace_back([this, worker] { worker_loop(worker); });
      } catch (const std::system_error& error) {
        stop_threads();
        raise<ArgumentError>("ThreadPool: thread " + std::to_string(worker + 1) + " of " +
                             std::to_string(concurrency_) +
                             " cannot be started: " + error.code().message());
      } catch (...) {  // no memory: the threads that run must end before their pool does
        stop_threads();
        throw;
      }
#else
      threads_.emplace_back([this, worker] { worker_loop(worker); });
#endif
    }
  }

  void stop_threads() {
    stop_.store(true, std::memory_order_release);
    wake_workers();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void pin_threads([[maybe_unused]] const std::vector<int>& cpus) noexcept {
#if defined(__linux__) && defined(__GLIBC__)
    for (std::size_t i = 0; i < threads_.size() && !cpus.empty(); ++i) {
      cpu_set_t set;
      CPU_ZERO(&set);
      const int cpu = cpus[(i + 1) % cpus.size()];
      if (cpu >= CPU_SETSIZE) continue;
      CPU_SET(static_cast<std::size_t>(cpu), &set);
      // A refusal leaves the thread where the system puts it, which is only slower.
      (void)pthread_setaffinity_np(threads_[i].native_handle(), sizeof set, &set);
    }
#endif
  }

  std::size_t concurrency_;
  std::chrono::microseconds spin_{};
  std::unique_ptr<Range[]> ranges_;
  TaskRef task_;
  std::size_t tasks_ = 0;
  alignas(64) std::atomic<std::size_t> pending_{0};
  alignas(64) std::atomic<std::uint64_t> region_{0};
  std::atomic<std::size_t> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  std::mutex turn_mutex_;
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
};

}  // namespace quipu
