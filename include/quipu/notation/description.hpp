// What a component says of itself: the members that a card is made of.
//
// A component has a nested struct `description` (or several: one for each place where it stands,
// and one for each named tensor that it makes). It is a nested struct of a template, so nobody pays
// for it who asks for no card. Its members:
//   of          the component
//   id, name, kind, code, sentence, explanation        texts, in our words
//   symbols     Symbols<in<..>, weight<..>, out<..>, given<..>>
//   equations   equations(L == z * W_out)
//   sources()   consteval, the records of the model at hand
//   header      where the component stands; its kernel and test are the component's own members
//   notes, mistake, alias, instances                   optional
// checked<D> is where the description is held against the component: every symbol known, both sides
// of each equation of one shape, an out-symbol's shape that of `of::Out` (a tensor's card takes its
// shape from the component, which may make several).
// Siblings: the headers of model/; atlas/card.hpp gathers.
#pragma once

#include "quipu/notation/accounting.hpp"
#include "quipu/notation/catalogue_sources.hpp"
#include "quipu/notation/tree.hpp"

namespace quipu::notation {

/// What a card is of: a named tensor, a component with weights, one without.
enum class Kind : unsigned char { tensor, learned, operation };

/// "tensor", "learned" or "operation".
constexpr std::string_view name(Kind kind) {
  constexpr std::string_view names[] = {"tensor", "learned", "operation"};
  return names[static_cast<unsigned char>(kind)];
}

/// A remark with the line that it is about ("model.py 301"), or without.
struct Note {
  std::string_view text;
  std::string_view where = "";
};
/// The remarks of one card.
using Notes = SmallList<Note, 4>;

/// The usual mistake beside the right figure. Without a unit there are no figures to show.
struct Mistake {
  std::string_view wrong;
  std::string_view right;
  long long wrong_figure = 0;
  long long right_figure = 0;
  std::string_view unit;
};

/// The undefined template of a description whose output is not the component's: the symbols' shape
/// against Component::Out.
template <class Component, class Shape>
struct description_output_is_not_the_components;

namespace detail {

template <class S>
struct equations_hold;
template <class Env, class... E>
struct equations_of;
template <class Env, class... E>
struct equations_of<Env, EquationList<E...>> : equation_holds<Env, E>... {};

template <class Component, class... B>
consteval bool output_agrees(Symbols<B...>) {
  return ((B::role == Role::output && same_shape<typename Component::Out, typename B::shape>) ||
          ...);
}

template <class Component, class Env, bool>
struct output_check : quipu::detail::check_passed {};
template <class Component, class Env>
struct output_check<Component, Env, false>
    : description_output_is_not_the_components<Component, Env> {};

template <class D>
struct description_check
    : equations_of<typename D::symbols, std::remove_const_t<decltype(D::equations)>> {
  static constexpr output_check<typename D::of, typename D::symbols,
                                D::kind == Kind::tensor ||
                                    output_agrees<typename D::of>(typename D::symbols{})>
      output{};
};

}  // namespace detail

/// True once a description has been held against its component; a contradiction is an error of the
/// templates above.
template <class D>
inline constexpr bool checked = (detail::description_check<D>{}, true);

}  // namespace quipu::notation
