// Equations as typed expressions: `L == z * W_out`.
//
// An expression is an empty type built by operators. Its shape is computed from its parts by
// shape_in<Symbols, E>, where Symbols binds each symbol to a shape of one component. A symbol that
// the component lacks is the error symbol_not_in_component; parts that do not fit are the errors of
// shape/diagnostics.hpp, with the axis and both numbers. Nothing here renders: see
// notation/tree.hpp. Siblings: notation/symbol.hpp, test/static/notation.cpp, test/compile_fail.
#pragma once

#include "quipu/notation/symbol.hpp"
#include "quipu/shape/shape.hpp"

namespace quipu {

namespace axis {
/// Pairs of neighbouring features of a head, which the rotary embedding turns.
struct pairs {
  static constexpr std::string_view name = "pairs", singular = "pair", symbol = "h/2";
};
}  // namespace axis

namespace notation {

/// A symbol, or what operators made of symbols.
template <class E>
concept Expression = std::is_base_of_v<expression, E>;

template <class A, class B>
struct Product : expression {};  ///< matrix product over the last axis of A
template <class A, class B>
struct Sum : expression {};
template <class A, class B>
struct Hadamard : expression {};  ///< element by element
template <class A, class B>
struct Outer : expression {};  ///< every pair of elements
template <class A, class B>
struct Quotient : expression {};  ///< by a scalar
template <class A, class B>
struct Lookup : expression {};  ///< rows of A at the indices B
template <class F, class A>
struct Call : expression {};
/// One head of A; Index says how the index is written.
template <class Axis, class Index, class A>
struct At : expression {};
/// A, computed for every index of Axis and laid side by side in its last axis.
template <class Axis, class A>
struct Concat : expression {};

/// Two sides that must have one shape.
template <class L, class R>
struct Equation {
  using left = L;
  using right = R;
};

/// a W: the last axis of a against the first of W.
template <Expression A, Expression B>
constexpr Product<A, B> operator*(A, B) {
  return {};
}
/// Element by element; the smaller shape is repeated along the axes that it lacks.
template <Expression A, Expression B>
constexpr Sum<A, B> operator+(A, B) {
  return {};
}
/// Every element of a by the scalar b.
template <Expression A, Expression B>
constexpr Quotient<A, B> operator/(A, B) {
  return {};
}
/// States that both sides are equal.
template <Expression A, Expression B>
constexpr Equation<A, B> operator==(A, B) {
  return {};
}
/// The product element by element.
template <Expression A, Expression B>
constexpr Hadamard<A, B> hadamard(A, B) {
  return {};
}
/// The product of every element of a with every one of b.
template <Expression A, Expression B>
constexpr Outer<A, B> outer(A, B) {
  return {};
}
/// The rows of the table a that the indices b name.
template <Expression A, Expression B>
constexpr Lookup<A, B> lookup(A, B) {
  return {};
}

/// What a function does to the last axes of its argument.
enum class Effect : unsigned char { keeps, drops_last, swaps_last, pairs_last };

// The functions; `text` and `latex` are how each is written.
namespace fn {
struct softmax {
  static constexpr std::string_view text = "softmax", latex = "\\operatorname{softmax}";
  static constexpr Effect effect = Effect::keeps;
};
struct silu {
  static constexpr std::string_view text = "silu", latex = "\\operatorname{silu}";
  static constexpr Effect effect = Effect::keeps;
};
struct rsqrt {
  static constexpr std::string_view text = "rsqrt", latex = "\\operatorname{rsqrt}";
  static constexpr Effect effect = Effect::keeps;
};
struct root {
  static constexpr std::string_view text = "√", latex = "\\sqrt";
  static constexpr Effect effect = Effect::keeps;
};
struct mean {
  static constexpr std::string_view text = "mean", latex = "\\operatorname{mean}";
  static constexpr Effect effect = Effect::drops_last;
};
struct square {
  static constexpr std::string_view text = "²", latex = "^2";
  static constexpr Effect effect = Effect::keeps;
};
struct transpose {
  static constexpr std::string_view text = "ᵀ", latex = "^{\\mathsf{T}}";
  static constexpr Effect effect = Effect::swaps_last;
};
/// Neighbouring features (2i, 2i + 1) read as one complex number.
struct complex_pairs {
  static constexpr std::string_view text = "pairs", latex = "\\operatorname{pairs}";
  static constexpr Effect effect = Effect::pairs_last;
};
/// The unit complex number at an angle.
struct cis {
  static constexpr std::string_view text = "cis", latex = "\\operatorname{cis}";
  static constexpr Effect effect = Effect::keeps;
};
// Components as functions, in the equations of those that contain them.
struct attention {
  static constexpr std::string_view text = "Attention", latex = "\\operatorname{Attention}";
  static constexpr Effect effect = Effect::keeps;
};
struct feed_forward {
  static constexpr std::string_view text = "FeedForward", latex = "\\operatorname{FeedForward}";
  static constexpr Effect effect = Effect::keeps;
};
struct norm {
  static constexpr std::string_view text = "RMSNorm", latex = "\\operatorname{RMSNorm}";
  static constexpr Effect effect = Effect::keeps;
};
struct stack {
  static constexpr std::string_view text = "Blocks", latex = "\\operatorname{Blocks}";
  static constexpr Effect effect = Effect::keeps;
};
}  // namespace fn

/// F applied: call<fn::softmax>(a).
template <class F, Expression A>
constexpr Call<F, A> call(A) {
  return {};
}

namespace index {
struct head {
  static constexpr std::string_view text = "i";
};
/// The kv head that query head i reads.
struct kv_head_of {
  static constexpr std::string_view text = "kv(i)";
};
}  // namespace index

/// One query head of a.
template <Expression A>
constexpr At<axis::heads, index::head, A> each_head(A) {
  return {};
}
/// The kv head that the query head reads.
template <Expression A>
constexpr At<axis::kv_heads, index::kv_head_of, A> its_kv_head(A) {
  return {};
}
/// The heads side by side again.
template <Expression A>
constexpr Concat<axis::heads, A> concat_heads(A) {
  return {};
}

// --- symbols of a component ------------------------------------------------------------------

/// The undefined template of an equation that names a symbol its component has not.
template <class Symbol>
struct symbol_not_in_component;

/// What a symbol is to its component.
enum class Role : unsigned char { input, output, weight, given };

/// The type in which a tensor's elements pass: that of the activations (float32 here, bf16 in the
/// reference's runs), float32 always, token numbers, complex.
enum class Carrier : unsigned char { activation, f32, token, complex64 };

/// A symbol with its role, shape and carrier in one component; written with the aliases below.
template <Role R, class Symbol, class S, Carrier C>
struct binding {
  static constexpr Role role = R;
  static constexpr Carrier carrier = C;
  using symbol = std::remove_const_t<Symbol>;
  using shape = S;
};

namespace detail {
// A weight [out, in] stands in an equation as in x out ("stored transposed"); a vector as [d].
template <class W, bool Vector = W::is_vector>
struct applied_shape {
  using type = Shape<typename W::in_dim, typename W::out_dim>;
};
template <class W>
struct applied_shape<W, true> {
  using type = Shape<typename W::in_dim>;
};
}  // namespace detail

/// A tensor that the component reads, of shape X.
template <const auto& S, class X, Carrier C = Carrier::activation>
using in = binding<Role::input, std::remove_cvref_t<decltype(S)>, X, C>;
/// A tensor that it makes, of shape X.
template <const auto& S, class X, Carrier C = Carrier::activation>
using out = binding<Role::output, std::remove_cvref_t<decltype(S)>, X, C>;
/// A weight, applied as in x out.
template <const auto& S, class W>
using weight = binding<Role::weight, std::remove_cvref_t<decltype(S)>,
                       typename detail::applied_shape<W>::type, Carrier::activation>;
/// A weight that is looked up by row: [out, in] as it stands.
template <const auto& S, class W>
using table = binding<Role::weight, std::remove_cvref_t<decltype(S)>,
                      Shape<typename W::out_dim, typename W::in_dim>, Carrier::activation>;
/// A constant or a tensor from elsewhere (mask, cache, frequencies).
template <const auto& S, class X = Shape<>, Carrier C = Carrier::activation>
using given = binding<Role::given, std::remove_cvref_t<decltype(S)>, X, C>;

/// The symbols that a component's equations may name.
template <class... Bindings>
struct Symbols {
  static constexpr std::size_t size = sizeof...(Bindings);
};

// --- shapes of expressions -------------------------------------------------------------------

namespace detail {

template <class Symbol, class Env>
struct bound_to;
template <class Symbol>
struct bound_to<Symbol, Symbols<>> : symbol_not_in_component<Symbol> {};
template <class Symbol, class First, class... Rest>
struct bound_to<Symbol, Symbols<First, Rest...>> : bound_to<Symbol, Symbols<Rest...>> {};
template <class Symbol, Role R, class S, Carrier C, class... Rest>
struct bound_to<Symbol, Symbols<binding<R, Symbol, S, C>, Rest...>> {
  using type = S;
};

template <class S>
struct cut_last;
template <class D>
struct cut_last<Shape<D>> {
  using rest = Shape<>;
  using last = D;
};
template <class First, class... Rest>
requires(sizeof...(Rest) > 0) struct cut_last<Shape<First, Rest...>> {
  template <class S>
  struct prepend;
  template <class... Dims>
  struct prepend<Shape<Dims...>> {
    using type = Shape<First, Dims...>;
  };
  using rest = typename prepend<typename cut_last<Shape<Rest...>>::rest>::type;
  using last = typename cut_last<Shape<Rest...>>::last;
};

template <class S, class D>
using push = typename quipu::detail::append<S, D>::type;

/// Each dim of Small stands in Big with the same extent.
template <class Big, class D, bool = has_axis<typename D::axis, Big>>
struct dim_stands_in
    : shape_difference<Shape<typename quipu::detail::dim_of<typename D::axis, Big>::type>,
                       Shape<D>> {};
template <class Big, class D>
struct dim_stands_in<Big, D, false> : axis_not_in_shape<typename D::axis, Big> {};
template <class Big, class Small>
struct stands_in;
template <class Big, class... Dims>
struct stands_in<Big, Shape<Dims...>> : dim_stands_in<Big, Dims>... {};

template <class A, class B, bool = (A::rank >= B::rank)>
struct broadcast : stands_in<A, B> {
  using type = A;
};
template <class A, class B>
struct broadcast<A, B, false> : stands_in<B, A> {
  using type = B;
};

// [.., k] x [.., k, n] -> [.., n].
template <class A, class B>
struct product_shape : shape_difference<Shape<typename cut_last<typename cut_last<B>::rest>::last>,
                                        Shape<typename cut_last<A>::last>> {
  using lead = typename cut_last<A>::rest;
  static constexpr stands_in<lead, typename cut_last<typename cut_last<B>::rest>::rest> fits{};
  using type = push<lead, typename cut_last<B>::last>;
};

template <class A, class B>
struct joined;
template <class... A, class... B>
struct joined<Shape<A...>, Shape<B...>> {
  using type = Shape<A..., B...>;
};

template <class Axis, class Done, class S>
struct without;
template <class Axis, class Done>
struct without<Axis, Done, Shape<>> {
  using type = Done;
};
template <class Axis, class Done, class First, class... Rest>
struct without<Axis, Done, Shape<First, Rest...>>
    : without<Axis,
              typename std::conditional_t<std::is_same_v<typename First::axis, Axis>,
                                          quipu::detail::type_is<Done>,
                                          quipu::detail::append<Done, First>>::type,
              Shape<Rest...>> {};

template <Effect F, class A>
struct effect_on {
  using type = A;
};
template <class A>
struct effect_on<Effect::drops_last, A> {
  using type = typename cut_last<A>::rest;
};
template <class A>
struct effect_on<Effect::swaps_last, A> {
  using inner = typename cut_last<A>::rest;
  using type = push<push<typename cut_last<inner>::rest, typename cut_last<A>::last>,
                    typename cut_last<inner>::last>;
};
template <class A>
struct effect_on<Effect::pairs_last, A> {
  using type = push<typename cut_last<A>::rest, dim<axis::pairs, cut_last<A>::last::extent / 2>>;
};

template <class Env, class E>
struct shape_of_expression;
template <class Env, class Tag>
struct shape_of_expression<Env, Name<Tag>> : bound_to<Name<Tag>, Env> {};
template <class Env, class E>
using shape_t = typename shape_of_expression<Env, E>::type;

template <class Env, class A, class B>
struct shape_of_expression<Env, Product<A, B>> : product_shape<shape_t<Env, A>, shape_t<Env, B>> {};
template <class Env, class A, class B>
struct shape_of_expression<Env, Sum<A, B>> : broadcast<shape_t<Env, A>, shape_t<Env, B>> {};
template <class Env, class A, class B>
struct shape_of_expression<Env, Hadamard<A, B>> : broadcast<shape_t<Env, A>, shape_t<Env, B>> {};
template <class Env, class A, class B>
struct shape_of_expression<Env, Quotient<A, B>> : shape_difference<Shape<>, shape_t<Env, B>> {
  using type = shape_t<Env, A>;
};
template <class Env, class A, class B>
struct shape_of_expression<Env, Outer<A, B>> : joined<shape_t<Env, A>, shape_t<Env, B>> {};
template <class Env, class A, class B>
struct shape_of_expression<Env, Lookup<A, B>> {
  using type = push<shape_t<Env, B>, typename cut_last<shape_t<Env, A>>::last>;
};
template <class Env, class F, class A>
struct shape_of_expression<Env, Call<F, A>> : effect_on<F::effect, shape_t<Env, A>> {};
template <class Env, class Axis, class Index, class A>
struct shape_of_expression<Env, At<Axis, Index, A>> : without<Axis, Shape<>, shape_t<Env, A>> {
  using removed = typename quipu::detail::dim_of<Axis, shape_t<Env, A>>::type;
};

/// The dim that an At took away, found leftmost in an expression.
template <class Env, class Axis, class E>
struct removed_dim;
template <class Env, class Axis, class Index, class A>
struct removed_dim<Env, Axis, At<Axis, Index, A>> {
  using type = typename shape_of_expression<Env, At<Axis, Index, A>>::removed;
};
template <class Env, class Axis, template <class, class> class Op, class A, class B>
struct removed_dim<Env, Axis, Op<A, B>> : removed_dim<Env, Axis, A> {};

template <class Env, class Axis, class A>
struct shape_of_expression<Env, Concat<Axis, A>> {
  using inner = shape_t<Env, A>;
  using last = typename cut_last<inner>::last;
  using type = push<typename cut_last<inner>::rest,
                    dim<quipu::axis::merged<Axis, typename last::axis>,
                        removed_dim<Env, Axis, A>::type::extent * last::extent>>;
};

template <class E>
struct subject {
  using type = E;
};
template <class F, class A>
struct subject<Call<F, A>> : subject<A> {};
template <class Axis, class Index, class A>
struct subject<At<Axis, Index, A>> : subject<A> {};

// The first symbol of an expression that the component lacks, or void: asked for first, so that the
// error about it is the only one.
template <class Symbol, class Env>
struct is_bound;
template <class Symbol, class... B>
struct is_bound<Symbol, Symbols<B...>>
    : std::bool_constant<(std::is_same_v<Symbol, typename B::symbol> || ...)> {};

template <class Env, class E>
struct unknown_symbol;
template <class Env, class Tag>
struct unknown_symbol<Env, Name<Tag>>
    : std::conditional<is_bound<Name<Tag>, Env>::value, void, Name<Tag>> {};
template <class Env, class F, class A>
struct unknown_symbol<Env, Call<F, A>> : unknown_symbol<Env, A> {};
template <class Env, class Axis, class Index, class A>
struct unknown_symbol<Env, At<Axis, Index, A>> : unknown_symbol<Env, A> {};
template <class Env, class Axis, class A>
struct unknown_symbol<Env, Concat<Axis, A>> : unknown_symbol<Env, A> {};
template <class Env, template <class, class> class Op, class A, class B>
struct unknown_symbol<Env, Op<A, B>>
    : std::conditional<std::is_void_v<typename unknown_symbol<Env, A>::type>,
                       typename unknown_symbol<Env, B>::type,
                       typename unknown_symbol<Env, A>::type> {};

template <class Env, class E, class Unknown = typename unknown_symbol<Env, E>::type>
struct equation_holds : symbol_not_in_component<Unknown> {};
template <class Env, class L, class R>
struct equation_holds<Env, Equation<L, R>, void>
    : shape_difference<shape_t<Env, L>, shape_t<Env, R>> {};

}  // namespace detail

/// The shape of an expression among a component's symbols, computed from its parts.
template <class Env, class E>
using shape_in = detail::shape_t<Env, E>;

/// The equations of a component, in the order in which they are computed.
template <class... Equations>
struct EquationList {};

/// equations(L == z * W_out, ...).
template <class... L, class... R>
constexpr EquationList<Equation<L, R>...> equations(Equation<L, R>...) {
  return {};
}

}  // namespace notation
}  // namespace quipu
