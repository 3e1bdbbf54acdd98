// quipu-convert: writes a checkpoint in another layout or with other element types, or one with
// made-up weights.
#include <CLI/CLI.hpp>

#include "program.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/convert.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/runtime/thread_pool.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Arguments {
  std::vector<std::string> paths;
  std::string to, type, output_type, model, generate;
  std::size_t threads = 0, parts = 1;
  std::uint64_t seed = 1;
  bool pack = false, force = false;
};

const quipu::ModelEntry& entry_named(const std::string& wanted) {
  std::string known;
  for (const quipu::ModelEntry& entry : QUIPU_ENGINE::engine().models()) {
    if (entry.name == wanted) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  quipu::raise<quipu::ArgumentError>("--generate: model '" + wanted +
                                     "' is not compiled in; there are: " + known);
}

quipu::WriteLayout layout(const Arguments& a, const std::string& out) {
  if (a.pack && !a.to.empty()) {
    quipu::raise<quipu::ArgumentError>("--pack writes a file of its own kind: not with --to");
  }
  const std::string to = !a.to.empty() ? a.to : out.ends_with(".gguf") ? "gguf" : "hf";
  return a.pack         ? quipu::WriteLayout::packed
         : to == "gguf" ? quipu::WriteLayout::gguf
         : to == "hf"   ? quipu::WriteLayout::hugging_face
                        : quipu::WriteLayout::meta;
}

int convert(const Arguments& a) {
  const bool generated = !a.generate.empty();
  if (a.paths.size() != (generated ? 1 : 2)) {
    quipu::raise<quipu::ArgumentError>(generated ? "--generate takes one path, of what to write"
                                                 : "expected two paths: FROM and TO");
  }
  const std::string& out = a.paths.back();
  quipu::ConvertOptions options;
  options.layout = layout(a, out);
  options.type = quipu::element_type_named(a.type);
  options.output_type = quipu::element_type_named(a.output_type);
  options.parts = a.parts;
  options.overwrite = a.force;
  program::ProgressBar bar;
  options.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    program::check_signals();
    bar(what, done, total);
  };
  program::stop_on_signals();
  const auto start = program::Clock::now();
  quipu::ThreadPool pool(a.threads);
  quipu::ConvertReport report;
  if (generated) {
    const quipu::ModelEntry& entry = entry_named(a.generate);
    program::say("model    {} ({} parameters), weights made up with seed {}\n", entry.name,
                 program::grouped(entry.parameters), a.seed);
    report = quipu::generate_checkpoint(entry, a.seed, out, options, quipu::ExecutorRef(pool));
  } else {
    const quipu::Checkpoint file = quipu::open_checkpoint(a.paths[0]);
    const quipu::ModelEntry& entry =
        quipu::choose_model(QUIPU_ENGINE::engine().models(), file.facts, a.paths[0], a.model);
    program::say("model    {} ({} parameters), {}, {} names\n", entry.name,
                 program::grouped(entry.parameters), quipu::name(file.format),
                 quipu::name(file.naming));
    report = quipu::convert(file, entry, out, options, quipu::ExecutorRef(pool));
  }
  for (const std::string& note : report.notes)
    program::say("note     {}\n", quipu::printable(note));
  const double seconds = program::seconds_since(start);
  program::say(
      "written  {} tensors, {}, {}, {:.1f} s ({}/s): {}\n", report.tensors,
      program::bytes_text(report.bytes),
      generated      ? "generated"
      : report.exact ? "every value kept"
                     : "values rounded to the new type",
      seconds,
      program::bytes_text(static_cast<std::size_t>(static_cast<double>(report.bytes) / seconds)),
      out);
  return program::success;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  CLI::App app{
      "Writes a checkpoint in another layout or with other element types, or made-up weights.",
      QUIPU_PROGRAM_NAME};
  app.footer(
      "Reads GGUF, safetensors (Hugging Face's or Meta's names) and Meta's .pth, one file or "
      "shards,\n"
      "which are merged. Writes a few megabytes at a time; the result takes its name when it is\n"
      "whole. Norms stay f32 in GGUF. The tokenizer goes along: from GGUF (byte-level BPE or\n"
      "SentencePiece) to GGUF, from Hugging Face's tokenizer.json (byte-level BPE) or Llama 3's\n"
      "tokenizer.model beside the weights into GGUF, and as files from folder to folder; out of\n"
      "GGUF into a folder the weights go without one.\n"
      "--pack writes the matrices in the layout of the kernels, as a file that only quipu reads "
      "and\n"
      "that loads by being mapped. --generate makes up the weights of a model, to measure with.\n"
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " Llama3.1-8B llama.gguf --type q8_0\n"
      "  " QUIPU_PROGRAM_NAME
      " Llama3.1-8B llama-hf --to hf\n"
      "  " QUIPU_PROGRAM_NAME
      " model.gguf model-hf --type bf16\n"
      "  " QUIPU_PROGRAM_NAME
      " model.gguf Model-8way --to meta --parts 8 --type bf16\n"
      "  " QUIPU_PROGRAM_NAME
      " --pack model.gguf model.quipu\n"
      "  " QUIPU_PROGRAM_NAME
      " --generate llama3_1_8b --type q8_0 8b.gguf\n"
      "Exit codes: 0 done, 1 a file or model is not usable, 2 the command line is not.");
  app.add_option(
         "paths", a.paths,
         "FROM: a .gguf, .safetensors or .pth file, a packed file, or a directory (not with "
         "--generate). TO: the file or new folder to write")
      ->required()
      ->expected(1, 2)
      ->type_name("[FROM] TO");
  app.add_option("--to", a.to,
                 "gguf; hf: a folder in Hugging Face's layout; meta: a folder in Meta's, with "
                 "params.json and consolidated.NN.pth [gguf if TO ends so, else hf]")
      ->check(CLI::IsMember({"gguf", "hf", "meta"}));
  std::vector<std::string> types;
  for (std::size_t i = 0; i < quipu::element_type_count; ++i) {
    types.emplace_back(quipu::name(static_cast<quipu::ElementType>(i)));
  }
  app.add_option("--type", a.type, "Element type of the matrices [as they are stored]")
      ->check(CLI::IsMember(types));
  app.add_option("--output-type", a.output_type,
                 "Another one for the output matrix (or the embedding that serves as it), for "
                 "which q6_k or q8_0 is usual [--type]")
      ->check(CLI::IsMember(types));
  app.add_option("-t,--threads", a.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  auto* as = app.add_option("--as", a.model,
                            "Name of the compiled-in model [chosen by the file's configuration]");
  app.add_option("--parts", a.parts,
                 "Model-parallel parts that --to meta cuts the weights into [1]")
      ->check(program::rank_count());
  app.add_flag("--pack", a.pack, "Write a packed file: the kernels' layout, loaded by mapping it");
  auto* generate =
      app.add_option("--generate", a.generate,
                     "Make up the weights of this compiled-in model, of the type --type [bf16]")
          ->excludes(as)
          ->type_name("MODEL");
  app.add_option("--seed", a.seed, "Seed of --generate [1]")
      ->needs(generate)
      ->check(program::integer(0, (std::numeric_limits<std::uint64_t>::max)()));
  app.add_flag("--force", a.force, "Replace an existing file");
  if (const auto code = program::parse(app, argc, argv)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] { return convert(a); });
}
