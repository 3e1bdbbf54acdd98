// Scaled dot-product attention with grouped queries over the KV cache: scores, causal softmax,
// weighted values. No weights.
// Siblings: simd/attention-inl.hpp, runtime/kv_cache.hpp, test/simd/attention_test.cpp.
#pragma once

#include "quipu/model/activations.hpp"
#include "quipu/model/cost.hpp"
#include "quipu/notation/description.hpp"

namespace quipu {

/// Queries [B, T, heads, head_dim] with the cached keys and values -> [B, T, heads*head_dim].
/// Query head h reads kv head h / heads_per_kv_head. Source: model.py 165-169 (cache), 172-177
/// (grouping), 184-189.
template <class M>
struct ScaledDotProduct {
  using In = Queries<M>;
  using Cache = CachedKeysOrValues<M>;
  using Scores = Probabilities<M>;
  using Out = MergedHeads<M>;
  static constexpr std::size_t parameters = 0;
  static constexpr std::size_t instances = dims<M>::n_layers;

  /// A query head and visible key: 2 head_dim for the score, 1 scaling, 4 for the softmax (maximum,
  /// difference, exponential, sum) and 1 division, 2 head_dim for the weighted value. The cache of
  /// all visible positions is read once a call and sequence; the new positions are written.
  static constexpr Cost cost(const Work& w) {
    const std::size_t pairs = checked_mul(w.visible_keys(), dims<M>::n_heads, "scores");
    const std::size_t position = 2 * dims<M>::kv_width * w.cache_element_bytes;
    return {checked_mul(pairs, 4 * dims<M>::head_dim + 6, "FLOPs"), 0,
            checked_mul(checked_mul(w.batch, checked_add(w.start, w.positions, "cached positions"),
                                    "cached positions"),
                        position, "bytes"),
            checked_mul(w.rows(), position, "bytes")};
  }

  /// What computes it and what tests that, for its card.
  static constexpr std::string_view kernel = "quipu/simd/attention-inl.hpp",
                                    test = "test/simd/attention_test.cpp";

  /// How the component describes itself on its card (notation/description.hpp).
  struct description {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::operation;
    static constexpr std::string_view
        id = "layers.N.attention.scaled_dot_product",
        name = "Scaled dot-product attention", inside = "Attention",
        code = "F.softmax(scores.float(), dim=-1).type_as(xq)",
        sentence =
            "Each query weighs all keys up to its own position, and takes that mixture of their "
            "values.",
        explanation =
            "Query head i reads kv head kv(i) = i / (heads / kv heads), rounded down, in the "
            "cache. Scores are divided by the root of head_dim; the mask hides later positions; "
            "the softmax is computed in float32. The results of all heads are laid side by side.",
        header = "quipu/model/scaled_dot_product.hpp";
    using symbols = notation::Symbols<
        notation::in<symbol::q_rot, In>, notation::given<symbol::K_cache, Cache>,
        notation::given<symbol::V_cache, Cache>,
        notation::given<symbol::mask, Shape<PositionsDim, dim<axis::keys>>>,
        notation::given<symbol::d_h>,
        notation::given<symbol::P, Shape<BatchDim, PositionsDim, dim<axis::heads, dims<M>::n_heads>,
                                         dim<axis::keys>>>,
        notation::out<symbol::o, Out>>;
    static constexpr auto equations = notation::equations(
        notation::each_head(symbol::P) == notation::call<notation::fn::softmax>(
                                              notation::each_head(symbol::q_rot) *
                                                  notation::call<notation::fn::transpose>(
                                                      notation::its_kv_head(symbol::K_cache)) /
                                                  notation::call<notation::fn::root>(symbol::d_h) +
                                              symbol::mask),
        symbol::o == notation::concat_heads(notation::each_head(symbol::P) *
                                            notation::its_kv_head(symbol::V_cache)));
    static constexpr notation::Mistake mistake{
        "Caching keys and values for every query head",
        "the cache holds the kv heads only; repetition is a way of reading",
        4 * dims<M>::n_layers* dims<M>::q_width, 4 * dims<M>::n_layers* dims<M>::kv_width,
        "bytes of KV cache a position, all layers, in bf16"};
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-scores",
                                 notation::Evidence::direct,
                                 "Scores over the root of head_dim, mask, softmax in float32, "
                                 "weighted values, heads merged.",
                                 {{184, 189}},
                                 {{196, 201}},
                                 {"math.sqrt", "F.softmax", "scores.float()"}},
                                {"attn-cache",
                                 notation::Evidence::direct,
                                 "New keys and values are written to the cache at start_pos; all "
                                 "up to the present are read and repeated for their query heads.",
                                 {{78, 87}, {165, 166}, {168, 169}, {172, 177}},
                                 {{96, 105}, {183, 187}},
                                 {"repeat_kv", "start_pos"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Attention weights, as a card of its own.
  struct probabilities {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view id = "layers.N.attention.probs", name = "Attention weights",
                                      inside = "Attention",
                                      code = "F.softmax(scores.float(), dim=-1).type_as(xq)",
                                      sentence =
                                          "How much each position takes of every position up to "
                                          "itself, by head; each row sums to 1.",
                                      explanation =
                                          "Computed in float32 and cast to the type of the "
                                          "queries. Keys after the query's own position weigh 0.",
                                      header = "quipu/model/scaled_dot_product.hpp";
    using symbols = notation::Symbols<notation::out<symbol::P, Scores>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"attn-scores",
                                 notation::Evidence::contextual,
                                 "The softmax is taken in float32 and cast back.",
                                 {{184, 187}},
                                 {{196, 199}},
                                 {"math.sqrt", "F.softmax"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Merged heads, as a card of its own.
  struct merged {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.merged",
        name = "Merged heads", inside = "Attention",
        code = "output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)",
        sentence = "The weighted values of all heads, side by side: the input of wo.",
        explanation = "Head 0 first; nothing of one head has touched another yet.",
        header = "quipu/model/scaled_dot_product.hpp";
    using symbols = notation::Symbols<notation::out<symbol::o, Out>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"attn-merge",
                   notation::Evidence::contextual,
                   "The heads are laid side by side, and go to the output projection.",
                   {{188, 190}},
                   {{200, 202}},
                   {"torch.matmul", "contiguous", "self.wo"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Cached keys, as a card of its own.
  struct cached_keys {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.cache_k",
        name = "Cached keys", inside = "Attention", code = "self.cache_k",
        sentence = "The keys of every position so far, for one block.",
        explanation =
            "Keys are cached after rotation. The cache grows by one position a token and sequence; "
            "it holds the kv heads only.",
        header = "quipu/model/scaled_dot_product.hpp";
    using symbols = notation::Symbols<notation::out<symbol::K_cache, Cache>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"attn-cache",
                   notation::Evidence::contextual,
                   "The cache is allocated for the largest batch and sequence with the kv heads of "
                   "the rank, written at start_pos and read up to the present.",
                   {{129, 144}, {165, 166}, {168, 169}},
                   {{147, 162}, {183, 187}},
                   {"cache_k", "cache_v", "start_pos"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// Cached values, as a card of its own.
  struct cached_values {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "layers.N.attention.cache_v",
        name = "Cached values", inside = "Attention", code = "self.cache_v",
        sentence = "The values of every position so far, for one block.",
        explanation =
            "Values are cached as wv gives them. The cache grows by one position a token and "
            "sequence; it holds the kv heads only.",
        header = "quipu/model/scaled_dot_product.hpp";
    using symbols = notation::Symbols<notation::out<symbol::V_cache, Cache>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>(
                 {{"attn-cache",
                   notation::Evidence::contextual,
                   "The cache is allocated for the largest batch and sequence with the kv heads of "
                   "the rank, written at start_pos and read up to the present.",
                   {{129, 144}, {165, 166}, {168, 169}},
                   {{147, 162}, {183, 187}},
                   {"cache_k", "cache_v", "start_pos"}}}) +
             notation::catalogue_sources<M>::records(notation::Evidence::contextual);
    }
  };

  /// The causal mask, as a card of its own.
  struct mask_tensor {
    using of = ScaledDotProduct;
    static constexpr notation::Kind kind = notation::Kind::tensor;
    static constexpr std::string_view
        id = "mask",
        name = "Causal mask", inside = "", code = "torch.triu(mask, diagonal=1)",
        sentence = "0 where a position may look, minus infinity where the key comes later.",
        explanation =
            "The reference makes it only for more than one new token: a single token sees all that "
            "the cache holds. Here no mask is stored and none is added; the loops end at the "
            "query's own position.",
        header = "quipu/model/scaled_dot_product.hpp";
    static constexpr std::size_t instances = 1;
    using symbols =
        notation::Symbols<notation::out<symbol::mask, Shape<PositionsDim, dim<axis::keys>>>>;
    static constexpr auto equations = notation::equations();
    static consteval notation::SourceList sources() {
      return notation::cite<M>({{"mask",
                                 notation::Evidence::contextual,
                                 "For more than one token: minus infinity above the diagonal, with "
                                 "zeros for the cached positions before it.",
                                 {{284, 296}},
                                 {{288, 303}},
                                 {"torch.triu", "hstack"}}});
    }
  };
};

}  // namespace quipu
