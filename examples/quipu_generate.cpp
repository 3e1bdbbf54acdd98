// quipu-generate: text from a checkpoint. Tokens go to stdout as they come, everything else to
// stderr.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "program.hpp"
#include "quipu/generate/generator.hpp"
#include "quipu/text/chat.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Arguments {
  std::string file, prompt, prompt_file, model, system, cache = "f32", activations = "f32",
                                                        mode = "f32";
  std::optional<std::size_t> max_tokens = 256, context;
  std::size_t threads = 0, chunk = 512;
  std::optional<std::uint64_t> seed;
  quipu::SamplingSettings sampling{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 0};
  std::vector<quipu::TokenId> stop_ids;
  bool chat = false, json = false, in_place = false, ignore_stop = false, reference_rope = false,
       special = false;
};

std::string read_all(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream in(path, std::ios::binary);
    if (!in) quipu::raise<quipu::FileError>(path + ": cannot be opened: " + std::strerror(errno));
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  return text;
}

std::vector<quipu::TokenId> prompt_tokens(const Arguments& a, const quipu::Tokenizer& tokenizer) {
  const std::string text = a.prompt_file.empty() ? a.prompt : read_all(a.prompt_file);
  if (!a.chat) {
    quipu::EncodeOptions options = tokenizer.prompt_options();
    if (a.special) options.allowed_special = quipu::SpecialSet::all();
    return tokenizer.encode(text, options);
  }
  std::vector<quipu::ChatMessage> dialog;
  if (!a.system.empty()) dialog.push_back({.role = quipu::ChatRole::system, .content = {a.system}});
  dialog.push_back({.role = quipu::ChatRole::user, .content = {text}});
  return quipu::ChatFormat::from_template(tokenizer.chat_template(), a.file)
      .encode(tokenizer, dialog);
}

// The generator that Ctrl-C ends; a second Ctrl-C ends the process.
std::atomic<quipu::Generator*> interrupted{nullptr};
void on_interrupt(int) {
  if (quipu::Generator* g = interrupted.exchange(nullptr)) {
    g->cancel();
  } else {
    std::_Exit(130);
  }
}

int generate(const Arguments& a) {
  using program::Clock;
  quipu::validate(a.sampling);
  const auto load_start = Clock::now();
  program::ProgressBar bar;
  quipu::LoadOptions load;
  load.model = a.model;
  load.threads = a.threads;
  load.pack = !a.in_place;
  load.reference_rope = a.reference_rope;
  load.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  };
  const quipu::Model model = QUIPU_ENGINE::engine().load(a.file, load);
  const quipu::Tokenizer& tokenizer = model.tokenizer();
  const std::vector<quipu::TokenId> prompt = prompt_tokens(a, tokenizer);
  if (prompt.empty())
    quipu::raise<quipu::ArgumentError>("the prompt is empty: give -p TEXT or -f FILE");

  quipu::SessionOptions options;
  options.capacity =
      a.context.value_or((std::min<std::size_t>)(4096, model.context_length().value_or(4096)));
  options.chunk = (std::min)(a.chunk, options.capacity);
  options.cache = a.cache == "bf16" ? quipu::ElementType::bf16 : quipu::ElementType::f32;
  options.activations =
      a.activations == "int8" ? quipu::ActivationMode::int8 : quipu::ActivationMode::f32;
  options.mode = a.mode == "bf16" ? quipu::NumericMode::bf16 : quipu::NumericMode::f32;
  quipu::GenerationSettings settings{a.sampling, a.max_tokens, a.stop_ids};
  settings.sampling.seed = a.seed ? *a.seed : std::random_device{}();
  if (!a.ignore_stop) {
    settings.stop_ids.insert(settings.stop_ids.end(), tokenizer.stop_ids().begin(),
                             tokenizer.stop_ids().end());
  }
  if (prompt.size() > options.capacity) {
    quipu::raise<quipu::ArgumentError>(
        fmt::format("the prompt has {} tokens, the context {} positions (-c)", prompt.size(),
                    options.capacity));
  }
  const std::size_t cache_bytes =
      quipu::Session::cache_shape(model.architecture(), options).bytes();
  std::string types;
  for (quipu::ElementType type : model.weights().types) {
    types += (types.empty() ? "" : " ") + std::string(quipu::name(type));
  }
  fmt::print(stderr, "model    {} ({} parameters), {}\n", model.name(),
             program::grouped(model.parameters()), a.file);
  fmt::print(stderr, "weights  {} ({}){}\n", program::bytes_text(model.weights().weight_bytes),
             types, a.in_place ? ", in place" : "");
  fmt::print(stderr, "running  {}, {} threads, activations {}, mode {}\n", model.target(),
             model.executor().concurrency(), a.activations, a.mode);
  fmt::print(stderr, "context  {} positions, KV cache {} ({})\n", options.capacity,
             program::bytes_text(cache_bytes), a.cache);
  fmt::print(stderr, "seed     {}\n\n", settings.sampling.seed);
  quipu::Session session(model, options);
  const double load_seconds = program::seconds_since(load_start);

  quipu::Generator generator(session, settings);
  interrupted = &generator;
  std::signal(SIGINT, on_interrupt);
  const auto prompt_start = Clock::now();
  generator.feed(prompt, [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  });
  const double prompt_seconds = program::seconds_since(prompt_start);

  const auto start = Clock::now();
  quipu::Utf8Stream stream;
  std::string text;
  std::vector<quipu::TokenId> ids;
  const auto show = [&](std::string_view part) {
    text += part;
    if (a.json) return;
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  while (const auto token = generator.next()) {
    ids.push_back(*token);
    if (!tokenizer.is_control(*token) || a.special) show(stream.push(tokenizer.piece(*token)));
  }
  show(stream.flush());
  const double seconds = program::seconds_since(start);
  interrupted = nullptr;

  const auto rate = [](std::size_t n, double s) {
    return s > 0 ? static_cast<double>(n) / s : 0.0;
  };
  // The first token is chosen from the prompt's logits: one pass fewer than tokens.
  const std::size_t passes = ids.empty() ? 0 : ids.size() - 1;
  if (a.json) {
    const nlohmann::ordered_json out = {
        {"model", model.name()},
        {"file", a.file},
        {"parameters", model.parameters()},
        {"target", model.target()},
        {"threads", model.executor().concurrency()},
        {"context", options.capacity},
        {"kv_cache_bytes", session.cache_bytes()},
        {"scratch_bytes", session.scratch_bytes()},
        {"weight_bytes", model.weights().weight_bytes},
        {"seed", settings.sampling.seed},
        {"prompt_ids", prompt},
        {"ids", ids},
        {"text", text},
        {"finish_reason", quipu::name(generator.finish_reason())},
        {"load_seconds", load_seconds},
        {"prompt_seconds", prompt_seconds},
        {"prompt_tokens_per_second", rate(prompt.size(), prompt_seconds)},
        {"generate_seconds", seconds},
        {"generate_tokens_per_second", rate(passes, seconds)}};
    std::cout << out.dump(2) << '\n';
  } else {
    std::fputc('\n', stdout);
  }
  fmt::print(stderr, "\nload     {:.2f} s\nprompt   {} tokens, {:.2f} s, {:.1f} tokens/s\n",
             load_seconds, prompt.size(), prompt_seconds, rate(prompt.size(), prompt_seconds));
  fmt::print(stderr, "generate {} tokens, {:.2f} s, {:.1f} tokens/s ({})\n", ids.size(), seconds,
             rate(passes, seconds), quipu::name(generator.finish_reason()));
  return program::success;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  CLI::App app{"Generates text with a checkpoint (GGUF, safetensors or Meta's .pth).",
               QUIPU_PROGRAM_NAME};
  app.footer(
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " -m model.gguf -p \"Once upon a time\" -n 64\n"
      "  " QUIPU_PROGRAM_NAME
      " -m model.gguf --chat -p \"What is a quipu?\" --temp 0\n"
      "  " QUIPU_PROGRAM_NAME
      " -m model.gguf -f prompt.txt -c 2048 -s 42 --json\n"
      "Exit codes: 0 done, 1 a file or model is not usable, 2 the command line is not.");
  app.add_option("-m,--model-file", a.file,
                 "Checkpoint: a .gguf, .safetensors or .pth file, or a directory")
      ->required()
      ->type_name("FILE");
  app.add_option("-p,--prompt", a.prompt, "Prompt");
  app.add_option("-f,--file", a.prompt_file, "Read the prompt from a file; - is standard input");
  app.add_option("-n,--predict", a.max_tokens, "Most tokens to generate")->capture_default_str();
  app.add_option("-c,--ctx-size", a.context,
                 "Positions of the context [4096, or the model's if less]");
  app.add_option("-t,--threads", a.threads, "Threads [as many as the process may use]");
  app.add_option("-b,--batch-size", a.chunk, "Prompt tokens computed in one pass")
      ->capture_default_str();
  app.add_option("-s,--seed", a.seed, "Seed of the sampling [random, printed]");
  app.add_option("--temp", a.sampling.temperature, "Temperature; 0 is greedy")
      ->capture_default_str();
  app.add_option("--top-k", a.sampling.top_k, "Only the k likeliest tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", a.sampling.top_p, "Only the nucleus of this probability; 1: all")
      ->capture_default_str();
  app.add_flag("--chat", a.chat, "The prompt is a user's message, in the chat format of the file");
  app.add_option("--system", a.system, "With --chat: the system message");
  app.add_option("--stop-id", a.stop_ids, "More token ids that end the generation");
  app.add_flag("--ignore-eos", a.ignore_stop, "Do not end at the model's own stop tokens");
  app.add_flag("--special", a.special,
               "Special tokens in the prompt become ids, generated ones are shown");
  app.add_option("--model", a.model,
                 "Name of the compiled-in model [chosen by the file's configuration]");
  app.add_option("--cache", a.cache, "Element type of the KV cache")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--activations", a.activations, "Input of products with block-quantised weights")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--mode", a.mode, "Numeric mode; bf16 rounds where Meta's bf16 run does")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_flag("--in-place", a.in_place,
               "Use the weights in the mapped file instead of packing them");
  app.add_flag("--reference-rope", a.reference_rope,
               "Scale rotary frequencies by 8 as the pinned reference does for every model");
  app.add_flag("--json", a.json, "One JSON object on stdout instead of the text");
  app.set_version_flag("--version", std::string("quipu 0.1.0"));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? program::success : program::usage;
  }
  return program::run(QUIPU_PROGRAM_NAME, [&] { return generate(a); });
}
