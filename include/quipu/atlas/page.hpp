// A model's page: one self-contained HTML file that works offline.
//
// The cards go in as JSON; the drawing, the switches and the sliders are plain JavaScript that
// computes with the constants of card_json.hpp's CostModel. Other models go in as their constants
// and counts only, for the comparison.
// Siblings (the template's parts): page_body.hpp, page_css.hpp, page_js.hpp, page_map_js.hpp.
#pragma once

#include "quipu/atlas/card_json.hpp"
#include "quipu/atlas/page_body.hpp"
#include "quipu/atlas/page_css.hpp"
#include "quipu/atlas/page_js.hpp"
#include "quipu/atlas/page_map_js.hpp"
#include "quipu/atlas/verify.hpp"

namespace quipu::atlas {

namespace detail {

/// JSON that may stand inside a script element: no "</" and no "<!--".
inline std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

/// What a comparison needs of a model: its constants and each card's counts and shapes.
inline Json outline_json(const ModelEntry& entry) {
  Json cards = Json::object();
  for (const Card& card : entry.cards) {
    Json shapes = Json::array();
    for (const Operand& o : card.operands) {
      shapes.push_back(plain(*o.symbol) + " " + shape_text(o.shape, Phase::prefill));
    }
    Json notes = Json::array();
    for (const notation::Note& note : card.notes) notes.push_back(note.text);
    cards[std::string(card.id)] = {{"name", card.name},
                                   {"parameters", card.parameters},
                                   {"instances", card.instances},
                                   {"shapes", std::move(shapes)},
                                   {"notes", std::move(notes)}};
  }
  return {{"model", facts_json(entry.facts)}, {"cards", std::move(cards)}};
}

inline Json excerpts_json(const ModelEntry& entry, const SourceTrees& trees) {
  Json json = Json::object();
  constexpr const char* states[] = {"confirmed", "refuted", "no_checkout"};
  for (const Card& card : entry.cards) {
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

}  // namespace detail

/// The page of `entry`. `others` may be compared with; `request` sets the sliders; excerpts of the
/// sources stand in the page where a checkout is given.
inline std::string page_html(std::span<const ModelEntry> others, const ModelEntry& entry,
                             const Request& request, const SourceTrees& trees) {
  Json data = model_json(entry, request);
  data["excerpts"] = detail::excerpts_json(entry, trees);
  data["element_types"] = Json::array();
  for (std::size_t t = 0; t < element_type_count; ++t) {
    data["element_types"].push_back(name(static_cast<ElementType>(t)));
  }
  data["work"] = {{"batch", request.work.batch},
                  {"positions", request.work.positions},
                  {"start", request.work.start},
                  {"weights", name(request.work.weights)},
                  {"cache_element_bytes", request.work.cache_element_bytes}};
  data["others"] = Json::array();
  for (const ModelEntry& other : others) data["others"].push_back(detail::outline_json(other));
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += "<link rel=\"icon\" href=\"data:,\">\n";
  html += "<title>" + title(entry.facts) + " · quipu atlas</title>\n<style>\n";
  html += std::string(page_css) + "</style>\n</head>\n" + std::string(page_body);
  html += "<script type=\"application/json\" id=\"data\">" + detail::script_safe(data.dump()) +
          "</script>\n<script>\n" + std::string(page_js) + std::string(page_map_js) +
          "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace quipu::atlas
