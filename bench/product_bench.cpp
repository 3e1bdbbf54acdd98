// Speed of matrix products: GFLOP/s (two per weight and row) and GB/s of packed weights, at the
// shapes of llama3_1_8b and smollm2_135m, beside the ceilings of this processor measured in the
// same process.
//
// Names: product/TYPE/MODE/OUTxIN/M/threads. Weights are rotated over copies of together at least
// 256 MiB (M = 1: so that they come from memory, not from a cache) and filled with quantised random
// values.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "product_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu_bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void MatMul(const quipu::Product* products, std::size_t count, const float* x, std::size_t x_stride,
            std::size_t m, quipu::ActivationMode mode, quipu::ExecutorRef executor,
            float* scratch) {
  quipu::HWY_NAMESPACE::MatMul(products, count, x, x_stride, m, mode, executor, scratch);
}

// Reads every cache line with 4 KiB of prefetch; the sum keeps the loads.
float Read(const float* from, std::size_t floats) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t i = 0; i + 4 * lanes <= floats; i += 4 * lanes) {
    for (std::size_t j = 0; j < 4 * lanes; j += 16) hwy::Prefetch(from + i + j + 1024);
    a = hn::Add(a, hn::LoadU(d, from + i));
    b = hn::Add(b, hn::LoadU(d, from + i + lanes));
    c = hn::Add(c, hn::LoadU(d, from + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, from + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// 10 independent chains of fused multiply-adds in registers; returns what they hold.
float FusedMultiplyAdds(std::size_t rounds) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0,
       s9 = s0;
  for (std::size_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, term), s1 = hn::MulAdd(s1, factor, term);
    s2 = hn::MulAdd(s2, factor, term), s3 = hn::MulAdd(s3, factor, term);
    s4 = hn::MulAdd(s4, factor, term), s5 = hn::MulAdd(s5, factor, term);
    s6 = hn::MulAdd(s6, factor, term), s7 = hn::MulAdd(s7, factor, term);
    s8 = hn::MulAdd(s8, factor, term), s9 = hn::MulAdd(s9, factor, term);
  }
  s0 =
      hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, hn::Add(s8, s9))));
}
std::size_t FloatLanes() { return hn::Lanes(hn::ScalableTag<float>()); }

}  // namespace HWY_NAMESPACE
}  // namespace quipu_bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "quipu/runtime/thread_pool.hpp"
#include "quipu/simd/quantize.hpp"

namespace quipu_bench {

HWY_EXPORT(MatMul);
HWY_EXPORT(Read);
HWY_EXPORT(FusedMultiplyAdds);
HWY_EXPORT(FloatLanes);

namespace {

using quipu::ActivationMode;
using quipu::ElementType;

constexpr std::size_t cold_bytes = std::size_t{256} << 20;

struct Shape {
  std::size_t rows, cols;
};

std::vector<float> noise(std::size_t n) {
  std::vector<float> x(n);
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return x;
}

// Copies of one packed matrix; the first 16 rows are quantised and repeated, for a quick start.
class Copies {
 public:
  Copies(ElementType type, Shape shape, std::size_t at_least)
      : type_(type), shape_(shape), bytes_(quipu::packed_bytes(type, shape.rows, shape.cols)) {
    count_ = (std::max)(std::size_t{1}, quipu::ceil_div(at_least, bytes_));
    const std::size_t row_bytes = quipu::row_bytes(type, shape.cols);
    std::vector<std::byte> rows(row_bytes * 16);
    const std::vector<float> values = noise(shape.cols * 16);
    for (std::size_t r = 0; r < 16; ++r) {
      quipu::quantize_row(type, values.data() + r * shape.cols, rows.data() + r * row_bytes,
                          shape.cols);
    }
    const std::size_t panel = quipu::packed_panel_bytes(type, shape.cols);
    data_.resize(bytes_ * count_ + 64);
    std::byte* first = base();
    quipu::pack(quipu::row_major_view(rows.data(), type, 16, shape.cols), first, 0, 1);
    for (std::size_t at = panel; at < bytes_ * count_; at += panel)
      std::copy(first, first + panel, first + at);
  }
  quipu::MatrixView view(std::size_t i) const {
    return quipu::packed_view(base() + i % count_ * bytes_, type_, shape_.rows, shape_.cols);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base() const {
    auto* p = const_cast<std::byte*>(data_.data());
    return p + (64 - reinterpret_cast<std::uintptr_t>(p) % 64) % 64;
  }
  ElementType type_;
  Shape shape_;
  std::size_t bytes_, count_;
  std::vector<std::byte> data_;
};

// Benchmarks of one matrix follow each other, so one set of copies is kept.
const Copies& copies_of(ElementType type, Shape shape, std::size_t at_least) {
  static std::unique_ptr<Copies> kept;
  static ElementType kept_type{};
  static Shape kept_shape{};
  static std::size_t kept_least = 0;
  if (!kept || kept_type != type || kept_shape.rows != shape.rows ||
      kept_shape.cols != shape.cols || kept_least != at_least) {
    kept.reset();
    kept = std::make_unique<Copies>(type, shape, at_least);
    kept_type = type, kept_shape = shape, kept_least = at_least;
  }
  return *kept;
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
    HWY_DYNAMIC_DISPATCH(MatMul)(&one, 1, x.data(), shape.cols, m, mode, pool, scratch.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const double flops = 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) *
                       static_cast<double>(m);
  state.counters["GFLOP/s"] = benchmark::Counter(runs * flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(runs * static_cast<double>(weights.bytes()) * 1e-9,
                                              benchmark::Counter::kIsRate);
}

void read_ceiling(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  const std::vector<float> data(cold_bytes / sizeof(float) + 4096, 1.0f);
  const std::size_t each = cold_bytes / sizeof(float) / threads;
  std::vector<float> sums(threads * 16);
  quipu::ThreadPool pool(threads);
  for (auto _ : state) {
    pool.run(threads, [&](std::size_t task, std::size_t) {
      sums[task * 16] = HWY_DYNAMIC_DISPATCH(Read)(data.data() + task * each, each);
    });
    benchmark::DoNotOptimize(sums.data());
  }
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(cold_bytes) * 1e-9,
      benchmark::Counter::kIsRate);
}

void fma_ceiling(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t rounds = 1 << 18;
  std::vector<float> sums(threads * 16);
  quipu::ThreadPool pool(threads);
  for (auto _ : state) {
    pool.run(threads, [&](std::size_t task, std::size_t) {
      sums[task * 16] = HWY_DYNAMIC_DISPATCH(FusedMultiplyAdds)(rounds);
    });
    benchmark::DoNotOptimize(sums.data());
  }
  const double flops =
      2.0 * 10 * rounds * static_cast<double>(threads * HWY_DYNAMIC_DISPATCH(FloatLanes)());
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * flops * 1e-9, benchmark::Counter::kIsRate);
}

BENCHMARK(read_ceiling)
    ->Name("ceiling/read")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(fma_ceiling)
    ->Name("ceiling/fma")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

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
        for (const std::size_t m : {1u, 2u, 8u, 64u, 512u}) {
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
