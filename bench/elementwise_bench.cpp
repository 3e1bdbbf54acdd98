// The kernels that walk over rows once or twice: norm, rotary embedding, gate, residual, rounding,
// embedding, cache and softmax, at the widths of llama3_1_8b and smollm2_135m.
//
// Arguments: the width and the number of rows (1: decode, 512: a chunk of a prompt). GB/s counts
// what is read and written; of_ceiling is the share of a plain loop with the same streams over the
// same memory, of_arithmetic of the same kernel over data in the first-level cache
// (beside_ceiling.hpp).
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/embedding-inl.hpp"
#include "quipu/simd/kv_append-inl.hpp"
#include "quipu/simd/residual-inl.hpp"
#include "quipu/simd/rms_norm-inl.hpp"
#include "quipu/simd/rotary-inl.hpp"
#include "quipu/simd/silu-inl.hpp"
#include "quipu/simd/softmax-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace elementwise_bench {
namespace HWY_NAMESPACE {
namespace kernels = quipu::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;
using quipu::NumericMode;

void Norm(const float* x, const float* weight, std::size_t n, std::size_t rows, float* y,
          NumericMode mode) {
  kernels::ApplyRmsNorm(x, weight, 1e-5f, n, rows, y, mode);
}
void Rotary(float* x, std::size_t n, std::size_t head_dim, std::size_t rows, const float* table) {
  kernels::ApplyRotary(x, n, n / head_dim, head_dim, rows, table, NumericMode::f32);
}
void Gate(const float* gate, const float* up, std::size_t n, float* y, NumericMode mode) {
  kernels::ApplySiluGate(gate, up, n, y, mode);
}
void Residual(float* stream, const float* update, std::size_t n) {
  kernels::AddResidual(stream, update, n, NumericMode::f32);
}
void Round(float* x, std::size_t n) { kernels::RoundToBf16(x, n); }
void Embed(const quipu::MatrixView& table, const std::int32_t* tokens, std::size_t count,
           float* out) {
  kernels::EmbedTokens(table, tokens, count, out, NumericMode::f32);
}
void Append(const quipu::KvCache& cache, const quipu::SequenceChunk& chunk, const float* k,
            const float* v, std::size_t stride) {
  kernels::AppendKeysValues(cache, 0, chunk, k, stride, v, stride);
}
// As attention does with the scores of a row: exponentials by blocks, then the division.
void Softmax(float* x, std::size_t n, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row, x += n) {
    const float largest = kernels::Largest(x, n);
    float sum = 0;
    for (std::size_t i = 0; i < n; i += quipu::sum_panel)
      sum += kernels::ExpBlock(x + i, (std::min)(quipu::sum_panel, n - i), largest);
    kernels::DivideRow(x, n, sum, NumericMode::f32);
  }
}

// The ceilings: n floats from one or two streams to one, which may be the first. Four vectors a
// turn, from a cache line on: else where the linker puts a loop decides how fast it is.
#define ELEMENTWISE_CEILING HWY_NOINLINE __attribute__((aligned(64)))
constexpr std::size_t kTurn = 4 * hn::MaxLanes(kernels::LaneTag());
ELEMENTWISE_CEILING void Copy(const float* x, std::size_t n, float* y) {
  const kernels::LaneTag d;
  for (std::size_t i = 0; i + kTurn <= n; i += kTurn) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kTurn; k += hn::MaxLanes(d))
      hn::StoreU(hn::Add(hn::LoadU(d, x + i + k), hn::Set(d, 1e-20f)), d, y + i + k);
  }
}
ELEMENTWISE_CEILING void Join(const float* a, const float* b, std::size_t n, float* y) {
  const kernels::LaneTag d;
  for (std::size_t i = 0; i + kTurn <= n; i += kTurn) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kTurn; k += hn::MaxLanes(d))
      hn::StoreU(hn::Add(hn::LoadU(d, a + i + k), hn::LoadU(d, b + i + k)), d, y + i + k);
  }
}
// n floats and half as many, one way and the other.
ELEMENTWISE_CEILING void Halve(const float* x, std::size_t n, float* y) {
  const kernels::LaneTag d;
  for (std::size_t i = 0; i + 2 * kTurn <= n; i += 2 * kTurn) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kTurn; k += hn::MaxLanes(d)) {
      const auto first = hn::LoadU(d, x + i + 2 * k);
      hn::StoreU(hn::Add(first, hn::LoadU(d, x + i + 2 * k + hn::MaxLanes(d))), d, y + i / 2 + k);
    }
  }
}
ELEMENTWISE_CEILING void Twice(const float* x, std::size_t n, float* y) {
  const kernels::LaneTag d;
  for (std::size_t i = 0; i + 2 * kTurn <= n; i += 2 * kTurn) {
    QUIPU_UNROLL
    for (std::size_t k = 0; k < kTurn; k += hn::MaxLanes(d)) {
      const auto v = hn::LoadU(d, x + i / 2 + k);
      hn::StoreU(v, d, y + i + 2 * k);
      hn::StoreU(v, d, y + i + 2 * k + hn::MaxLanes(d));
    }
  }
}
#undef ELEMENTWISE_CEILING
}  // namespace HWY_NAMESPACE
}  // namespace elementwise_bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>
#include <vector>

#include "beside_ceiling.hpp"

namespace elementwise_bench {
HWY_EXPORT(Norm);
HWY_EXPORT(Rotary);
HWY_EXPORT(Gate);
HWY_EXPORT(Residual);
HWY_EXPORT(Round);
HWY_EXPORT(Embed);
HWY_EXPORT(Append);
HWY_EXPORT(Softmax);
HWY_EXPORT(Copy);
HWY_EXPORT(Join);
HWY_EXPORT(Halve);
HWY_EXPORT(Twice);
using quipu::NumericMode;
using quipu_bench::beside_ceiling;

// Zeros that begin at a cache line, as the activations of a pass do.
class Floats {
 public:
  explicit Floats(std::size_t n) : buffer_(n * sizeof(float), "floats") {}
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }
  std::size_t size() const { return buffer_.size() / sizeof(float); }

 private:
  quipu::AlignedBuffer buffer_;
};
Floats values(std::size_t n) {
  Floats x(n);
  for (std::size_t i = 0; i < n; ++i) x.data()[i] = float(i * 7919 % 1000) / 250 - 2;
  return x;
}
void copy(const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(Copy)(x, n, y); }

using Benchmark = benchmark::internal::Benchmark;
Benchmark* beside(Benchmark* b) { return b->UseManualTime()->Iterations(15); }
// Held by the first-level cache (576) or second, the second, the third and memory.
void rows_of_model(Benchmark* b) {
  beside(b)->ArgNames({"width", "rows"})->ArgsProduct({{576, 4096}, {1}});
  b->Args({576, 64})->Args({4096, 8})->Args({4096, 256})->Args({4096, 4096});
}
void mode_and_rows(Benchmark* b) {
  beside(b)->ArgNames({"width", "rows", "bf16"});
  for (const long bf16 : {0, 1}) {
    b->Args({576, 1, bf16})->Args({4096, 1, bf16})->Args({576, 64, bf16});
    b->Args({4096, 8, bf16})->Args({4096, 256, bf16})->Args({4096, 4096, bf16});
  }
}
NumericMode mode_of(long bf16) { return bf16 != 0 ? NumericMode::bf16 : NumericMode::f32; }

void rms_norm(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  const auto rows = std::size_t(state.range(1));
  const NumericMode mode = mode_of(state.range(2));
  const Floats x = values(n * rows);
  const Floats weight = values(n);
  const Floats y(n * rows);
  const double bytes = 8.0 * double(n * rows);
  beside_ceiling(
      state, {bytes, bytes + 4.0 * double(n)},
      [&] {
        HWY_DYNAMIC_DISPATCH(Norm)
        (x.data(), weight.data(), n, rows, y.data(), mode);
      },
      [&] { copy(x.data(), n * rows, y.data()); });
}
BENCHMARK(rms_norm)->Apply(mode_and_rows);

// The width's head_dim is 128 for 4096 and 64 for 576. The angles are zero, so that values stay.
void rotary(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  const auto rows = std::size_t(state.range(1));
  const std::size_t head_dim = n == 4096 ? 128 : 64;
  const Floats x = values(n * rows);
  const std::vector<float> frequencies(head_dim / 2, 0.0f);
  const Floats table(rows * quipu::rotary_row_floats(head_dim));
  quipu::fill_rotary_rows(frequencies.data(), head_dim, {0, 0, rows, 0}, table.data());
  beside_ceiling(
      state, {8.0 * double(n * rows), 4.0 * double(n * rows + table.size())},
      [&] {
        HWY_DYNAMIC_DISPATCH(Rotary)
        (x.data(), n, head_dim, rows, table.data());
      },
      [&] { copy(x.data(), n * rows, x.data()); });
}
BENCHMARK(rotary)->Apply(rows_of_model);

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

// Values for a kernel's arithmetic alone: a piece of the first-level cache, again and again.
constexpr std::size_t kPiece = 1024;
template <class F>
void by_pieces(std::size_t n, F&& f) {
  for (std::size_t i = 0; i < n; i += kPiece) f((std::min)(kPiece, n - i));
}

void silu_gate(benchmark::State& state) {
  const auto n = std::size_t(state.range(0)) * std::size_t(state.range(1));
  const NumericMode mode = mode_of(state.range(2));
  const Floats gate = values(n);
  const Floats up = values(n);
  const Floats y(n), piece(kPiece);
  beside_ceiling(
      state, {12.0 * double(n), 12.0 * double(n)},
      [&] {
        HWY_DYNAMIC_DISPATCH(Gate)
        (gate.data(), up.data(), n, y.data(), mode);
      },
      [&] {
        HWY_DYNAMIC_DISPATCH(Join)
        (gate.data(), up.data(), n, y.data());
      },
      [&] {
        by_pieces(n, [&](std::size_t count) {
          HWY_DYNAMIC_DISPATCH(Gate)(gate.data(), up.data(), count, piece.data(), mode);
        });
      });
}
void gates_of_model(Benchmark* b) {
  beside(b)->ArgNames({"width", "rows", "bf16"});
  for (const long bf16 : {0, 1}) {
    b->Args({1536, 1, bf16})->Args({14336, 1, bf16});
    b->Args({14336, 64, bf16})->Args({14336, 1024, bf16});
  }
}
BENCHMARK(silu_gate)->Apply(gates_of_model);

void residual(benchmark::State& state) {
  const auto n = std::size_t(state.range(0)) * std::size_t(state.range(1));
  const Floats stream(n), update(n);
  beside_ceiling(
      state, {12.0 * double(n), 8.0 * double(n)},
      [&] {
        HWY_DYNAMIC_DISPATCH(Residual)
        (stream.data(), update.data(), n);
      },
      [&] {
        HWY_DYNAMIC_DISPATCH(Join)
        (stream.data(), update.data(), n, stream.data());
      });
}
BENCHMARK(residual)->Apply(rows_of_model);

void round_to_bf16(benchmark::State& state) {
  const Floats x = values(std::size_t(state.range(0)));
  const double bytes = 4.0 * double(x.size());
  beside_ceiling(
      state, {2 * bytes, bytes},
      [&] {
        HWY_DYNAMIC_DISPATCH(Round)
        (x.data(), x.size());
      },
      [&] { copy(x.data(), x.size(), x.data()); });
}
BENCHMARK(round_to_bf16)->Apply([](Benchmark* b) {
  beside(b)->ArgName("values")->Arg(4096)->Arg(65536)->Arg(1 << 20)->Arg(1 << 25);
});

// A table of 1024 rows or more of bf16, as large as a cache: the rows of a prompt are scattered.
// Those of the ceiling are not.
void embedding(benchmark::State& state) {
  const auto n = std::size_t(state.range(0));
  std::vector<std::int32_t> tokens(std::size_t(state.range(1)));
  const std::size_t rows = (std::max)(tokens.size(), std::size_t{1024});
  const Floats table(rows * n / 2);
  const auto view = quipu::row_major_view(table.data(), quipu::ElementType::bf16, rows, n);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 331 % rows);
  const Floats out(tokens.size() * n);
  const double bytes = 6.0 * double(out.size());
  beside_ceiling(
      state, {bytes, bytes},
      [&] {
        HWY_DYNAMIC_DISPATCH(Embed)
        (view, tokens.data(), tokens.size(), out.data());
      },
      [&] {
        HWY_DYNAMIC_DISPATCH(Twice)
        (table.data(), out.size(), out.data());
      });
}
BENCHMARK(embedding)->Apply(rows_of_model);

// One element to each block of keys: what a token's keys are.
template <class Element>
void scatter(const float* x, std::size_t n, Element* y) {
  for (std::size_t i = 0; i < n; ++i)
    y[i * quipu::kv_block] = Element(std::bit_cast<std::uint32_t>(x[i]));
}

void append(benchmark::State& state, std::size_t kv_heads, std::size_t head_dim) {
  const auto tokens = std::size_t(state.range(0));
  const bool bf16 = state.range(1) != 0, one = tokens < quipu::kv_block;
  const quipu::KvCache cache({1, 1, kv_heads, head_dim, tokens,
                              bf16 ? quipu::ElementType::bf16 : quipu::ElementType::f32});
  const std::size_t stride = kv_heads * head_dim, n = tokens * stride;
  const Floats k = values(n), v = values(n), copied(n), keys(one ? n * quipu::kv_block : n);
  const double bytes = (bf16 ? 12.0 : 16.0) * double(n);
  const auto copy_half = [&](const float* from, float* to) {
    if (bf16) {
      HWY_DYNAMIC_DISPATCH(Halve)(from, n, to);
    } else {
      copy(from, n, to);
    }
  };
  beside_ceiling(
      state, {bytes, 8.0 * double(n) + double(cache.bytes())},
      [&] {
        HWY_DYNAMIC_DISPATCH(Append)(cache, {0, 0, tokens, 0}, k.data(), v.data(), stride);
      },
      [&] {
        if (!one) {
          copy_half(k.data(), keys.data());
        } else if (bf16) {
          scatter(k.data(), n, reinterpret_cast<std::uint16_t*>(keys.data()));
        } else {
          scatter(k.data(), n, reinterpret_cast<std::uint32_t*>(keys.data()));
        }
        copy_half(v.data(), copied.data());
      });
}
void appended(Benchmark* b) {
  beside(b)->ArgNames({"tokens", "bf16"})->ArgsProduct({{1, 16, 512, 8192}, {0, 1}});
}
BENCHMARK_CAPTURE(append, llama3_1_8b, 8, 128)->Apply(appended);
BENCHMARK_CAPTURE(append, smollm2_135m, 3, 64)->Apply(appended);

// In place, read and written twice; the ceiling does that once.
void softmax(benchmark::State& state) {
  const auto n = std::size_t(state.range(0)), rows = std::size_t(state.range(1));
  const Floats x = values(n * rows), piece = values(512);
  beside_ceiling(
      state, {8.0 * double(n * rows), 4.0 * double(n * rows)},
      [&] {
        HWY_DYNAMIC_DISPATCH(Softmax)
        (x.data(), n, rows);
      },
      [&] { copy(x.data(), n * rows, x.data()); },
      [&] {
        for (std::size_t i = 0; i < n * rows; i += piece.size())
          HWY_DYNAMIC_DISPATCH(Softmax)(piece.data(), piece.size(), 1);
      });
}
BENCHMARK(softmax)->Apply([](Benchmark* b) {
  beside(b)->ArgNames({"positions", "rows"});
  b->Args({512, 1})->Args({4096, 24})->Args({4096, 256})->Args({4096, 8192});
});

}  // namespace elementwise_bench
#endif
