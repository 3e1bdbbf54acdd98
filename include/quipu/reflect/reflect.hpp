// Structs of weights and what is done over them. The only file that names Boost.Hana.
//
// A struct of weights lists its members once, with QUIPU_WEIGHTS; a member is a Weight, another
// struct of weights, or a std::array of one (the stack of blocks). Counting, naming, loading,
// listing and packing all visit those members in that order. At most 60 members.
//
// To Hana such a struct is a Struct whose members are types of our own: a sequence of (name,
// pointer to member) that Hana unpacks. BOOST_HANA_DEFINE_STRUCT would make a hana::tuple of pairs
// of hana::string instead, which was a third of the compile time of the whole typed side.
// Sibling: reflect/weight.hpp. Tests: test/static/reflect.cpp, test/model.
#pragma once

#include <array>
#include <boost/hana/accessors.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/unpack.hpp>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "quipu/reflect/weight.hpp"

// macro(type, name) for each of the pairs (type, name): a macro may not call itself, so each pair
// hands on a call that one more rescan by EXPAND carries out.
#define QUIPU_DETAIL_EXPAND(...) \
  QUIPU_DETAIL_EXPAND_3(         \
      QUIPU_DETAIL_EXPAND_3(QUIPU_DETAIL_EXPAND_3(QUIPU_DETAIL_EXPAND_3(__VA_ARGS__))))
#define QUIPU_DETAIL_EXPAND_3(...) \
  QUIPU_DETAIL_EXPAND_2(           \
      QUIPU_DETAIL_EXPAND_2(QUIPU_DETAIL_EXPAND_2(QUIPU_DETAIL_EXPAND_2(__VA_ARGS__))))
#define QUIPU_DETAIL_EXPAND_2(...) \
  QUIPU_DETAIL_EXPAND_1(           \
      QUIPU_DETAIL_EXPAND_1(QUIPU_DETAIL_EXPAND_1(QUIPU_DETAIL_EXPAND_1(__VA_ARGS__))))
#define QUIPU_DETAIL_EXPAND_1(...) __VA_ARGS__
#define QUIPU_DETAIL_PARENTHESES ()
#define QUIPU_DETAIL_NEXT(macro, pair, ...) \
  macro pair __VA_OPT__(QUIPU_DETAIL_AGAIN QUIPU_DETAIL_PARENTHESES(macro, __VA_ARGS__))
#define QUIPU_DETAIL_AGAIN() QUIPU_DETAIL_NEXT
#define QUIPU_DETAIL_FOR_EACH(macro, ...) QUIPU_DETAIL_EXPAND(QUIPU_DETAIL_NEXT(macro, __VA_ARGS__))
#define QUIPU_DETAIL_MEMBER(type, name) type name;
#define QUIPU_DETAIL_NAME(type, name) #name,
#define QUIPU_DETAIL_POINTER(type, name) , &owner::name

/// Declares the members of a struct of weights inside its body:
///   struct AttentionWeights { QUIPU_WEIGHTS(AttentionWeights, (Wq, wq), (Wk, wk)); };
/// Types with commas need an alias first. The member names are Meta's.
#define QUIPU_WEIGHTS(TYPE, ...)                                                           \
  QUIPU_DETAIL_FOR_EACH(QUIPU_DETAIL_MEMBER, __VA_ARGS__)                                  \
  struct hana_accessors_impl {                                                             \
    using owner = TYPE;                                                                    \
    static constexpr const char* name(std::size_t place) {                                 \
      const char* const names[] = {QUIPU_DETAIL_FOR_EACH(QUIPU_DETAIL_NAME, __VA_ARGS__)}; \
      return names[place];                                                                 \
    }                                                                                      \
    static constexpr auto apply() {                                                        \
      return ::quipu::detail::members<owner QUIPU_DETAIL_FOR_EACH(QUIPU_DETAIL_POINTER,    \
                                                                  __VA_ARGS__)>{};         \
    }                                                                                      \
  }

namespace quipu::detail {

struct member_tag;
struct members_tag;

/// A Hana Product: first is the name, second the function from a struct to its member.
template <class Owner, std::size_t Place, auto Pointer>
struct member {
  using hana_tag = member_tag;
  static constexpr const char* name = Owner::hana_accessors_impl::name(Place);
};
template <auto Pointer>
struct access {
  template <class Weights>
  constexpr auto& operator()(Weights& weights) const {
    return weights.*Pointer;
  }
};

/// A Hana Foldable: what hana::accessors gives for a struct of weights.
template <class Owner, auto... Pointers>
struct members {
  using hana_tag = members_tag;
  static constexpr std::size_t size = sizeof...(Pointers);
  template <std::size_t... Places, class F>
  static constexpr decltype(auto) unpack(std::index_sequence<Places...>, F& f) {
    return f(member<Owner, Places, Pointers>{}...);
  }
};

}  // namespace quipu::detail

namespace boost::hana {
template <>
struct first_impl<quipu::detail::member_tag> {
  template <class Member>
  static constexpr const char* apply(const Member&) {
    return Member::name;
  }
};
template <>
struct second_impl<quipu::detail::member_tag> {
  template <class Owner, std::size_t Place, auto Pointer>
  static constexpr quipu::detail::access<Pointer> apply(
      const quipu::detail::member<Owner, Place, Pointer>&) {
    return {};
  }
};
template <>
struct unpack_impl<quipu::detail::members_tag> {
  template <class Members, class F>
  static constexpr decltype(auto) apply(const Members&, F&& f) {
    return Members::unpack(std::make_index_sequence<Members::size>{}, f);
  }
};
}  // namespace boost::hana

namespace quipu {

namespace detail {

template <class T>
struct is_weight : std::false_type {};
template <class Id, class OutDim, class InDim>
struct is_weight<Weight<Id, OutDim, InDim>> : std::true_type {};

template <class T>
struct is_array : std::false_type {};
template <class T, std::size_t Count>
struct is_array<std::array<T, Count>> : std::true_type {};

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
        (f(boost::hana::first(accessor), boost::hana::second(accessor)(weights)), ...);
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
