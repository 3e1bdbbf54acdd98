// Lines of exact accounting, made from a component's struct of weights: no second list of tensors
// and no second formula. A line is a product such as 4,096 x 128,256; the lines add up to the
// component's `parameters`, or the card does not compile.
// Siblings: reflect/reflect.hpp, test/atlas/cards_test.cpp.
#pragma once

#include "quipu/notation/source.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu::notation {

/// One matrix or vector: `label` is the member's name under Meta's naming, inside `group` (a member
/// that is itself a struct); in x out, `times` instances, `counted` false for a matrix that another
/// line counts already.
struct AccountLine {
  std::string_view group;
  std::string_view label;
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t times = 1;
  bool counted = true;
  ShardAxis shard = ShardAxis::none;

  constexpr std::size_t parameters() const {
    return counted ? checked_mul(checked_mul(in, out, "parameters"), times, "parameters") : 0;
  }
  /// What one of `ranks` model-parallel ranks holds; a shared matrix is held once.
  constexpr std::size_t parameters_of_rank(std::size_t ranks) const {
    return shard == ShardAxis::none ? parameters() : parameters() / ranks;
  }
};

/// The lines of one card.
using Account = SmallList<AccountLine, 12>;

/// Their sum in parameters; SizeError past the range of an integer.
constexpr std::size_t total(const Account& account) {
  std::size_t n = 0;
  for (const AccountLine& line : account) n = checked_add(n, line.parameters(), "parameters");
  return n;
}

namespace detail {
template <class Weights>
constexpr void add_lines(Account& account, std::string_view group, std::size_t times) {
  Weights weights{};
  for_each_member(weights, [&](const char* name, auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (quipu::detail::is_weight<Member>::value) {
      account.push({group, name, Member::in, Member::out, times, true, Member::id::shard});
    } else if constexpr (quipu::detail::is_array<Member>::value) {
      add_lines<typename Member::value_type>(account, name, times * std::tuple_size_v<Member>);
    } else {
      add_lines<Member>(account, name, times);
    }
  });
}
}  // namespace detail

/// The lines of a component with one matrix or vector, with a struct of weights, or with none.
template <class C>
constexpr Account account_of() {
  Account account;
  if constexpr (requires { typename C::Weights; }) {
    detail::add_lines<typename C::Weights>(account, "", 1);
    if constexpr (C::parameters < elements_of<typename C::Weights>) {
      account.items[account.count - 1].counted = false;  // the output matrix of a tied model
    }
  } else if constexpr (requires { typename C::Weight; }) {
    account.push({"", C::Weight::is_vector ? "Weight vector" : "Weight matrix", C::Weight::in,
                  C::Weight::out, 1, true, C::Weight::id::shard});
  }
  return account;
}

}  // namespace quipu::notation
