// The symbols of the equations: how each is written, what it means, what the reference's code calls
// it, and which cards light up with it.
//
// A symbol is an empty type, so that an equation is a type too. Its shape is not part of it: that
// comes from the component in whose equation it stands.
// Siblings: notation/expression.hpp (equations), test/static/notation.cpp.
#pragma once

#include <array>
#include <string_view>

namespace quipu::notation {

/// How a symbol is written and what it stands for. `links` are the ids that light up with it; a
/// symbol may have several (L: the logits and the projection that makes them).
struct SymbolFacts {
  std::string_view base;
  std::string_view subscript;
  std::string_view latex;
  std::string_view code;
  std::string_view meaning;
  std::array<std::string_view, 3> links;
};

/// Base of everything that may stand in an equation.
struct expression {};

/// A symbol as an expression; Tag::facts says how it is written.
template <class Tag>
struct Name : expression {
  using tag = Tag;
};

}  // namespace quipu::notation

namespace quipu::symbol {

using notation::SymbolFacts;

// One tag a symbol. The macro writes the tag and the object that stands in equations.
#define QUIPU_SYMBOL(object, base, subscript, latex, code, meaning, ...)                      \
  struct object##_symbol {                                                                    \
    static constexpr SymbolFacts facts{base, subscript, latex, code, meaning, {__VA_ARGS__}}; \
  };                                                                                          \
  inline constexpr notation::Name<object##_symbol> object {}

QUIPU_SYMBOL(t, "t", "", "t", "tokens", "token ids", "tokens");
QUIPU_SYMBOL(E, "E", "", "E", "tok_embeddings.weight", "token embedding table", "tok_embeddings");
QUIPU_SYMBOL(x, "x", "", "x", "x", "residual stream that enters a block", "layers.N.x");
QUIPU_SYMBOL(h, "h", "", "h", "h", "residual stream between a block's two updates", "layers.N.h",
             "layers.N.attention_residual");
QUIPU_SYMBOL(y, "y", "", "y", "out", "residual stream that leaves a block", "layers.N.out",
             "layers.N.feed_forward_residual");
QUIPU_SYMBOL(x_attn, "z", "attn", "z_{\\mathrm{attn}}", "self.attention_norm(x)",
             "normalised input of attention", "layers.N.attention_norm");
QUIPU_SYMBOL(x_ffn, "z", "ffn", "z_{\\mathrm{ffn}}", "self.ffn_norm(h)",
             "normalised input of the feed-forward network", "layers.N.ffn_norm");
QUIPU_SYMBOL(z, "z", "", "z", "h",
             "features after the final norm (the code goes on calling them h)", "norm");
QUIPU_SYMBOL(w_attn, "γ", "attn", "\\gamma_{\\mathrm{attn}}", "attention_norm.weight",
             "weight of the norm before attention", "layers.N.attention_norm");
QUIPU_SYMBOL(w_ffn, "γ", "ffn", "\\gamma_{\\mathrm{ffn}}", "ffn_norm.weight",
             "weight of the norm before the feed-forward network", "layers.N.ffn_norm");
QUIPU_SYMBOL(w_norm, "γ", "", "\\gamma", "norm.weight", "weight of the final norm", "norm");
QUIPU_SYMBOL(epsilon, "ε", "", "\\varepsilon", "norm_eps", "a small constant inside the root",
             "configuration");
QUIPU_SYMBOL(W_q, "W", "q", "W_q", "wq.weight", "query matrix", "layers.N.attention.wq");
QUIPU_SYMBOL(W_k, "W", "k", "W_k", "wk.weight", "key matrix", "layers.N.attention.wk");
QUIPU_SYMBOL(W_v, "W", "v", "W_v", "wv.weight", "value matrix", "layers.N.attention.wv");
QUIPU_SYMBOL(W_o, "W", "o", "W_o", "wo.weight", "output matrix of attention",
             "layers.N.attention.wo");
QUIPU_SYMBOL(q, "q", "", "q", "xq", "queries", "layers.N.attention.xq", "layers.N.attention.wq");
QUIPU_SYMBOL(k, "k", "", "k", "xk", "keys", "layers.N.attention.xk", "layers.N.attention.wk");
QUIPU_SYMBOL(v, "v", "", "v", "xv", "values", "layers.N.attention.xv", "layers.N.attention.wv");
QUIPU_SYMBOL(q_rot, "q̃", "", "\\tilde{q}", "xq", "queries after rotation",
             "layers.N.attention.xq_rope", "layers.N.attention.rope");
QUIPU_SYMBOL(k_rot, "k̃", "", "\\tilde{k}", "xk", "keys after rotation",
             "layers.N.attention.xk_rope", "layers.N.attention.rope");
QUIPU_SYMBOL(K_cache, "K", "", "K", "keys", "keys of all positions so far, from the cache",
             "layers.N.attention.cache_k");
QUIPU_SYMBOL(V_cache, "V", "", "V", "values", "values of all positions so far, from the cache",
             "layers.N.attention.cache_v");
QUIPU_SYMBOL(p, "p", "", "p", "start_pos + t", "positions of the tokens", "freqs_cis");
QUIPU_SYMBOL(f, "f", "", "f", "freqs", "inverse frequencies, radians a position", "freqs_cis");
QUIPU_SYMBOL(mask, "M", "", "M", "mask",
             "causal mask: 0 where a key may be seen, else minus infinity", "mask");
QUIPU_SYMBOL(d_h, "d", "head", "d_{\\mathrm{head}}", "head_dim", "features of one head",
             "configuration");
QUIPU_SYMBOL(P, "P", "", "P", "scores", "attention weights after softmax",
             "layers.N.attention.probs", "layers.N.attention.scaled_dot_product");
QUIPU_SYMBOL(o, "o", "", "o", "output", "weighted values with the heads merged",
             "layers.N.attention.merged", "layers.N.attention.scaled_dot_product");
QUIPU_SYMBOL(delta_attn, "Δ", "attn", "\\Delta_{\\mathrm{attn}}", "self.wo(output)",
             "attention update", "layers.N.attention.update", "layers.N.attention.wo");
QUIPU_SYMBOL(W_1, "W", "1", "W_1", "w1.weight", "gate matrix", "layers.N.feed_forward.w1");
QUIPU_SYMBOL(W_2, "W", "2", "W_2", "w2.weight", "down matrix", "layers.N.feed_forward.w2");
QUIPU_SYMBOL(W_3, "W", "3", "W_3", "w3.weight", "up matrix", "layers.N.feed_forward.w3");
QUIPU_SYMBOL(g, "g", "", "g", "self.w1(x)", "gate before its activation",
             "layers.N.feed_forward.w1");
QUIPU_SYMBOL(u, "u", "", "u", "self.w3(x)", "features that the gate multiplies",
             "layers.N.feed_forward.w3");
QUIPU_SYMBOL(a, "a", "", "a", "F.silu(self.w1(x)) * self.w3(x)", "gated hidden features",
             "layers.N.feed_forward.act", "layers.N.feed_forward.silu_gate");
QUIPU_SYMBOL(delta_ffn, "Δ", "ffn", "\\Delta_{\\mathrm{ffn}}", "self.w2(...)",
             "feed-forward update", "layers.N.feed_forward.update", "layers.N.feed_forward.w2");
QUIPU_SYMBOL(W_out, "W", "out", "W_{\\mathrm{out}}", "output.weight", "output matrix", "output");
QUIPU_SYMBOL(L, "L", "", "L", "output", "logits", "logits", "output");

#undef QUIPU_SYMBOL

}  // namespace quipu::symbol
