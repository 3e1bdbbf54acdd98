// Views of activations: a pointer whose type carries the shape.
//
// Static extents cost nothing; dynamic ones (batch, positions) are stored. Row-major, dense, unless
// a row stride is given (the stride from one innermost row to the next, in elements). A view owns
// nothing. A const view is TensorView<const float, S>.
// Siblings: shape/shape.hpp, test/static/shape.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "quipu/shape/shape.hpp"

namespace quipu {

/// A tensor of shape S (row-major, some extents dynamic) over elements that someone else owns.
template <class T, class S>
class TensorView {
 public:
  using element = T;
  using shape = S;
  static constexpr std::size_t rank = S::rank;

  constexpr TensorView() = default;

  /// Dynamic extents are given outermost first: TensorView<float, Shape<B, T, d>>(p, batch,
  /// positions).
  template <class... Extents>
  requires(sizeof...(Extents) == S::dynamic_rank &&
           (std::is_convertible_v<Extents, std::size_t> &&
            ...)) constexpr explicit TensorView(T* data, Extents... dynamic_extents)
      : data_(data), dynamic_extents_{static_cast<std::size_t>(dynamic_extents)...} {}

  /// A view of const elements from a view of mutable ones.
  constexpr operator TensorView<const T, S>() const requires(!std::is_const_v<T>) {
    TensorView<const T, S> v;
    v.data_ = data_;
    v.dynamic_extents_ = dynamic_extents_;
    return v;
  }

  constexpr T* data() const { return data_; }

  /// The extent at a place, outermost 0.
  constexpr std::size_t extent(std::size_t place) const {
    if (S::extents[place] != dynamic) return S::extents[place];
    std::size_t k = 0;
    for (std::size_t i = 0; i < place; ++i) k += S::extents[i] == dynamic ? 1 : 0;
    return dynamic_extents_[k];
  }

  /// The extent of an axis by name.
  template <class Axis>
  constexpr std::size_t extent() const {
    static_assert(has_axis<Axis, S>, "the view's shape does not have this axis");
    return extent(detail::place_of<Axis>(S{}));
  }

  /// Elements from one index of a place to the next: the product of the extents inside it.
  constexpr std::size_t stride(std::size_t place) const {
    std::size_t n = 1;
    for (std::size_t i = place + 1; i < rank; ++i) n *= extent(i);
    return n;
  }

  constexpr std::size_t size() const { return rank == 0 ? 1 : extent(0) * stride(0); }

  /// Rows: everything outside the innermost axis. A row is what a projection maps.
  constexpr std::size_t rows() const { return rank == 0 ? 1 : size() / row_size(); }
  constexpr std::size_t row_size() const { return rank == 0 ? 1 : extent(rank - 1); }
  constexpr T* row(std::size_t r) const { return data_ + r * row_size(); }

  /// The same memory as another shape with the same dynamic extents and as many elements a row
  /// group: merge and split never move an element.
  template <class Other>
  constexpr TensorView<T, Other> as() const {
    static_assert(Other::dynamic_rank == S::dynamic_rank,
                  "only static axes can be merged or split in place");
    TensorView<T, Other> v;
    v.data_ = data_;
    v.dynamic_extents_ = dynamic_extents_;
    return v;
  }

 private:
  template <class, class>
  friend class TensorView;

  T* data_ = nullptr;
  std::array<std::size_t, S::dynamic_rank> dynamic_extents_{};
};

}  // namespace quipu
