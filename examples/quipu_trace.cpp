// quipu-trace: runs a checkpoint on given tokens and writes the tensors of the forward pass to a
// safetensors file, or says what they are like.
#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/trace_writer.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Arguments {
  std::string file, out, phases, prompt, model, mode = "f32", cache, activations = "f32";
  std::vector<std::string> tokens, select;
  std::optional<std::size_t> start_pos;
  std::size_t chunk = 512, threads = 0, ranks = 1;
  bool stats = false, force = false, in_place = false, reference_rope = false;
};

// "1,2,3;4,5,6": sequences of token ids.
std::vector<std::vector<quipu::TokenId>> parse_tokens(const std::vector<std::string>& arguments) {
  std::vector<std::vector<quipu::TokenId>> rows;
  for (const std::string& argument : arguments) {
    rows.emplace_back();
    const char* at = argument.data();
    const char* const end = at + argument.size();
    while (true) {
      while (at != end && *at == ' ') ++at;
      quipu::TokenId id = 0;
      const auto [next, error] = std::from_chars(at, end, id);
      if (error != std::errc{} || (next != end && *next != ',' && *next != ';')) {
        quipu::raise<quipu::ArgumentError>(
            "--tokens: expected ids like 1,2,3 (sequences separated by ;), found \"" + argument +
            "\"");
      }
      rows.back().push_back(id);
      if (next == end) break;
      if (*next == ';') rows.emplace_back();
      at = next + 1;
    }
  }
  return rows;
}

// An integer of a phases file. FormatError, naming it, if it is none or out of [least, most].
std::int64_t integer(const nlohmann::json& value, const std::string& what, std::int64_t least,
                     std::int64_t most) {
  const bool wraps =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{(std::numeric_limits<std::int64_t>::max)()};
  const std::int64_t number =
      value.is_number_integer() && !wraps ? value.get<std::int64_t>() : least;
  if (!value.is_number_integer() || wraps || number < least || number > most) {
    quipu::raise<quipu::FormatError>(what + ": expected an integer from " + std::to_string(least) +
                                     " to " + std::to_string(most) + ", found " + value.dump());
  }
  return number;
}

std::vector<quipu::TracePhase> read_phases(const std::string& path) {
  const std::string text = program::read_text(path);
  std::vector<quipu::TracePhase> phases;
  try {
    for (const auto& entry : nlohmann::json::parse(text)) {
      quipu::TracePhase phase;
      phase.name = entry.at("name");
      const std::string what = path + ": phase \"" + phase.name + "\": ";
      for (const auto& row : entry.at("tokens").get_ref<const nlohmann::json::array_t&>()) {
        phase.rows.emplace_back();
        for (const auto& id : row.get_ref<const nlohmann::json::array_t&>()) {
          phase.rows.back().push_back(static_cast<quipu::TokenId>(
              integer(id, what + "tokens", 0, (std::numeric_limits<quipu::TokenId>::max)())));
        }
      }
      if (entry.contains("start_pos")) {
        phase.start = static_cast<std::size_t>(integer(entry.at("start_pos"), what + "start_pos", 0,
                                                       (std::numeric_limits<std::int64_t>::max)()));
      }
      phases.push_back(std::move(phase));
    }
  } catch (const nlohmann::json::exception& error) {
    quipu::raise<quipu::FormatError>(
        path +
        ": expected [{\"name\": \"prefill\", \"tokens\": [[1,2,3]], \"start_pos\": 0}, ...]: " +
        error.what());
  }
  if (phases.empty()) quipu::raise<quipu::FormatError>(path + ": there are no phases");
  return phases;
}

void print_statistics(const quipu::TraceRecorder& recorder) {
  // A name begins with that of its phase, which is of a file.
  const auto shown = [](const auto& s) { return quipu::printable(s.name); };
  std::size_t width = 6;
  for (const auto& s : recorder.statistics()) width = (std::max)(width, shown(s).size());
  fmt::print("{:{}}  {:>4}  {:>10}  {:>13}  {:>13}  {:>13}  {}\n", "tensor", width, "type",
             "elements", "min", "max", "mean", "finite");
  for (const auto& s : recorder.statistics()) {
    fmt::print(
        "{:{}}  {:>4}  {:>10}  {:>13.6g}  {:>13.6g}  {:>13.6g}  {}\n", shown(s), width,
        quipu::name(s.element), s.elements, s.least, s.largest, s.mean(),
        s.finite() == s.elements ? "all" : fmt::format("{} NaN, {} infinite", s.nan, s.infinite));
  }
}

int trace(const Arguments& a) {
  const bool bf16 = a.mode == "bf16";
  const int sources = int{!a.tokens.empty()} + int{!a.phases.empty()} + int{!a.prompt.empty()};
  if (sources != 1) {
    quipu::raise<quipu::ArgumentError>("give one of --tokens, --prompt and --phases");
  }
  if (a.start_pos && !a.phases.empty()) {
    quipu::raise<quipu::ArgumentError>(
        "--start-pos with --phases: each phase of the file has its own \"start_pos\"");
  }
  if (a.out.empty() && !a.stats) {
    quipu::raise<quipu::ArgumentError>("give --out FILE.safetensors, or --stats, or both");
  }
  if (!a.out.empty()) {
    program::protect_checkpoint("--out", a.out, a.file);
    program::refuse_existing("--out", a.out, a.force);
  }
  program::ProgressBar bar;
  quipu::LoadOptions load;
  load.model = a.model;
  load.threads = a.threads;
  load.ranks = a.ranks;
  load.pack = !a.in_place;
  load.reference_rope = a.reference_rope;
  load.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  };
  std::vector<quipu::TracePhase> phases;
  if (!a.phases.empty()) {
    phases = read_phases(a.phases);
  } else {
    phases.push_back({"", parse_tokens(a.tokens), a.start_pos});
  }
  const quipu::Engine& engine = QUIPU_ENGINE::engine();
  quipu::Checkpoint file = quipu::open_checkpoint(a.file);
  {  // before the weights are loaded, which may take a while
    quipu::TraceSelection selection(a.select);
    const std::size_t layers =
        quipu::choose_model(engine.models(), file.facts, a.file, a.model).architecture.n_layers;
    for (const std::string& id : quipu::trace_ids(layers)) selection.wants(id);
    selection.check_used();
  }
  const quipu::Model model = engine.load(std::move(file), load);
  if (!a.prompt.empty()) {
    const quipu::Tokenizer& tokenizer = model.tokenizer();
    phases[0].rows = {tokenizer.encode(a.prompt, tokenizer.prompt_options())};
  }
  const std::size_t capacity = quipu::TraceRecorder::check(phases);

  quipu::SessionOptions options;
  options.batch = phases[0].rows.size();
  options.capacity = capacity;
  std::size_t longest = 0;
  for (const auto& phase : phases) longest = (std::max)(longest, phase.positions());
  const std::size_t chunk = (std::min)(a.chunk, longest);
  options.chunk = chunk * options.batch;
  options.mode = bf16 ? quipu::NumericMode::bf16 : quipu::NumericMode::f32;
  const std::string cache = a.cache.empty() ? a.mode : a.cache;
  options.cache = cache == "bf16" ? quipu::ElementType::bf16 : quipu::ElementType::f32;
  options.activations =
      a.activations == "int8" ? quipu::ActivationMode::int8 : quipu::ActivationMode::f32;
  options.allow_gaps = true;
  program::say("model    {} ({} parameters), {}\n", model.name(),
               program::grouped(model.parameters()), a.file);
  program::say("running  {}, {} threads{}, mode {}, cache {}, activations {}\n", model.target(),
               model.threads(), program::ranks_text(model.ranks()), a.mode, cache, a.activations);
  quipu::Session session(model, options);
  quipu::TraceRecorder recorder(quipu::TraceSelection(a.select), !a.out.empty());
  for (const quipu::TracePhase& phase : phases) {
    program::say("phase    {}{} x {} tokens from position {}\n",
                 phase.name.empty() ? "" : quipu::printable(phase.name) + ": ", phase.rows.size(),
                 phase.positions(), phase.start.value_or(0));
    recorder.run(session, phase, chunk);
  }
  if (!a.out.empty()) {
    const quipu::SafetensorsWriter::Metadata metadata = {{"format", "pt"},
                                                         {"model", std::string(model.name())},
                                                         {"checkpoint", a.file},
                                                         {"mode", a.mode},
                                                         {"cache", cache},
                                                         {"activations", a.activations},
                                                         {"ranks", std::to_string(a.ranks)},
                                                         {"target", std::string(model.target())}};
    recorder.write(a.out, metadata,
                   [&](std::size_t done, std::size_t total) { bar("writing", done, total); });
    program::say("written  {} tensors to {}\n", recorder.statistics().size(), a.out);
  }
  if (a.stats) print_statistics(recorder);
  if (const quipu::TensorStatistics* bad = recorder.first_not_finite()) {
    program::say(
        "{}: the first tensor that is not finite is {}: {} NaN and {} infinite of {} elements\n",
        QUIPU_PROGRAM_NAME, bad->name, bad->nan, bad->infinite, bad->elements);
    return program::failure;
  }
  return program::success;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  CLI::App app{"Runs a checkpoint on given tokens and writes the tensors of the forward pass.",
               QUIPU_PROGRAM_NAME};
  app.footer(
      "Ids are those of the atlas and of Meta's modules: tok_embeddings, layers.N.attention_norm,\n"
      "layers.N.attention.{xq,xk,xv,xq_rope,xk_rope,probs,merged,wo}, layers.N.h, "
      "layers.N.ffn_norm,\n"
      "layers.N.feed_forward.{w1,w3,act,w2}, layers.N.out, norm, logits; "
      "layers.N.attention.update\n"
      "and layers.N.feed_forward.update are other names of wo and w2. In a pattern * stands for "
      "any\n"
      "run of characters and ? for one.\n"
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " -m Llama3.1-8B --tokens 1,2,3 --select \"layers.*.out\" --out t.safetensors\n"
      "  " QUIPU_PROGRAM_NAME
      " -m model.gguf -p \"Once upon a time\" --stats\n"
      "  " QUIPU_PROGRAM_NAME
      " -m DIR --phases phases.json --mode bf16 --out t.safetensors\n"
      "phases.json holds [{\"name\": \"prefill\", \"tokens\": [[1,2,3]]}, {\"name\": \"decode\", "
      "\"tokens\": [[4]]}],\n"
      "run one after the other through one cache; names in the file then begin with \"prefill/\".\n"
      "To compare with plain PyTorch (DIR in Hugging Face's layout; quipu-convert makes one):\n"
      "  " QUIPU_PROGRAM_NAME
      " -m DIR --tokens 1,2,3 --out t.safetensors &&\n"
      "  python3 test/reference/pytorch_parity.py --model DIR --compare t.safetensors\n"
      "Exit codes: 0 done, 1 a file or model is not usable or a tensor is not finite, 2 the "
      "command\n"
      "line is not.");
  app.add_option("-m,--model,--model-file", a.file,
                 "Checkpoint: a .gguf, .safetensors or .pth file, or a directory")
      ->required()
      ->type_name("FILE");
  app.add_option("--tokens", a.tokens,
                 "Token ids 1,2,3; more sequences after ; or by giving the option again")
      ->allow_extra_args(false);
  app.add_option("-p,--prompt", a.prompt, "Text to encode instead, with the file's tokenizer");
  app.add_option("--phases", a.phases, "JSON file of several runs through one cache (see below)")
      ->type_name("FILE");
  app.add_option("--start-pos", a.start_pos,
                 "Position of the first token; the cache before it holds zeros [0]")
      ->check(program::token_count(0));
  app.add_option("--chunk", a.chunk, "Positions of a sequence computed in one pass (same results)")
      ->check(program::token_count(1))
      ->capture_default_str();
  app.add_option("--select", a.select, "Ids or patterns of the tensors wanted [all]")
      ->delimiter(',');
  app.add_option("-o,--out", a.out, "File to write")->type_name("FILE.safetensors");
  app.add_flag("--force", a.force, "Replace an existing file (never one of the checkpoint)");
  app.add_flag("--stats", a.stats, "Least, largest, mean and finiteness of each tensor on stdout");
  app.add_option(
         "--mode", a.mode,
         "Numeric mode; bf16 rounds activations where Meta's bf16 run does (weights stay as "
         "stored)")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--cache", a.cache, "Element type of the KV cache [that of the mode]")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--activations", a.activations, "Input of products with block-quantised weights")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("-t,--threads", a.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  app.add_option(
         "--ranks", a.ranks,
         "Model-parallel ranks, which share the threads (of those compiled in); tensors are "
         "whole")
      ->check(program::rank_count())
      ->capture_default_str();
  app.add_option("--as", a.model,
                 "Name of the compiled-in model [chosen by the file's configuration]");
  app.add_flag("--in-place", a.in_place,
               "Use the weights in the mapped file instead of packing them");
  app.add_flag("--reference-rope", a.reference_rope,
               "Scale rotary frequencies by 8 as the pinned reference does for every model");
  if (const auto code = program::parse(app, argc, argv)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] { return trace(a); });
}
