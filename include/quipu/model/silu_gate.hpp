// The SiLU gate: silu(w1 x) * w3 x, element by element, silu(a) = a / (1 + e^-a). No weights.
// Siblings: simd/silu-inl.hpp, test/simd/silu_test.cpp, bench/silu_bench.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"

namespace quipu {

/// Gate and up, both [B, T, ffn] -> [B, T, ffn]. Source: model.py 219.
template <class M>
struct SiluGate {
  using In = Hidden<M>;
  using Out = Hidden<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// An element: negation, exponential, sum, division, product.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(w.rows(), 5 * dims<M>::ffn, "FLOPs"), 0, 0, 0};
  }
};

}  // namespace quipu
