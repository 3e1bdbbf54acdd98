// quipu-generate: text from a checkpoint. Tokens go to stdout as they come, everything else to
// stderr.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "program.hpp"
#include "quipu/checkpoint/atomic_file.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/profile.hpp"
#include "quipu/generate/generator.hpp"
#include "quipu/generate/stop_text.hpp"
#include "quipu/text/chat.hpp"
#include QUIPU_ENGINE_HEADER

namespace {

struct Arguments {
  std::string file, prompt, prompt_file, model, system, profile, save, resume,
      cache = "f32", activations = "f32", mode = "f32";
  std::int64_t max_tokens = 256;  // -1: no limit
  std::optional<std::size_t> context;
  std::size_t threads = 0, ranks = 1, chunk = 512;
  std::string seed = "-1";  // of any 64 bits, or -1: random
  quipu::SamplingSettings sampling{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 0};
  std::vector<quipu::TokenId> stop_ids;
  std::vector<std::string> stop_strings;
  bool chat = false, log_probabilities = false, json = false, in_place = false, ignore_stop = false,
       reference_rope = false, special = false;
  std::function<bool(const char*)> given;  // whether an option stands on the command line
};

/// -p, or the file of -f, or standard input if it is no terminal; what is resumed needs none.
/// ArgumentError if that is empty.
std::string prompt_text(const Arguments& a) {
  std::string text = a.prompt;
  if (!a.prompt_file.empty()) {
    text = program::read_text(a.prompt_file);
  } else if (a.prompt.empty() && a.resume.empty() && isatty(0) == 0) {
    text = program::read_text("-");
  }
  if (text.empty() && a.resume.empty()) {
    quipu::raise<quipu::ArgumentError>(
        "the prompt is empty: give -p TEXT, -f FILE or text on standard input");
  }
  return text;
}

std::vector<quipu::TokenId> prompt_tokens(const Arguments& a, const std::string& text,
                                          const quipu::Tokenizer& tokenizer) {
  if (!a.chat) {
    quipu::EncodeOptions options = tokenizer.prompt_options();
    if (!a.resume.empty()) options.bos = false;  // the text goes on
    if (a.special) options.allowed_special = quipu::SpecialSet::all();
    return tokenizer.encode(text, options);
  }
  std::vector<quipu::ChatMessage> dialog;
  if (!a.system.empty()) dialog.push_back({.role = quipu::ChatRole::system, .content = {a.system}});
  dialog.push_back({.role = quipu::ChatRole::user, .content = {text}});
  return quipu::ChatFormat::from_template(tokenizer.chat_template(), a.file)
      .encode(tokenizer, dialog);
}

/// Positions of the context: -c; 0: as many as the model was trained for; by default those, but no
/// more than 4096, since the cache of a long context takes many GB.
std::size_t capacity(const Arguments& a, const std::optional<std::size_t>& own) {
  if (a.context == 0u && !own) {
    quipu::raise<quipu::ArgumentError>(
        "-c 0 is the model's own context, which the checkpoint does not state: give a number");
  }
  if (a.context == 0u) return *own;
  return a.context.value_or((std::min<std::size_t>)(4096, own.value_or(4096)));
}

/// ArgumentError for a context whose cache cannot be had.
quipu::SessionOptions session_options(const Arguments& a,
                                      const quipu::ArchitectureFacts& architecture,
                                      const std::optional<std::size_t>& own_context) {
  quipu::SessionOptions options;
  options.capacity = capacity(a, own_context);
  options.chunk = (std::min)(a.chunk, options.capacity);
  options.cache = a.cache == "bf16" ? quipu::ElementType::bf16 : quipu::ElementType::f32;
  options.activations =
      a.activations == "int8" ? quipu::ActivationMode::int8 : quipu::ActivationMode::f32;
  options.mode = a.mode == "bf16" ? quipu::NumericMode::bf16 : quipu::NumericMode::f32;
  try {
    quipu::KvCache(quipu::Session::cache_shape(architecture, options));  // no page of it is touched
  } catch (const quipu::SizeError& error) {
    quipu::raise<quipu::ArgumentError>(fmt::format(
        "-c: a context of {} positions cannot be had: {}", options.capacity, error.what()));
  }
  return options;
}

/// Those of the command line; what it leaves open is as it was saved, or else random. (The restore
/// refuses what it states otherwise.)
quipu::SamplingSettings sampling_settings(const Arguments& a, std::span<const std::byte> saved) {
  quipu::SamplingSettings s = a.sampling;
  if (!saved.empty()) {
    const quipu::SamplingSettings was = quipu::Generator::saved_sampling(saved, a.resume);
    if (!a.given("--temp")) s.temperature = was.temperature;
    if (!a.given("--top-k")) s.top_k = was.top_k;
    if (!a.given("--top-p")) s.top_p = was.top_p;
    s.seed = was.seed;
  } else {
    s.seed = std::random_device{}();
  }
  if (a.seed != "-1") std::from_chars(a.seed.data(), a.seed.data() + a.seed.size(), s.seed);
  quipu::validate(s);
  return s;
}

quipu::GenerationSettings generation_settings(const Arguments& a,
                                              const quipu::SamplingSettings& sampling,
                                              const quipu::Tokenizer& tokenizer) {
  quipu::GenerationSettings settings{.sampling = sampling, .stop_ids = a.stop_ids};
  if (a.max_tokens >= 0) settings.max_tokens = static_cast<std::size_t>(a.max_tokens);
  if (!a.ignore_stop) {
    settings.stop_ids.insert(settings.stop_ids.end(), tokenizer.stop_ids().begin(),
                             tokenizer.stop_ids().end());
  }
  return settings;
}

/// Before any large memory is asked for: what will run, and what its cache takes.
void print_start(const Arguments& a, const quipu::Model& model,
                 const quipu::SessionOptions& options, std::uint64_t seed) {
  std::string types;
  for (quipu::ElementType type : model.weights().types) {
    types += (types.empty() ? "" : " ") + std::string(quipu::name(type));
  }
  program::say("model    {} ({} parameters), {}\n", model.name(),
               program::grouped(model.parameters()), a.file);
  program::say("weights  {} ({}){}\n", program::bytes_text(model.weights().weight_bytes), types,
               a.in_place ? ", in place" : "");
  program::say("running  {}, {} threads{}, activations {}, mode {}\n", model.target(),
               model.threads(), program::ranks_text(model.ranks()), a.activations, a.mode);
  program::say(
      "context  {} positions, KV cache {} ({})\n", options.capacity,
      program::bytes_text(quipu::Session::cache_shape(model.architecture(), options).bytes()),
      a.cache);
  program::say("seed     {}\n\n", seed);
}

constexpr int exit_interrupted = 130;  // as shells have it: 128 and the number of SIGINT

// The generator that Ctrl-C ends; a second Ctrl-C ends the process.
std::atomic<quipu::Generator*> running{nullptr};
std::atomic<bool> interrupted{false};
void on_interrupt(int) {
  if (interrupted.exchange(true)) std::_Exit(exit_interrupted);
  if (quipu::Generator* g = running.load()) g->cancel();
}

/// What was generated.
struct Output {
  std::vector<quipu::TokenId> ids;
  std::vector<float> log_probabilities;
  std::string text;
};

Output generate_text(const Arguments& a, const quipu::Tokenizer& tokenizer,
                     quipu::Generator& generator) {
  Output out;
  quipu::Utf8Stream characters;
  quipu::StopText stop(a.stop_strings);
  const auto show = [&](const std::string& part) {
    out.text += part;
    if (a.json || part.empty()) return;
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  while (const auto token = generator.next()) {
    out.ids.push_back(*token);
    if (a.log_probabilities) {
      out.log_probabilities.push_back(quipu::log_probability(generator.logits(), *token));
    }
    if (tokenizer.is_control(*token) && !a.special) continue;
    show(stop.push(characters.push(tokenizer.piece(*token))));
    if (stop.stopped()) generator.finish(quipu::FinishReason::stop_string);
  }
  show(stop.push(characters.flush()));
  show(stop.flush());
  return out;
}

/// The decode passes, one token each, that ended at the session's last position.
void write_profile(const std::string& path, const quipu::Session& session,
                   const quipu::PassTimes& times) {
  if (times.passes() == 0)
    quipu::raise<quipu::ArgumentError>("--profile: no token was decoded after the first");
  const quipu::Model& model = session.model();
  const quipu::Ceilings ceilings = quipu::measure_ceilings(model.probes(), model.executor());
  const quipu::PassShape shape{.at = session.length() - (times.passes() + 1) / 2};
  const quipu::Profile profile = quipu::make_profile(session, times, shape, ceilings);
  quipu::AtomicFile file(path);
  file.write(quipu::to_json(profile).dump(1) + "\n");
  file.commit();
}

int generate(const Arguments& a) {
  using program::Clock;
  if (a.chat && !a.resume.empty()) {
    quipu::raise<quipu::ArgumentError>("--resume: what -p adds goes on as text, not with --chat");
  }
  if (a.log_probabilities && !a.json) {
    quipu::raise<quipu::ArgumentError>("--logprobs: they are part of the object of --json");
  }
  quipu::StopText{a.stop_strings};  // refuses what it cannot take
  for (const auto& [option, out] :
       {std::pair("--save", a.save), std::pair("--profile", a.profile)}) {
    if (!out.empty()) program::protect_checkpoint(option, out, a.file);
  }
  const std::string text = prompt_text(a);
  const std::vector<std::byte> saved =
      a.resume.empty() ? std::vector<std::byte>() : quipu::read_state(a.resume);
  const quipu::SamplingSettings sampling = sampling_settings(a, saved);
  const auto load_start = Clock::now();
  program::ProgressBar bar;
  const quipu::Progress progress = [&](std::string_view what, std::size_t done, std::size_t total) {
    bar(what, done, total);
  };
  quipu::LoadOptions load;
  load.model = a.model;
  load.threads = a.threads;
  load.ranks = a.ranks;
  load.pack = !a.in_place;
  load.reference_rope = a.reference_rope;
  load.progress = progress;
  const quipu::Engine& engine = QUIPU_ENGINE::engine();
  quipu::Checkpoint file = quipu::open_checkpoint(a.file);
  // Before the weights are loaded, which may take a while.
  const quipu::ModelEntry& entry =
      quipu::choose_model(engine.models(), file.facts, a.file, a.model);
  const quipu::SessionOptions options =
      session_options(a, entry.architecture, file.facts.context_length);
  const quipu::Model model = engine.load(std::move(file), load);
  const quipu::Tokenizer& tokenizer = model.tokenizer();
  std::vector<quipu::TokenId> prompt;
  if (!text.empty()) prompt = prompt_tokens(a, text, tokenizer);
  if (prompt.empty() && a.resume.empty()) {
    quipu::raise<quipu::ArgumentError>(
        "the prompt has no tokens: the vocabulary has none for any of its bytes");
  }
  if (prompt.size() > options.capacity) {
    quipu::raise<quipu::ArgumentError>(
        fmt::format("the prompt has {} tokens, the context {} positions (-c)", prompt.size(),
                    options.capacity));
  }
  const quipu::GenerationSettings settings = generation_settings(a, sampling, tokenizer);
  print_start(a, model, options, settings.sampling.seed);
  quipu::Session session(model, options);
  const double load_seconds = program::seconds_since(load_start);

  quipu::Generator generator(session, settings);
  running = &generator;
  std::signal(SIGINT, on_interrupt);
  const auto prompt_start = Clock::now();
  std::size_t computed = 0;  // fewer than the prompt has if Ctrl-C ends it
  if (!saved.empty()) generator.restore(saved, a.resume);
  const std::size_t resumed = generator.tokens().size();
  if (!prompt.empty()) {
    generator.feed(prompt, [&](std::string_view what, std::size_t done, std::size_t total) {
      computed = done;
      progress(what, done, total);
    });
  }
  const double prompt_seconds = program::seconds_since(prompt_start);
  quipu::PassTimes pass_times;
  if (!a.profile.empty()) session.set_profile(pass_times.hook());
  const auto start = Clock::now();
  const Output out = generate_text(a, tokenizer, generator);
  const double seconds = program::seconds_since(start);
  running = nullptr;
  if (!a.save.empty()) quipu::write_state(a.save, generator.save());

  const auto rate = [](std::size_t n, double s) {
    return s > 0 ? static_cast<double>(n) / s : 0.0;
  };
  if (!a.profile.empty()) write_profile(a.profile, session, pass_times);
  // The first token is chosen from the prompt's logits: one pass fewer than tokens.
  const std::size_t passes = out.ids.empty() ? 0 : out.ids.size() - 1;
  if (a.json) {
    nlohmann::ordered_json json = {{"model", model.name()},
                                   {"file", a.file},
                                   {"parameters", model.parameters()},
                                   {"target", model.target()},
                                   {"threads", model.threads()},
                                   {"ranks", model.ranks()},
                                   {"context", options.capacity},
                                   {"kv_cache_bytes", session.cache_bytes()},
                                   {"scratch_bytes", session.scratch_bytes()},
                                   {"weight_bytes", model.weights().weight_bytes},
                                   {"seed", settings.sampling.seed},
                                   {"resumed_tokens", resumed},
                                   {"prompt_ids", prompt},
                                   {"ids", out.ids},
                                   {"text", out.text},
                                   {"finish_reason", quipu::name(generator.finish_reason())},
                                   {"load_seconds", load_seconds},
                                   {"prompt_seconds", prompt_seconds},
                                   {"prompt_tokens_per_second", rate(computed, prompt_seconds)},
                                   {"generate_seconds", seconds},
                                   {"generate_tokens_per_second", rate(passes, seconds)}};
    if (a.log_probabilities) json["logprobs"] = out.log_probabilities;
    // A path may be any bytes.
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  } else {
    std::fputc('\n', stdout);
  }
  program::say("\nload     {:.2f} s\nprompt   {} tokens, {:.2f} s, {:.1f} tokens/s\n", load_seconds,
               computed, prompt_seconds, rate(computed, prompt_seconds));
  program::say("generate {} tokens, {:.2f} s, {:.1f} tokens/s ({})\n", out.ids.size(), seconds,
               rate(passes, seconds), quipu::name(generator.finish_reason()));
  return generator.finish_reason() == quipu::FinishReason::cancelled ? exit_interrupted
                                                                     : program::success;
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
      "  " QUIPU_PROGRAM_NAME
      " -m model.gguf -p \"Once\" -n 100 --save s.state, then -m model.gguf --resume s.state -n "
      "100\n"
      "Without -p and -f the prompt is standard input. Ctrl-C ends the generation, a second one "
      "the\n"
      "program.\n"
      "Exit codes: 0 done, 1 a file or model is not usable, 2 the command line is not, 130 ended "
      "by\n"
      "Ctrl-C.");
  app.add_option("-m,--model,--model-file", a.file,
                 "Checkpoint: a .gguf, .safetensors or .pth file, or a directory")
      ->required()
      ->type_name("FILE");
  auto* prompt = app.add_option("-p,--prompt", a.prompt, "Prompt");
  app.add_option("-f,--file", a.prompt_file, "Read the prompt from a file; - is standard input")
      ->excludes(prompt);
  app.add_option("-n,--predict", a.max_tokens,
                 "Most tokens to generate; -1: until a stop token or the end of the context")
      ->check(program::integer(-1, (std::numeric_limits<std::int64_t>::max)()))
      ->capture_default_str();
  app.add_option("-c,--ctx-size", a.context,
                 "Positions of the context; 0: the model's own [4096, or the model's if less]")
      ->check(program::token_count(0));
  app.add_option("-t,--threads", a.threads, "Threads [as many as the process may use]")
      ->check(program::thread_count());
  app.add_option("--ranks", a.ranks,
                 "Model-parallel ranks, which share the threads (of those compiled in)")
      ->check(program::rank_count())
      ->capture_default_str();
  app.add_option("-b,--batch-size", a.chunk, "Prompt tokens computed in one pass")
      ->check(program::token_count(1))
      ->capture_default_str();
  app.add_option("-s,--seed", a.seed, "Seed of the sampling; -1: random, printed")
      ->check(program::integer(-1, (std::numeric_limits<std::uint64_t>::max)()))
      ->capture_default_str();
  app.add_option("--temp", a.sampling.temperature, "Temperature; 0 is greedy")
      ->capture_default_str();
  app.add_option("--top-k", a.sampling.top_k, "Only the k likeliest tokens; 0: all")
      ->check(program::integer(0, (std::numeric_limits<std::int64_t>::max)()))
      ->capture_default_str();
  app.add_option("--top-p", a.sampling.top_p, "Only the nucleus of this probability; 1: all")
      ->capture_default_str();
  app.add_flag("--chat", a.chat, "The prompt is a user's message, in the chat format of the file");
  app.add_option("--system", a.system, "With --chat: the system message");
  app.add_option("--stop-id", a.stop_ids, "A token id that ends the generation; may be repeated")
      ->check(program::integer(0, (std::numeric_limits<quipu::TokenId>::max)()))
      ->allow_extra_args(false);
  app.add_option("-r,--stop", a.stop_strings,
                 "A text that ends the generation and is not shown; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", a.ignore_stop, "Do not end at the model's own stop tokens");
  app.add_flag("--special", a.special,
               "Special tokens in the prompt become ids, generated ones are shown");
  app.add_option("--as", a.model,
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
  app.add_option("--save", a.save, "Write the state at the end, for --resume")->type_name("FILE");
  app.add_option("--resume", a.resume,
                 "Go on where --save was written, bit-equal, with the same model, cache, mode and "
                 "activations; -p and -f add text, the sampling stays")
      ->type_name("FILE");
  app.add_option("--profile", a.profile,
                 "Write where the time of the decode passes went, as JSON; slows them a little")
      ->type_name("FILE");
  app.add_flag("--json", a.json, "One JSON object on stdout instead of the text");
  app.add_flag("--logprobs", a.log_probabilities,
               "With --json: the log-probability of each generated token");
  a.given = [&app](const char* option) { return app.count(option) > 0; };
  if (const auto code = program::parse(app, argc, argv)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] { return generate(a); });
}
