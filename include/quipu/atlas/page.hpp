// A model's page: one self-contained HTML file that works offline.
//
// The cards go in as JSON; the drawing, the switches and the sliders are plain JavaScript that
// computes with the constants of card_json.hpp's CostModel. Other models go in as their constants
// and counts only, for the comparison.
// Siblings (the template's parts): page_body.hpp, page_css.hpp, page_js.hpp,
// page_figures_js.hpp, page_map_js.hpp.
#pragma once

#include "quipu/atlas/card_json.hpp"
#include "quipu/atlas/page_body.hpp"
#include "quipu/atlas/page_css.hpp"
#include "quipu/atlas/page_figures_js.hpp"
#include "quipu/atlas/page_js.hpp"
#include "quipu/atlas/page_map_js.hpp"

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
inline Json comparable_json(const ModelEntry& entry) {
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

}  // namespace detail

/// The page of `entry`. `others` may be compared with; `requests` are of its cards in their order,
/// and the first one's work sets the sliders; excerpts of the sources stand in the page where a
/// checkout is given. It opens at the card `first` unless its address names another.
inline std::string page_html(std::span<const ModelEntry> others, const ModelEntry& entry,
                             std::span<const Request> requests, const SourceTrees& trees,
                             std::string_view first = "transformer") {
  Json data = model_json(entry, requests);
  const Work& work = requests.front().work;
  data["excerpts"] = excerpts_json(entry.cards, trees);
  data["first"] = first;
  data["element_types"] = Json::array();
  for (std::size_t t = 0; t < element_type_count; ++t) {
    data["element_types"].push_back(name(static_cast<ElementType>(t)));
  }
  data["work"] = {{"batch", work.batch},
                  {"positions", work.positions},
                  {"start", work.start},
                  {"weights", name(work.weights)},
                  {"cache_element_bytes", work.cache_element_bytes}};
  data["others"] = Json::array();
  for (const ModelEntry& other : others) data["others"].push_back(detail::comparable_json(other));
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += "<link rel=\"icon\" href=\"data:,\">\n";
  html += "<title>" + title(entry.facts) + " · quipu atlas</title>\n<style>\n";
  html += std::string(page_css) + "</style>\n</head>\n" + std::string(page_body);
  html += "<script type=\"application/json\" id=\"data\">" + detail::script_safe(text_of(data)) +
          "</script>\n<script>\n" + std::string(page_js) + std::string(page_figures_js) +
          std::string(page_map_js) + "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace quipu::atlas
