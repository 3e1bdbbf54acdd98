// An executor that stops handing out tasks once a flag is set, so that a long pass ends within the
// tasks at hand. What it was computing is then worthless; whoever set it going must throw it away.
// Siblings: executor.hpp, engine/session.hpp. Tests: test/runtime/executor_test.cpp.
#pragma once

#include <atomic>
#include <cstddef>

#include "quipu/runtime/executor.hpp"

namespace quipu {

/// Models Executor: another one's workers, and no task after `stop` is true. Both must outlive it.
class StoppableExecutor {
 public:
  StoppableExecutor(ExecutorRef workers, const std::atomic<bool>& stop)
      : workers_(workers), stop_(&stop) {}

  std::size_t concurrency() const { return workers_.concurrency(); }

  template <class F>
  void run(std::size_t tasks, F&& f) const {
    if (stopped()) return;
    workers_.run(tasks, [&](std::size_t task, std::size_t worker) {
      if (!stopped()) f(task, worker);
    });
  }

 private:
  bool stopped() const { return stop_->load(std::memory_order_relaxed); }

  ExecutorRef workers_;
  const std::atomic<bool>* stop_;
};

}  // namespace quipu
