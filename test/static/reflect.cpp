// Visiting the members of a struct of weights, at compile time.
#include "quipu/reflect/reflect.hpp"

using namespace quipu;

struct first_id {};
struct second_id {};
struct Pair {
  using First = Weight<first_id, dim<axis::d, 3>, dim<axis::ffn, 5>>;
  using Second = Weight<second_id, dim<one_row, 1>, dim<axis::d, 7>>;
  QUIPU_WEIGHTS(Pair, (First, first), (Second, second));
};
template <class Inner>
struct Stack {
  using Pairs = std::array<Inner, 4>;
  QUIPU_WEIGHTS(Stack, (Pairs, pairs), (Inner, last));
};

static_assert(boost::hana::Struct<Pair>::value && boost::hana::Struct<Stack<Pair>>::value);
static_assert(elements_of<Pair> == 3 * 5 + 7 && elements_of<Stack<Pair>> == 5 * 22);
static_assert(Pair::First::size == 15 && !Pair::First::is_vector && Pair::Second::is_vector);

constexpr bool visits_in_order() {
  Stack<Pair> stack{};
  std::string_view names[2];
  std::size_t count = 0;
  for_each_member(stack, [&](const char* name, auto&) { names[count++] = name; });
  if (count != 2 || names[0] != "pairs" || names[1] != "last") return false;
  // Members are reached by reference.
  for_each_member(stack.last, [&](const char*, auto& weight) { weight.view.rows = ++count; });
  return stack.last.first.view.rows == 3 && stack.last.second.view.rows == 4;
}
static_assert(visits_in_order());

// More members than Hana's own macro takes (39).
using W = Pair::First;
struct Many {
  QUIPU_WEIGHTS(Many, (W, a0), (W, a1), (W, a2), (W, a3), (W, a4), (W, a5), (W, a6), (W, a7),
                (W, a8), (W, a9), (W, b0), (W, b1), (W, b2), (W, b3), (W, b4), (W, b5), (W, b6),
                (W, b7), (W, b8), (W, b9), (W, c0), (W, c1), (W, c2), (W, c3), (W, c4), (W, c5),
                (W, c6), (W, c7), (W, c8), (W, c9), (W, d0), (W, d1), (W, d2), (W, d3), (W, d4),
                (W, d5), (W, d6), (W, d7), (W, d8), (W, d9), (W, e0), (W, e1), (W, e2), (W, e3),
                (W, e4), (W, e5), (W, e6), (W, e7), (W, e8), (W, e9));
};
static_assert(elements_of<Many> == 50 * 15);
