// A card, and a model with all its cards, as JSON: what atlas.schema.json describes.
//
// The cost of a card is given twice: for the work asked for, and as the few constants from which a
// page recomputes it. The constants are read off the component's own cost function, not written
// again; a test compares what they give with that function.
// Siblings: atlas/document.hpp (text), atlas/page.hpp (HTML), atlas/atlas.schema.json.
#pragma once

#include <nlohmann/json.hpp>

#include "quipu/atlas/document.hpp"

namespace quipu::atlas {

using Json = nlohmann::ordered_json;

/// The cost of one instance as constants:
///   FLOPs         = flops_row * rows + flops_visible_key * visible keys
///   weight bytes  = fixed[type] + row[type] * rows
///   KV read       = cache_position * batch * (start + positions) * bytes of a cached element
///   KV written    = cache_position * rows * bytes of a cached element
/// with rows = batch * positions.
struct CostModel {
  std::size_t flops_row = 0, flops_visible_key = 0;
  std::array<std::size_t, element_type_count> weight_fixed{}, weight_row{};
  std::size_t cache_position = 0;

  constexpr Cost at(const Work& w) const {
    const auto type = static_cast<std::size_t>(w.weights);
    return {flops_row * w.rows() + flops_visible_key * w.visible_keys(),
            weight_fixed[type] + weight_row[type] * w.rows(),
            cache_position * w.batch * (w.start + w.positions) * w.cache_element_bytes,
            cache_position * w.rows() * w.cache_element_bytes};
  }
};

/// The constants of a cost function that has this form.
constexpr CostModel cost_model(Cost (*cost)(const Work&)) {
  CostModel m;
  Work one;
  one.cache_element_bytes = 1;
  Work later = one;
  later.start = 1;  // one more visible key
  Work two = one;
  two.batch = 2;  // two rows, two visible keys
  m.flops_visible_key = cost(later).flops - cost(one).flops;
  m.flops_row = cost(one).flops - m.flops_visible_key;
  m.cache_position = cost(one).cache_write_bytes;
  for (std::size_t t = 0; t < element_type_count; ++t) {
    one.weights = two.weights = static_cast<ElementType>(t);
    m.weight_row[t] = cost(two).weight_bytes - cost(one).weight_bytes;
    m.weight_fixed[t] = cost(one).weight_bytes - m.weight_row[t];
  }
  return m;
}

namespace detail {

inline Json shape_json(const ShapeFacts& shape) {
  Json axes = Json::array();
  for (const DimFacts& d : shape) {
    Json axis{{"axis", d.name}};
    if (d.extent == dynamic) {
      axis["extent"] = d.symbol;
    } else {
      axis["extent"] = d.extent;
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

inline Json symbol_json(const notation::SymbolFacts& s) {
  Json links = Json::array();
  for (std::string_view link : s.links) {
    if (!link.empty()) links.push_back(link);
  }
  return {{"text", plain(s)},
          {"latex", s.latex},
          {"meaning", s.meaning},
          {"code", s.code},
          {"links", std::move(links)}};
}

inline std::string_view role_name(notation::Role role) {
  constexpr std::string_view names[] = {"in", "out", "weight", "given"};
  return names[static_cast<unsigned char>(role)];
}

inline Json cost_json(const Cost& c) {
  return {{"flops", c.flops},
          {"weight_bytes", c.weight_bytes},
          {"cache_read_bytes", c.cache_read_bytes},
          {"cache_write_bytes", c.cache_write_bytes},
          {"flops_per_byte", intensity(c)}};
}

inline Json cost_model_json(const CostModel& m) {
  Json fixed = Json::object();
  Json row = Json::object();
  for (std::size_t t = 0; t < element_type_count; ++t) {
    fixed[std::string(name(static_cast<ElementType>(t)))] = m.weight_fixed[t];
    row[std::string(name(static_cast<ElementType>(t)))] = m.weight_row[t];
  }
  return {{"flops_row", m.flops_row},
          {"flops_visible_key", m.flops_visible_key},
          {"weight_fixed", std::move(fixed)},
          {"weight_row", std::move(row)},
          {"cache_position", m.cache_position}};
}

inline Json account_json(const Card& card) {
  Json lines = Json::array();
  for (const notation::AccountLine& line : card.account) {
    lines.push_back({{"component", line_label(line)},
                     {"calculation", calculation(line)},
                     {"in", line.in},
                     {"out", line.out},
                     {"times", line.times},
                     {"counted", line.counted},
                     {"parameters", line.parameters()}});
  }
  return lines;
}

inline Json source_json(const notation::Source& s) {
  Json ranges = Json::array();
  for (const notation::LineRange& r : s.lines) ranges.push_back({r.first, r.last});
  Json tokens = Json::array();
  for (std::string_view token : s.tokens) tokens.push_back(token);
  return {{"id", s.id},
          {"evidence", name(s.evidence)},
          {"claim", s.claim},
          {"repository", s.file.repository},
          {"file", s.file.path},
          {"revision", s.file.revision},
          {"version", s.file.version},
          {"lines", std::move(ranges)},
          {"symbols", std::move(tokens)},
          {"url", url(s)}};
}

inline Json weight_json(const Card& card) {
  constexpr std::string_view cuts[] = {"none", "rows", "columns"};
  const FileNames names = file_names(card);
  return {{"shape", card.weight.is_vector ? Json::array({card.weight.in})
                                          : Json::array({card.weight.out, card.weight.in})},
          {"layout", layout(card)},
          {"shared_with_embedding", card.shares_embedding},
          {"model_parallel_cut", cuts[static_cast<unsigned char>(card.weight.shard)]},
          {"names",
           {{"meta", names.meta}, {"hugging_face", names.hugging_face}, {"gguf", names.gguf}}}};
}

inline Json ranks_json(const ModelFacts& facts, const Card& card) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < facts.parallel_size_count; ++i) {
    const std::size_t n = facts.parallel_sizes[i];
    ranks.push_back({{"ranks", n}, {"parameters_of_rank", parameters_of_rank(card, n)}});
  }
  return ranks;
}

inline Json mistake_json(const notation::Mistake& m) {
  return {{"wrong", m.wrong},
          {"right", m.right},
          {"wrong_figure", m.wrong_figure},
          {"right_figure", m.right_figure},
          {"unit", m.unit}};
}

}  // namespace detail

/// A model's constants.
inline Json facts_json(const ModelFacts& f) {
  return {{"name", f.name},
          {"title", title(f)},
          {"core_model_id", f.core_model_id},
          {"description", f.description},
          {"huggingface_repo", f.huggingface_repo},
          {"pth_file_count", f.pth_file_count},
          {"dim", f.dim},
          {"n_layers", f.n_layers},
          {"n_heads", f.n_heads},
          {"n_kv_heads", f.n_kv_heads},
          {"head_dim", f.head_dim},
          {"vocab_size", f.vocab_size},
          {"ffn", f.ffn},
          {"ffn_dim_multiplier", f.ffn_dim_multiplier},
          {"multiple_of", f.multiple_of},
          {"norm_eps", f.norm_eps},
          {"rope_theta", f.rope_theta},
          {"use_scaled_rope", f.use_scaled_rope},
          {"rope_scaling", f.use_scaled_rope
                               ? Json{{"factor", f.scaling.factor},
                                      {"low", f.scaling.low},
                                      {"high", f.scaling.high},
                                      {"original_positions", f.scaling.original_positions}}
                               : Json(nullptr)},
          {"tied_output", f.tied_output},
          {"parameters", f.parameters},
          {"embedding_parameters", f.embedding_parameters},
          {"kv_elements_per_position", f.kv_elements_per_position}};
}

/// One card; `with_model` adds the model's constants, as a card alone needs them.
inline Json card_json(const ModelEntry& entry, const Card& card, const Request& request,
                      bool with_model = true) {
  using namespace detail;
  Json json;
  if (with_model) json["model"] = facts_json(entry.facts);
  json["id"] = card.id;
  json["alias"] = card.alias;
  json["name"] = card.name;
  json["breadcrumb"] = breadcrumb(entry.facts, card);
  json["kind"] = name(card.kind);
  json["code"] = card.code;
  json["description"] = card.sentence;
  json["equations"] = Json::array();
  for (const notation::Tree& tree : *card.equations) {
    json["equations"].push_back({{"text", equation_text(tree)},
                                 {"latex", equation_latex(tree)},
                                 {"mathml", equation_mathml(tree)}});
  }
  json["operands"] = Json::array();
  for (const Operand& o : card.operands) {
    json["operands"].push_back({{"role", role_name(o.role)},
                                {"symbol", symbol_json(*o.symbol)},
                                {"shape", shape_json(o.shape)},
                                {"prefill", shape_text(o.shape, Phase::prefill)},
                                {"decode", shape_text(o.shape, Phase::decode)},
                                {"dtype", carrier_name(o.carrier)}});
  }
  json["parameters"] = {{"per_instance", card.parameters},
                        {"instances", card.instances},
                        {"total", card.parameters * card.instances}};
  json["accounting"] = account_json(card);
  json["basis"] = request.counted_file.empty() ? basis(card) : "checked against a checkpoint";
  if (!request.counted_file.empty()) {
    json["checked"] = {{"file", request.counted_file}, {"parameters", request.counted_parameters}};
  }
  json["weight"] = card.has_weight ? weight_json(card) : Json(nullptr);
  json["model_parallel"] = card.parameters == 0 ? Json::array() : ranks_json(entry.facts, card);
  json["model_parallel_text"] = sharding_text(entry.facts, card);
  json["notes"] = Json::array();
  for (const notation::Note& note : card.notes) {
    json["notes"].push_back({{"text", note.text}, {"where", note.where}});
  }
  json["explanation"] = card.explanation;
  json["usual_mistake"] = card.mistake.wrong.empty() ? Json(nullptr) : mistake_json(card.mistake);
  if (card.cost != nullptr) {
    const Work& w = request.work;
    json["cost"] = {{"batch", w.batch},
                    {"positions", w.positions},
                    {"start", w.start},
                    {"weights", name(w.weights)},
                    {"per_instance", cost_json(card.cost(w))},
                    {"total", cost_json(card.instances * card.cost(w))}};
    json["cost_model"] = cost_model_json(cost_model(card.cost));
  } else {
    json["cost"] = nullptr;
    json["cost_model"] = nullptr;
  }
  json["header"] = card.header;
  json["kernel"] = card.kernel;
  json["test"] = card.test;
  json["code_lines"] = code_text(card);
  json["sources"] = Json::array();
  for (const notation::Source& s : card.sources) json["sources"].push_back(source_json(s));
  return json;
}

/// A model with all its cards.
inline Json model_json(const ModelEntry& entry, const Request& request) {
  Json cards = Json::array();
  for (const Card& card : entry.cards) cards.push_back(card_json(entry, card, request, false));
  Json frequencies = Json::array();
  for (float f : entry.inverse_frequencies) frequencies.push_back(static_cast<double>(f));
  return {{"model", facts_json(entry.facts)},
          {"inverse_frequencies", std::move(frequencies)},
          {"cards", std::move(cards)}};
}

}  // namespace quipu::atlas
