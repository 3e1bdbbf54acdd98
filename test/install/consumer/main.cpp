// What an application sees of quipu: the types, and with quipu::run what computes.
#include <quipu/quipu.hpp>
#include <string_view>

#ifdef CONSUMER_RUNS
#include <hwy/highway.h>
#include <atomic>
#include <quipu/runtime/thread_pool.hpp>
#endif

static_assert(QUIPU_VERSION == std::string_view(CONSUMER_VERSION),
              "the header's and the package's");
static_assert(quipu::parameter_count<quipu::models::llama3_1_8b> == 8'030'261'248);

int main() {
#ifdef CONSUMER_RUNS
#ifndef HWY_WANT_AVX3_DL
#error "quipu::run must bring Highway's macros"
#endif
  quipu::ThreadPool pool(2);
  std::atomic<int> done{0};
  const quipu::ExecutorRef executor(pool);
  executor.run(8, [&](std::size_t, std::size_t) { ++done; });
  if (done != 8) return 1;
#endif
  return quipu::model_name<quipu::models::llama3_1_8b>() == "llama3_1_8b" ? 0 : 1;
}
