// Model parallelism in the types: what one rank of N holds.
//
// Column-parallel layers are cut by output rows, row-parallel ones by input columns, norms are
// whole. A size that does not divide the kv heads, the heads, the hidden width or the vocabulary is
// an error that names the axis, both numbers and the sizes that would do.
// Source: fairscale 50b06d251730, fairscale/nn/model_parallel/layers.py 116-123, 255-262, 342-349.
// Tests: test/static/sharding.cpp, test/compile_fail.
#pragma once

#include <utility>

#include "quipu/config/dims.hpp"
#include "quipu/reflect/weight.hpp"

namespace quipu {

/// The model-parallel size that was asked for.
template <std::size_t Ranks>
struct ranks_are;
/// The sizes that would do.
template <std::size_t... Sizes>
struct legal_sizes_are;

/// The undefined template of errors about a model-parallel size.
template <class Axis, class Extent, class Ranks, class Legal>
struct model_parallel_size_must_divide;

namespace detail {

template <class A>
constexpr bool shards_into(std::size_t ranks) {
  return ranks > 0 && A::n_kv_heads % ranks == 0 && A::n_heads % ranks == 0 &&
         A::ffn % ranks == 0 && A::vocab_size % ranks == 0;
}

template <class A, std::size_t... Sizes>
consteval auto legal_sizes(std::index_sequence<Sizes...>) {
  constexpr std::size_t count = (std::size_t{0} + ... + (shards_into<A>(Sizes + 1) ? 1 : 0));
  std::array<std::size_t, count> sizes{};
  std::size_t i = 0;
  ((shards_into<A>(Sizes + 1) ? (void)(sizes[i++] = Sizes + 1) : void()), ...);
  return sizes;
}

}  // namespace detail

/// Whether a model can be cut for so many ranks.
template <class M, std::size_t Ranks>
inline constexpr bool can_be_cut = detail::shards_into<architecture_of<M>>(Ranks);

/// The model-parallel sizes that a model can be cut for, ascending: 1, 2, 4, 8 for Llama 3 8B.
template <class M>
inline constexpr auto legal_model_parallel_sizes =
    detail::legal_sizes<architecture_of<M>>(std::make_index_sequence<dims<M>::n_kv_heads>{});

namespace detail {

template <class A, std::size_t... Places>
auto legal_type(std::index_sequence<Places...>)
    -> legal_sizes_are<legal_model_parallel_sizes<A>[Places]...>;

template <class A, std::size_t Ranks>
consteval auto shard_error() {
  using legal =
      decltype(legal_type<A>(std::make_index_sequence<legal_model_parallel_sizes<A>.size()>{}));
#define QUIPU_DIVIDES(axis_name, extent)                                               \
  if constexpr (Ranks == 0 || extent % (Ranks == 0 ? 1 : Ranks) != 0) {                \
    return type_is<model_parallel_size_must_divide<axis::axis_name, extent_is<extent>, \
                                                   ranks_are<Ranks>, legal>>{};        \
  } else
  QUIPU_DIVIDES(kv_heads, A::n_kv_heads)
  QUIPU_DIVIDES(heads, A::n_heads)
  QUIPU_DIVIDES(ffn, A::ffn)
  QUIPU_DIVIDES(vocabulary, A::vocab_size) { return type_is<check_passed>{}; }
#undef QUIPU_DIVIDES
}

template <class D, std::size_t Ranks, bool Cut>
using cut_dim = dim<typename D::axis, (Cut && Ranks != 0 ? D::extent / Ranks : D::extent)>;

}  // namespace detail

/// What one of `Ranks` ranks computes with, as an architecture of its own: its share of heads,
/// hidden width and vocabulary, and the whole residual stream. The forward pass of a rank is the
/// forward pass of this architecture; its weights are the parts that sharded<M, Ranks> names.
template <class M, std::size_t Ranks>
using rank_of = architecture<dims<M>::dim, dims<M>::n_layers, dims<M>::n_heads / Ranks,
                             dims<M>::n_kv_heads / Ranks, dims<M>::head_dim, dims<M>::ffn / Ranks,
                             dims<M>::vocab_size / Ranks, dims<M>::tied_output>;

/// Checks that a model can be cut for this many ranks; sharded<M, Ranks>::weight<W> is the part of
/// a weight that one rank holds.
template <class M, std::size_t Ranks>
struct sharded {
  static_assert(sizeof(typename decltype(detail::shard_error<architecture_of<M>, Ranks>())::type) >
                0);
  static constexpr std::size_t ranks = Ranks;
  template <class W>
  using weight =
      Weight<typename W::id,
             detail::cut_dim<typename W::out_dim, Ranks, W::id::shard == ShardAxis::rows>,
             detail::cut_dim<typename W::in_dim, Ranks, W::id::shard == ShardAxis::columns>>;
};

}  // namespace quipu
