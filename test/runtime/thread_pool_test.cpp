// The pool: every task once, no worker twice at a time, no hang, gentle with more threads than
// CPUs.
#include "quipu/runtime/thread_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

static_assert(quipu::Executor<quipu::ThreadPool>);

// Ends the process if a pool hangs: a test that never returns says nothing about where.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit)
      : thread_([this, limit] {
          const auto end = Clock::now() + limit;
          while (!done_.load()) {
            if (Clock::now() > end) {
              std::fprintf(stderr, "watchdog: the pool hangs\n");
              std::abort();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}
  ~Watchdog() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Runs a region and checks that each task came once and each worker was alone with its number.
void check_region(quipu::ThreadPool& pool, std::size_t tasks) {
  std::vector<std::atomic<int>> runs(tasks);
  std::vector<std::atomic<int>> busy(pool.concurrency());
  std::atomic<int> clashes{0};
  pool.run(tasks, [&](std::size_t task, std::size_t worker) {
    if (worker >= busy.size() || busy[worker].fetch_add(1) != 0) ++clashes;
    runs[task].fetch_add(1);
    busy[worker].fetch_sub(1);
  });
  EXPECT_EQ(clashes.load(), 0);
  for (std::size_t i = 0; i < tasks; ++i) ASSERT_EQ(runs[i].load(), 1) << "task " << i;
}

TEST(ThreadPool, EveryTaskOnceForAllSizes) {
  const Watchdog watchdog(std::chrono::seconds(120));
  for (const std::size_t threads : {1u, 2u, 3u, 8u}) {
    quipu::ThreadPool pool(threads);
    EXPECT_EQ(pool.concurrency(), threads);
    for (const std::size_t tasks : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 64u, 1000u}) {
      check_region(pool, tasks);
    }
  }
}

// Plain memory written by tasks is visible to the caller and to the next region's tasks.
TEST(ThreadPool, RegionsAreOrdered) {
  const Watchdog watchdog(std::chrono::seconds(120));
  quipu::ThreadPool pool(3);
  std::vector<std::size_t> now(50, 0);
  std::vector<std::size_t> next(50, 0);
  for (std::size_t region = 0; region < 1000; ++region) {
    pool.run(now.size(),
             [&](std::size_t task, std::size_t) { next[task] = now[now.size() - 1 - task] + 1; });
    now.swap(next);
  }
  for (const std::size_t value : now) EXPECT_EQ(value, 1000u);
}

// The lives of a pool are short here and the gaps long enough to sleep in: starting, sleeping,
// waking and joining meet in every order.
TEST(ThreadPool, ThousandLives) {
  const Watchdog watchdog(std::chrono::seconds(300));
  for (int life = 0; life < 1000; ++life) {
    quipu::ThreadPool pool(
        {.threads = std::size_t(1 + life % 5), .spin = std::chrono::microseconds(life % 3 * 20)});
    std::atomic<std::size_t> calls{0};
    for (int region = 0; region < 5; ++region) {
      if (life % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      pool.run(std::size_t(region + life % 7), [&](std::size_t, std::size_t) { ++calls; });
    }
    ASSERT_EQ(calls.load(), std::size_t(10 + 5 * (life % 7)));
  }
}

TEST(ThreadPool, TwoPoolsSideBySide) {
  const Watchdog watchdog(std::chrono::seconds(120));
  const auto user = [] {
    quipu::ThreadPool pool(2);
    for (int i = 0; i < 300; ++i) check_region(pool, 5);
  };
  std::thread other(user);
  user();
  other.join();
}

TEST(ThreadPool, CallersOfOnePoolTakeTurns) {
  const Watchdog watchdog(std::chrono::seconds(120));
  quipu::ThreadPool pool(2);
  const auto user = [&] {
    for (int i = 0; i < 300; ++i) check_region(pool, 5);
  };
  std::thread other(user);
  user();
  other.join();
}

TEST(ThreadPool, ARegionInsideATaskRunsOnThatWorker) {
  const Watchdog watchdog(std::chrono::seconds(120));
  quipu::ThreadPool pool(3);
  std::atomic<int> calls{0};
  std::atomic<int> strangers{0};
  pool.run(6, [&](std::size_t, std::size_t outer) {
    pool.run(4, [&](std::size_t, std::size_t inner) {
      ++calls;
      if (inner != outer) ++strangers;
    });
  });
  EXPECT_EQ(calls.load(), 24);
  EXPECT_EQ(strangers.load(), 0);
}

// A pool inside a task of another pool is an ordinary pool.
TEST(ThreadPool, PoolsNest) {
  const Watchdog watchdog(std::chrono::seconds(120));
  quipu::ThreadPool outer(2);
  std::vector<std::unique_ptr<quipu::ThreadPool>> inner;
  for (int i = 0; i < 2; ++i) inner.push_back(std::make_unique<quipu::ThreadPool>(2));
  outer.run(2, [&](std::size_t task, std::size_t) {
    for (int i = 0; i < 50; ++i) check_region(*inner[task], 4);
  });
}

double seconds_of_work(std::size_t threads) {
  quipu::ThreadPool pool(threads);
  const auto start = Clock::now();
  for (int region = 0; region < 300; ++region) {
    pool.run(threads, [&](std::size_t, std::size_t) {
      // The same total per region for every number of threads.
      volatile double x = 1;
      for (std::size_t i = 0; i < 160000 / threads; ++i) x = x * 1.0000001;
    });
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sixteen threads where the process may use few CPUs: within four times the time of a fitting pool.
// The best of three, since a loaded machine can only make a run slower.
TEST(ThreadPool, MoreThreadsThanCpusDegradesGently) {
  const Watchdog watchdog(std::chrono::seconds(300));
  double fitting = 1e9;
  double crowded = 1e9;
  for (int i = 0; i < 3; ++i) {
    fitting = (std::min)(
        fitting, seconds_of_work((std::min)(quipu::default_thread_count(), std::size_t{2})));
    crowded = (std::min)(crowded, seconds_of_work(16));
  }
  RecordProperty("fitting_seconds", std::to_string(fitting));
  RecordProperty("crowded_seconds", std::to_string(crowded));
  EXPECT_LT(crowded, 4 * fitting);
}

TEST(ThreadPool, PinnedPoolWorks) {
  quipu::ThreadPool pool({.threads = 3, .pin = true});
  check_region(pool, 20);
}

TEST(ThreadPool, RefusesAbsurdSizesByName) {
  try {
    quipu::ThreadPool pool(quipu::ThreadPool::max_threads + 1);
    FAIL();
  } catch (const quipu::ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("4097"), std::string::npos) << error.what();
  }
}

TEST(ThreadPool, DefaultSizeIsWhatTheProcessMayUse) {
  quipu::ThreadPool pool;
  EXPECT_EQ(pool.concurrency(), quipu::default_thread_count());
}

}  // namespace
