// quipu-atlas: every component and named tensor of the models compiled in, explained from the
// types.
//
// Built for the catalogue; for other models define QUIPU_ATLAS_HEADER (a header) and
// QUIPU_ATLAS_MODELS (types, separated by commas).
#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "quipu/atlas/atlas.hpp"
#include "quipu/checkpoint/atomic_file.hpp"
#ifdef QUIPU_ATLAS_HEADER
#include QUIPU_ATLAS_HEADER
using Models = quipu::atlas::ModelList<QUIPU_ATLAS_MODELS>;
#else
using Models = quipu::atlas::Catalogue;
#endif

namespace {

using namespace quipu;
using atlas::ModelEntry;

struct Options {
  std::string model = "llama3_1_8b", component, format = "text", dtype = "bf16", checkpoint, out;
  std::vector<std::string> sources;
  std::size_t find = 0, batch = 1, positions = 1, at = 0;
  bool list = false;
};

ElementType element_type(const std::string& text) {
  std::string known;
  for (std::size_t t = 0; t < element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (name(type) == text) return type;
    known += ' ';
    known += name(type);
  }
  raise<ArgumentError>("--dtype " + text + ": expected one of" + known);
}

void list_models(std::ostream& out) {
  for (const ModelEntry& entry : Models::entries) {
    out << atlas::detail::padded(entry.facts.name, 18)
        << atlas::detail::padded(atlas::title(entry.facts), 26)
        << atlas::grouped(entry.facts.parameters) << "\n";
  }
}

void list_cards(std::ostream& out, const ModelEntry& entry) {
  for (const atlas::Card& card : entry.cards) {
    out << atlas::detail::padded(card.id, 42) << atlas::detail::padded(name(card.kind), 11)
        << atlas::detail::padded(card.name, 44)
        << (card.parameters > 0 ? atlas::grouped(card.parameters) : "") << "\n";
  }
}

void find(std::ostream& out, const ModelEntry& entry, std::size_t extent) {
  const std::vector<atlas::Found> found = atlas::find_extent(entry, extent);
  if (found.empty()) {
    raise<ArgumentError>("--find " + std::to_string(extent) + ": no tensor of " +
                         std::string(entry.facts.name) + " has that extent");
  }
  for (const atlas::Found& f : found) {
    out << atlas::detail::padded(f.card->id, 42) << atlas::detail::padded(f.what, 8) << f.shape
        << "\n";
  }
}

int verify(std::ostream& out, const ModelEntry& entry, const std::string& component,
           const atlas::SourceTrees& trees) {
  std::size_t confirmed = 0, refuted = 0, skipped = 0;
  for (const atlas::Card& card : entry.cards) {
    if (!component.empty() && &card != &atlas::find_card(entry, component)) continue;
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
      if (!component.empty()) out << atlas::excerpt_text(verdict);
    }
  }
  out << confirmed << " confirmed, " << refuted << " refuted, " << skipped
      << " without a checkout\n";
  return refuted > 0 || confirmed == 0 ? 1 : 0;
}

void render(std::ostream& out, const ModelEntry& entry, const Options& o,
            const atlas::SourceTrees& trees) {
  atlas::Request request;
  request.work = {o.batch, o.positions, o.at, element_type(o.dtype), 2};
  if (request.work.weights == ElementType::f32) request.work.cache_element_bytes = 4;
  if (o.batch == 0 || o.positions == 0) {
    raise<ArgumentError>("--batch and --positions: expected 1 or more");
  }
  if (o.format == "html") {
    out << atlas::page_html(Models::entries, entry, request, trees);
    return;
  }
  std::optional<Checkpoint> checkpoint;
  if (!o.checkpoint.empty()) checkpoint.emplace(open_checkpoint(o.checkpoint));
  auto counted = [&](const atlas::Card& card) {
    atlas::Request r = request;
    if (checkpoint && card.parameters > 0) {
      r.counted_file = o.checkpoint;
      r.counted_parameters = atlas::count_parameters(entry, card, *checkpoint);
      // Reading every element of a large file takes minutes: only for a card that was asked for.
      if (!o.component.empty()) r.statistics = atlas::layer_statistics(card, *checkpoint);
    }
    return r;
  };
  if (o.component.empty() && o.format == "json") {
    out << atlas::model_json(entry, request).dump(2) << "\n";
    return;
  }
  bool first = true;
  for (const atlas::Card& card : entry.cards) {
    if (!o.component.empty() && &card != &atlas::find_card(entry, o.component)) continue;
    if (o.format == "json") {
      out << atlas::card_json(entry, card, counted(card)).dump(2) << "\n";
    } else {
      const atlas::Document document = atlas::document(entry, card, counted(card));
      out << (first ? "" : "\n\n")
          << (o.format == "markdown" ? atlas::render_markdown(document)
                                     : atlas::render_text(document));
    }
    first = false;
  }
}

// What would be left out without a word.
void refuse_unused(const Options& o, bool verifying) {
  const bool listing = o.list || o.find > 0;
  if (o.list && o.find > 0) raise<ArgumentError>("--list and --find: give one of them");
  if (verifying && listing) raise<ArgumentError>("verify: takes no --list and no --find");
  if (listing && !o.component.empty()) {
    raise<ArgumentError>(std::string(o.list ? "--list" : "--find") +
                         " with --component: it lists the whole model; leave one out");
  }
  if (o.checkpoint.empty()) return;
  if (verifying || listing) {
    raise<ArgumentError>(
        "--checkpoint: used by the explanations only, not by verify, --list, --find");
  }
  if (o.format == "html") {
    raise<ArgumentError>("--checkpoint with --format html: the page counts no file");
  }
  if (o.format == "json" && o.component.empty()) {
    raise<ArgumentError>(
        "--checkpoint with --format json: needs --component; the model's JSON counts no file");
  }
}

int run(const Options& o, bool verifying) {
  refuse_unused(o, verifying);
  atlas::SourceTrees trees;
  for (const std::string& source : o.sources) atlas::add_source_tree(trees, source);
  const ModelEntry& entry = atlas::find_model(Models::entries, o.model);
  std::ostringstream out;
  int code = 0;
  if (verifying) {
    code = verify(out, entry, o.component, trees);
  } else if (o.list) {
    list_cards(out, entry);
  } else if (o.find > 0) {
    find(out, entry, o.find);
  } else {
    render(out, entry, o, trees);
  }
  if (o.out.empty()) {
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
  CLI::App app{"Every component and tensor of a model, explained exactly, from the types."};
  app.footer(
      "Examples:\n"
      "  quipu-atlas --models\n"
      "  quipu-atlas --model llama3_8b --list\n"
      "  quipu-atlas --model llama3_1_8b --component output\n"
      "  quipu-atlas --model llama3_8b --component layers.7.attention.wk --format json\n"
      "  quipu-atlas --model llama3_8b --find 14336\n"
      "  quipu-atlas --model llama3_1_8b --component layers.N --positions 512 --dtype q8_0\n"
      "  quipu-atlas --model llama3_1_8b --format html --out llama3_1_8b.html\n"
      "  quipu-atlas verify --model llama3_8b --source meta-llama/llama3=DIR\n"
      "Exit codes: 0 done, 1 a file or a claim does not hold, 2 the command line does not.");
  bool models = false;
  app.add_flag("--models", models, "List the models compiled in");
  auto common = [&](CLI::App& a) {
    a.add_option("--model", o.model, "Model")->capture_default_str();
    a.add_option("--component", o.component,
                 "Id of a component or tensor; layers.7.x is layers.N.x");
    a.add_option("--source", o.sources, "A checkout: OWNER/REPOSITORY=DIR (may be repeated)");
    a.add_option("--out", o.out, "Write to a file instead of standard output");
  };
  common(app);
  app.add_option("--format", o.format, "text, markdown, json or html")
      ->check(CLI::IsMember({"text", "markdown", "json", "html"}))
      ->capture_default_str();
  app.add_flag("--list", o.list, "List the model's components and tensors");
  app.add_option("--find", o.find, "List every tensor with this extent");
  app.add_option("--batch", o.batch, "Sequences at once")->capture_default_str();
  app.add_option("--positions", o.positions, "New positions of each: 1 is decoding")
      ->capture_default_str();
  app.add_option("--at", o.at, "First new position: how many are cached")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--dtype", o.dtype, "Element type of the weights: f32, bf16, q8_0, ...")
      ->capture_default_str();
  app.add_option("--checkpoint", o.checkpoint,
                 "Count the parameters from this file's tensors too, and show what stands in them");
  CLI::App* verifying = app.add_subcommand("verify", "Hold the sources against your own checkouts");
  common(*verifying);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (models) {
      list_models(std::cout);
      return 0;
    }
    return run(o, verifying->parsed());
  } catch (const ArgumentError& error) {
    std::cerr << "quipu-atlas: " << error.what() << "\n";
    return 2;
  } catch (const Error& error) {
    std::cerr << "quipu-atlas: " << error.what() << "\n";
    return 1;
  }
}
