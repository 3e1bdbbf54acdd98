// The forward pass: Llama's equations over typed views, one line a step.
//
//   x = tok_embeddings[tokens]
//   each block:  h = x + wo attention(rope(wq n), rope(wk n), wv n),   n = attention_norm(x)
//                x = h + w2 (silu(w1 m) * w3 m),                       m = ffn_norm(h)
//   logits = output norm(x)
// One of several ranks runs the same pass on its part of the heads, the hidden width and the
// vocabulary (rank_of, model/sharding.hpp); the embedding and both updates are then summed over the
// ranks and the logits are gathered.
// A template on the architecture alone; element types, numeric mode, cache type and tracing are
// run-time choices. What a function here is handed has the shapes that model/ states: a wrong
// weight or view does not compile. Siblings: model/transformer.hpp, simd/forward_call.hpp,
// test/engine/golden_test.cpp, test/reference/scalar_forward.hpp (the judge).
#if defined(QUIPU_SIMD_TRANSFORMER_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_TRANSFORMER_INL_HPP_
#undef QUIPU_SIMD_TRANSFORMER_INL_HPP_
#else
#define QUIPU_SIMD_TRANSFORMER_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "hwy/highway.h"
#include "quipu/config/model_list.hpp"
#include "quipu/model/composition.hpp"
#include "quipu/model/sharding.hpp"
#include "quipu/model/transformer.hpp"
#include "quipu/shape/view.hpp"
#include "quipu/simd/attention-inl.hpp"
#include "quipu/simd/forward_call.hpp"
#include "quipu/simd/kv_append-inl.hpp"
#include "quipu/simd/product-inl.hpp"
#include "quipu/simd/rows-inl.hpp"
#include "quipu/simd/trace-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {

// A view of one sequence of rows: activations of a pass stand one token a row.
template <class S>
using Activation = TensorView<float, S>;

// One projection of a group: its name in the layer, its weight and where its output goes, checked
// against the component. Rows of the output are `stride` floats apart.
template <class C, class W>
struct Into {
  std::string_view name;
  const W& weight;
  Activation<applied<C, W, typename C::In>> y;
  std::size_t stride;
};
template <class C, class W, class Y>
Into<C, W> IntoView(std::string_view name, const W& weight, const Y& y) {
  return {name, weight, y, y.row_size()};
}
template <class C, class W, class Y>
Into<C, W> IntoView(std::string_view name, const W& weight, const Y& y, std::size_t stride) {
  return {name, weight, y, stride};
}

// y = x W for projections that share x, in one parallel region; the bf16 mode rounds each output.
template <class X, class... C, class... W>
void Project(const ForwardCall& call, std::size_t layer, const X& x, const Into<C, W>&... into) {
  static_assert((same_shape<typename C::In, typename X::shape> && ...));
  const Product products[] = {{into.weight.view, into.y.data(), into.stride}...};
  const std::string_view names[] = {into.name...};
  ProjectRows(call, layer, names, products, sizeof...(C), x.data(), x.row_size(), x.rows());
}

template <class C, class A>
void Normalise(const ForwardCall& call, const typename C::Weight& weight,
               const Activation<Residual<A>>& x, const Activation<Residual<A>>& y) {
  static_assert(same_shape<typename C::In, Residual<A>> &&
                same_shape<typename C::Out, Residual<A>>);
  NormaliseRows(call, weight.view, x.data(), A::dim, x.rows(), y.data());
}

// The one place where an update joins the residual stream.
template <class A>
void AddUpdate(const ForwardCall& call, const Activation<Residual<A>>& stream,
               const Activation<Residual<A>>& update) {
  AddRows(call, stream.data(), update.data(), A::dim, stream.rows());
}

template <class A>
void ApplyAttentionUpdate(const ForwardCall& call, std::size_t layer, const AttentionWeights<A>& w,
                          const Activation<Residual<A>>& x, const Activation<Residual<A>>& update) {
  const std::size_t rows = x.rows();
  const Activation<MergedHeads<A>> q(call.scratch->at(call.plan->q), 1, rows);
  const Activation<MergedKvHeads<A>> k(call.scratch->at(call.plan->k), 1, rows);
  const Activation<MergedKvHeads<A>> v(call.scratch->at(call.plan->v), 1, rows);
  const Activation<MergedHeads<A>> merged(call.scratch->at(call.plan->merged), 1, rows);
  const Tracer trace(call, layer);

  Project(call, layer, x, IntoView<QueryProjection<A>>("attention.wq", w.wq, q),
          IntoView<KeyProjection<A>>("attention.wk", w.wk, k),
          IntoView<ValueProjection<A>>("attention.wv", w.wv, v));
  trace.Parts("attention.xq", q.data(), A::q_width);
  trace.Parts("attention.xk", k.data(), A::kv_width);
  trace.Parts("attention.xv", v.data(), A::kv_width);

  const auto rope_q = q.template as<Queries<A>>();
  const auto rope_k = k.template as<KeysOrValues<A>>();
  static_assert(same_shape<typename RotaryEmbedding<A>::In, typename decltype(rope_q)::shape> &&
                same_shape<typename RotaryEmbedding<A>::KeysIn, typename decltype(rope_k)::shape>);
  RotateRows(call, q.data(), A::n_heads, A::head_dim, rows);
  RotateRows(call, k.data(), A::n_kv_heads, A::head_dim, rows);
  call.profile.lap(layer, "attention.rope");
  trace.Heads("attention.xq_rope", q.data(), A::n_heads, A::head_dim);
  trace.Heads("attention.xk_rope", k.data(), A::n_kv_heads, A::head_dim);

  AppendRows(call, layer, k.data(), v.data(), A::kv_width);
  call.profile.lap(layer, "attention.cache");
  trace.Attend({.q = q.data(),
                .q_stride = A::q_width,
                .out = merged.data(),
                .out_stride = A::q_width,
                .heads = A::n_heads,
                .cache = call.cache,
                .layer = layer,
                .chunks = call.chunks,
                .mode = call.mode,
                .scratch = call.scratch->at(call.plan->attention)});
  call.profile.lap(layer, "attention.scaled_dot_product");
  trace.Parts("attention.merged", merged.data(), A::q_width);

  Project(call, layer, merged, IntoView<OutputProjection<A>>("attention.wo", w.wo, update));
  SumOverRanks(call, layer, "attention.wo", update.data(), A::dim, rows);
  trace.Rows("attention.wo", update.data(), A::dim);
}

template <class A>
void ApplyFeedForwardUpdate(const ForwardCall& call, std::size_t layer,
                            const FeedForwardWeights<A>& w, const Activation<Residual<A>>& x,
                            const Activation<Residual<A>>& update) {
  const std::size_t rows = x.rows();
  const Activation<Hidden<A>> gate(call.scratch->at(call.plan->gate), 1, rows);
  const Activation<Hidden<A>> up(call.scratch->at(call.plan->up), 1, rows);
  const Tracer trace(call, layer);

  Project(call, layer, x, IntoView<GateProjection<A>>("feed_forward.w1", w.w1, gate),
          IntoView<UpProjection<A>>("feed_forward.w3", w.w3, up));
  trace.Parts("feed_forward.w1", gate.data(), A::ffn);
  trace.Parts("feed_forward.w3", up.data(), A::ffn);

  const Activation<operated<SiluGate<A>, Hidden<A>>> act = gate;  // in place
  GateRows(call, gate.data(), up.data(), A::ffn, rows, act.data());
  call.profile.lap(layer, "feed_forward.silu_gate");
  trace.Parts("feed_forward.act", act.data(), A::ffn);

  Project(call, layer, act, IntoView<DownProjection<A>>("feed_forward.w2", w.w2, update));
  SumOverRanks(call, layer, "feed_forward.w2", update.data(), A::dim, rows);
  trace.Rows("feed_forward.w2", update.data(), A::dim);
}

// Logits of the rows asked for, from the stream after the last block. All rows are normalised where
// a trace wants to see them, else those asked for.
template <class A>
void ProjectVocabulary(const ForwardCall& call, const TransformerWeights<A>& w,
                       const Activation<Residual<A>>& stream,
                       const Activation<Residual<A>>& normed) {
  const Tracer trace(call, no_layer);
  if (trace.On()) {
    Normalise<RmsNorm<A>, A>(call, w.norm, stream, normed);
    trace.Rows("norm", normed.data(), A::dim);
  }
  const std::size_t n = call.logit_rows.size();
  if (n == 0) return;
  // Rows are ascending, so a row moves up only: the stream is no longer needed and holds them.
  for (std::size_t i = 0; i < n; ++i) {
    const float* from = stream.row(call.logit_rows[i]);
    std::copy(from, from + A::dim, stream.row(i));
  }
  const Activation<Residual<A>> wanted(stream.data(), 1, n);
  const Activation<Residual<A>> features(normed.data(), 1, n);
  Normalise<RmsNorm<A>, A>(call, w.norm, wanted, features);
  call.profile.lap(no_layer, "norm");
  // Each rank fills its columns of the rows.
  const std::size_t vocabulary = A::vocab_size * call.communicator.ranks();
  const Activation<Logits<A>> logits(call.logits + A::vocab_size * call.communicator.rank(), 1, n);
  Project(call, no_layer, features,
          IntoView<VocabularyProjection<A>>("output", w.output, logits, vocabulary));
  call.communicator.all_gather_columns(call.logits, n, A::vocab_size);
  if (n == call.tokens.size()) trace.Logits(call.logits, vocabulary);
}

/// One pass over the tokens of a call. The caller has checked tokens, positions and plan.
template <class A>
void Forward(const TransformerWeights<A>& w, const ForwardCall& call) {
  const std::size_t rows = call.tokens.size();
  const Activation<Residual<A>> stream(call.scratch->at(call.plan->stream), 1, rows);
  const Activation<Residual<A>> normed(call.scratch->at(call.plan->normed), 1, rows);
  const Activation<Residual<A>> update(call.scratch->at(call.plan->update), 1, rows);

  float* table = call.scratch->at(call.plan->rotary);
  for (const SequenceChunk& chunk : call.chunks) {
    fill_rotary_rows(call.inverse_frequencies, A::head_dim, chunk, table);
  }
  call.profile.lap(no_layer, "freqs_cis");
  EmbedRows(call, w.tok_embeddings.view, stream.data());
  Tracer(call, no_layer).Rows("tok_embeddings", stream.data(), A::dim);

  for (std::size_t layer = 0; layer < A::n_layers; ++layer) {
    const BlockWeights<A>& block = w.layers[layer];
    const Tracer trace(call, layer);

    Normalise<RmsNorm<A, weight_id::attention_norm>, A>(call, block.attention_norm, stream, normed);
    call.profile.lap(layer, "attention_norm");
    trace.Rows("attention_norm", normed.data(), A::dim);
    ApplyAttentionUpdate<A>(call, layer, block.attention, normed, update);
    AddUpdate<A>(call, stream, update);
    call.profile.lap(layer, "attention_residual");
    trace.Rows("h", stream.data(), A::dim);

    Normalise<RmsNorm<A, weight_id::ffn_norm>, A>(call, block.ffn_norm, stream, normed);
    call.profile.lap(layer, "ffn_norm");
    trace.Rows("ffn_norm", normed.data(), A::dim);
    ApplyFeedForwardUpdate<A>(call, layer, block.feed_forward, normed, update);
    AddUpdate<A>(call, stream, update);
    call.profile.lap(layer, "feed_forward_residual");
    trace.Rows("out", stream.data(), A::dim);
  }
  ProjectVocabulary<A>(call, w, stream, normed);
}

// The pass of one model for the number of ranks in the call, which is 1 or one of Ranks that the
// model can be cut for (the caller has checked it).
template <class A, std::size_t... Ranks>
void ForwardForRanks(RankList<Ranks...>, const void* weights, const ForwardCall& call) {
  const std::size_t ranks = call.communicator.ranks();
  [[maybe_unused]] const auto as_rank = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    if constexpr (can_be_cut<A, N>) {
      if (ranks != N) return;
      using Part = rank_of<A, N>;
      Forward<Part>(*static_cast<const TransformerWeights<Part>*>(weights), call);
    }
  };
  if (ranks == 1) {
    Forward<A>(*static_cast<const TransformerWeights<A>*>(weights), call);
    return;
  }
  (as_rank(std::integral_constant<std::size_t, Ranks>{}), ...);
}

// The forward pass of the model at an index of a list.
template <class Ranks, class... M>
void ForwardByIndex(ModelList<M...>, std::size_t model, const void* weights,
                    const ForwardCall& call) {
  using Pass = void (*)(const void*, const ForwardCall&);
  static constexpr Pass passes[] = {[](const void* w, const ForwardCall& c) {
    ForwardForRanks<architecture_of<M>>(Ranks{}, w, c);
  }...};
  passes[model](weights, call);
}
template <class List, class Ranks = RankList<>>
void ForwardOneOf(std::size_t model, const void* weights, const ForwardCall& call) {
  ForwardByIndex<Ranks>(List{}, model, weights, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
