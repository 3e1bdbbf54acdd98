// A card laid out in the atlas's order of sections, before any format: headings, paragraphs, facts,
// tables. Text and markdown render the same document; JSON and the pages take the card itself.
// Siblings: atlas/card_text.hpp (renders), atlas/card_json.hpp, atlas/figures.hpp.
#pragma once

#include <utility>

#include "quipu/atlas/equation_text.hpp"
#include "quipu/atlas/measured.hpp"

namespace quipu::atlas {

/// What stands in one tensor of a checkpoint.
struct LayerStatistics {
  std::string tensor, type;
  std::size_t elements = 0, not_finite = 0;
  float least = 0, greatest = 0;
  double mean = 0, deviation = 0;
};

/// What is asked of a card beside its constants.
struct Request {
  Work work;  ///< batch, positions, first position, element type of the weights
  Counted counted{};
  std::vector<LayerStatistics> statistics{};  ///< of that file's tensors of this card
  const Profile* profile = nullptr;           ///< a measured run, or null
};

/// A piece of a document: one heading, paragraph or equation, a list of facts, or a table.
struct Section {
  enum class Form : unsigned char { heading, paragraph, facts, table, equation };
  Form form = Form::paragraph;
  std::string text;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::vector<std::string>> table;  ///< the first row is the head
};

/// A card as it is read from top to bottom.
using Document = std::vector<Section>;

namespace detail {

class Writer {
 public:
  void heading(std::string text) { push({Section::Form::heading, std::move(text), {}, {}}); }
  void paragraph(std::string text) { push({Section::Form::paragraph, std::move(text), {}, {}}); }
  void equation(std::string text) { push({Section::Form::equation, std::move(text), {}, {}}); }
  void facts(std::vector<std::pair<std::string, std::string>> facts) {
    push({Section::Form::facts, {}, std::move(facts), {}});
  }
  void table(std::vector<std::vector<std::string>> rows) {
    push({Section::Form::table, {}, {}, std::move(rows)});
  }
  Document done() { return std::move(document_); }

 private:
  void push(Section block) { document_.push_back(std::move(block)); }
  Document document_;
};

inline std::string operand_text(const Operand& o, Phase phase) {
  std::string text = plain(*o.symbol) + " " + shape_text(o.shape, phase);
  if (o.carrier != notation::Carrier::activation) {
    text += ", " + std::string(carrier_name(o.carrier));
  }
  return text;
}

inline bool depends_on_phase(const ShapeFacts& shape) {
  for (const DimFacts& d : shape) {
    if (d.extent == dynamic && d.symbol == "T") return true;
  }
  return false;
}

inline void add_shapes(Writer& w, const Card& card) {
  std::vector<std::pair<std::string, std::string>> facts;
  facts.reserve(12);
  auto add = [&](std::string_view label, const Operand& o) {
    facts.emplace_back(label, operand_text(o, Phase::prefill));
    if (depends_on_phase(o.shape)) {
      facts.emplace_back("  decoding", shape_text(o.shape, Phase::decode));
    }
  };
  for (const Operand& o : card.operands) {
    if (o.role == notation::Role::input) add("in", o);
  }
  for (const Operand& o : card.operands) {
    if (o.role == notation::Role::output) {
      add(card.kind == notation::Kind::tensor ? "shape" : "out", o);
    }
  }
  if (card.parameters > 0) {
    facts.emplace_back("parameters", grouped(card.parameters) + " per instance");
    facts.emplace_back("instances", grouped(card.instances));
    facts.emplace_back("in total", grouped(card.parameters * card.instances));
  } else {
    facts.emplace_back("parameters",
                       card.kind == notation::Kind::tensor ? "none (a tensor)" : "none");
    facts.emplace_back("instances", grouped(card.instances));
  }
  w.facts(std::move(facts));
}

inline void add_symbols(Writer& w, const Card& card) {
  std::vector<std::vector<std::string>> rows{{"Symbol", "Meaning", "In the code", "Shape"}};
  for (const Operand& o : card.operands) {
    rows.push_back({plain(*o.symbol), std::string(o.symbol->meaning), std::string(o.symbol->code),
                    o.shape.size() == 0 ? "a number" : shape_text(o.shape, Phase::prefill)});
  }
  w.heading("Symbols");
  w.table(std::move(rows));
}

inline void add_account(Writer& w, const ModelFacts& facts, const Card& card,
                        const Request& request) {
  if (card.parameters == 0) return;
  w.heading("Exact per-instance accounting");
  std::vector<std::vector<std::string>> rows{{"Component", "Calculation", "Parameters"}};
  for (const notation::AccountLine& line : card.account) {
    rows.push_back({line_label(line), calculation(line), grouped(line.parameters())});
  }
  rows.push_back({"Per-instance total", "", grouped(card.parameters)});
  if (card.instances > 1) {
    rows.push_back({"All instances", grouped(card.parameters) + " × " + grouped(card.instances),
                    grouped(card.parameters * card.instances)});
  }
  w.table(std::move(rows));
  if (const std::string text = layout(card); !text.empty()) w.paragraph(text);
  w.paragraph(basis(card, request.counted));
  w.paragraph(sharding_text(facts, card));
}

inline void add_statistics(Writer& w, const Request& request) {
  if (request.statistics.empty()) return;
  w.heading("In the checkpoint");
  std::vector<std::vector<std::string>> rows{
      {"Tensor", "Type", "Least", "Greatest", "Mean", "Deviation", "Not finite"}};
  auto digits = [](double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", x);
    return std::string(text);
  };
  for (const LayerStatistics& s : request.statistics) {
    rows.push_back({s.tensor, s.type, digits(static_cast<double>(s.least)),
                    digits(static_cast<double>(s.greatest)), digits(s.mean), digits(s.deviation),
                    grouped(s.not_finite)});
  }
  w.table(std::move(rows));
}

inline void add_figures(Writer& w, const Card& card, const Request& request) {
  const Work& work = request.work;
  const std::string when = "For batch " + grouped(work.batch) + ", " + grouped(work.positions) +
                           (work.positions == 1 ? " position" : " positions") + " from position " +
                           grouped(work.start) + ", weights in " + std::string(name(work.weights));
  w.heading("Cost");
  std::vector<std::pair<std::string, std::string>> facts;
  facts.reserve(8);
  if (card.cost == nullptr) {
    for (const Operand& o : card.operands) {
      const std::size_t n = elements(o.shape, work);
      const std::size_t bytes = o.carrier == notation::Carrier::complex64 ? 8 : 4;
      facts.emplace_back("elements", grouped(n));
      facts.emplace_back(
          "bytes",
          grouped(n * bytes) + " in float32" + (bytes == 8 ? " pairs" : "") +
              (o.carrier == notation::Carrier::activation ? ", " + grouped(n * 2) + " in bf16"
                                                          : ""));
    }
    w.paragraph(when + ", one instance:");
    w.facts(std::move(facts));
    return;
  }
  const Cost one = card.cost(work);
  w.paragraph(when + ", one instance" +
              (card.instances > 1 ? " (all " + grouped(card.instances) + " in brackets)" : "") +
              ":");
  auto both = [&](std::size_t n, const std::string& readable) {
    return grouped(n) + (readable.empty() ? "" : " = " + readable) +
           (card.instances > 1 ? " [" + grouped(n * card.instances) + "]" : "");
  };
  facts.emplace_back("FLOPs", both(one.flops, flops_text(one.flops)));
  facts.emplace_back("weight bytes read", both(one.weight_bytes, bytes_text(one.weight_bytes)));
  facts.emplace_back("KV bytes read", both(one.cache_read_bytes, bytes_text(one.cache_read_bytes)));
  facts.emplace_back("KV bytes written",
                     both(one.cache_write_bytes, bytes_text(one.cache_write_bytes)));
  char ratio[48];
  std::snprintf(ratio, sizeof ratio, "%.3g FLOPs a byte", intensity(one));
  facts.emplace_back("intensity", one.bytes() == 0 ? "no weights and no cache" : ratio);
  w.facts(std::move(facts));
}

/// "FILE: 20 passes on AVX2 with 2 threads; batch 1, ..." of a profile.
inline std::string profile_text(const Profile& p) {
  std::string weights;
  for (ElementType type : p.weights) {
    weights += (weights.empty() ? "" : " ") + std::string(name(type));
  }
  return p.file + ": " + grouped(p.passes) + " passes on " + p.target + ", threads " +
         grouped(p.threads) + "; batch " + grouped(p.work.batch) + ", positions " +
         grouped(p.work.positions) + " from position " + grouped(p.work.start) + ", weights " +
         weights + ", cache " + p.cache + ", activations " + p.activations + ", mode " + p.mode +
         ".";
}

/// What a measurement says, line by line: the label, the figure, what stands beside it.
inline std::vector<std::array<std::string, 3>> measured_lines(const Card& card, const Measured& m,
                                                              const Profile& p) {
  std::vector<std::array<std::string, 3>> lines;
  auto beside = [](double predicted, double counted, const std::string& unit) {
    return "the model predicts " + grouped(static_cast<std::size_t>(predicted)) + " " + unit +
           (counted == predicted
                ? ""
                : "; the profile counts " + grouped(static_cast<std::size_t>(counted)));
  };
  lines.push_back({"time", seconds_text(m.seconds),
                   percent_text(m.share) + " of all components" +
                       (card.instances > 1 ? ", " + grouped(m.blocks) + " blocks together" : "")});
  if (m.blocks > 1) {
    lines.push_back({"time of one block", seconds_text(m.median),
                     "the median; " + seconds_text(m.least) + " to " + seconds_text(m.greatest)});
  }
  if (card.cost == nullptr) return lines;
  lines.push_back({"least time", seconds_text(m.least_seconds),
                   std::string("for the predicted bytes and FLOPs at the ceilings; ") +
                       (m.memory_bound ? "reading" : "arithmetic") + " takes longest"});
  lines.push_back({"of the ceiling", percent_text(m.efficiency()),
                   std::string("least time to measured time") +
                       (m.efficiency() <= 1 ? ""
                                            : "; above 100 % what is read stays in a cache, or the "
                                              "machine was busier when its ceilings were taken")});
  lines.push_back({"bytes", rate_text(m.bytes_per_second(), "B/s"),
                   percent_text(m.bytes_per_second() / p.ceilings.read_bytes_per_second) + " of " +
                       rate_text(p.ceilings.read_bytes_per_second, "B/s") + "; " +
                       beside(m.predicted_bytes, m.bytes, "bytes")});
  const double arithmetic = arithmetic_ceiling(p, card);
  lines.push_back({"FLOPs", rate_text(m.flops_per_second(), "FLOP/s"),
                   percent_text(m.flops_per_second() / arithmetic) + " of " +
                       rate_text(arithmetic, "FLOP/s") + "; " +
                       beside(m.predicted_flops, m.flops, "FLOPs")});
  return lines;
}

inline void add_measured(Writer& w, const ModelEntry& entry, const Card& card,
                         const Request& request) {
  if (request.profile == nullptr) return;
  const std::optional<Measured> m = measured(entry, card, *request.profile);
  if (!m) return;
  w.heading("Measured");
  w.paragraph(profile_text(*request.profile));
  std::vector<std::vector<std::string>> rows{{"", "Measured", "Beside it"}};
  for (const auto& [label, figure, beside] : measured_lines(card, *m, *request.profile)) {
    rows.push_back({label, figure, beside});
  }
  w.table(std::move(rows));
}

/// The lines of every file that a card cites, merged in order: the first file's, the second's if
/// there are two, else how many more.
inline std::string code_text(const Card& card) {
  struct Cited {
    const notation::SourceFile* file;
    std::vector<notation::LineRange> lines;
  };
  std::vector<Cited> files;
  for (const notation::Source& s : card.sources) {
    std::size_t at = 0;
    while (at < files.size() && (files[at].file->repository != s.file.repository ||
                                 files[at].file->path != s.file.path)) {
      ++at;
    }
    if (at == files.size()) files.push_back({&s.file, {}});
    std::vector<notation::LineRange>& lines = files[at].lines;
    for (const notation::LineRange& r : s.lines) {
      auto place = lines.begin();
      while (place != lines.end() && place->first < r.first) ++place;
      if (place == lines.end() || !(*place == r)) lines.insert(place, r);
    }
  }
  std::string out;
  const std::size_t shown = files.size() > 2 ? 1 : files.size();
  for (std::size_t i = 0; i < shown; ++i) {
    out += (i == 0 ? "" : " · ") + std::string(file_name(*files[i].file)) + " ";
    for (std::size_t k = 0; k < files[i].lines.size(); ++k) {
      out += (k == 0 ? "" : ", ") + lines_text({files[i].lines[k]});
    }
  }
  return files.size() > shown ? out + " · " + grouped(files.size() - shown) + " more files" : out;
}

inline void add_sources(Writer& w, const Card& card) {
  w.heading("Code");
  w.paragraph(code_text(card));
  w.heading("Sources (" + std::to_string(card.sources.size()) + ")");
  for (const notation::Source& s : card.sources) {
    std::string tokens;
    for (std::string_view token : s.tokens) {
      tokens += (tokens.empty() ? "" : ", ") + std::string(token);
    }
    w.facts(
        {{"evidence", std::string(name(s.evidence))},
         {"claim", std::string(s.claim)},
         {"record", std::string(s.id) + " · " + std::string(s.file.repository) + " / " +
                        std::string(s.file.path)},
         {"revision", std::string(s.file.revision) +
                          (s.file.version.empty() ? "" : " (" + std::string(s.file.version) + ")") +
                          " · lines " + lines_text(s.lines)},
         {"holds", tokens},
         {"link", url(s)}});
  }
}

inline std::string ffn_text(const ModelFacts& f) {
  return f.multiple_of == 0
             ? "given as a number"
             : "two thirds of 4 dim, times ffn_dim_multiplier = " + number(f.ffn_dim_multiplier) +
                   ", rounded up to multiple_of = " + std::to_string(f.multiple_of);
}

inline std::string scaling_text(const ModelFacts& f) {
  return f.use_scaled_rope ? "True: factor " + number(f.scaling.factor) + ", bands " +
                                 number(f.scaling.low) + " and " + number(f.scaling.high) +
                                 ", original positions " + number(f.scaling.original_positions)
                           : "False";
}

inline void add_configuration(Writer& w, const ModelFacts& f) {
  w.heading("Configuration");
  std::vector<std::pair<std::string, std::string>> facts;
  facts.reserve(24);
  if (!f.core_model_id.empty()) {
    facts.emplace_back("core_model_id", f.core_model_id);
    facts.emplace_back("description", f.description);
    facts.emplace_back("huggingface_repo", f.huggingface_repo);
    facts.emplace_back("pth_file_count", std::to_string(f.pth_file_count));
  }
  facts.emplace_back("dim", std::to_string(f.dim));
  facts.emplace_back("n_layers", std::to_string(f.n_layers));
  facts.emplace_back("n_heads", std::to_string(f.n_heads));
  facts.emplace_back("n_kv_heads", std::to_string(f.n_kv_heads));
  facts.emplace_back("head_dim", std::to_string(f.head_dim));
  facts.emplace_back("vocab_size", std::to_string(f.vocab_size));
  facts.emplace_back("hidden width", std::to_string(f.ffn) + ": " + ffn_text(f));
  facts.emplace_back("norm_eps", number(f.norm_eps));
  facts.emplace_back("rope_theta", number(f.rope_theta));
  facts.emplace_back("use_scaled_rope", scaling_text(f));
  facts.emplace_back("output matrix", f.tied_output ? "the embedding table (tied)" : "separate");
  facts.emplace_back("parameters", grouped(f.parameters));
  facts.emplace_back("KV cache", grouped(2 * f.kv_elements_per_position) +
                                     " bytes a position in bf16, " +
                                     grouped(4 * f.kv_elements_per_position) + " in float32");
  w.facts(std::move(facts));
}

}  // namespace detail

/// The card as a document. Paragraphs that would be empty are left out.
inline Document document(const ModelEntry& entry, const Card& card, const Request& request) {
  detail::Writer w;
  const ModelFacts& facts = entry.facts;
  w.heading(title(facts) + " · " + std::string(card.name));
  std::string crumbs;
  for (const std::string& part : breadcrumb(facts, card)) {
    crumbs += (crumbs.empty() ? "" : " › ") + part;
  }
  if (!crumbs.empty()) w.paragraph(crumbs);
  w.facts({{"id", std::string(card.id)},
           {"kind", std::string(name(card.kind))},
           {"code", std::string(card.code)}});
  w.paragraph(std::string(card.sentence));
  for (const notation::Tree& tree : *card.equations) w.equation(equation_text(tree));
  detail::add_shapes(w, card);
  if (card.notes.size() > 0) {
    w.heading("Notes");
    for (const notation::Note& note : card.notes) {
      w.paragraph(std::string(note.text) +
                  (note.where.empty() ? "" : " (" + std::string(note.where) + ")"));
    }
  }
  detail::add_account(w, facts, card, request);
  detail::add_statistics(w, request);
  if (!card.explanation.empty()) {
    w.heading("Explanation");
    w.paragraph(std::string(card.explanation));
  }
  detail::add_symbols(w, card);
  if (!card.mistake.wrong.empty() &&
      (card.mistake.unit.empty() || card.mistake.wrong_figure != card.mistake.right_figure)) {
    w.heading("The usual mistake");
    w.paragraph(std::string(card.mistake.wrong) + ": " + std::string(card.mistake.right) + ".");
    if (!card.mistake.unit.empty()) {
      w.paragraph(grouped(card.mistake.right_figure) + " " + std::string(card.mistake.unit) +
                  ", not " + grouped(card.mistake.wrong_figure) + ".");
    }
  }
  detail::add_figures(w, card, request);
  detail::add_measured(w, entry, card, request);
  if (card.has_weight) {
    const FileNames names = file_names(card);
    w.heading("Names in files");
    const std::string none = "none: the embedding table is applied";
    w.facts({{"Meta", names.meta},
             {"Hugging Face", names.hugging_face.empty() ? none : names.hugging_face},
             {"GGUF", names.gguf.empty() ? none : names.gguf}});
  }
  w.heading("Here");
  w.facts({{"header", std::string(card.header)},
           {"computed by", std::string(card.kernel)},
           {"tested by", std::string(card.test)}});
  detail::add_sources(w, card);
  detail::add_configuration(w, facts);
  return w.done();
}

}  // namespace quipu::atlas
