// The Executor concept, the erased reference and the serial executor.
#include "quipu/runtime/executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

#include "quipu/runtime/run_catching.hpp"
#include "quipu/runtime/stoppable_executor.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace {

// What an application would write around a pool of its own: nothing of quipu in its declaration.
class Backwards {
 public:
  int concurrency() const { return 3; }
  template <class F>
  void run(std::size_t tasks, F&& f) {
    for (std::size_t i = tasks; i-- > 0;) f(i, i % 3);
    ++regions;
  }
  int regions = 0;
};

// Its task type may also be a fixed one.
struct Erased {
  std::size_t concurrency() const { return 1; }
  void run(std::size_t tasks, const quipu::TaskRef& task) const {
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
  }
};

struct NoRun {
  std::size_t concurrency() const { return 1; }
};

static_assert(quipu::Executor<Backwards>);
static_assert(quipu::Executor<Erased>);
static_assert(quipu::Executor<quipu::SerialExecutor>);
static_assert(quipu::Executor<const quipu::SerialExecutor>);
static_assert(!quipu::Executor<NoRun>);
static_assert(!std::is_constructible_v<quipu::ExecutorRef, NoRun&>);

TEST(Executor, RefRunsEveryTaskOnTheGivenExecutor) {
  Backwards own;
  const quipu::ExecutorRef executor = own;
  EXPECT_EQ(executor.concurrency(), 3u);
  std::vector<std::size_t> order;
  executor.run(5, [&](std::size_t task, std::size_t worker) {
    EXPECT_EQ(worker, task % 3);
    order.push_back(task);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(own.regions, 1);
}

TEST(Executor, RefCopiesReferToTheSameExecutor) {
  Backwards own;
  quipu::ExecutorRef a = own;
  quipu::ExecutorRef b = a;
  b.run(1, [](std::size_t, std::size_t) {});
  EXPECT_EQ(own.regions, 1);
}

TEST(Executor, ConstAndErasedExecutors) {
  const Erased own;
  const quipu::ExecutorRef executor = own;
  int calls = 0;
  executor.run(4, [&](std::size_t, std::size_t) { ++calls; });
  EXPECT_EQ(calls, 4);
}

TEST(Executor, RunsNoTaskOnceItIsStopped) {
  quipu::ThreadPool pool(1);
  std::atomic<bool> stop{false};
  const quipu::StoppableExecutor stoppable(pool, stop);
  const quipu::ExecutorRef executor = stoppable;
  EXPECT_EQ(executor.concurrency(), 1u);
  int calls = 0;
  executor.run(8, [&](std::size_t, std::size_t) { stop = ++calls == 3; });
  EXPECT_EQ(calls, 3);
  executor.run(8, [&](std::size_t, std::size_t) { ++calls; });
  EXPECT_EQ(calls, 3);
  stop = false;
  executor.run(8, [&](std::size_t, std::size_t) { ++calls; });
  EXPECT_EQ(calls, 11);
}

TEST(Executor, AnErrorInATaskReachesTheCaller) {
  quipu::ThreadPool pool(3);
  std::atomic<int> calls{0};
  EXPECT_THROW(quipu::run_catching(pool, 40,
                                   [&](std::size_t task, std::size_t) {
                                     ++calls;
                                     if (task % 8 == 5) throw std::bad_alloc();
                                   }),
               std::bad_alloc);
  EXPECT_EQ(calls, 40);
  EXPECT_NO_THROW(quipu::run_catching(pool, 4, [&](std::size_t, std::size_t) { ++calls; }));
  EXPECT_EQ(calls, 44);
}

TEST(Executor, SerialKeepsTheOrder) {
  const quipu::SerialExecutor serial;
  const quipu::ExecutorRef executor = serial;
  EXPECT_EQ(executor.concurrency(), 1u);
  std::vector<std::size_t> order;
  executor.run(4, [&](std::size_t task, std::size_t worker) {
    EXPECT_EQ(worker, 0u);
    order.push_back(task);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3}));
  executor.run(0, [&](std::size_t, std::size_t) { FAIL(); });
}

}  // namespace
