// End to end: prompts in one go (pp) and tokens one by one (tg), in llama-bench's terms.
//
// Positions before the measured ones (the depth) hold zeros and are not computed: the cache is read
// in full either way, and speed does not depend on its values.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/ceilings.hpp"
#include "bench/llama_cpp.hpp"
#include "bench/plot.hpp"
#include "bench/report.hpp"
#include "program.hpp"
#include "quipu/engine/engine.hpp"
#include "quipu/engine/profile.hpp"

namespace bench {

struct SpeedOptions {
  std::string file, model, against, python = "python3";
  std::vector<std::size_t> prompts{512}, predicts{128}, depths{0}, threads, batches{1};
  std::vector<std::string> activations{"f32"}, caches{"f32"};
  std::size_t repetitions = 5, chunk = 512;
  bool in_place = false;
};

/// What is timed: `tokens` for each of `batch` sequences from `depth` on, at once or one by one.
struct SpeedTest {
  bool prompt = true;
  std::size_t tokens = 0, depth = 0, batch = 1;

  std::string name() const {
    std::string text = fmt::format("{}{}", prompt ? "pp" : "tg", tokens);
    if (batch > 1) text += fmt::format(" b{}", batch);
    if (depth > 0) text += fmt::format(" @ d{}", depth);
    return text;
  }
};

struct SpeedResult {
  SpeedTest test;
  std::string engine = "quipu", activations, cache;
  std::size_t threads = 0;
  std::vector<double> rates;  ///< tokens of all sequences a second
  /// What decoding must read, or a prompt compute, a token; 0: unknown.
  double work = 0;
  /// Part of what reading or arithmetic allows, whichever takes longer, by the ceilings measured
  /// around each round: the median.
  double part = 0;
  std::optional<double> ratio;  ///< to the other engine, round by round: the median

  bool rough() const { return cv() > rough_cv; }
  bool rough_ratio = false;  ///< the figure or what it is compared with has a large spread

  double rate() const { return quipu::median(rates); }
  double cv() const { return quipu::coefficient_of_variation(rates); }
};

struct SpeedReport {
  std::vector<SpeedResult> results;
  std::vector<std::pair<std::size_t, quipu::Ceilings>> ceilings;  ///< by threads
  std::string model, target, types, other;
  std::size_t parameters = 0, weight_bytes = 0;
  double load_before = 0, load_after = 0;
};

namespace detail {

inline quipu::ElementType cache_type(const std::string& name) {
  return name == "bf16" ? quipu::ElementType::bf16 : quipu::ElementType::f32;
}
inline quipu::ActivationMode activation_mode(const std::string& name) {
  return name == "int8" ? quipu::ActivationMode::int8 : quipu::ActivationMode::f32;
}

/// Ids that are in every vocabulary and not the same all the time.
inline std::vector<quipu::TokenId> some_tokens(std::size_t count, std::size_t vocabulary) {
  std::vector<quipu::TokenId> tokens(count);
  std::uint32_t state = 7;
  for (quipu::TokenId& t : tokens) {
    state = state * 1664525u + 1013904223u;
    t = static_cast<quipu::TokenId>((state >> 8) % vocabulary);
  }
  return tokens;
}

/// Bytes and FLOPs of one run of a test.
inline quipu::ProfileComponent cost_of(const quipu::Model& model, const SpeedTest& t,
                                       quipu::ElementType cache, std::size_t chunk) {
  quipu::ProfileComponent sum;
  const std::size_t step = t.prompt ? chunk : 1;
  for (std::size_t at = 0; at < t.tokens; at += step) {
    const quipu::PassShape shape{t.batch, (std::min)(step, t.tokens - at), t.depth + at};
    const bool logits = !t.prompt || at + step >= t.tokens;
    for (const quipu::ProfileComponent& c : quipu::pass_costs(model, cache, shape)) {
      if (!logits && (c.id == "norm" || c.id == "output")) continue;
      sum.bytes += c.bytes;
      sum.flops += c.flops;
    }
  }
  return sum;
}

/// One engine with its options, ready to run a test again and again.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual double seconds() = 0;
  SpeedResult result;
};

class QuipuContestant : public Contestant {
 public:
  QuipuContestant(const quipu::Model& model, const SpeedTest& test, const std::string& activations,
                  const std::string& cache, const SpeedOptions& o)
      : session_(model, {.batch = test.batch,
                         .capacity = test.depth + test.tokens,
                         .chunk = o.chunk,
                         .cache = cache_type(cache),
                         .activations = activation_mode(activations),
                         .allow_gaps = true}),
        tokens_(some_tokens(test.tokens, model.architecture().vocab_size)),
        logits_(test.batch * model.architecture().vocab_size) {
    result.test = test;
    result.activations = activations;
    result.cache = cache;
    if (test.depth == 0) return;
    feed(0, 1, test.depth - 1);  // the positions before it become zeros
  }

  double seconds() override {
    const SpeedTest& t = result.test;
    return quipu::detail::seconds_of([&] {
      if (t.prompt) return feed(0, t.tokens, t.depth);
      for (std::size_t i = 0; i < t.tokens; ++i) feed(i, 1, t.depth + i);
    });
  }

 private:
  void feed(std::size_t first, std::size_t count, std::size_t at) {
    feeds_.clear();
    for (std::size_t row = 0; row < result.test.batch; ++row)
      feeds_.push_back({row, std::span(tokens_).subspan(first, count), at});
    session_.forward(feeds_, quipu::LogitsWanted::last, logits_);
  }

  quipu::Session session_;
  std::vector<quipu::TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<quipu::Feed> feeds_;
};

class LlamaCppContestant : public Contestant {
 public:
  LlamaCppContestant(LlamaCpp& engine, const SpeedTest& test, std::size_t vocabulary)
      : engine_(engine),
        before_(some_tokens(test.depth, vocabulary)),
        tokens_(some_tokens(test.tokens, vocabulary)) {
    result.test = test;
    result.engine = "llama.cpp";
    result.activations = "its own";
    result.cache = "f16";
  }
  double seconds() override { return engine_.run(before_, tokens_, result.test.prompt); }

 private:
  LlamaCpp& engine_;
  std::vector<quipu::TokenId> before_, tokens_;
};

/// All contestants of a test in turns, so that a change of the machine's pace meets each, and the
/// ceilings at the beginning and after each round.
inline std::vector<SpeedResult> contest(std::vector<std::unique_ptr<Contestant>>& contestants,
                                        std::size_t repetitions, quipu::CeilingMeter& meter,
                                        std::vector<quipu::Ceilings>& samples) {
  for (std::size_t r = 0; r <= repetitions; ++r) {
    for (auto& c : contestants) {
      const SpeedTest& t = c->result.test;
      const double rate = static_cast<double>(t.tokens * t.batch) / c->seconds();
      if (r > 0) c->result.rates.push_back(rate);  // the first round warms up
    }
    samples.push_back(meter.sample());
  }
  std::vector<SpeedResult> results;
  const SpeedResult& last = contestants.back()->result;
  for (auto& c : contestants) {
    SpeedResult& result = c->result;
    if (last.engine != "quipu" && result.engine == "quipu") {
      std::vector<double> ratios;
      for (std::size_t r = 0; r < repetitions; ++r)
        ratios.push_back(result.rates[r] / last.rates[r]);
      result.ratio = quipu::median(ratios);
      result.rough_ratio = quipu::coefficient_of_variation(ratios) > rough_cv;
    }
    results.push_back(result);
  }
  return results;
}

/// What a quipu figure is measured against: `samples` are those around its rounds.
inline void set_ceiling(SpeedResult& r, const quipu::Model& model,
                        const std::vector<quipu::Ceilings>& samples, std::size_t chunk) {
  const quipu::ProfileComponent cost = cost_of(model, r.test, cache_type(r.cache), chunk);
  const auto tokens = static_cast<double>(r.test.tokens * r.test.batch);
  // The embedding is read, not multiplied: the layers' first matrix says what is multiplied.
  const auto& slots = model.weights().ranks.front().slots;
  const auto wq = std::find_if(slots.begin(), slots.end(), [](const quipu::TensorSlot& s) {
    return s.path.ends_with("attention.wq");
  });
  const quipu::ElementType type = wq == slots.end() ? quipu::ElementType::f32 : wq->view->type;
  r.work = static_cast<double>(r.test.prompt ? cost.flops : cost.bytes) / tokens;
  const auto least_seconds = [&](const quipu::Ceilings& c) {
    return (std::max)(static_cast<double>(cost.bytes) / c.read_bytes_per_second,
                      static_cast<double>(cost.flops) /
                          quipu::arithmetic_ceiling(c, type, activation_mode(r.activations))) /
           tokens;
  };
  std::vector<double> parts;
  for (std::size_t i = 0; i < r.rates.size(); ++i) {
    parts.push_back(r.rates[i] * (least_seconds(samples[i]) + least_seconds(samples[i + 1])) / 2);
  }
  r.part = quipu::median(parts);
}

inline std::vector<SpeedTest> tests_of(const SpeedOptions& o) {
  std::vector<SpeedTest> tests;
  for (const std::size_t depth : o.depths) {
    for (const std::size_t n : o.prompts) {
      if (n > 0) tests.push_back({true, n, depth, 1});
    }
    for (const std::size_t n : o.predicts) {
      for (const std::size_t batch : o.batches) {
        if (n > 0) tests.push_back({false, n, depth, batch});
      }
    }
  }
  return tests;
}

}  // namespace detail

/// Runs every test of the options. ArgumentError for what cannot be run.
inline SpeedReport measure_speed(const quipu::Engine& engine, const SpeedOptions& o) {
  if (!o.against.empty() && o.against != "llama.cpp")
    quipu::raise<quipu::ArgumentError>("--against: expected llama.cpp, found " + o.against);
  const std::vector<SpeedTest> tests = detail::tests_of(o);
  if (tests.empty()) quipu::raise<quipu::ArgumentError>("-p and -n are 0: there is nothing to run");
  std::size_t context = 0;
  for (const SpeedTest& t : tests) context = (std::max)(context, t.depth + t.tokens);

  SpeedReport report;
  report.load_before = load_average();
  for (const std::size_t threads : o.threads) {
    program::ProgressBar bar;
    quipu::LoadOptions load;
    load.model = o.model;
    load.threads = threads;
    load.pack = !o.in_place;
    load.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
      bar(what, done, total);
    };
    const quipu::Model model = engine.load(o.file, load);
    std::unique_ptr<LlamaCpp> llama;
    if (!o.against.empty()) {
      llama = std::make_unique<LlamaCpp>(o.python, o.file, threads, context + 8);
      report.other = fmt::format("llama-cpp-python {} ({})", llama->version(), llama->system());
    }
    quipu::CeilingMeter meter(model.probes(), model.executor());
    std::vector<quipu::Ceilings> all_samples;
    report.model = model.name();
    report.target = model.target();
    report.parameters = model.parameters();
    report.weight_bytes = model.weights().weight_bytes;
    report.types.clear();
    for (const quipu::ElementType type : model.weights().types)
      report.types += (report.types.empty() ? "" : " ") + std::string(quipu::name(type));

    for (const SpeedTest& test : tests) {
      program::say("{}, {} threads ...\n", test.name(), threads);
      std::vector<std::unique_ptr<detail::Contestant>> contestants;
      for (const std::string& activations : o.activations) {
        for (const std::string& cache : o.caches) {
          contestants.push_back(
              std::make_unique<detail::QuipuContestant>(model, test, activations, cache, o));
        }
      }
      if (llama && test.batch == 1) {
        contestants.push_back(std::make_unique<detail::LlamaCppContestant>(
            *llama, test, model.architecture().vocab_size));
      }
      std::vector<quipu::Ceilings> samples;
      for (SpeedResult& r : detail::contest(contestants, o.repetitions, meter, samples)) {
        r.threads = threads;
        if (r.engine == "quipu") detail::set_ceiling(r, model, samples, o.chunk);
        report.results.push_back(std::move(r));
      }
      all_samples.insert(all_samples.end(), samples.begin(), samples.end());
    }
    report.ceilings.emplace_back(threads, quipu::median_ceilings(all_samples));
  }
  report.load_after = load_average();
  return report;
}

/// What the system was like, and what a reader must know of the figures.
inline std::string speed_notes(const SpeedReport& report, std::size_t repetitions) {
  std::string out = fmt::format(
      "{}, {} parameters, {} ({}); {}, {} processors; load {:.1f} before, {:.1f} after; medians of "
      "{}\n",
      report.model, program::grouped(report.parameters), program::bytes_text(report.weight_bytes),
      report.types, report.target, processors(), report.load_before, report.load_after,
      repetitions);
  for (const auto& [threads, c] : report.ceilings) {
    out += fmt::format("ceilings of {} thread{}: {}\n", threads, threads == 1 ? "" : "s",
                       ceilings_text(c));
  }
  if (!report.other.empty()) out += report.other + "\n";
  std::size_t rough = 0;
  for (const SpeedResult& r : report.results) rough += r.rough() || r.rough_ratio ? 1 : 0;
  if (rough > 0) {
    out +=
        fmt::format("~ : a coefficient of variation over {:.0f} %, so take the figure as rough\n",
                    100 * rough_cv);
  }
  return out;
}

inline Table speed_table(const SpeedReport& report) {
  const bool ratios = !report.other.empty();
  std::vector<std::string> columns{"test",      ">threads", "engine",    "activations", "cache",
                                   ">tokens/s", ">CV",      ">a second", ">of ceiling"};
  if (ratios) columns.push_back(">to llama.cpp");
  Table table(columns);
  OverCeiling part;
  for (const SpeedResult& r : report.results) {
    const double speed = r.rate() * r.work;
    table.add({r.test.name(), std::to_string(r.threads), r.engine, r.activations, r.cache,
               (r.rough() ? "~ " : "") + figure(r.rate()), percent(r.cv()),
               r.work == 0 ? "" : figure(speed * 1e-9) + (r.test.prompt ? " GFLOP" : " GB"),
               r.work == 0 ? "" : part(r.part),
               r.ratio ? (r.rough_ratio ? "~ " : "") + figure(*r.ratio) : ""});
  }
  table.set_below(part.note());
  return table;
}

/// The same with plain numbers and one fact a column.
inline Table speed_csv(const SpeedReport& report) {
  Table table({"test", "kind", "tokens", "batch", "depth", "threads", "engine", "activations",
               "cache", "repetitions", "tokens_per_second", "cv", "per_second", "unit",
               "part_of_ceiling", "to_other"});
  for (const SpeedResult& r : report.results) {
    const double speed = r.rate() * r.work;
    table.add({r.test.name(), r.test.prompt ? "pp" : "tg", std::to_string(r.test.tokens),
               std::to_string(r.test.batch), std::to_string(r.test.depth),
               std::to_string(r.threads), r.engine, r.activations, r.cache,
               std::to_string(r.rates.size()), fmt::format("{:.6g}", r.rate()),
               fmt::format("{:.4g}", r.cv()), r.work == 0 ? "" : fmt::format("{:.6g}", speed),
               r.work == 0     ? ""
               : r.test.prompt ? "FLOP"
                               : "byte",
               r.work == 0 ? "" : fmt::format("{:.4g}", r.part),
               r.ratio ? fmt::format("{:.4g}", *r.ratio) : ""});
  }
  return table;
}

inline nlohmann::ordered_json speed_json(const SpeedReport& report) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const SpeedResult& r : report.results) {
    nlohmann::ordered_json one = {{"test", r.test.name()},
                                  {"kind", r.test.prompt ? "pp" : "tg"},
                                  {"tokens", r.test.tokens},
                                  {"batch", r.test.batch},
                                  {"depth", r.test.depth},
                                  {"threads", r.threads},
                                  {"engine", r.engine},
                                  {"activations", r.activations},
                                  {"cache", r.cache},
                                  {"tokens_per_second", r.rate()},
                                  {"cv", r.cv()},
                                  {"rough", r.rough()},
                                  {"samples", r.rates}};
    if (r.work > 0) {
      one[r.test.prompt ? "flops_per_second" : "bytes_per_second"] = r.rate() * r.work;
      one["part_of_ceiling"] = r.part;
    }
    if (r.ratio) one["to_other"] = *r.ratio;
    results.push_back(std::move(one));
  }
  return {{"model", report.model},
          {"parameters", report.parameters},
          {"weight_bytes", report.weight_bytes},
          {"types", report.types},
          {"target", report.target},
          {"processors", processors()},
          {"load_before", report.load_before},
          {"load_after", report.load_after},
          {"other", report.other},
          {"ceilings", ceilings_json(report.ceilings)},
          {"results", results}};
}

/// Tokens a second over the number of sequences decoded together.
inline Plot batch_plot(const SpeedReport& report) {
  Plot plot{report.model + ": decoding several sequences at once",
            fmt::format("{}, {} {}", report.target, program::bytes_text(report.weight_bytes),
                        report.types),
            "sequences",
            "tokens a second, all sequences",
            true,
            false,
            {}};
  for (const SpeedResult& r : report.results) {
    if (r.test.prompt || r.engine != "quipu") continue;
    const std::string name = fmt::format(
        "{} thread{}, {}, cache {}{}", r.threads, r.threads == 1 ? "" : "s", r.activations, r.cache,
        r.test.depth > 0 ? fmt::format(", d{}", r.test.depth) : "");
    auto found = std::find_if(plot.series.begin(), plot.series.end(),
                              [&](const Series& s) { return s.name == name; });
    if (found == plot.series.end()) found = plot.series.insert(found, Series{name, {}});
    found->points.push_back(
        {static_cast<double>(r.test.batch), r.rate(),
         fmt::format("{} sequences: {} tokens/s", r.test.batch, figure(r.rate()))});
  }
  return plot;
}

}  // namespace bench
