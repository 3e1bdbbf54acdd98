// quipu-atlas: every component and named tensor of the models compiled in, explained from the
// types.
#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "program.hpp"
#include "quipu/atlas/atlas.hpp"
#include "quipu/checkpoint/atomic_file.hpp"
#include QUIPU_ENGINE_MODELS_HEADER

namespace {

using namespace quipu;
using atlas::Json;
using atlas::ModelEntry;

constexpr std::span<const ModelEntry> compiled_in = atlas::entries<QUIPU_ENGINE::Models>;

/// Llama 3.1 8B where it is compiled in, else the first model.
std::string default_model() {
  for (const ModelEntry& entry : compiled_in) {
    if (entry.facts.name == "llama3_1_8b") return "llama3_1_8b";
  }
  return std::string(compiled_in.front().facts.name);
}

struct Options {
  std::string model = default_model(), component, format = "text", dtype = "bf16", checkpoint,
              profile, out = "-";
  std::vector<std::string> sources;
  std::size_t find = 0, batch = 1, positions = 1, at = 0;
};

/// What the command line asks for; explaining is the rule.
enum class Task { explain, models, list, find, verify };

ElementType element_type(const std::string& text) {
  if (const auto type = element_type_named(text)) return *type;
  std::string known;
  for (std::size_t t = 0; t < element_type_count; ++t) {
    known += ' ';
    known += name(static_cast<ElementType>(t));
  }
  raise<ArgumentError>("--dtype " + text + ": expected one of" + known);
}

void list_models(std::ostream& out, bool as_json) {
  Json json = Json::array();
  for (const ModelEntry& entry : compiled_in) {
    json.push_back(atlas::facts_json(entry.facts));
    if (as_json) continue;
    out << atlas::detail::padded(entry.facts.name, 18)
        << atlas::detail::padded(atlas::title(entry.facts), 26)
        << atlas::grouped(entry.facts.parameters) << "\n";
  }
  if (as_json) out << Json{{"models", json}}.dump(2) << "\n";
}

void list_cards(std::ostream& out, const ModelEntry& entry, bool as_json) {
  Json json = Json::array();
  for (const atlas::Card& card : entry.cards) {
    json.push_back(atlas::outline_json(card));
    if (as_json) continue;
    out << atlas::detail::padded(card.id, 42) << atlas::detail::padded(name(card.kind), 11)
        << atlas::detail::padded(card.name, 44)
        << (card.parameters > 0 ? atlas::grouped(card.parameters) : "") << "\n";
  }
  if (as_json) out << Json{{"list", json}}.dump(2) << "\n";
}

void find(std::ostream& out, const ModelEntry& entry, std::size_t extent, bool as_json) {
  const std::vector<atlas::Found> found = atlas::find_extent(entry, extent);
  if (found.empty()) {
    raise<ArgumentError>("--find " + std::to_string(extent) + ": no tensor of " +
                         std::string(entry.facts.name) + " has that extent");
  }
  Json json = Json::array();
  for (const atlas::Found& f : found) {
    json.push_back({{"id", f.card->id}, {"what", f.what}, {"shape", f.shape}});
    if (as_json) continue;
    out << atlas::detail::padded(f.card->id, 42) << atlas::detail::padded(f.what, 8) << f.shape
        << "\n";
  }
  if (as_json) out << Json{{"found", json}}.dump(2) << "\n";
}

/// The cards that are asked for: one, or all.
std::span<const atlas::Card> chosen(const ModelEntry& entry, const Options& o) {
  if (o.component.empty()) return entry.cards;
  return {&atlas::find_card(entry, o.component), 1};
}

int verify(std::ostream& out, const ModelEntry& entry, const Options& o,
           const atlas::SourceTrees& trees) {
  std::size_t confirmed = 0, refuted = 0, skipped = 0;
  for (const atlas::Card& card : chosen(entry, o)) {
    for (const notation::Source& source : card.sources) {
      const atlas::Verdict verdict = atlas::verify(source, trees);
      using State = atlas::Verdict::State;
      confirmed += verdict.state == State::confirmed ? 1 : 0;
      refuted += verdict.state == State::refuted ? 1 : 0;
      skipped += verdict.state == State::no_checkout ? 1 : 0;
      constexpr const char* words[] = {"confirmed", "REFUTED", "skipped"};
      out << atlas::detail::padded(words[static_cast<unsigned char>(verdict.state)], 11) << card.id
          << " · " << source.id << " · " << source.file.path << " "
          << atlas::lines_text(source.lines);
      if (!verdict.reason.empty()) out << ": " << verdict.reason;
      out << "\n";
      if (!o.component.empty()) out << atlas::excerpt_text(verdict);
    }
  }
  out << confirmed << " confirmed, " << refuted << " refuted, " << skipped
      << " without a checkout\n";
  return refuted > 0 || confirmed == 0 ? program::failure : program::success;
}

/// What is asked of each card: the work, and what the checkpoint and the profile say of it.
std::vector<atlas::Request> requests_of(const ModelEntry& entry, std::span<const atlas::Card> cards,
                                        const Options& o, const atlas::Profile* profile) {
  atlas::Request request;
  request.work = {o.batch, o.positions, o.at, element_type(o.dtype), 2};
  if (request.work.weights == ElementType::f32) request.work.cache_element_bytes = 4;
  request.profile = profile;
  std::vector<atlas::Request> requests(cards.size(), request);
  if (o.checkpoint.empty()) return requests;
  const Checkpoint checkpoint = open_checkpoint(o.checkpoint);
  atlas::require_model(compiled_in, entry, checkpoint);
  program::ProgressBar bar;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].parameters == 0) continue;
    bar("reading " + o.checkpoint, i, cards.size());
    requests[i].counted = {o.checkpoint, atlas::count_parameters(entry, cards[i], checkpoint)};
    requests[i].statistics = atlas::layer_statistics(entry, cards[i], checkpoint);
  }
  return requests;
}

int explain(std::ostream& out, const ModelEntry& entry, const Options& o,
            const atlas::SourceTrees& trees) {
  std::optional<atlas::Profile> profile;
  if (!o.profile.empty()) profile = atlas::open_profile(entry, o.profile);
  const bool page = o.format == "html";
  const std::span<const atlas::Card> cards = page ? entry.cards : chosen(entry, o);
  const std::vector<atlas::Request> requests =
      requests_of(entry, cards, o, profile ? &*profile : nullptr);
  if (page) {
    const atlas::Card& first = o.component.empty() ? entry.cards.front() : chosen(entry, o).front();
    out << atlas::page_html(compiled_in, entry, requests, trees, first.id);
  } else if (o.format == "json") {
    Json json = o.component.empty() ? atlas::model_json(entry, requests)
                                    : atlas::card_json(entry, cards.front(), requests.front());
    if (!trees.empty()) json["excerpts"] = atlas::excerpts_json(cards, trees);
    out << atlas::text_of(json, 2) << "\n";
  } else {
    for (std::size_t i = 0; i < cards.size(); ++i) {
      const atlas::Document document = atlas::document(entry, cards[i], requests[i]);
      out << (i == 0 ? "" : "\n\n")
          << (o.format == "markdown" ? atlas::render_markdown(document)
                                     : atlas::render_text(document));
    }
  }
  int code = program::success;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (requests[i].counted.file.empty() || atlas::agrees(cards[i], requests[i].counted)) continue;
    program::say("{}: {}: {}\n", QUIPU_PROGRAM_NAME, cards[i].id,
                 atlas::basis(cards[i], requests[i].counted));
    code = program::failure;
  }
  return code;
}

/// Options that a task would leave out without a word are refused. `given` says whether an option
/// stands on the command line.
template <class Given>
void refuse_unused(Task task, const Options& o, Given&& given) {
  struct Rule {
    Task task;
    const char* name;
    std::vector<const char*> takes;
  };
  const Rule rules[] = {{Task::models, "--models", {"--format"}},
                        {Task::list, "--list", {"--model", "--format"}},
                        {Task::find, "--find", {"--model", "--format"}},
                        {Task::verify, "verify", {"--model", "--component", "--source"}},
                        {Task::explain,
                         "--format text and markdown",
                         {"--model", "--component", "--format", "--batch", "--positions", "--at",
                          "--dtype", "--checkpoint", "--profile"}}};
  constexpr const char* all[] = {
      "--model", "--component",  "--format",  "--source", "--batch", "--positions", "--at",
      "--dtype", "--checkpoint", "--profile", "--models", "--list",  "--find"};
  const bool drawn = o.format == "html" || o.format == "json";
  for (const Rule& rule : rules) {
    if (rule.task != task || (task == Task::explain && drawn)) continue;
    for (const char* option : all) {
      if (!given(option) || rule.name == std::string_view(option)) continue;
      const bool taken = std::find_if(rule.takes.begin(), rule.takes.end(), [&](const char* t) {
                           return std::string_view(t) == option;
                         }) != rule.takes.end();
      if (!taken) {
        raise<ArgumentError>(std::string(option) + " with " + rule.name +
                             ": it would change nothing; leave one of them out");
      }
    }
  }
  if (task != Task::explain && task != Task::verify && o.format != "text" && o.format != "json") {
    raise<ArgumentError>("--format " + o.format + ": lists are text or json");
  }
  for (const char* option : {"--model", "--component", "--checkpoint", "--profile", "--out"}) {
    const std::string& value = std::string_view(option) == "--model"        ? o.model
                               : std::string_view(option) == "--component"  ? o.component
                               : std::string_view(option) == "--checkpoint" ? o.checkpoint
                               : std::string_view(option) == "--profile"    ? o.profile
                                                                            : o.out;
    if (given(option) && value.empty()) {
      raise<ArgumentError>(std::string(option) + ": expected a name, found an empty text");
    }
  }
}

int run(Task task, const Options& o) {
  atlas::SourceTrees trees;
  for (const std::string& source : o.sources) atlas::add_source_tree(trees, source);
  const ModelEntry& entry = atlas::find_model(compiled_in, o.model);
  const bool as_json = o.format == "json";
  std::ostringstream out;
  int code = program::success;
  switch (task) {
    case Task::models:
      list_models(out, as_json);
      break;
    case Task::list:
      list_cards(out, entry, as_json);
      break;
    case Task::find:
      find(out, entry, o.find, as_json);
      break;
    case Task::verify:
      code = verify(out, entry, o, trees);
      break;
    case Task::explain:
      code = explain(out, entry, o, trees);
      break;
  }
  if (o.out == "-") {
    std::cout << out.view() << std::flush;
    if (!std::cout) raise<FileError>("standard output: writing failed");
  } else {
    // Under its name only when it is whole: an error leaves a former file as it was.
    AtomicFile file(o.out);
    file.write(out.view());
    file.commit();
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Every component and tensor of a model, explained exactly, from the types.",
               QUIPU_PROGRAM_NAME};
  app.footer(
      "Examples:\n"
      "  " QUIPU_PROGRAM_NAME
      " --models\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_8b --list\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_1_8b --component output\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_8b --component layers.7.attention.wk --format json\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_8b --find 14336\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_1_8b --component layers.N --positions 512 --dtype q8_0\n"
      "  " QUIPU_PROGRAM_NAME
      " --model llama3_1_8b --format html --out llama3_1_8b.html\n"
      "  " QUIPU_PROGRAM_NAME
      " --model smollm2_135m --checkpoint model.gguf --profile run.json --format html --out "
      "m.html\n"
      "  " QUIPU_PROGRAM_NAME
      " verify --model llama3_8b --source meta-llama/llama3=DIR\n"
      "Exit codes: 0 done, 1 a file or a claim does not hold, 2 the command line does not.");
  auto common = [&](CLI::App& a) {
    a.add_option("--model", o.model, "Model")->capture_default_str();
    a.add_option(
        "--component", o.component,
        "Id of a component or tensor; layers.7.x is layers.N.x. With html: the card that the "
        "page opens at");
    a.add_option(
        "--source", o.sources,
        "A checkout: OWNER/REPOSITORY=DIR (may be repeated); its lines stand in html and json");
    a.add_option("--out", o.out, "Write to a file; - is standard output")->capture_default_str();
  };
  common(app);
  app.add_option("--format", o.format, "text, markdown, json or html; lists: text or json")
      ->check(CLI::IsMember({"text", "markdown", "json", "html"}))
      ->capture_default_str();
  app.add_flag("--models")->description("List the models compiled in");
  app.add_flag("--list")->description("List the model's components and tensors");
  app.add_option("--find", o.find, "List every tensor with this extent")
      ->check(program::integer(1, (std::numeric_limits<std::uint64_t>::max)()));
  app.add_option("--batch", o.batch, "Sequences at once")
      ->check(program::token_count(1))
      ->capture_default_str();
  app.add_option("--positions", o.positions, "New positions of each: 1 is decoding")
      ->check(program::token_count(1))
      ->capture_default_str();
  app.add_option("--at", o.at, "First new position: how many are cached")
      ->check(program::token_count(0))
      ->capture_default_str();
  app.add_option("--dtype", o.dtype, "Element type of the weights: f32, bf16, q8_0, ...")
      ->capture_default_str();
  app.add_option("--checkpoint", o.checkpoint,
                 "Count the parameters from this file's tensors too, and show what stands in them");
  app.add_option(
      "--profile", o.profile,
      "Lay the times of a measured run over the cards: a file of quipu-generate --profile or "
      "quipu-bench");
  CLI::App* verifying = app.add_subcommand("verify", "Hold the sources against your own checkouts");
  common(*verifying);
  if (const auto code = program::parse(app, argc, argv)) return *code;
  return program::run(QUIPU_PROGRAM_NAME, [&] {
    auto given = [&](const char* option) {
      const CLI::Option* inner = verifying->get_option_no_throw(option);
      return app.count(option) > 0 || (inner != nullptr && inner->count() > 0);
    };
    const Task task = verifying->parsed() ? Task::verify
                      : given("--models") ? Task::models
                      : given("--list")   ? Task::list
                      : given("--find")   ? Task::find
                                          : Task::explain;
    refuse_unused(task, o, given);
    return run(task, o);
  });
}
