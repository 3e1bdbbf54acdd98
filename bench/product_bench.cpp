// Speed of matrix products: GFLOP/s (two per weight and row) and GB/s of packed weights, at the
// shapes of llama3_1_8b and smollm2_135m, beside the ceilings of this processor measured in the
// same process.
//
// Names: product/TYPE/MODE/OUTxIN/M/threads. The roof is what reading the weights or the arithmetic
// allows, whichever is less. Weights are rotated over copies of together at least
// 256 MiB (M = 1: so that they come from memory, not from a cache) and filled with quantised random
// values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "product_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/probes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu_bench {
namespace HWY_NAMESPACE {
const quipu::KernelProbes& Probes() { return quipu::HWY_NAMESPACE::Probes(); }

}  // namespace HWY_NAMESPACE
}  // namespace quipu_bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/packed_copies.hpp"
#include "quipu/engine/ceilings.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace quipu_bench {

HWY_EXPORT(Probes);

namespace {

using quipu::ActivationMode;
using quipu::ElementType;

using bench::cold_bytes;
using bench::noise;
using Shape = bench::MatrixShape;
using Copies = bench::PackedCopies;

const quipu::KernelProbes& probes() { return HWY_DYNAMIC_DISPATCH(Probes)(); }

// Benchmarks of one matrix follow each other, so one set of copies is kept.
const Copies& copies_of(ElementType type, Shape shape, std::size_t at_least) {
  static std::unique_ptr<Copies> kept;
  static ElementType kept_type{};
  static Shape kept_shape{};
  static std::size_t kept_least = 0;
  if (!kept || kept_type != type || kept_shape != shape || kept_least != at_least) {
    kept.reset();
    kept = std::make_unique<Copies>(type, shape, at_least);
    kept_type = type, kept_shape = shape, kept_least = at_least;
  }
  return *kept;
}

// What the machine can do with so many threads, measured once.
const quipu::Ceilings& ceilings(std::size_t threads) {
  static std::map<std::size_t, quipu::Ceilings> found;
  const auto [at, fresh] = found.try_emplace(threads);
  if (fresh) {
    quipu::ThreadPool pool(threads);
    at->second = quipu::measure_ceilings(probes(), pool);
  }
  return at->second;
}

void product(benchmark::State& state, ElementType type, ActivationMode mode, Shape shape,
             std::size_t m, std::size_t threads) {
  const Copies& weights = copies_of(type, shape, cold_bytes);
  const std::vector<float> x = noise(shape.cols * m);
  std::vector<float> y(shape.rows * m);
  std::vector<float> scratch(quipu::product_scratch_floats(shape.cols, m, threads));
  quipu::ThreadPool pool(threads);
  std::size_t i = 0;
  for (auto _ : state) {
    const quipu::Product one{weights.view(i++), y.data(), shape.rows};
    probes().mat_mul(&one, 1, x.data(), shape.cols, m, mode, pool, scratch.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const double flops = 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) *
                       static_cast<double>(m);
  const auto bytes = static_cast<double>(weights.bytes());
  const quipu::Ceilings& c = ceilings(threads);
  const double roof =
      (std::min)(c.read_bytes_per_second * flops / bytes, quipu::arithmetic_ceiling(c, type, mode));
  const auto rate = [&](double amount) {
    return benchmark::Counter(runs * amount, benchmark::Counter::kIsRate);
  };
  state.counters["GFLOP/s"] = rate(flops * 1e-9);
  state.counters["GB/s"] = rate(bytes * 1e-9);
  state.counters["FLOP/byte"] = flops / bytes;
  state.counters["% of roof"] = rate(100 * flops / roof);
}

void show_ceilings(benchmark::State& state) {
  quipu::Ceilings c;
  for (auto _ : state) c = ceilings(static_cast<std::size_t>(state.range(0)));
  state.counters["GB/s"] = c.read_bytes_per_second * 1e-9;
  state.counters["GFLOP/s"] = c.fma_flops_per_second * 1e-9;
  state.counters["byte GOP/s"] = c.int8_ops_per_second * 1e-9;
  state.counters["signed byte GOP/s"] = c.signed_int8_ops_per_second * 1e-9;
}
BENCHMARK(show_ceilings)->Name("ceiling")->Arg(1)->Arg(2)->Iterations(1)->UseRealTime();

void register_products() {
  constexpr Shape shapes[] = {{4096, 4096}, {1024, 4096}, {14336, 4096}, {4096, 14336}, {576, 576},
                              {192, 576},   {1536, 576},  {576, 1536},   {49152, 576}};
  constexpr ElementType types[] = {ElementType::f32,  ElementType::bf16, ElementType::q8_0,
                                   ElementType::q4_0, ElementType::q4_1, ElementType::q4_k};
  for (const ElementType type : types) {
    const std::size_t block = quipu::info(type).block_elements;
    for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::int8}) {
      if (block == 1 && mode == ActivationMode::int8) continue;
      for (const Shape shape : shapes) {
        if (!quipu::row_is_whole_blocks(type, shape.cols)) continue;
        for (const std::size_t m : {1u, 2u, 4u, 8u, 16u, 64u, 512u}) {
          for (const std::size_t threads : {1u, 2u}) {
            const std::string name = "product/" + std::string(quipu::name(type)) +
                                     (mode == ActivationMode::int8 ? "/int8/" : "/f32/") +
                                     std::to_string(shape.rows) + "x" + std::to_string(shape.cols) +
                                     "/" + std::to_string(m) + "/" + std::to_string(threads);
            benchmark::RegisterBenchmark(
                name.c_str(),
                [=](benchmark::State& state) { product(state, type, mode, shape, m, threads); })
                ->UseRealTime()
                ->Unit(benchmark::kMicrosecond);
          }
        }
      }
    }
  }
}

[[maybe_unused]] const bool registered = (register_products(), true);

}  // namespace
}  // namespace quipu_bench

#endif  // HWY_ONCE
