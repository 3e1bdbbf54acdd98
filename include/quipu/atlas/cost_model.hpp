// A component's cost as a few constants, from which a page recomputes it for any work.
//
// The constants are read off the component's own cost function, not written again; a test compares
// what they give with that function.
// Siblings: model/cost.hpp, atlas/card_json.hpp (hands them to the page),
// test/atlas/catalogue_test.cpp.
#pragma once

#include <array>

#include "quipu/model/cost.hpp"

namespace quipu::atlas {

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

}  // namespace quipu::atlas
