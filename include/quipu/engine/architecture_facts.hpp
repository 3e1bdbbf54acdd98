// The dimensions and numerics of a compiled-in model as run-time values: what a checkpoint's own
// configuration is compared with. Made from the type, never by hand.
// Siblings: config/dims.hpp (the type), engine/model_choice.hpp (the comparison).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "quipu/config/dims.hpp"
#include "quipu/config/rope.hpp"

namespace quipu {

/// The members of an architecture type.
struct ArchitectureFacts {
  std::size_t dim, n_layers, n_heads, n_kv_heads, head_dim, ffn, vocab_size;
  bool tied_output;

  friend constexpr bool operator==(const ArchitectureFacts&, const ArchitectureFacts&) = default;
};

template <class A>
inline constexpr ArchitectureFacts architecture_facts{A::dim,        A::n_layers,   A::n_heads,
                                                      A::n_kv_heads, A::head_dim,   A::ffn,
                                                      A::vocab_size, A::tied_output};

/// What a model's arithmetic needs beside its dimensions. The tables are constants of the program.
struct NumericFacts {
  double norm_eps;
  double rope_theta;
  std::optional<llama3_scaling> rope_scaling;
  std::span<const float> inverse_frequencies;   ///< head_dim / 2, as the type says
  std::span<const float> unscaled_frequencies;  ///< the same before scaling
  std::span<const float>
      reference_inverse_frequencies;  ///< scaled by 8 as the pinned reference does
};

namespace detail {

template <class M>
inline constexpr auto unscaled_table =
    unscaled_inverse_frequencies<dims<M>::head_dim>(static_cast<double>(M::rope_theta));

template <class M>
consteval std::optional<llama3_scaling> scaling_fact() {
  if constexpr (std::is_same_v<bare<decltype(scaling_of<M>())>, none>) {
    return std::nullopt;
  } else {
    return scaling_of<M>();
  }
}

/// The reference's constants 8, 1, 4, 8192 for every scaled model (models/llama3/model.py 45-62 at
/// a9c89c471f79), which differ from the released factor 32 of Llama 3.2.
template <class M>
inline constexpr auto reference_table = [] {
  auto f = unscaled_table<M>;
  if (scaling_fact<M>()) {
    for (float& x : f) x = scaled_inverse_frequency(x, llama3_scaling{});
  }
  return f;
}();

}  // namespace detail

template <class M>
constexpr NumericFacts numeric_facts() {
  return {static_cast<double>(M::norm_eps), static_cast<double>(M::rope_theta),
          detail::scaling_fact<M>(),        inverse_frequencies<M>,
          detail::unscaled_table<M>,        detail::reference_table<M>};
}

}  // namespace quipu
