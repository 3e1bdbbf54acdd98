// Structs of weights and what is done over them. The only file that names Boost.Hana.
//
// A struct of weights lists its members once, with QUIPU_WEIGHTS; a member is a Weight, another
// struct of weights, or a std::array of one (the stack of blocks). Counting, naming, loading,
// listing and packing all visit those members in that order. At most 39 members.
// Sibling: reflect/weight.hpp. Tests: test/static/reflect.cpp, test/model.
#pragma once

#include <array>
#include <boost/hana/accessors.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/unpack.hpp>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "quipu/reflect/weight.hpp"

/// Declares the members of a struct of weights inside its body:
///   struct AttentionWeights { QUIPU_WEIGHTS(AttentionWeights, (Wq, wq), (Wk, wk)); };
/// Types with commas need an alias first. The member names are Meta's.
#define QUIPU_WEIGHTS(...) BOOST_HANA_DEFINE_STRUCT(__VA_ARGS__)

namespace quipu {

namespace detail {

template <class T>
struct is_weight : std::false_type {};
template <class Id, class O, class I>
struct is_weight<Weight<Id, O, I>> : std::true_type {};

template <class T>
struct is_array : std::false_type {};
template <class T, std::size_t N>
struct is_array<std::array<T, N>> : std::true_type {};

template <class Accessor>
constexpr const char* member_name(const Accessor& accessor) {
  return boost::hana::to<const char*>(boost::hana::first(accessor));
}

/// Element count of a member type; arrays multiply, they are not visited one by one.
template <class T>
constexpr std::size_t count_elements() {
  if constexpr (is_weight<T>::value) {
    return T::size;
  } else if constexpr (is_array<T>::value) {
    return checked_mul(std::tuple_size_v<T>, count_elements<typename T::value_type>(),
                       "parameters");
  } else {
    return boost::hana::unpack(boost::hana::accessors<T>(), [](auto... accessor) {
      return (
          std::size_t{0} + ... +
          count_elements<
              std::remove_cvref_t<decltype(boost::hana::second(accessor)(std::declval<T&>()))>>());
    });
  }
}

}  // namespace detail

/// Parameters of a struct of weights (or of one Weight), a constant.
template <class Weights>
inline constexpr std::size_t elements_of = detail::count_elements<Weights>();

/// Calls f(name, member) for each member of one struct, in order; no recursion.
template <class Weights, class F>
constexpr void for_each_member(Weights& weights, F&& f) {
  boost::hana::unpack(
      boost::hana::accessors<std::remove_const_t<Weights>>(), [&](auto... accessor) {
        (f(detail::member_name(accessor), boost::hana::second(accessor)(weights)), ...);
      });
}

/// Where a weight stands: Meta's path of it ("layers.3.attention.wq") and the block's number, or
/// `no_layer`.
struct WeightPlace {
  static constexpr std::size_t no_layer = static_cast<std::size_t>(-1);
  std::string path;
  std::size_t layer = no_layer;
};

/// Calls f(place, weight) for every Weight inside, in the order of Meta's state dict; arrays are
/// walked with their index in the path.
template <class Weights, class F>
void for_each_weight(Weights& weights, F&& f, const WeightPlace& at = {}) {
  for_each_member(weights, [&](const char* name, auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    const std::string path = at.path.empty() ? std::string(name) : at.path + "." + name;
    if constexpr (detail::is_weight<Member>::value) {
      f(WeightPlace{path, at.layer}, member);
    } else if constexpr (detail::is_array<Member>::value) {
      for (std::size_t i = 0; i < member.size(); ++i) {
        for_each_weight(member[i], f, WeightPlace{path + "." + std::to_string(i), i});
      }
    } else {
      for_each_weight(member, f, WeightPlace{path, at.layer});
    }
  });
}

}  // namespace quipu
