// Shapes as types: a list of named axes with static or dynamic extents, outermost first, such as
// [B batch, T positions, 4096 d]. Activations are row-major, features last.
// Siblings: shape/axis.hpp, shape/view.hpp, test/static/shape.cpp, test/compile_fail.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "quipu/shape/axis.hpp"
#include "quipu/shape/checked.hpp"
#include "quipu/shape/diagnostics.hpp"

namespace quipu {

/// The extent of an axis that is known only at run time (batch, positions).
inline constexpr std::size_t dynamic = static_cast<std::size_t>(-1);

/// One axis of a shape with its extent.
template <class Axis, std::size_t Extent = dynamic>
struct dim {
  using axis = Axis;
  static constexpr std::size_t extent = Extent;
};

/// A shape: dims from the outermost to the innermost.
template <class... Dims>
struct Shape {
  static constexpr std::size_t rank = sizeof...(Dims);
  static constexpr std::size_t dynamic_rank =
      (std::size_t{0} + ... + (Dims::extent == dynamic ? 1 : 0));
  static constexpr std::array<std::size_t, rank> extents{Dims::extent...};
};

namespace detail {

template <class Axis, class... Dims>
constexpr std::size_t place_of(Shape<Dims...>) {
  std::size_t place = 0;
  (void)((std::is_same_v<Axis, typename Dims::axis> ? true : (++place, false)) || ...);
  return place;
}

template <std::size_t Place, class S>
struct nth;
template <std::size_t Place, class First, class... Rest>
struct nth<Place, Shape<First, Rest...>> : nth<Place - 1, Shape<Rest...>> {};
template <class First, class... Rest>
struct nth<0, Shape<First, Rest...>> {
  using type = First;
};

template <class Axis, class S, bool = (place_of<Axis>(S{}) < S::rank)>
struct dim_of {
  using type = typename nth<place_of<Axis>(S{}), S>::type;
};
template <class Axis, class S>
struct dim_of<Axis, S, false> {
  static_assert(sizeof(axis_not_in_shape<Axis, S>) > 0);
  using type = dim<Axis, 1>;
};

template <class S, class D>
struct append;
template <class... Dims, class D>
struct append<Shape<Dims...>, D> {
  using type = Shape<Dims..., D>;
};

}  // namespace detail

/// The I-th dim of a shape, outermost first.
template <std::size_t Place, class S>
using nth_dim = typename detail::nth<Place, S>::type;

/// The extent of an axis in a shape (`dynamic` where it is a run-time value). A shape without that
/// axis: axis_not_in_shape.
template <class Axis, class S>
inline constexpr std::size_t extent_of = detail::dim_of<Axis, S>::type::extent;

/// True if the shape has the axis.
template <class Axis, class S>
inline constexpr bool has_axis = detail::place_of<Axis>(S{}) < S::rank;

// --- equality with a named reason ------------------------------------------------------------

namespace detail {

template <std::size_t Place, class Expected, class Found>
consteval auto first_difference() {
  if constexpr (Expected::rank != Found::rank) {
    return type_is<rank_mismatch<expected<Expected::rank>, found<Found::rank>>>{};
  } else if constexpr (Place == Expected::rank) {
    return type_is<check_passed>{};
  } else {
    using E = nth_dim<Place, Expected>;
    using F = nth_dim<Place, Found>;
    if constexpr (!std::is_same_v<typename E::axis, typename F::axis>) {
      return type_is<
          axis_mismatch<Place, expected_axis<typename E::axis>, found_axis<typename F::axis>>>{};
    } else if constexpr (E::extent != F::extent && E::extent != dynamic && F::extent != dynamic) {
      return type_is<
          axis_extent_mismatch<typename E::axis, expected<E::extent>, found<F::extent>>>{};
    } else {
      return first_difference<Place + 1, Expected, Found>();
    }
  }
}

}  // namespace detail

/// detail::check_passed, or the (undefined) template that says how Found differs from Expected. A
/// dynamic extent agrees with any: such extents are compared at run time.
template <class Expected, class Found>
using shape_difference = typename decltype(detail::first_difference<0, Expected, Found>())::type;

/// True if the shapes agree axis by axis.
template <class Expected, class Found>
inline constexpr bool same_shape =
    std::is_same_v<shape_difference<Expected, Found>, detail::check_passed>;

// --- changing shapes -------------------------------------------------------------------------

namespace detail {

template <class Axis, std::size_t Count, class... Dims>
auto with_extent_impl(Shape<Dims...>) -> Shape<
    std::conditional_t<std::is_same_v<typename Dims::axis, Axis>, dim<Axis, Count>, Dims>...>;

constexpr std::size_t product_or_dynamic(std::size_t a, std::size_t b) {
  return a == dynamic || b == dynamic ? dynamic : checked_mul(a, b, "merged extent");
}

template <class Outer, class Inner, class Done, class... Rest>
struct merge_impl {
  using type = Done;
};
template <class Outer, class Inner, class Done, class First, class... Rest>
struct merge_impl<Outer, Inner, Done, First, Rest...>
    : merge_impl<Outer, Inner, typename append<Done, First>::type, Rest...> {};
template <class Outer, class Inner, class Done, std::size_t A, std::size_t B, class... Rest>
struct merge_impl<Outer, Inner, Done, dim<Outer, A>, dim<Inner, B>, Rest...>
    : merge_impl<
          Outer, Inner,
          typename append<Done, dim<axis::merged<Outer, Inner>, product_or_dynamic(A, B)>>::type,
          Rest...> {};

template <class Outer, class Inner, class S, bool>
struct merge_checked;
template <class Outer, class Inner, class... Dims>
struct merge_checked<Outer, Inner, Shape<Dims...>, true>
    : merge_impl<Outer, Inner, Shape<>, Dims...> {};
template <class Outer, class Inner, class S>
struct merge_checked<Outer, Inner, S, false> {
  static_assert(sizeof(axes_not_adjacent<Outer, Inner, S>) > 0);
  using type = S;
};

template <class Outer, class Inner, class S>
inline constexpr bool adjacent =
    has_axis<Outer, S>&& place_of<Outer>(S{}) + 1 == place_of<Inner>(S{}) && has_axis<Inner, S>;

template <class Merged, std::size_t A, std::size_t B, class Done, class... Rest>
struct split_impl {
  using type = Done;
};
template <class Merged, std::size_t A, std::size_t B, class Done, class First, class... Rest>
struct split_impl<Merged, A, B, Done, First, Rest...>
    : split_impl<Merged, A, B, typename append<Done, First>::type, Rest...> {};
template <class Merged, std::size_t A, std::size_t B, class Done, std::size_t Count, class... Rest>
struct split_impl<Merged, A, B, Done, dim<Merged, Count>, Rest...>
    : split_impl<Merged, A, B,
                 typename append<typename append<Done, dim<typename Merged::outer, A>>::type,
                                 dim<typename Merged::inner, B>>::type,
                 Rest...> {};

template <class Merged, std::size_t A, std::size_t B, class S, bool>
struct split_checked;
template <class Merged, std::size_t A, std::size_t B, class... Dims>
struct split_checked<Merged, A, B, Shape<Dims...>, true>
    : split_impl<Merged, A, B, Shape<>, Dims...> {};
template <class Merged, std::size_t A, std::size_t B, class S>
struct split_checked<Merged, A, B, S, false> {
  static_assert(sizeof(split_must_multiply_to_extent<Merged, extent_is<extent_of<Merged, S>>,
                                                     outer_is<A>, inner_is<B>>) > 0);
  using type = S;
};

template <class Merged, std::size_t A, std::size_t B, class S>
inline constexpr bool splits = extent_of<Merged, S> == A* B || !has_axis<Merged, S>;

}  // namespace detail

/// The shape with one axis given another extent: with_extent<axis::positions, 1, S> is decoding.
template <class Axis, std::size_t Count, class S>
using with_extent = decltype(detail::with_extent_impl<Axis, Count>(S{}));

/// The shape with two neighbouring axes read as one; not side by side: axes_not_adjacent.
template <class Outer, class Inner, class S>
using merge =
    typename detail::merge_checked<Outer, Inner, S, detail::adjacent<Outer, Inner, S>>::type;

/// The shape with a merged axis taken apart into A x B; a wrong product:
/// split_must_multiply_to_extent.
template <class Merged, std::size_t A, std::size_t B, class S>
using split =
    typename detail::split_checked<Merged, A, B, S, detail::splits<Merged, A, B, S>>::type;

/// Elements of a shape whose extents are all static.
template <class S>
constexpr std::size_t element_count() {
  static_assert(S::dynamic_rank == 0, "element_count needs static extents");
  std::size_t n = 1;
  for (std::size_t e : S::extents) n = checked_mul(n, e, "elements of a shape");
  return n;
}

}  // namespace quipu
