// The catalogue as a list of types and as entries of the atlas.
// Siblings: config/catalogue.hpp, atlas/cards.hpp.
#pragma once

#include "quipu/atlas/cards.hpp"
#include "quipu/config/model_list.hpp"

namespace quipu::atlas {

namespace detail {
template <class List>
struct entries_of;
template <class... M>
struct entries_of<ModelList<M...>> {
  static constexpr std::array<ModelEntry, sizeof...(M)> value{model_entry<M>...};
};
}  // namespace detail

/// The entries of a ModelList.
template <class List>
inline constexpr std::span<const ModelEntry> entries{detail::entries_of<List>::value};

/// Every model of the catalogue.
using Catalogue =
    ModelList<models::llama2_7b, models::llama2_13b, models::llama2_70b, models::llama3_8b,
              models::llama3_70b, models::llama3_1_8b, models::llama3_1_70b, models::llama3_1_405b,
              models::llama3_2_1b, models::llama3_2_3b, models::llama3_3_70b, models::smollm2_135m,
              models::smollm2_360m, models::smollm2_1_7b, models::tinyllama_1_1b,
              models::stories15m, models::stories110m>;

/// The entry of a name among some; ArgumentError that lists them if there is none.
inline const ModelEntry& find_model(std::span<const ModelEntry> entries, std::string_view name) {
  std::string known;
  for (const ModelEntry& entry : entries) {
    if (entry.facts.name == name) return entry;
    known += ' ';
    known += entry.facts.name;
  }
  raise<ArgumentError>("model " + std::string(name) + ": not among those compiled in:" + known);
}

}  // namespace quipu::atlas
