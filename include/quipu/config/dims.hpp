// The dimensions of a model, computed from its configuration and nowhere stored in it.
//
// dims<M> for a configuration M, architecture_of<M> for the dimensions alone as a type. Weights,
// cache and forward pass are templates on the architecture, so that Llama 3 8B and 3.1 8B, which
// differ in rotary scaling only, share one instantiation.
// Siblings: config/rules.hpp, test/static/config.cpp.
#pragma once

#include <cstddef>

#include "quipu/config/rules.hpp"
#include "quipu/shape/checked.hpp"

namespace quipu {

/// The dimensions of a model as a type. Everything in elements or counts.
template <std::size_t Dim, std::size_t Layers, std::size_t Heads, std::size_t KvHeads,
          std::size_t HeadDim, std::size_t Ffn, std::size_t Vocab, bool Tied>
struct architecture {
  static constexpr std::size_t dim = Dim;
  static constexpr std::size_t n_layers = Layers;
  static constexpr std::size_t n_heads = Heads;
  static constexpr std::size_t n_kv_heads = KvHeads;
  static constexpr std::size_t head_dim = HeadDim;
  static constexpr std::size_t ffn = Ffn;
  static constexpr std::size_t vocab_size = Vocab;
  static constexpr bool tied_output = Tied;
  static constexpr std::size_t heads_per_kv_head = Heads / KvHeads;  ///< the reference's n_rep
  static constexpr std::size_t q_width = Heads * HeadDim;     ///< outputs of wq, inputs of wo
  static constexpr std::size_t kv_width = KvHeads * HeadDim;  ///< outputs of wk and of wv
};

namespace detail {

template <class M>
consteval std::size_t ffn_of() {
  if constexpr (std::is_same_v<bare<decltype(M::ffn)>, ffn_width>) {
    return static_cast<std::size_t>(M::ffn.n);
  } else {
    return static_cast<std::size_t>(ffn_width_by(static_cast<long long>(M::dim), M::ffn.multiple_of,
                                                 M::ffn.ffn_dim_multiplier));
  }
}

/// What stands for the dimensions of a configuration that broke a rule, so that the rule is the
/// only error.
using stand_in = architecture<2, 1, 1, 1, 2, 1, 1, false>;

template <class M, class Broken>
struct architecture_checked {
  static_assert(sizeof(Broken) > 0);
  using type = stand_in;
};
template <class M>
struct architecture_checked<M, check_passed> {
  using type =
      architecture<static_cast<std::size_t>(M::dim), static_cast<std::size_t>(M::n_layers),
                   static_cast<std::size_t>(M::n_heads), static_cast<std::size_t>(kv_heads_of<M>()),
                   static_cast<std::size_t>(head_dim_of<M>()), ffn_of<M>(),
                   static_cast<std::size_t>(M::vocab_size),
                   std::is_same_v<bare<decltype(output_of<M>())>, tied>>;
};

template <class M>
struct architecture_from {
  using type = typename architecture_checked<M, broken_rule<M>>::type;
};
template <std::size_t D, std::size_t L, std::size_t H, std::size_t K, std::size_t W, std::size_t F,
          std::size_t V, bool T>
struct architecture_from<architecture<D, L, H, K, W, F, V, T>> {
  using type = architecture<D, L, H, K, W, F, V, T>;
};

}  // namespace detail

/// The dimensions of a configuration as a type; of an architecture, itself. A broken rule is
/// reported here, once.
template <class M>
using architecture_of = typename detail::architecture_from<M>::type;

/// The derived dimensions: dims<M>::dim, n_layers, n_heads, n_kv_heads, head_dim, ffn, vocab_size,
/// heads_per_kv_head, q_width, kv_width, tied_output.
template <class M>
struct dims : architecture_of<M> {};

/// Bytes of keys and values for `positions` positions of `batch` sequences when an element is a T.
/// Source: the cache of model.py 129-144, for the positions asked for.
template <class M, class T>
constexpr std::size_t kv_cache_bytes(std::size_t batch, std::size_t positions) {
  constexpr std::size_t per_position = 2 * dims<M>::n_layers * dims<M>::kv_width * sizeof(T);
  return checked_mul(checked_mul(batch, positions, "positions of the KV cache"), per_position,
                     "bytes of the KV cache");
}

}  // namespace quipu
