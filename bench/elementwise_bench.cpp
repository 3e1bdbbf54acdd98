// The kernels that walk over rows once: norm, rotary embedding, gate, residual, rounding and
// embedding, at the widths of llama3_1_8b and smollm2_135m.
//
// Arguments: the width and the number of rows (1: decode, 512: a chunk of a prompt). GB/s counts
// what is read and written.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/embedding-inl.hpp"
#include "quipu/simd/residual-inl.hpp"
#include "quipu/simd/rms_norm-inl.hpp"
#include "quipu/simd/rotary-inl.hpp"
#include "quipu/simd/silu-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elementwise_bench {
namespace HWY_NAMESPACE {
namespace kernels = quipu::HWY_NAMESPACE;
using quipu::NumericMode;

void Norm(const float* x, const float* weight, std::size_t n, std::size_t rows, float* y,
          NumericMode mode) {
  kernels::ApplyRmsNorm(x, weight, 1e-5f, n, rows, y, mode);
}
void Rotary(float* x, std::size_t n, std::size_t head_dim, std::size_t rows, const float* table) {
  kernels::ApplyRotary(x, n, n / head_dim, head_dim, rows, table, NumericMode::f32);
}
void Gate(const float* gate, const float* up, std::size_t n, float* y) {
  kernels::ApplySiluGate(gate, up, n, y, NumericMode::f32);
}
void Residual(float* stream, const float* update, std::size_t n) {
  kernels::AddResidual(stream, update, n, NumericMode::f32);
}
void Round(float* x, std::size_t n) { kernels::RoundToBf16(x, n); }
void Embed(const quipu::MatrixView& table, const std::int32_t* tokens, std::size_t count,
           float* out) {
  kernels::EmbedTokens(table, tokens, count, out, NumericMode::f32);
}
}  // namespace HWY_NAMESPACE
}  // namespace elementwise_bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

#include <vector>

namespace elementwise_bench {
HWY_EXPORT(Norm);
HWY_EXPORT(Rotary);
HWY_EXPORT(Gate);
HWY_EXPORT(Residual);
HWY_EXPORT(Round);
HWY_EXPORT(Embed);
using quipu::NumericMode;

// Floats read and written per call.
void rate(benchmark::State& state, std::size_t floats) {
  state.counters["GB/s"] = benchmark::Counter(double(state.iterations()) * double(floats) * 4e-9,
                                              benchmark::Counter::kIsRate);
}

std::vector<float> values(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = float(i * 7919 % 1000) / 250 - 2;
  return x;
}

void rms_norm(benchmark::State& state, NumericMode mode) {
  const auto n = std::size_t(state.range(0));
  const auto rows = std::size_t(state.range(1));
  const std::vector<float> x = values(n * rows);
  const std::vector<float> weight = values(n);
  std::vector<float> y(n * rows);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Norm)(x.data(), weight.data(), n, rows, y.data(), mode);
    benchmark::ClobberMemory();
  }
  rate(state, 2 * n * rows);
}
BENCHMARK_CAPTURE(rms_norm, f32, NumericMode::f32)
    ->ArgNames({"width", "rows"})
    ->ArgsProduct({{4096, 576}, {1, 512}})
    ->UseRealTime();
BENCHMARK_CAPTURE(rms_norm, bf16, NumericMode::bf16)
    ->ArgNames({"width", "rows"})
    ->ArgsProduct({{4096, 576}, {1, 512}})
    ->UseRealTime();

// The width's head_dim is 128 for 4096 and 64 for 576. The angles are zero, so that values stay.
void rotary(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  const auto rows = std::size_t(state.range(1));
  const std::size_t head_dim = n == 4096 ? 128 : 64;
  std::vector<float> x = values(n * rows);
  const std::vector<float> frequencies(head_dim / 2, 0.0f);
  std::vector<float> table(rows * quipu::rotary_row_floats(head_dim));
  quipu::fill_rotary_rows(frequencies.data(), head_dim, {0, 0, rows, 0}, table.data());
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Rotary)(x.data(), n, head_dim, rows, table.data());
    benchmark::ClobberMemory();
  }
  rate(state, 2 * n * rows);
}
BENCHMARK(rotary)->ArgNames({"width", "rows"})->ArgsProduct({{4096, 576}, {1, 512}})->UseRealTime();

void rotary_table(benchmark::State& state) {
  const auto head_dim = std::size_t(state.range(0));
  const std::vector<float> frequencies(head_dim / 2, 0.37f);
  std::vector<float> row(quipu::rotary_row_floats(head_dim));
  std::size_t position = 0;
  for (auto _ : state) {
    quipu::fill_rotary_row(frequencies.data(), head_dim, position++ % 131072, row.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(rotary_table)->ArgName("head_dim")->Arg(128)->Arg(64)->UseRealTime();

void silu_gate(benchmark::State& state) {
  const auto n = std::size_t(state.range(0)) * std::size_t(state.range(1));
  const std::vector<float> gate = values(n);
  const std::vector<float> up = values(n);
  std::vector<float> y(n);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Gate)(gate.data(), up.data(), n, y.data());
    benchmark::ClobberMemory();
  }
  rate(state, 3 * n);
}
BENCHMARK(silu_gate)
    ->ArgNames({"width", "rows"})
    ->ArgsProduct({{14336, 1536}, {1, 64}})
    ->UseRealTime();

void residual(benchmark::State& state) {
  const auto n = std::size_t(state.range(0)) * std::size_t(state.range(1));
  std::vector<float> stream(n);
  const std::vector<float> update(n, 1e-20f);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Residual)(stream.data(), update.data(), n);
    benchmark::ClobberMemory();
  }
  rate(state, 3 * n);
}
BENCHMARK(residual)
    ->ArgNames({"width", "rows"})
    ->ArgsProduct({{4096, 576}, {1, 512}})
    ->UseRealTime();

void round_to_bf16(benchmark::State& state) {
  std::vector<float> x = values(std::size_t(state.range(0)));
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Round)(x.data(), x.size());
    benchmark::ClobberMemory();
  }
  rate(state, 2 * x.size());
}
BENCHMARK(round_to_bf16)->ArgName("values")->Arg(4096)->Arg(576)->UseRealTime();

// A table of 1024 rows of bf16, as large as a cache: the rows of a prompt are scattered.
void embedding(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  const std::vector<quipu::bf16> table(1024 * n, quipu::bf16{0x3f80});
  const auto view = quipu::row_major_view(table.data(), quipu::ElementType::bf16, 1024, n);
  std::vector<std::int32_t> tokens(std::size_t(state.range(1)));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 331 % 1024);
  std::vector<float> out(tokens.size() * n);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Embed)(view, tokens.data(), tokens.size(), out.data());
    benchmark::ClobberMemory();
  }
  rate(state, out.size() + out.size() / 2);
}
BENCHMARK(embedding)
    ->ArgNames({"width", "tokens"})
    ->ArgsProduct({{4096, 576}, {1, 512}})
    ->UseRealTime();

}  // namespace elementwise_bench
#endif
