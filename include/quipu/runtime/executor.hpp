// How parallel work is handed out: the Executor concept, a type-erased reference to one, and the
// serial executor.
//
// Siblings: thread_pool.hpp (the library's own executor), test/runtime/executor_test.cpp.
// A kernel takes an ExecutorRef, so that it is compiled once and an application may bring its own
// pool (TBB, OpenMP, a game's job system) by giving it two members.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace quipu {

/// One parallel region's function without its type: call(task, worker). It is noexcept: a task that
/// throws ends the program, since there is nobody to catch on a worker.
struct TaskRef {
  void* context = nullptr;
  void (*call)(void* context, std::size_t task, std::size_t worker) noexcept = nullptr;

  void operator()(std::size_t task, std::size_t worker) const noexcept {
    call(context, task, worker);
  }
};

/// A TaskRef that calls `f`, which must outlive it.
template <class F>
TaskRef task_ref(F& f) noexcept {
  using Plain = std::remove_const_t<F>;
  return {const_cast<Plain*>(std::addressof(f)),
          [](void* context, std::size_t task, std::size_t worker) noexcept {
            (*static_cast<F*>(context))(task, worker);
          }};
}

/// What runs parallel regions:
///   concurrency()   how many workers there are, the calling thread included, at least 1; constant
///                   over the life of the executor, since scratch memory is planned from it
///   run(tasks, f)   calls f(task, worker) once for every task in [0, tasks), in any order, and
///                   returns when all calls have returned. worker < concurrency(), and no two calls
///                   that run at the same time have the same worker.
/// Tasks never wait for each other and never call run() themselves. Results of the library's
/// kernels do not depend on which worker runs a task, nor on how many workers there are.
template <class E>
concept Executor = requires(E& e, const E& c, std::size_t n, TaskRef task) {
  { c.concurrency() } -> std::convertible_to<std::size_t>;
  e.run(n, task);
};

/// A reference to any executor, as cheap to copy as two pointers. The executor must outlive it.
class ExecutorRef {
 public:
  template <class E>
  requires(!std::same_as<std::remove_const_t<E>, ExecutorRef> && Executor<E>)
      // Implicit on purpose: a function that takes an ExecutorRef is called with a pool.
      ExecutorRef(E& executor)
  noexcept
      : object_(const_cast<std::remove_const_t<E>*>(std::addressof(executor))),
        functions_(&functions<E>) {}

  /// Workers, the caller included.
  std::size_t concurrency() const { return functions_->concurrency(object_); }

  /// Calls f(task, worker) for every task in [0, tasks); returns when all are done.
  template <class F>
  void run(std::size_t tasks, F&& f) const {
    functions_->run(object_, tasks, task_ref(f));
  }

 private:
  struct Functions {
    std::size_t (*concurrency)(const void*);
    void (*run)(void*, std::size_t, TaskRef);
  };
  template <class E>
  static constexpr Functions functions = {
      [](const void* object) -> std::size_t {
        return static_cast<std::size_t>(static_cast<const E*>(object)->concurrency());
      },
      [](void* object, std::size_t tasks, TaskRef task) {
        static_cast<E*>(object)->run(tasks, task);
      }};

  void* object_;
  const Functions* functions_;
};

/// Runs every task on the calling thread, in order.
class SerialExecutor {
 public:
  static constexpr std::size_t concurrency() noexcept { return 1; }

  template <class F>
  void run(std::size_t tasks, F&& f) const {
    for (std::size_t task = 0; task < tasks; ++task) f(task, std::size_t{0});
  }
};

}  // namespace quipu
