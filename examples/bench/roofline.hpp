// The roofline of a machine: how fast its memory and its units are, and how near the matrix
// products come to that at the shapes of a model.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/ceilings.hpp"
#include "bench/packed_copies.hpp"
#include "bench/plot.hpp"
#include "bench/report.hpp"
#include "program.hpp"
#include "quipu/engine/ceilings.hpp"
#include "quipu/engine/engine.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace bench {

struct RooflineOptions {
  std::string model;
  std::vector<std::string> matrices{"w1"}, types{"f32", "bf16", "q8_0", "q4_0", "q4_k"},
      activations{"f32", "int8"};
  std::vector<std::size_t> rows{1, 2, 4, 8, 16, 64, 512}, threads;
  std::size_t repetitions = 5;
};

/// One product: a matrix of a model, an element type, rows of activations, threads.
struct RooflinePoint {
  std::string matrix, type, activations;
  MatrixShape shape;
  std::size_t rows = 0, threads = 0;
  double seconds = 0, cv = 0;  ///< of one product: the median
  double bytes = 0, flops = 0;
  double part = 0;  ///< of what the ceilings measured around each repetition allow: the median

  double intensity() const { return flops / bytes; }
  double flops_per_second() const { return flops / seconds; }
};

struct Roofline {
  std::string model, target;
  std::map<std::size_t, quipu::Ceilings> ceilings;  ///< by threads: medians of all samples
  std::vector<RooflinePoint> points;
  double load_before = 0, load_after = 0;
};

namespace detail {

inline const quipu::ModelEntry& model_named(const quipu::Engine& engine, const std::string& name) {
  std::string names;
  for (const quipu::ModelEntry& entry : engine.models()) {
    if (entry.name == name) return entry;
    names += " " + std::string(entry.name);
  }
  quipu::raise<quipu::ArgumentError>("--model: " + name + " is not compiled in; there are" + names);
}

inline MatrixShape shape_named(const quipu::ArchitectureFacts& a, const std::string& matrix) {
  if (matrix == "wq") return {a.n_heads * a.head_dim, a.dim};
  if (matrix == "wk") return {a.n_kv_heads * a.head_dim, a.dim};
  if (matrix == "wo") return {a.dim, a.n_heads * a.head_dim};
  if (matrix == "w1") return {a.ffn, a.dim};
  if (matrix == "w2") return {a.dim, a.ffn};
  if (matrix == "output") return {a.vocab_size, a.dim};
  quipu::raise<quipu::ArgumentError>("--matrices: expected wq, wk, wo, w1, w2 or output, found " +
                                     matrix);
}

inline quipu::ElementType type_named(const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < quipu::element_type_count; ++i) {
    const auto type = static_cast<quipu::ElementType>(i);
    if (quipu::name(type) == name) return type;
    names += " " + std::string(quipu::name(type));
  }
  quipu::raise<quipu::ArgumentError>("--types: " + name + " is none of" + names);
}

/// What a point is measured with: a pool, its ceilings, and all their samples.
struct Meter {
  Meter(const quipu::KernelProbes& probes, std::size_t threads)
      : pool(threads), ceilings(probes, pool) {}
  const quipu::Ceilings& sample() { return samples.emplace_back(ceilings.sample()); }

  quipu::ThreadPool pool;
  quipu::CeilingMeter ceilings;
  std::vector<quipu::Ceilings> samples;
};

/// Times one product, each repetition of at least a fiftieth of a second and between two samples of
/// the ceilings.
inline void time_product(const quipu::KernelProbes& probes, const PackedCopies& weights,
                         quipu::ElementType type, quipu::ActivationMode mode, Meter& meter,
                         std::size_t repetitions, RooflinePoint& p) {
  const std::vector<float> x = noise(p.shape.cols * p.rows);
  std::vector<float> y(p.shape.rows * p.rows);
  const quipu::AlignedBuffer scratch(
      sizeof(float) * quipu::product_scratch_floats(p.shape.cols, p.rows, p.threads),
      "scratch of a product");
  quipu::advise_huge_pages(scratch);
  std::size_t next = 0;
  const auto products = [&](std::size_t count) {
    return quipu::detail::seconds_of([&] {
      for (std::size_t i = 0; i < count; ++i) {
        const quipu::Product one{weights.view(next++), y.data(), p.shape.rows};
        probes.mat_mul(&one, 1, x.data(), p.shape.cols, p.rows, mode, meter.pool,
                       reinterpret_cast<float*>(scratch.data()));
      }
    });
  };
  const auto least_seconds = [&](const quipu::Ceilings& c) {
    return (std::max)(p.bytes / c.read_bytes_per_second,
                      p.flops / quipu::arithmetic_ceiling(c, type, mode));
  };
  const double once = products(1);
  const auto count = static_cast<std::size_t>((std::max)(1.0, 0.02 / once));
  std::vector<double> seconds, parts;
  double before = least_seconds(meter.sample());
  for (std::size_t r = 0; r < repetitions; ++r) {
    seconds.push_back(products(count) / static_cast<double>(count));
    const double after = least_seconds(meter.sample());
    parts.push_back((before + after) / 2 / seconds.back());
    before = after;
  }
  p.seconds = quipu::median(seconds);
  p.cv = quipu::coefficient_of_variation(seconds);
  p.part = quipu::median(parts);
}

}  // namespace detail

/// Measures ceilings and products. ArgumentError for an unknown model, matrix or type.
inline Roofline measure_roofline(const quipu::Engine& engine, const RooflineOptions& o) {
  const quipu::ModelEntry& entry = detail::model_named(engine, o.model);
  for (const std::string& matrix : o.matrices) detail::shape_named(entry.architecture, matrix);
  for (const std::string& type : o.types) detail::type_named(type);
  const quipu::KernelProbes& probes = engine.probes();
  Roofline found;
  found.model = entry.name;
  found.target = engine.target();
  found.load_before = load_average();
  std::map<std::size_t, std::unique_ptr<detail::Meter>> meters;
  for (const std::size_t threads : o.threads)
    meters[threads] = std::make_unique<detail::Meter>(probes, threads);
  for (const std::string& matrix : o.matrices) {
    const MatrixShape shape = detail::shape_named(entry.architecture, matrix);
    for (const std::string& name : o.types) {
      const quipu::ElementType type = detail::type_named(name);
      if (!quipu::row_is_whole_blocks(type, shape.cols)) continue;
      program::say("{} {} ...\n", matrix, name);
      const PackedCopies weights(type, shape, cold_bytes);
      for (const std::string& activations : o.activations) {
        const bool bytes = activations == "int8";
        if (bytes && quipu::info(type).block_elements == 1) continue;
        for (const std::size_t threads : o.threads) {
          for (const std::size_t rows : o.rows) {
            RooflinePoint p{matrix, name, activations, shape, rows, threads};
            p.bytes = static_cast<double>(weights.bytes());
            p.flops = 2.0 * static_cast<double>(shape.rows * shape.cols * rows);
            const quipu::ActivationMode mode =
                bytes ? quipu::ActivationMode::int8 : quipu::ActivationMode::f32;
            detail::time_product(probes, weights, type, mode, *meters[threads], o.repetitions, p);
            found.points.push_back(p);
          }
        }
      }
    }
  }
  for (const auto& [threads, meter] : meters)
    found.ceilings[threads] = quipu::median_ceilings(meter->samples);
  found.load_after = load_average();
  return found;
}

inline std::string roofline_notes(const Roofline& r) {
  std::string out =
      fmt::format("shapes of {}; {}, {} processors; load {:.1f} before, {:.1f} after\n", r.model,
                  r.target, processors(), r.load_before, r.load_after);
  for (const auto& [threads, c] : r.ceilings) {
    out += fmt::format("{} thread{}: {}\n", threads, threads == 1 ? "" : "s", ceilings_text(c));
  }
  return out;
}

inline Table roofline_table(const Roofline& r) {
  Table table({"matrix", "weights", "activations", ">rows", ">threads", ">us", ">CV", ">GFLOP/s",
               ">GB/s", ">FLOP/byte", ">of roof"});
  OverCeiling part;
  for (const RooflinePoint& p : r.points) {
    table.add({fmt::format("{} {}x{}", p.matrix, p.shape.rows, p.shape.cols), p.type, p.activations,
               std::to_string(p.rows), std::to_string(p.threads), figure(p.seconds * 1e6),
               (p.cv > rough_cv ? "~ " : "") + percent(p.cv), figure(p.flops_per_second() * 1e-9),
               figure(p.bytes / p.seconds * 1e-9), figure(p.intensity()), part(p.part)});
  }
  table.set_below(part.note());
  return table;
}

inline nlohmann::ordered_json roofline_json(const Roofline& r) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const RooflinePoint& p : r.points) {
    points.push_back({{"matrix", p.matrix},
                      {"out", p.shape.rows},
                      {"in", p.shape.cols},
                      {"weights", p.type},
                      {"activations", p.activations},
                      {"rows", p.rows},
                      {"threads", p.threads},
                      {"seconds", p.seconds},
                      {"cv", p.cv},
                      {"bytes", p.bytes},
                      {"flops", p.flops},
                      {"part_of_roof", p.part}});
  }
  return {{"model", r.model},
          {"target", r.target},
          {"processors", processors()},
          {"load_before", r.load_before},
          {"load_after", r.load_after},
          {"ceilings", ceilings_json(r.ceilings)},
          {"points", points}};
}

/// The picture for the largest number of threads: both roofs, and a line of points per element type
/// and kind of activations, one point a number of rows.
inline Plot roofline_plot(const Roofline& r) {
  const auto& [threads, c] = *r.ceilings.rbegin();
  Plot plot{
      fmt::format("{}, {} thread{}: matrix products at the shapes of {}", r.target, threads,
                  threads == 1 ? "" : "s", r.model),
      fmt::format("reading {} GB/s; float32 multiply-adds {} GFLOP/s (dashed); byte dot products "
                  "{} GOP/s (solid)",
                  figure(c.read_bytes_per_second * 1e-9), figure(c.fma_flops_per_second * 1e-9),
                  figure(c.int8_ops_per_second * 1e-9)),
      "FLOP per byte of weights (rows: 1, 2, 4, ...)",
      "GFLOP/s",
      true,
      true,
      {}};
  double low = 1e300, high = 1;
  for (const RooflinePoint& p : r.points) {
    low = (std::min)(low, p.intensity());
    high = (std::max)(high, p.intensity());
  }
  const auto roof = [&](double peak, bool dashed) {
    const double corner = peak / c.read_bytes_per_second;
    plot.series.push_back({"",
                           {{low / 2, low / 2 * c.read_bytes_per_second * 1e-9, ""},
                            {corner, peak * 1e-9, ""},
                            {(std::max)(high, 2 * corner), peak * 1e-9, ""}},
                           true,
                           dashed});
  };
  roof(c.fma_flops_per_second, true);
  roof(c.int8_ops_per_second, false);
  for (const RooflinePoint& p : r.points) {
    if (p.threads != threads) continue;
    std::string name = p.type + (p.activations == "int8" ? ", int8 activations" : "");
    if (p.matrix != r.points.front().matrix) name = p.matrix + ": " + name;
    auto found = std::find_if(plot.series.begin(), plot.series.end(),
                              [&](const Series& s) { return s.name == name; });
    if (found == plot.series.end()) found = plot.series.insert(found, Series{name, {}});
    found->points.push_back(
        {p.intensity(), p.flops_per_second() * 1e-9,
         fmt::format("{} {}, {} rows: {} GFLOP/s, {} of the roof", p.matrix, p.type, p.rows,
                     figure(p.flops_per_second() * 1e-9), percent(p.part))});
  }
  return plot;
}

}  // namespace bench
