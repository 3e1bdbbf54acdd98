// Axes: what an extent of a shape counts. An axis is an empty type, so that two extents of equal
// size on different axes are different types and cannot be mistaken for each other.
// Siblings: shape/shape.hpp, test/static/shape.cpp.
#pragma once

#include <string_view>

namespace quipu {

/// The axes of Llama's tensors. `name` stands in messages, cards and JSON; `singular` where the
/// extent is 1; `symbol` stands for a dynamic extent.
namespace axis {

/// Independent sequences computed together: B.
struct batch {
  static constexpr std::string_view name = "batch", singular = "batch", symbol = "B";
};
/// Token positions that are computed in one call: T in prefill, 1 in decoding.
struct positions {
  static constexpr std::string_view name = "positions", singular = "position", symbol = "T";
};
/// Positions that attention reads: those in the KV cache, the present ones included.
struct keys {
  static constexpr std::string_view name = "keys", singular = "key", symbol = "S";
};
/// Features of the residual stream (`dim`).
struct d {
  static constexpr std::string_view name = "d", singular = "d", symbol = "d";
};
/// Query heads.
struct heads {
  static constexpr std::string_view name = "heads", singular = "head", symbol = "H";
};
/// Key and value heads (grouped-query attention).
struct kv_heads {
  static constexpr std::string_view name = "kv_heads", singular = "kv_head", symbol = "K";
};
/// Features of one head.
struct head_dim {
  static constexpr std::string_view name = "head_dim", singular = "head_dim", symbol = "h";
};
/// Features inside the feed-forward network.
struct ffn {
  static constexpr std::string_view name = "ffn", singular = "ffn", symbol = "f";
};
/// Tokens of the vocabulary.
struct vocabulary {
  static constexpr std::string_view name = "vocabulary", singular = "vocabulary", symbol = "V";
};
/// Blocks of the stack.
struct layers {
  static constexpr std::string_view name = "layers", singular = "layer", symbol = "N";
};

/// Two neighbouring axes read as one, outer first: heads x head_dim. What merge() makes and
/// split() takes apart.
template <class Outer, class Inner>
struct merged {
  using outer = Outer;
  using inner = Inner;
};
template <>
struct merged<heads, head_dim> {
  using outer = heads;
  using inner = head_dim;
  static constexpr std::string_view name = "heads*head_dim", singular = name, symbol = "H*h";
};
template <>
struct merged<kv_heads, head_dim> {
  using outer = kv_heads;
  using inner = head_dim;
  static constexpr std::string_view name = "kv_heads*head_dim", singular = name, symbol = "K*h";
};

}  // namespace axis
}  // namespace quipu
