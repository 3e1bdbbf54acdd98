// The sentences of the compile-time errors about shapes.
//
// Each is a template without a definition. A check that fails asks for the size of one of them, so
// that GCC and Clang print one error whose line is the template with its arguments: the rule, the
// axis and both numbers, such as
//   axis_extent_mismatch<axis::ffn, expected<14336>, found<4096>>
// The check is a static_assert beside a member that stands in for the result. As a base class the
// template would make the checking class invalid, and Clang would then report each use of it.
// Tests: test/compile_fail (each message is matched for both compilers).
#pragma once

#include <cstddef>

namespace quipu {

/// An extent that was needed, in elements.
template <std::size_t Value>
struct expected {};
/// The extent that stood there, in elements.
template <std::size_t Value>
struct found {};
/// The axis that was needed.
template <class Axis>
struct expected_axis {};
/// The axis that stood there.
template <class Axis>
struct found_axis {};
/// The weight that a component applies, by its identity.
template <class Id>
struct expected_weight {};
/// The weight that it was given.
template <class Id>
struct found_weight {};
/// The extent of an axis, in elements.
template <std::size_t Value>
struct extent_is {};
/// The extent that each of several equal blocks should have.
template <std::size_t Value>
struct block_is {};
/// The outer factor of a split axis.
template <std::size_t Value>
struct outer_is {};
/// The inner factor of a split axis.
template <std::size_t Value>
struct inner_is {};

/// An axis is the right one, its extent is not.
template <class Axis, class Expected, class Found>
struct axis_extent_mismatch;

/// At this place of the shape (counted from 0, outermost) another axis was expected.
template <std::size_t Place, class Expected, class Found>
struct axis_mismatch;

/// The shapes have different numbers of axes.
template <class Expected, class Found>
struct rank_mismatch;

/// A shape was asked for an axis that it does not have.
template <class Axis, class Shape>
struct axis_not_in_shape;

/// merge() of axes that do not stand side by side, outer first.
template <class Outer, class Inner, class Shape>
struct axes_not_adjacent;

/// split() of an extent that the parts do not multiply to.
template <class Axis, class Extent, class Outer, class Inner>
struct split_must_multiply_to_extent;

/// A weight of another identity was given, though its extents may be equal (w1 for w3).
template <class Expected, class Found>
struct weight_mismatch;

/// A row stored in a block format must be whole blocks.
template <class Axis, class Extent, class Block>
struct quantised_row_must_be_whole_blocks;

namespace detail {
/// What a check names when nothing is wrong.
struct check_passed {};

template <class T>
struct type_is {
  using type = T;
};
}  // namespace detail
}  // namespace quipu
