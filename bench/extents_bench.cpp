// What extents known to the compiler are worth to a kernel: RMSNorm and the SiLU gate of one row
// with the width as a constant and as a run-time value. Behind the typed face the library's kernels
// take run-time widths, so that they are compiled once for all models; this is the price of that.
// Siblings: simd/rms_norm-inl.hpp, simd/silu-inl.hpp, elementwise_bench.cpp.
#include <benchmark/benchmark.h>

#include <vector>

#include "quipu/config/catalogue.hpp"
#include "quipu/config/dims.hpp"
#include "quipu/simd/rms_norm-inl.hpp"
#include "quipu/simd/silu-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu {
namespace HWY_NAMESPACE {
namespace {

void Norm(benchmark::State& state, std::size_t n) {
  std::vector<float> x(n, 0.5f), w(n, 1.0f), y(n);
  for (auto _ : state) {
    ApplyRmsNorm(x.data(), w.data(), 1e-5f, n, 1, y.data(), NumericMode::f32);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(12 * n) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}
void Gate(benchmark::State& state, std::size_t n) {
  std::vector<float> a(n, 0.5f), b(n, 1.0f), y(n);
  for (auto _ : state) {
    ApplySiluGate(a.data(), b.data(), n, y.data(), NumericMode::f32);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(12 * n) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

// The constant is folded into the inlined kernel; the argument of the other is opaque.
template <std::size_t kWidth>
void StaticNorm(benchmark::State& state) {
  Norm(state, kWidth);
}
void DynamicNorm(benchmark::State& state) { Norm(state, static_cast<std::size_t>(state.range(0))); }
template <std::size_t kWidth>
void StaticGate(benchmark::State& state) {
  Gate(state, kWidth);
}
void DynamicGate(benchmark::State& state) { Gate(state, static_cast<std::size_t>(state.range(0))); }

using Large = dims<models::llama3_1_8b>;
using Small = dims<models::smollm2_135m>;
BENCHMARK(StaticNorm<Large::dim>)->UseRealTime()->MinWarmUpTime(0.1);
BENCHMARK(DynamicNorm)->Arg(Large::dim)->UseRealTime()->MinWarmUpTime(0.1);
BENCHMARK(StaticNorm<Small::dim>)->UseRealTime()->MinWarmUpTime(0.1);
BENCHMARK(DynamicNorm)->Arg(Small::dim)->UseRealTime()->MinWarmUpTime(0.1);
BENCHMARK(StaticGate<Large::ffn>)->UseRealTime()->MinWarmUpTime(0.1);
BENCHMARK(DynamicGate)->Arg(Large::ffn)->UseRealTime()->MinWarmUpTime(0.1);

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();
