// The residual addition: an update joins the residual stream. Twice a block, nowhere else.
// Siblings: simd/residual-inl.hpp, test/simd/residual_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"

namespace quipu {

/// Stream and update, both [B, T, d] -> [B, T, d]. Source: model.py 246 and 247.
template <class M>
struct ResidualAdd {
  using In = Residual<M>;
  using Out = Residual<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = 2 * dims<M>::n_layers;

  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), dims<M>::dim, "FLOPs"), 0, 0, 0};
  }
};

}  // namespace quipu
