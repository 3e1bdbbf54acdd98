// Attention at the shapes of llama3_1_8b and smollm2_135m.
//
// Arguments: context (positions seen by the last token), tokens (1: decode), threads, cache element
// (0: f32, 1: bf16). GB/s counts keys and values of the context once per call, GFLOP/s two products
// per visible position, query head and feature. A decoded token's calls go through layers of
// together at least 256 MB, as in a model, so that keys and values come from memory; their share is
// of the reading ceiling, that of a prompt of the ceiling of multiply-adds. Ceilings are measured
// right before and after the calls, their mean is taken.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention_bench.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/attention-inl.hpp"
#include "quipu/simd/kv_append-inl.hpp"
#include "quipu/simd/probes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace attention_bench {
namespace HWY_NAMESPACE {
void Attend(const quipu::AttentionCall& call, quipu::ExecutorRef executor) {
  quipu::HWY_NAMESPACE::Attend(call, executor);
}
void Append(const quipu::KvCache& cache, std::size_t layer, const quipu::SequenceChunk& chunk,
            const float* k, const float* v, std::size_t stride) {
  quipu::HWY_NAMESPACE::AppendKeysValues(cache, layer, chunk, k, stride, v, stride);
}
const quipu::KernelProbes& Probes() { return quipu::HWY_NAMESPACE::Probes(); }
}  // namespace HWY_NAMESPACE
}  // namespace attention_bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <vector>

#include "quipu/engine/ceilings.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace attention_bench {
HWY_EXPORT(Attend);
HWY_EXPORT(Append);
HWY_EXPORT(Probes);

struct Model {
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t head_dim;
};
constexpr Model kLlama{32, 8, 128};  // llama3_1_8b
constexpr Model kSmollm{9, 3, 64};   // smollm2_135m

// Workers and the ceilings that they reach together, made once.
struct Machine {
  quipu::ThreadPool pool;
  quipu::CeilingMeter meter;
  explicit Machine(std::size_t threads)
      : pool(threads), meter(HWY_DYNAMIC_DISPATCH(Probes)(), pool) {}
};
Machine& machine(std::size_t threads) {
  static std::map<std::size_t, Machine> made;
  return made.try_emplace(threads, threads).first->second;
}

struct Data {
  std::vector<float> q, k, v, out, scratch;
  quipu::KvCache cache;
  quipu::SequenceChunk chunk;

  Data(const Model& m, std::size_t context, std::size_t tokens, std::size_t threads,
       quipu::ElementType element, std::size_t at_least = 0)
      : q(tokens * m.heads * m.head_dim, 0.25f),
        k(context * m.kv_heads * m.head_dim),
        v(k.size(), 0.5f),
        out(q.size()),
        scratch(quipu::attention_scratch_floats(m.head_dim, context, threads)),
        cache(shape(m, context, element, at_least)),
        chunk{0, context - tokens, tokens, 0} {
    for (std::size_t i = 0; i < k.size(); ++i) k[i] = float(i * 7919 % 1000) / 1000 - 0.5f;
    for (std::size_t layer = 0; layer < cache.shape().layers; ++layer) {
      HWY_DYNAMIC_DISPATCH(Append)
      (cache, layer, {0, 0, context, 0}, k.data(), v.data(), m.kv_heads * m.head_dim);
    }
  }
  static quipu::KvCacheShape shape(const Model& m, std::size_t context, quipu::ElementType element,
                                   std::size_t at_least) {
    quipu::KvCacheShape one{1, 1, m.kv_heads, m.head_dim, context, element};
    one.layers = (std::max)(std::size_t{1}, quipu::ceil_div(at_least, one.bytes()));
    return one;
  }
};

void attention(benchmark::State& state, const Model& m) {
  const auto context = std::size_t(state.range(0));
  const auto tokens = std::size_t(state.range(1));
  const auto threads = std::size_t(state.range(2));
  const auto element = state.range(3) == 0 ? quipu::ElementType::f32 : quipu::ElementType::bf16;
  Data data(m, context, tokens, threads, element, tokens == 1 ? std::size_t{256} << 20 : 0);
  auto& [pool, meter] = machine(threads);
  quipu::AttentionCall call;
  call.q = data.q.data();
  call.q_stride = m.heads * m.head_dim;
  call.out = data.out.data();
  call.out_stride = call.q_stride;
  call.heads = m.heads;
  call.cache = &data.cache;
  call.chunks = {&data.chunk, 1};
  call.scratch = data.scratch.data();
  const std::size_t layers = data.cache.shape().layers;
  const quipu::Ceilings before = meter.sample();
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(Attend)(call, pool);
    call.layer = (call.layer + 1) % layers;
    benchmark::ClobberMemory();
  }
  double visible = 0;
  for (std::size_t t = 0; t < tokens; ++t) visible += double(context - tokens + t + 1);
  const quipu::Ceilings after = meter.sample();
  const double calls = double(state.iterations());
  const double flops = visible * double(m.heads * m.head_dim) * 4;
  const double bytes = double(data.cache.bytes()) / double(layers);
  const double share =
      tokens == 1 ? 2 * bytes / (before.read_bytes_per_second + after.read_bytes_per_second)
                  : 2 * flops / (before.fma_flops_per_second + after.fma_flops_per_second);
  const auto rate = [&](double amount) {
    return benchmark::Counter(calls * amount, benchmark::Counter::kIsRate);
  };
  state.counters["GFLOP/s"] = rate(flops * 1e-9);
  state.counters["GB/s"] = rate(bytes * 1e-9);
  state.counters["% of ceiling"] = rate(100 * share);
}

void arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"context", "tokens", "threads", "bf16"})->UseRealTime()->MinWarmUpTime(0.05);
  for (const long threads : {1, 2}) {
    for (const long bf16 : {0, 1}) {
      for (const long context : {512, 4096, 8192}) {
        b->Args({context, 1, threads, bf16});
        b->Args({context, 512, threads, bf16});
      }
    }
  }
}
BENCHMARK_CAPTURE(attention, llama3_1_8b, kLlama)->Apply(arguments);
BENCHMARK_CAPTURE(attention, smollm2_135m, kSmollm)->Apply(arguments);

}  // namespace attention_bench
#endif
