// A kernel and its ceiling in turns: a plain loop with the same streams over the very same memory,
// so that the share stays true where the machine's pace changes.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "quipu/runtime/statistics.hpp"

namespace quipu_bench {

template <class F>
double seconds_of(std::size_t times, F&& f) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < times; ++i) {
    f();
    benchmark::ClobberMemory();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(times);
}

/// The smallest cache that holds so many bytes: "L1" ... or "memory".
inline std::string held_by(double bytes) {
  for (const auto& cache : benchmark::CPUInfo::Get().caches) {
    if (cache.type != "Instruction" && bytes <= cache.size)
      return "L" + std::to_string(cache.level);
  }
  return "memory";
}

/// Bytes that one call of a kernel must read and write, and the bytes of memory that these are of.
struct Traffic {
  double moved;
  double held;
};

/// For kernels whose arithmetic is not looked at.
struct NoArithmetic {
  void operator()() const {}
};

/// Needs UseManualTime() and Iterations(): each is many calls, of which one counts. `ceiling` moves
/// the same bytes, `arithmetic` makes the same calculations of data in the first-level cache.
/// Counters, medians over iterations: GB/s; of_ceiling and of_arithmetic, the time of either by the
/// kernel's. The label says what holds the data.
template <class Kernel, class Ceiling, class Arithmetic = NoArithmetic>
void beside_ceiling(benchmark::State& state, Traffic bytes, Kernel&& kernel, Ceiling&& ceiling,
                    Arithmetic arithmetic = {}) {
  // Long enough for the clock, and for what the other loop left in the caches not to matter.
  const auto times =
      static_cast<std::size_t>(std::clamp(4e-4 / seconds_of(3, kernel), 2.0, 10000.0));
  std::vector<double> taken, of_ceiling, of_arithmetic;
  for (auto _ : state) {
    const double before = seconds_of(times, ceiling);
    seconds_of(1, kernel);
    const double seconds = seconds_of(times, kernel);
    taken.push_back(seconds);
    of_arithmetic.push_back(seconds_of(times, arithmetic) / seconds);
    seconds_of(1, ceiling);
    of_ceiling.push_back((before + seconds_of(times, ceiling)) / 2 / seconds);
    state.SetIterationTime(seconds);
  }
  state.SetLabel(held_by(bytes.held));
  state.counters["GB/s"] = bytes.moved * 1e-9 / quipu::median(taken);
  state.counters["of_ceiling"] = quipu::median(of_ceiling);
  if constexpr (!std::is_same_v<Arithmetic, NoArithmetic>) {
    state.counters["of_arithmetic"] = quipu::median(of_arithmetic);
  }
}

}  // namespace quipu_bench
