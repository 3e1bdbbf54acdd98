// --find EXTENT: every tensor, weight and activation of a model that has an extent.
// Sibling: atlas/cards.hpp.
#pragma once

#include <vector>

#include "quipu/atlas/figures.hpp"

namespace quipu::atlas {

/// One place where an extent stands: the card, what of it, and its shape.
struct Found {
  const Card* card = nullptr;
  std::string what;
  std::string shape;
};

/// The outputs and weights with an axis of this extent, in reading order; inputs are the outputs of
/// others and are not repeated.
inline std::vector<Found> find_extent(const ModelEntry& entry, std::size_t extent) {
  std::vector<Found> found;
  for (const Card& card : entry.cards) {
    const bool weight_has = card.has_weight && !card.weight.is_vector
                                ? card.weight.out == extent || card.weight.in == extent
                                : card.has_weight && card.weight.in == extent;
    if (weight_has) {
      found.push_back({&card, "weight",
                       card.weight.is_vector ? "[" + std::to_string(card.weight.in) + "]"
                                             : "[" + std::to_string(card.weight.out) + " out, " +
                                                   std::to_string(card.weight.in) + " in]"});
    }
    for (const Operand& o : card.operands) {
      if (o.role != notation::Role::output) continue;
      for (const DimFacts& d : o.shape) {
        if (d.extent == extent) {
          found.push_back({&card, card.kind == notation::Kind::tensor ? "tensor" : "output",
                           shape_text(o.shape, Phase::prefill)});
          break;
        }
      }
    }
  }
  return found;
}

}  // namespace quipu::atlas
