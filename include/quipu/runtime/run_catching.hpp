// Parallel regions whose tasks may throw. Executors' tasks may not (executor.hpp): here the first
// exception is kept and thrown again when the region has ended.
// Siblings: executor.hpp, engine/weight_loader.hpp. Tests: test/runtime/executor_test.cpp.
#pragma once

#include <cstddef>
#include <exception>
#include <mutex>

#include "quipu/runtime/executor.hpp"

namespace quipu {

/// executor.run(tasks, f) for tasks that may run out of memory or find a file damaged. What the
/// first one throws is thrown here, after all others have run.
template <class F>
void run_catching(ExecutorRef executor, std::size_t tasks, F&& f) {
#if defined(__cpp_exceptions)
  std::exception_ptr first;
  std::mutex mutex;
  executor.run(tasks, [&](std::size_t task, std::size_t worker) {
    try {
      f(task, worker);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
#else
  executor.run(tasks, f);
#endif
}

}  // namespace quipu
