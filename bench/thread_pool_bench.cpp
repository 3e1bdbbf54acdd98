// What a parallel region costs: an empty one, and one after a pause in which workers went to sleep.
#include "quipu/runtime/thread_pool.hpp"

#include <benchmark/benchmark.h>

namespace {

void empty_region(benchmark::State& state) {
  quipu::ThreadPool pool(static_cast<std::size_t>(state.range(0)));
  const auto tasks = static_cast<std::size_t>(state.range(1));
  for (auto _ : state) pool.run(tasks, [](std::size_t, std::size_t) {});
}
BENCHMARK(empty_region)
    ->ArgNames({"threads", "tasks"})
    ->ArgsProduct({{1, 2, 4, 16}, {2, 64}})
    ->UseRealTime();

void region_after_sleep(benchmark::State& state) {
  quipu::ThreadPool pool(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.ResumeTiming();
    pool.run(pool.concurrency(), [](std::size_t, std::size_t) {});
  }
}
BENCHMARK(region_after_sleep)->ArgName("threads")->Arg(2)->UseRealTime()->Iterations(500);

}  // namespace
