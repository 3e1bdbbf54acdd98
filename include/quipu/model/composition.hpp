// Putting components together, checked by the compiler before anything runs.
//
// applied<C, W, X> is the shape that component C gives for an input of shape X with the weight W. A
// wrong axis, a wrong extent or another weight of equal extents is one error with the axis (or both
// identities) and both numbers. The functions of simd/ that compute a component begin with it.
// Tests: test/static/components.cpp, test/compile_fail.
#pragma once

#include "quipu/reflect/weight.hpp"
#include "quipu/shape/shape.hpp"

namespace quipu {

namespace detail {

template <class Expected, class Found>
consteval auto weight_difference() {
  if constexpr (!std::is_same_v<typename Expected::id, typename Found::id>) {
    return type_is<weight_mismatch<expected_weight<typename Expected::id>,
                                   found_weight<typename Found::id>>>{};
  } else {
    return type_is<shape_difference<Shape<typename Expected::out_dim, typename Expected::in_dim>,
                                    Shape<typename Found::out_dim, typename Found::in_dim>>>{};
  }
}

/// The dynamic extents of the input go on to the output: the decode shape of In gives that of Out.
template <class X, class Out>
struct carry_dynamic {
  using type = Out;
};
template <class X, class Out>
requires(
    has_axis<axis::positions, X>&& has_axis<axis::positions, Out>) struct carry_dynamic<X, Out> {
  using type = with_extent<axis::positions, extent_of<axis::positions, X>, Out>;
};

template <class C, class W, class X>
struct application {
  static_assert(sizeof(typename decltype(weight_difference<typename C::Weight, W>())::type) > 0);
  static_assert(sizeof(shape_difference<typename C::In, X>) > 0);
  using type = typename carry_dynamic<X, typename C::Out>::type;
};

template <class C, class X>
struct operation {
  static_assert(sizeof(shape_difference<typename C::In, X>) > 0);
  using type = typename carry_dynamic<X, typename C::Out>::type;
};

}  // namespace detail

/// The output shape of a learned component C for a weight type W and an input shape X.
template <class C, class W, class X>
using applied = typename detail::application<C, W, X>::type;

/// The output shape of a component without weights (rotary, gate, addition).
template <class C, class X>
using operated = typename detail::operation<C, X>::type;

}  // namespace quipu
