// A learned linear map of the last axis, without bias: what q, k, v, o, gate, up, down and the
// vocabulary projection have in common. y = x W, the weight stored transposed as [out, in].
// Siblings: query_projection.hpp and the other projections; simd/product-inl.hpp computes it.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/reflect/weight.hpp"

namespace quipu {

/// Id: the identity of the weight. InDim, OutDim: the dims of the last axis before and after.
template <class Id, class OutDim, class InDim>
struct Projection {
  using In = Shape<BatchDim, PositionsDim, InDim>;
  using Out = Shape<BatchDim, PositionsDim, OutDim>;
  using Weight = quipu::Weight<Id, OutDim, InDim>;

  /// Parameters of the matrix that this component applies.
  static constexpr std::size_t parameters = Weight::size;

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/product-inl.hpp",
                                    test = "test/simd/product_test.cpp";

  /// 2 FLOPs a weight and row; the matrix is read once.
  static constexpr Cost cost(const Work& w) {
    return {checked_mul(2 * w.rows(), parameters, "FLOPs"),
            predicted_weight_bytes(w.weights, Weight::out, Weight::in), 0, 0};
  }
};

}  // namespace quipu
