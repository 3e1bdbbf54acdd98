// A typed equation laid out as a constant list of nodes, so that plain code can render it: one
// renderer for all equations, none of them a template.
// Siblings: notation/expression.hpp; atlas/equation_text.hpp renders.
#pragma once

#include "quipu/notation/expression.hpp"
#include "quipu/notation/source.hpp"

namespace quipu::notation {

/// What a node does with those below it.
enum class Operator : unsigned char {
  name,
  equals,
  product,
  sum,
  hadamard,
  outer,
  quotient,
  lookup,
  call,
  at,
  concat,
};

/// One node; `left` and `right` are places in the list (-1: none).
struct Node {
  Operator op = Operator::name;
  const SymbolFacts* symbol = nullptr;
  std::string_view text;   ///< a function's name or an index
  std::string_view latex;  ///< a function's name
  int left = -1;
  int right = -1;
};

/// An equation; the root is the last node.
using Tree = SmallList<Node, 20>;

/// The equations of one component.
using TreeList = SmallList<Tree, 3>;

namespace detail {

constexpr int add(Tree& tree, const Node& node) {
  tree.push(node);
  return static_cast<int>(tree.size()) - 1;
}

template <class Tag>
constexpr int add_nodes(Tree& tree, Name<Tag>) {
  return add(tree, {Operator::name, &Tag::facts, {}, {}, -1, -1});
}
template <class F, class A>
constexpr int add_nodes(Tree& tree, Call<F, A>);
template <class Axis, class Index, class A>
constexpr int add_nodes(Tree& tree, At<Axis, Index, A>);
template <class Axis, class A>
constexpr int add_nodes(Tree& tree, Concat<Axis, A>);

#define QUIPU_BINARY(Type, op) \
  template <class A, class B>  \
  constexpr int add_nodes(Tree& tree, Type<A, B>);
#define QUIPU_BINARY_BODY(Type, op)                                 \
  template <class A, class B>                                       \
  constexpr int add_nodes(Tree& tree, Type<A, B>) {                 \
    const int left = add_nodes(tree, A{});                          \
    const int right = add_nodes(tree, B{});                         \
    return add(tree, {Operator::op, nullptr, {}, {}, left, right}); \
  }
#define QUIPU_BINARIES(X) \
  X(Product, product)     \
  X(Sum, sum)             \
  X(Hadamard, hadamard)   \
  X(Outer, outer)         \
  X(Quotient, quotient)   \
  X(Lookup, lookup)       \
  X(Equation, equals)
QUIPU_BINARIES(QUIPU_BINARY)
QUIPU_BINARIES(QUIPU_BINARY_BODY)
#undef QUIPU_BINARIES
#undef QUIPU_BINARY_BODY
#undef QUIPU_BINARY

template <class F, class A>
constexpr int add_nodes(Tree& tree, Call<F, A>) {
  const int inner = add_nodes(tree, A{});
  return add(tree, {Operator::call, nullptr, F::text, F::latex, inner, -1});
}
template <class Axis, class Index, class A>
constexpr int add_nodes(Tree& tree, At<Axis, Index, A>) {
  const int inner = add_nodes(tree, A{});
  return add(tree, {Operator::at, nullptr, Index::text, Index::text, inner, -1});
}
template <class Axis, class A>
constexpr int add_nodes(Tree& tree, Concat<Axis, A>) {
  const int inner = add_nodes(tree, A{});
  return add(tree, {Operator::concat, nullptr, Axis::name, Axis::name, inner, -1});
}

}  // namespace detail

namespace detail {
template <class E>
constexpr Tree tree_of(E equation) {
  Tree tree;
  add_nodes(tree, equation);
  return tree;
}
template <class List>
inline constexpr TreeList trees_of{};
template <class... E>
inline constexpr TreeList trees_of<EquationList<E...>>{tree_of(E{})...};
}  // namespace detail

/// The nodes of each equation of a list: one constant for all models, since an equation does not
/// depend on the extents.
template <class... E>
constexpr const TreeList& trees(EquationList<E...>) {
  return detail::trees_of<EquationList<E...>>;
}

}  // namespace quipu::notation
