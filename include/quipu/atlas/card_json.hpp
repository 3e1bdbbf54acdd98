// A card, and a model with all its cards, as JSON: what atlas.schema.json describes.
//
// The cost of a card is given twice: for the work asked for, and as the few constants from which a
// page recomputes it.
// Siblings: atlas/cost_model.hpp, atlas/document.hpp (text), atlas/page.hpp (HTML),
// atlas/atlas.schema.json.
#pragma once

#include <nlohmann/json.hpp>

#include "quipu/atlas/cost_model.hpp"
#include "quipu/atlas/document.hpp"
#include "quipu/atlas/verify.hpp"

namespace quipu::atlas {

/// JSON that keeps the order of its members.
using Json = nlohmann::ordered_json;

/// JSON as text, in one line or indented. The name of a file may be any bytes: what is not UTF-8
/// becomes U+FFFD.
inline std::string text_of(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
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

inline Json statistics_json(const std::vector<LayerStatistics>& all) {
  Json json = Json::array();
  for (const LayerStatistics& s : all) {
    json.push_back({{"tensor", s.tensor},
                    {"type", s.type},
                    {"elements", s.elements},
                    {"least", s.least},
                    {"greatest", s.greatest},
                    {"mean", s.mean},
                    {"deviation", s.deviation},
                    {"not_finite", s.not_finite}});
  }
  return json;
}

inline Json measured_json(const Card& card, const Measured& m, const Profile& p) {
  Json lines = Json::array();
  for (const auto& line : measured_lines(card, m, p)) lines.push_back(line);
  return {
      {"blocks", m.blocks},
      {"seconds", m.seconds},
      {"seconds_of_block", {{"least", m.least}, {"median", m.median}, {"greatest", m.greatest}}},
      {"share", m.share},
      {"bytes", m.bytes},
      {"flops", m.flops},
      {"bytes_per_second", m.bytes_per_second()},
      {"flops_per_second", m.flops_per_second()},
      {"of_read_ceiling", m.bytes_per_second() / p.ceilings.read_bytes_per_second},
      {"of_arithmetic_ceiling", m.flops_per_second() / arithmetic_ceiling(p, card)},
      {"predicted",
       {{"bytes", m.predicted_bytes},
        {"flops", m.predicted_flops},
        {"least_seconds", m.least_seconds},
        {"bound", m.memory_bound ? "reading" : "arithmetic"}}},
      {"efficiency", m.efficiency()},
      {"lines", std::move(lines)}};
}

inline Json profile_json(const Profile& p) {
  Json weights = Json::array();
  for (ElementType type : p.weights) weights.push_back(name(type));
  return {{"file", p.file},
          {"target", p.target},
          {"threads", p.threads},
          {"batch", p.work.batch},
          {"positions", p.work.positions},
          {"at", p.work.start},
          {"weights", std::move(weights)},
          {"cache", p.cache},
          {"activations", p.activations},
          {"mode", p.mode},
          {"passes", p.passes},
          {"seconds", p.seconds},
          {"ceilings",
           {{"read_bytes_per_second", p.ceilings.read_bytes_per_second},
            {"fma_flops_per_second", p.ceilings.fma_flops_per_second},
            {"int8_ops_per_second", p.ceilings.int8_ops_per_second},
            {"signed_int8_ops_per_second", p.ceilings.signed_int8_ops_per_second}}},
          {"text", profile_text(p)}};
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
  json["basis"] = basis(card, request.counted);
  if (!request.counted.file.empty()) {
    json["checked"] = {{"file", request.counted.file},
                       {"parameters", request.counted.parameters},
                       {"agrees", agrees(card, request.counted)}};
  }
  if (!request.statistics.empty()) json["layer_statistics"] = statistics_json(request.statistics);
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
  if (request.profile != nullptr) {
    if (with_model) json["profile"] = profile_json(*request.profile);
    const std::optional<Measured> m = measured(entry, card, *request.profile);
    json["measured"] = m ? measured_json(card, *m, *request.profile) : Json(nullptr);
  }
  json["header"] = card.header;
  json["kernel"] = card.kernel;
  json["test"] = card.test;
  json["code_lines"] = code_text(card);
  json["sources"] = Json::array();
  for (const notation::Source& s : card.sources) json["sources"].push_back(source_json(s));
  return json;
}

/// A model with all its cards; `requests` are of the cards in their order, of one profile if any.
inline Json model_json(const ModelEntry& entry, std::span<const Request> requests) {
  Json cards = Json::array();
  for (std::size_t i = 0; i < entry.cards.size(); ++i) {
    cards.push_back(card_json(entry, entry.cards[i], requests[i], false));
  }
  Json frequencies = Json::array();
  for (float f : entry.inverse_frequencies) frequencies.push_back(static_cast<double>(f));
  Json json{{"model", facts_json(entry.facts)},
            {"inverse_frequencies", std::move(frequencies)},
            {"cards", std::move(cards)}};
  if (const Profile* profile = requests.front().profile) {
    json["profile"] = detail::profile_json(*profile);
  }
  return json;
}

/// A card in a list: what it is, without what it says.
inline Json outline_json(const Card& card) {
  return {{"id", card.id},
          {"name", card.name},
          {"kind", name(card.kind)},
          {"parameters", card.parameters},
          {"instances", card.instances}};
}

/// The excerpts of the sources of some cards in a user's own checkouts, by their link and lines.
inline Json excerpts_json(std::span<const Card> cards, const SourceTrees& trees) {
  Json json = Json::object();
  constexpr const char* states[] = {"confirmed", "refuted"};
  for (const Card& card : cards) {
    for (const notation::Source& s : card.sources) {
      const Verdict verdict = verify(s, trees);
      if (verdict.state == Verdict::State::no_checkout) continue;
      Json ranges = Json::array();
      for (const Excerpt& e : verdict.excerpts) {
        ranges.push_back({{"first", e.range.first}, {"lines", e.lines}});
      }
      json[url(s) + " " + lines_text(s.lines)] = {
          {"state", states[static_cast<unsigned char>(verdict.state)]},
          {"reason", verdict.reason},
          {"ranges", std::move(ranges)}};
    }
  }
  return json;
}

}  // namespace quipu::atlas
