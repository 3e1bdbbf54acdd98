// quipu-bench: how fast a model runs and how near the machine's limits that is; where the time of a
// pass goes; what faster number formats cost in accuracy.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/accuracy.hpp"
#include "bench/profile_table.hpp"
#include "bench/roofline.hpp"
#include "bench/speed.hpp"
#include "program.hpp"
#include "quipu/checkpoint/atomic_file.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

/// Options that several commands have.
struct Output {
  std::string format = "md", plot, file;
};

void write_file(const std::string& path, const std::string& text) {
  quipu::AtomicFile file(path);
  file.write(text);
  file.commit();
  program::say("written: {}\n", path);
}

/// Markdown with its notes, CSV or JSON on stdout.
void print(const Output& out, const std::string& notes, const bench::Table& table,
           const bench::Table& csv, const nlohmann::ordered_json& json) {
  if (out.format == "json") {
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else if (out.format == "csv") {
    std::cout << csv.csv();
    program::say("{}{}", notes, table.below());
  } else {
    std::cout << notes << "\n" << table.markdown();
  }
  if (!std::cout.flush())
    quipu::raise<quipu::FileError>("standard output: not all could be written");
}

/// 0 among them stands for all processors that the process may use.
std::vector<std::size_t> with_default_threads(std::vector<std::size_t> threads) {
  if (threads.empty()) threads = {bench::processors()};
  for (std::size_t& t : threads) t = t == 0 ? bench::processors() : t;
  return threads;
}

int run_speed(bench::SpeedOptions o, const Output& out) {
  o.threads = with_default_threads(o.threads);
  // Said before minutes of measuring, not after.
  if (!out.plot.empty() && (std::ranges::max)(o.predicts) == 0)
    quipu::raise<quipu::ArgumentError>("--plot: shows decoding, and -n is 0");
  const bench::SpeedReport report = bench::measure_speed(QUIPU_ENGINE::engine(), o);
  print(out, bench::speed_notes(report, o.repetitions), bench::speed_table(report),
        bench::speed_csv(report), bench::speed_json(report));
  if (!out.plot.empty()) write_file(out.plot, bench::svg(bench::batch_plot(report)));
  return program::success;
}

int run_roofline(bench::RooflineOptions o, const std::string& file, const Output& out) {
  o.threads = with_default_threads(o.threads);
  if (!file.empty()) {
    // Only the file's configuration matters: no weight is read.
    quipu::LoadOptions load;
    load.pack = false;
    load.model = o.model;
    o.model = QUIPU_ENGINE::engine().load(file, load).name();
  }
  const bench::Roofline r = bench::measure_roofline(QUIPU_ENGINE::engine(), o);
  const bench::Table table = bench::roofline_table(r);
  print(out, bench::roofline_notes(r), table, table, bench::roofline_json(r));
  if (!out.plot.empty()) write_file(out.plot, bench::svg(bench::roofline_plot(r)));
  return program::success;
}

struct ProfileOptions {
  std::string file, model, activations = "f32", cache = "f32";
  std::size_t depth = 512, positions = 1, batch = 1, threads = 0, passes = 20;
};

int run_profile(const ProfileOptions& o, const Output& out) {
  program::ProgressBar bar;
  quipu::LoadOptions load;
  load.model = o.model;
  load.threads = o.threads;
  load.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  };
  const quipu::Model model = QUIPU_ENGINE::engine().load(o.file, load);
  const quipu::PassShape shape{o.batch, o.positions, o.depth};
  quipu::Session session(model, {.batch = o.batch,
                                 .capacity = o.depth + o.positions,
                                 .chunk = o.batch * o.positions,  // one pass
                                 .cache = bench::detail::cache_type(o.cache),
                                 .activations = bench::detail::activation_mode(o.activations),
                                 .allow_gaps = true});
  const std::size_t vocabulary = model.architecture().vocab_size;
  const std::vector<quipu::TokenId> tokens = bench::detail::some_tokens(o.positions, vocabulary);
  std::vector<float> logits(o.batch * vocabulary);
  std::vector<quipu::Feed> feeds;
  for (std::size_t row = 0; row < o.batch; ++row) feeds.push_back({row, tokens, o.depth});
  const auto pass = [&] { session.forward(feeds, quipu::LogitsWanted::last, logits); };
  const quipu::Ceilings ceilings = quipu::measure_ceilings(model.probes(), model.executor());
  pass();  // warms up
  quipu::PassTimes times;
  session.set_profile(times.hook());
  for (std::size_t i = 0; i < o.passes; ++i) {
    pass();
    bar("passes", i + 1, o.passes);
  }
  const quipu::Profile profile = quipu::make_profile(session, times, shape, ceilings);
  const bench::Table table = bench::profile_table(profile);
  print(out, bench::profile_notes(profile), table, table, quipu::to_json(profile));
  if (!out.file.empty()) write_file(out.file, quipu::to_json(profile).dump(1) + "\n");
  return program::success;
}

struct AccuracyOptions {
  std::string file, text_file, model;
  std::size_t context = 512, threads = 0;
};

int run_accuracy(const AccuracyOptions& o, const Output& out) {
  const std::string text = program::read_text(o.text_file);
  quipu::LoadOptions load;
  load.model = o.model;
  load.threads = o.threads;
  const quipu::Model model = QUIPU_ENGINE::engine().load(o.file, load);
  const quipu::Tokenizer& tokenizer = model.tokenizer();
  const std::vector<quipu::TokenId> tokens = tokenizer.encode(text, tokenizer.prompt_options());
  if (tokens.empty()) quipu::raise<quipu::ArgumentError>(o.text_file + ": has no tokens");
  const auto variants = bench::measure_accuracy(model, tokens, o.context);
  std::string types;
  for (quipu::ElementType type : model.weights().types)
    types += " " + std::string(quipu::name(type));
  const bench::Table table = bench::accuracy_table(variants);
  print(out,
        fmt::format("{} ({} ), {} tokens in windows of {}\n", model.name(), types, tokens.size(),
                    (std::min)(o.context, tokens.size())),
        table, table, bench::accuracy_json(variants));
  return program::success;
}

template <class T>
CLI::Option* list(CLI::App& app, const std::string& names, std::vector<T>& values,
                  const std::string& what) {
  return app.add_option(names, values, what)->delimiter(',')->capture_default_str();
}

void add_output(CLI::App& app, Output& out) {
  app.add_option("-o,--format", out.format, "md, csv or json, on stdout")
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = QUIPU_PROGRAM_NAME;
  CLI::App app{
      "Measures a model: prompts and decoding in tokens a second, beside the machine's limits.",
      name};
  app.footer(
      "Examples:\n  " + name +
      " -m model.gguf -p 512 -n 128 -d 0,4096 -t 1,2 --activations f32,int8\n  " + name +
      " -m model.gguf --against llama.cpp\n  " + name +
      " -m model.gguf -p 0 -n 32 -b 1,2,4,8,16,32 --plot batch.svg\n  " + name +
      " roofline --model llama3_1_8b --plot roofline.svg\n  " + name +
      " profile -m model.gguf --depth 512 --out profile.json\n  " + name +
      " accuracy -m model.gguf -f text.txt\n"
      "pp512 is a prompt of 512 tokens at once, tg128 are 128 tokens one by one, @ d4096 says "
      "that 4096\npositions stand before them, b4 that four sequences run together.\n"
      "Exit codes: 0 done, 1 a file or model is not usable, 2 the command line is not.");
  Output out;
  bench::SpeedOptions speed;
  const auto formats = CLI::IsMember({"f32", "int8"});
  const auto caches = CLI::IsMember({"f32", "bf16"});
  auto* file = app.add_option("-m,--model,--model-file", speed.file, "Checkpoint to measure")
                   ->type_name("FILE");
  list(app, "-p,--prompt", speed.prompts, "Tokens of a prompt computed at once; 0: none")
      ->check(program::token_count(0));
  list(app, "-n,--predict", speed.predicts, "Tokens decoded one by one; 0: none")
      ->check(program::token_count(0));
  list(app, "-d,--depth", speed.depths, "Positions before them")->check(program::token_count(0));
  list(app, "-t,--threads", speed.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  list(app, "-b,--batch", speed.batches, "Sequences decoded together")
      ->check(program::token_count(1));
  list(app, "--activations", speed.activations, "Input of products with block-quantised weights")
      ->check(formats);
  list(app, "--cache", speed.caches, "Element types of the KV cache")->check(caches);
  app.add_option("-r,--repetitions", speed.repetitions, "Runs of each test; the median counts")
      ->check(program::repetition_count())
      ->capture_default_str();
  app.add_option("--chunk", speed.chunk, "Prompt tokens computed in one pass")
      ->check(program::token_count(1))
      ->capture_default_str();
  app.add_option("--as", speed.model, "Name of the compiled-in model [by the file]");
  app.add_flag("--in-place", speed.in_place, "Use the weights in the mapped file, unpacked");
  app.add_option("--against", speed.against,
                 "llama.cpp: runs llama-cpp-python on the same file, in turns")
      ->check(CLI::IsMember({"llama.cpp"}));
  app.add_option("--python", speed.python, "The interpreter that has that package")
      ->capture_default_str();
  app.add_option("--plot", out.plot, "Writes tokens a second over -b as SVG")->type_name("FILE");
  add_output(app, out);

  bench::RooflineOptions roofline;
  std::string roofline_file;
  auto* roofline_app =
      app.add_subcommand("roofline", "The machine's limits and the matrix products");
  auto* roofline_model = roofline_app->add_option("--model", roofline.model,
                                                  "Compiled-in model whose shapes are taken");
  roofline_app->add_option("-m,--model-file", roofline_file, "Checkpoint whose model is taken")
      ->type_name("FILE")
      ->excludes(roofline_model);
  list(*roofline_app, "--matrices", roofline.matrices, "Of wq, wk, wo, w1, w2, output");
  list(*roofline_app, "--types", roofline.types, "Element types of the weights");
  list(*roofline_app, "--activations", roofline.activations, "f32, int8")->check(formats);
  list(*roofline_app, "--rows", roofline.rows, "Rows of activations (tokens)")
      ->check(program::token_count(1));
  list(*roofline_app, "-t,--threads", roofline.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  roofline_app
      ->add_option("-r,--repetitions", roofline.repetitions,
                   "Runs of each product; the median counts")
      ->check(program::repetition_count())
      ->capture_default_str();
  roofline_app->add_option("--plot", out.plot, "Writes the roofline as SVG")->type_name("FILE");
  add_output(*roofline_app, out);

  ProfileOptions profile;
  auto* profile_app = app.add_subcommand("profile", "Where the time of a pass goes");
  profile_app->add_option("-m,--model,--model-file", profile.file, "Checkpoint")
      ->required()
      ->type_name("FILE");
  profile_app->add_option("-d,--depth", profile.depth, "Positions before the pass")
      ->check(program::token_count(0))
      ->capture_default_str();
  profile_app
      ->add_option("-p,--positions", profile.positions,
                   "Tokens of a pass: 1 is decoding, 512 a chunk of a prompt")
      ->check(program::token_count(1))
      ->capture_default_str();
  profile_app->add_option("-b,--batch", profile.batch, "Sequences")
      ->check(program::token_count(1))
      ->capture_default_str();
  profile_app
      ->add_option("-t,--threads", profile.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  profile_app->add_option("-r,--passes", profile.passes, "Passes; the medians count")
      ->check(program::repetition_count())
      ->capture_default_str();
  profile_app->add_option("--activations", profile.activations)
      ->check(formats)
      ->capture_default_str();
  profile_app->add_option("--cache", profile.cache)->check(caches)->capture_default_str();
  profile_app->add_option("--as", profile.model, "Name of the compiled-in model [by the file]");
  profile_app->add_option("--out", out.file, "Writes the profile of every component as JSON")
      ->type_name("FILE");
  add_output(*profile_app, out);

  AccuracyOptions accuracy;
  auto* accuracy_app =
      app.add_subcommand("accuracy", "What faster number formats cost, against float32");
  accuracy_app->add_option("-m,--model,--model-file", accuracy.file, "Checkpoint")
      ->required()
      ->type_name("FILE");
  accuracy_app->add_option("-f,--file", accuracy.text_file, "Text")->required()->type_name("FILE");
  accuracy_app->add_option("-c,--ctx-size", accuracy.context, "Tokens of a window")
      ->check(program::token_count(1))
      ->capture_default_str();
  accuracy_app
      ->add_option("-t,--threads", accuracy.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  accuracy_app->add_option("--as", accuracy.model, "Name of the compiled-in model [by the file]");
  add_output(*accuracy_app, out);

  app.require_subcommand(0, 1);
  const auto complete = [&] {
    if (app.get_subcommands().empty() && file->count() == 0)
      throw CLI::RequiredError("--model-file");
    if (*roofline_app && roofline.model.empty() && roofline_file.empty())
      throw CLI::RequiredError("--model or --model-file");
  };
  if (const auto code = program::parse(app, argc, argv, complete)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] {
    if (*roofline_app) return run_roofline(roofline, roofline_file, out);
    if (*profile_app) return run_profile(profile, out);
    if (*accuracy_app) return run_accuracy(accuracy, out);
    return run_speed(speed, out);
  });
}
