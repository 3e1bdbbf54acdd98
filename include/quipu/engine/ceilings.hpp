// The ceilings of a machine, measured: how fast its memory can be read and its units can multiply.
// Siblings: simd/probes.hpp (the loops), engine/profile.hpp (what is compared with them).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/runtime/statistics.hpp"
#include "quipu/simd/probes.hpp"

namespace quipu {

/// What all workers of an executor reach together.
struct Ceilings {
  double read_bytes_per_second = 0;       ///< memory into registers, by the best reading loop
  double fma_flops_per_second = 0;        ///< float32 multiply-adds, two FLOPs each
  double int8_ops_per_second = 0;         ///< dot products of levels 0..15 by bytes, two a product
  double signed_int8_ops_per_second = 0;  ///< the same of any signed bytes (Q8_0)
};

/// The arithmetic that bounds products with weights of a type, in two operations a multiplication.
/// For levels of five and six bits it is that of nibbles, which take two instructions where they
/// take three on targets without a dot product.
inline double arithmetic_ceiling(const Ceilings& c, ElementType type, ActivationMode mode) {
  if (mode == ActivationMode::f32 || info(type).block_elements == 1) return c.fma_flops_per_second;
  return type == ElementType::q8_0 ? c.signed_int8_ops_per_second : c.int8_ops_per_second;
}

/// How long and over how much to measure.
struct CeilingsWork {
  std::size_t repetitions = 5;  ///< each figure is their median
  /// Read in one repetition; meant to be larger than the caches, so that it comes from memory.
  std::size_t bytes = std::size_t{256} << 20;
  /// Of dot products, a worker. Some milliseconds: a worker that slept takes a part of one to wake.
  std::size_t rounds = std::size_t{1} << 19;
};

namespace detail {

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace detail

/// Measures ceilings again and again with the workers of an executor. The pace of a machine that
/// others share changes by a quarter within seconds, so what is compared with a ceiling should be
/// measured between two samples of it.
class CeilingMeter {
 public:
  /// Makes the memory to read and finds the best of the reading loops: one, four and eight streams
  /// a worker, with prefetches of several distances and without. About a second.
  CeilingMeter(const KernelProbes& probes, ExecutorRef executor, const CeilingsWork& work = {})
      : probes_(probes),
        executor_(executor),
        work_(work),
        workers_(executor.concurrency()),
        each_(work.bytes / sizeof(float) / workers_ / 1024 * 1024),
        memory_(each_ * workers_ * sizeof(float), "memory of a measurement") {
    advise_huge_pages(memory_);
    // Written first, by the worker that reads it: untouched pages would all be one page of zeros.
    executor_.run(workers_, [&](std::size_t task, std::size_t) {
      std::fill_n(floats() + task * each_, each_, 1.0f);
    });
    double best = 0;
    for (const std::size_t streams : {1u, 4u, 8u}) {
      for (const std::size_t ahead : {0u, 1024u, 4096u}) {
        const Loop loop{ahead, streams};
        std::vector<double> rates;
        for (std::size_t i = 0; i < work.repetitions; ++i) rates.push_back(read_rate(loop));
        if (const double rate = median(rates); rate > best) best = rate, best_ = loop;
      }
    }
  }

  /// One sample of all, some 40 ms.
  Ceilings sample() {
    // A round of multiply-adds is a tenth as long as one of dot products.
    return {read_rate(best_),
            arithmetic_rate(probes_.multiply_adds, 10 * work_.rounds, probes_.multiply_add_flops),
            arithmetic_rate(probes_.nibble_dots, work_.rounds, probes_.byte_dot_ops),
            arithmetic_rate(probes_.byte_dots, work_.rounds, probes_.byte_dot_ops)};
  }

 private:
  struct Loop {
    std::size_t ahead = 0, streams = 1;
  };

  float* floats() const { return reinterpret_cast<float*>(memory_.data()); }

  // Seconds until all workers have done one(task).
  template <class F>
  double seconds_of_all(F&& one) {
    return detail::seconds_of([&] {
      executor_.run(workers_, [&](std::size_t task, std::size_t) {
        sink_.store(static_cast<double>(one(task)), std::memory_order_relaxed);
      });
    });
  }
  double read_rate(Loop loop) {
    return static_cast<double>(each_ * workers_ * sizeof(float)) /
           seconds_of_all([&](std::size_t task) {
             return probes_.read(floats() + task * each_, each_, loop.ahead, loop.streams);
           });
  }
  template <class Probe>
  double arithmetic_rate(Probe probe, std::size_t rounds, std::size_t of_one_round) {
    return static_cast<double>(rounds * workers_ * of_one_round) /
           seconds_of_all([&](std::size_t) { return probe(rounds); });
  }

  const KernelProbes& probes_;
  ExecutorRef executor_;
  CeilingsWork work_;
  std::size_t workers_, each_;
  AlignedBuffer memory_;
  Loop best_;
  std::atomic<double> sink_{0.0};  // keeps the results alive
};

/// The medians of samples.
inline Ceilings median_ceilings(const std::vector<Ceilings>& samples) {
  const auto of = [&](double Ceilings::*member) {
    std::vector<double> values;
    for (const Ceilings& c : samples) values.push_back(c.*member);
    return median(values);
  };
  return {of(&Ceilings::read_bytes_per_second), of(&Ceilings::fma_flops_per_second),
          of(&Ceilings::int8_ops_per_second), of(&Ceilings::signed_int8_ops_per_second)};
}

/// Measures all with the workers of an executor: about a second.
inline Ceilings measure_ceilings(const KernelProbes& probes, ExecutorRef executor,
                                 const CeilingsWork& work = {}) {
  CeilingMeter meter(probes, executor, work);
  std::vector<Ceilings> samples;
  for (std::size_t i = 0; i < work.repetitions; ++i) samples.push_back(meter.sample());
  return median_ceilings(samples);
}

}  // namespace quipu
