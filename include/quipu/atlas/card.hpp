// Cards: what the atlas says of one component or tensor of one model, gathered from the types.
//
// A Card is a constant. card<M, D> copies nothing by hand: shapes, counts and equations come from
// the component, texts and sources from its description, and whatever contradicts does not compile.
// Siblings: notation/description.hpp, atlas/cards.hpp (all cards of a model).
#pragma once

#include <string_view>

#include "quipu/model/sharding.hpp"
#include "quipu/model/transformer.hpp"
#include "quipu/notation/description.hpp"

namespace quipu::atlas {

/// One axis of a shape; `extent` is `dynamic` for batch, positions and keys.
struct DimFacts {
  std::string_view name, singular, symbol;
  std::size_t extent = dynamic;
};
/// A shape, outermost axis first.
using ShapeFacts = notation::SmallList<DimFacts, 4>;

/// A symbol of the card with its shape: an input, an output, a weight (in x out), something given.
struct Operand {
  notation::Role role = notation::Role::given;
  const notation::SymbolFacts* symbol = nullptr;
  ShapeFacts shape;
  notation::Carrier carrier = notation::Carrier::activation;
};

/// The weight of a component that has exactly one: [out, in], names, how it is split.
struct WeightFacts {
  std::size_t out = 0, in = 0;
  bool is_vector = false;
  ShardAxis shard = ShardAxis::none;
  std::string_view hugging_face, gguf;
};

/// Everything that the atlas says of one component or tensor of one model.
struct Card {
  std::string_view id;
  std::string_view alias;  ///< a second id under which it is found, or empty
  std::string_view name;
  std::string_view inside;  ///< the component around it, within a block
  notation::Kind kind = notation::Kind::operation;
  std::string_view code, sentence, explanation;
  std::string_view header, kernel, test;
  const notation::TreeList* equations = nullptr;
  notation::SmallList<Operand, 8> operands;
  std::size_t parameters = 0;  ///< of one instance; 0 for tensors and operations
  std::size_t instances = 1;
  notation::Account account;
  WeightFacts weight;
  bool has_weight = false;
  bool shares_embedding = false;
  notation::Notes notes;
  notation::Mistake mistake;
  notation::SourceList sources;
  Cost (*cost)(const Work&) = nullptr;  ///< of one instance; null for tensors
};

namespace detail {

template <class... Dims>
constexpr ShapeFacts shape_facts(Shape<Dims...>) {
  ShapeFacts facts;
  (facts.push({Dims::axis::name, Dims::axis::singular, Dims::axis::symbol, Dims::extent}), ...);
  return facts;
}

template <class B>
constexpr Operand operand() {
  using Symbol = typename B::symbol;
  return {B::role, &Symbol::tag::facts, shape_facts(typename B::shape{}), B::carrier};
}

template <class... B>
constexpr notation::SmallList<Operand, 8> operands(notation::Symbols<B...>) {
  return {operand<B>()...};
}

/// The undefined template of lines of accounting that do not add up to the component's count.
template <class Component, std::size_t Lines, std::size_t Count>
struct accounting_does_not_add_up;

template <class C, std::size_t Lines = notation::total(notation::account_of<C>()),
          bool = Lines == C::parameters>
struct account_check : quipu::detail::check_passed {};
template <class C, std::size_t Lines>
struct account_check<C, Lines, false> : accounting_does_not_add_up<C, Lines, C::parameters> {};

template <class C>
inline constexpr bool account_adds_up = (account_check<C>{}, true);

template <class D>
consteval Card make_card() {
  using C = typename D::of;
  static_assert(notation::checked<D>);
  Card card;
  card.id = D::id;
  card.name = D::name;
  card.inside = D::inside;
  card.kind = D::kind;
  card.code = D::code;
  card.sentence = D::sentence;
  card.explanation = D::explanation;
  card.header = D::header;
  card.kernel = C::kernel;
  card.test = C::test;
  card.equations = &notation::trees(D::equations);
  card.operands = operands(typename D::symbols{});
  card.sources = D::sources();
  if constexpr (requires { D::instances; }) {
    card.instances = D::instances;
  } else {
    card.instances = C::instances;
  }
  if constexpr (requires { D::alias; }) card.alias = D::alias;
  if constexpr (requires { D::notes; }) card.notes = D::notes;
  if constexpr (requires { D::mistake; }) card.mistake = D::mistake;
  if constexpr (D::kind != notation::Kind::tensor) {
    static_assert(account_adds_up<C>);
    card.parameters = C::parameters;
    card.account = notation::account_of<C>();
    card.cost = &C::cost;
    if constexpr (requires { typename C::Weight; }) {
      using W = typename C::Weight;
      card.has_weight = true;
      card.weight = {W::out, W::in, W::is_vector, W::id::shard, W::id::hugging_face, W::id::gguf};
    }
    if constexpr (requires { C::shares_embedding; }) card.shares_embedding = C::shares_embedding;
  }
  return card;
}

}  // namespace detail

/// The card of a description, a constant.
template <class D>
inline constexpr Card card = detail::make_card<D>();

}  // namespace quipu::atlas
