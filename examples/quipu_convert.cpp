// quipu-convert: writes a checkpoint in another layout or with other element types.
#include <CLI/CLI.hpp>

#include "program.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/convert.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/runtime/thread_pool.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Arguments {
  std::string file, out, to, type, output_type, model;
  std::size_t threads = 0;
  bool force = false;
};

int convert(const Arguments& a) {
  quipu::ConvertOptions options;
  const std::string to = !a.to.empty() ? a.to : a.out.ends_with(".gguf") ? "gguf" : "hf";
  options.layout = to == "gguf" ? quipu::WriteLayout::gguf
                   : to == "hf" ? quipu::WriteLayout::hugging_face
                                : quipu::WriteLayout::meta;
  options.type = quipu::element_type_named(a.type);
  options.output_type = quipu::element_type_named(a.output_type);
  options.overwrite = a.force;
  program::ProgressBar bar;
  options.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  };
  const auto start = program::Clock::now();
  const quipu::Checkpoint file = quipu::open_checkpoint(a.file);
  const quipu::ModelEntry& entry =
      quipu::choose_model(QUIPU_ENGINE::engine().models(), file.facts, a.file, a.model);
  program::say("model    {} ({} parameters), {}, {} names\n", entry.name,
               program::grouped(entry.parameters), quipu::name(file.format),
               quipu::name(file.naming));
  quipu::ThreadPool pool(a.threads);
  const quipu::ConvertReport report =
      quipu::convert(file, entry, a.out, options, quipu::ExecutorRef(pool));
  for (const std::string& note : report.notes) program::say("note     {}\n", note);
  program::say("written  {} tensors, {}, {}, {:.1f} s: {}\n", report.tensors,
               program::bytes_text(report.bytes),
               report.exact ? "every value kept" : "values rounded to the new type",
               program::seconds_since(start), a.out);
  return program::success;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  CLI::App app{"Writes a checkpoint in another layout or with other element types.",
               QUIPU_PROGRAM_NAME};
  app.footer(
      "Reads GGUF, safetensors (Hugging Face's or Meta's names) and Meta's .pth, one file or "
      "shards,\n"
      "which are merged. Writes a few megabytes at a time; the result takes its name when it is\n"
      "whole. Norms stay f32 in GGUF. The tokenizer goes along from GGUF to GGUF, from Llama 3's\n"
      "tokenizer.model into GGUF, and as files from folder to folder.\n"
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " Llama3.1-8B llama.gguf --type q8_0\n"
      "  " QUIPU_PROGRAM_NAME
      " Llama3.1-8B llama-hf --to hf\n"
      "  " QUIPU_PROGRAM_NAME
      " model.gguf model-hf --type bf16\n"
      "Exit codes: 0 done, 1 a file or model is not usable, 2 the command line is not.");
  app.add_option("file", a.file, "Checkpoint: a .gguf, .safetensors or .pth file, or a directory")
      ->required()
      ->type_name("FILE");
  app.add_option("out", a.out, "What to write: a .gguf file or a new folder")
      ->required()
      ->type_name("OUT");
  app.add_option("--to", a.to,
                 "gguf; hf: a folder in Hugging Face's layout; meta: safetensors with Meta's names "
                 "and params.json [gguf if OUT ends so, else hf]")
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
  app.add_option("-t,--threads", a.threads, "Threads [as many as the process may use]");
  app.add_option("--model", a.model,
                 "Name of the compiled-in model [chosen by the file's configuration]");
  app.add_flag("--force", a.force, "Replace an existing file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? program::success : program::usage;
  }
  return program::run(QUIPU_PROGRAM_NAME, [&] { return convert(a); });
}
