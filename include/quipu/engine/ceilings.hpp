// The ceilings of a machine, measured: how fast its memory can be read and its units can multiply.
// Siblings: simd/probes.hpp (the loops), engine/profile.hpp (what is compared with them).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/runtime/statistics.hpp"
#include "quipu/simd/probes.hpp"

namespace quipu {

/// What all workers of an executor reach together.
struct Ceilings {
  double read_bytes_per_second = 0;  ///< memory into registers, by the best reading loop
  double fma_flops_per_second = 0;   ///< float32 multiply-adds, two FLOPs each
  double int8_ops_per_second = 0;    ///< dot products of bytes, two a product
};

/// How long and over how much to measure.
struct CeilingsWork {
  std::size_t repetitions = 5;  ///< each figure is their median
  /// Read in one repetition; larger than the caches, so that it comes from memory.
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t rounds = std::size_t{1} << 17;  ///< of arithmetic, a worker
};

namespace detail {

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Median of the rate of `amount` a call, after one call that is not counted.
template <class F>
double median_rate(std::size_t repetitions, double amount, F&& f) {
  f();
  std::vector<double> rates;
  for (std::size_t i = 0; i < repetitions; ++i) rates.push_back(amount / seconds_of(f));
  return median(rates);
}

}  // namespace detail

/// Measures all three with the workers of an executor: about half a second.
inline Ceilings measure_ceilings(const KernelProbes& probes, ExecutorRef executor,
                                 const CeilingsWork& work = {}) {
  const std::size_t workers = executor.concurrency();
  const std::size_t each = work.bytes / sizeof(float) / workers / 1024 * 1024;
  const AlignedBuffer memory(each * workers * sizeof(float), "memory of a measurement");
  auto* floats = reinterpret_cast<float*>(memory.data());
  // Written first, by the worker that reads it: untouched pages would all be one page of zeros.
  executor.run(workers, [&](std::size_t task, std::size_t) {
    std::fill_n(floats + task * each, each, 1.0f);
  });
  std::atomic<double> sink{0.0};  // keeps the results alive
  const auto all = [&](auto&& one) {
    executor.run(workers, [&](std::size_t task, std::size_t) {
      sink.store(static_cast<double>(one(task)), std::memory_order_relaxed);
    });
  };
  Ceilings found;
  constexpr std::array<std::size_t, 4> distances{0, 1024, 4096, 8192};  // bytes of prefetch
  for (const std::size_t ahead : distances) {
    found.read_bytes_per_second = (std::max)(
        found.read_bytes_per_second,
        detail::median_rate(
            work.repetitions, static_cast<double>(each * workers * sizeof(float)), [&] {
              all([&](std::size_t task) { return probes.read(floats + task * each, each, ahead); });
            }));
  }
  const auto total = static_cast<double>(work.rounds * workers);
  found.fma_flops_per_second = detail::median_rate(
      work.repetitions, total * static_cast<double>(probes.multiply_add_flops),
      [&] { all([&](std::size_t) { return probes.multiply_adds(work.rounds); }); });
  found.int8_ops_per_second =
      detail::median_rate(work.repetitions, total * static_cast<double>(probes.byte_dot_ops),
                          [&] { all([&](std::size_t) { return probes.byte_dots(work.rounds); }); });
  return found;
}

}  // namespace quipu
