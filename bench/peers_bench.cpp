// Matrix products of other libraries, float32, beside ours in the same program: those that were
// found when it was built. Names: peer/LIBRARY/OUTxIN/M/threads, the shapes of llama3_1_8b.
//
// Each gets what a user of it would give it: weights as [out, in] in row-major order for OpenBLAS
// and Eigen, reordered once and not timed for oneDNN. Weights are rotated over copies, as ours are.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/packed_copies.hpp"

#ifdef QUIPU_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef QUIPU_BENCH_EIGEN
#include <Eigen/Core>
#endif
#ifdef QUIPU_BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

namespace {

using Shape = bench::MatrixShape;

// Row-major copies of one float32 matrix, kept while benchmarks of one shape follow each other.
class FloatCopies {
 public:
  explicit FloatCopies(Shape shape)
      : size_(shape.rows * shape.cols),
        count_((std::max)(std::size_t{1}, quipu::ceil_div(bench::cold_bytes, 4 * size_))) {
    const std::vector<float> one = bench::noise(1 << 16);
    data_.resize(size_ * count_);
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = one[i % one.size()];
  }
  const float* at(std::size_t i) const { return data_.data() + i % count_ * size_; }
  std::size_t count() const { return count_; }

  static const FloatCopies& of(Shape shape) {
    static std::unique_ptr<FloatCopies> kept;
    static Shape kept_shape{};
    if (!kept || kept_shape != shape) {
      kept.reset();
      kept = std::make_unique<FloatCopies>(shape);
      kept_shape = shape;
    }
    return *kept;
  }

 private:
  std::size_t size_, count_;
  std::vector<float> data_;
};

struct Run {
  Shape shape;
  std::size_t m, threads;
};

// Times product(weights, x, y) over the copies.
template <class Product>
void time_products(benchmark::State& state, const Run& run, Product&& product) {
  const FloatCopies& weights = FloatCopies::of(run.shape);
  const std::vector<float> x = bench::noise(run.shape.cols * run.m);
  std::vector<float> y(run.shape.rows * run.m);
  std::size_t i = 0;
  for (auto _ : state) {
    product(weights.at(i++), x.data(), y.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const double size = static_cast<double>(run.shape.rows) * static_cast<double>(run.shape.cols);
  state.counters["GFLOP/s"] = benchmark::Counter(
      runs * 2.0 * size * static_cast<double>(run.m) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] =
      benchmark::Counter(runs * size * 4.0 * 1e-9, benchmark::Counter::kIsRate);
}

template <class Body>
void register_peer(const char* library, Body body) {
  for (const Shape shape : {Shape{4096, 4096}, Shape{14336, 4096}, Shape{4096, 14336}}) {
    for (const std::size_t m : {1u, 512u}) {
      for (const std::size_t threads : {1u, 2u}) {
        const std::string name = "peer/" + std::string(library) + "/" + std::to_string(shape.rows) +
                                 "x" + std::to_string(shape.cols) + "/" + std::to_string(m) + "/" +
                                 std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) {
                                       body(state, Run{shape, m, threads});
                                     })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

#ifdef QUIPU_BENCH_OPENBLAS
void openblas(benchmark::State& state, const Run& run) {
  openblas_set_num_threads(static_cast<int>(run.threads));
  const auto n = static_cast<blasint>(run.shape.rows), k = static_cast<blasint>(run.shape.cols),
             m = static_cast<blasint>(run.m);
  time_products(state, run, [=](const float* w, const float* x, float* y) {
    if (m == 1) {
      cblas_sgemv(CblasRowMajor, CblasNoTrans, n, k, 1.0f, w, k, x, 1, 0.0f, y, 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, x, k, w, k, 0.0f, y, n);
    }
  });
}
[[maybe_unused]] const bool with_openblas = (register_peer("openblas", &openblas), true);
#endif

#ifdef QUIPU_BENCH_EIGEN
// Rows and columns of the weights as constants, or as values.
template <int kRows, int kCols>
void eigen_product(benchmark::State& state, const Run& run) {
  using Weights = Eigen::Matrix<float, kRows, kCols, Eigen::RowMajor>;
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Column = Eigen::Matrix<float, Eigen::Dynamic, 1>;
  const auto n = static_cast<Eigen::Index>(run.shape.rows),
             k = static_cast<Eigen::Index>(run.shape.cols), m = static_cast<Eigen::Index>(run.m);
  Eigen::setNbThreads(static_cast<int>(run.threads));
  time_products(state, run, [=](const float* weights, const float* x, float* y) {
    const Eigen::Map<const Weights> w(weights, n, k);
    if (m == 1) {
      Eigen::Map<Column>(y, n).noalias() = w * Eigen::Map<const Column>(x, k);
    } else {
      Eigen::Map<Rows>(y, m, n).noalias() = Eigen::Map<const Rows>(x, m, k) * w.transpose();
    }
  });
}
void eigen_dynamic(benchmark::State& state, const Run& run) {
  eigen_product<Eigen::Dynamic, Eigen::Dynamic>(state, run);
}
void eigen_fixed(benchmark::State& state, const Run& run) {
  if (run.shape == Shape{4096, 4096}) return eigen_product<4096, 4096>(state, run);
  if (run.shape == Shape{14336, 4096}) return eigen_product<14336, 4096>(state, run);
  eigen_product<4096, 14336>(state, run);
}
[[maybe_unused]] const bool with_eigen = (register_peer("eigen_dynamic", &eigen_dynamic),
                                          register_peer("eigen_fixed", &eigen_fixed), true);
#endif

#ifdef QUIPU_BENCH_ONEDNN
void onednn(benchmark::State& state, const Run& run) {
  using dnnl::memory;
  omp_set_num_threads(static_cast<int>(run.threads));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto n = static_cast<memory::dim>(run.shape.rows),
             k = static_cast<memory::dim>(run.shape.cols), m = static_cast<memory::dim>(run.m);
  const auto f32 = memory::data_type::f32;
  const memory::desc source({m, k}, f32, memory::format_tag::ab),
      given({n, k}, f32, memory::format_tag::ab), any({n, k}, f32, memory::format_tag::any),
      result({m, n}, f32, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::inner_product_forward::primitive_desc plan(engine, dnnl::prop_kind::forward_inference,
                                                         source, any, result);
#else
  const dnnl::inner_product_forward::primitive_desc plan(
      dnnl::inner_product_forward::desc(dnnl::prop_kind::forward_inference, source, any, result),
      engine);
#endif
  dnnl::inner_product_forward product(plan);
  const FloatCopies& copies = FloatCopies::of(run.shape);
  std::vector<memory> packed;
  for (std::size_t i = 0; i < copies.count(); ++i) {
    memory from(given, engine, const_cast<float*>(copies.at(i)));
    packed.emplace_back(plan.weights_desc(), engine);
    dnnl::reorder(from, packed.back()).execute(stream, from, packed.back());
  }
  stream.wait();
  std::size_t i = 0;
  time_products(state, run, [&](const float*, const float* x, float* y) {
    product.execute(stream, {{DNNL_ARG_SRC, memory(source, engine, const_cast<float*>(x))},
                             {DNNL_ARG_WEIGHTS, packed[i++ % packed.size()]},
                             {DNNL_ARG_DST, memory(result, engine, y)}});
    stream.wait();
  });
}
[[maybe_unused]] const bool with_onednn = (register_peer("onednn", &onednn), true);
#endif

}  // namespace
