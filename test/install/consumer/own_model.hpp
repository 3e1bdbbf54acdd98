// A model of the consumer's own: one of the catalogue with another width.
#pragma once

#include <quipu/quipu.hpp>

namespace own {
struct narrow : quipu::models::stories15m {
  static constexpr int dim = 192;
};
}  // namespace own
