// Components put together wrongly: each projection of Llama 3 8B, given a wrong shape or weight.
// FAIL wrong_axis: axis_mismatch<2, expected_axis<axis::ffn>, found_axis<axis::d>>
// FAIL axes_exchanged: axis_mismatch<0, expected_axis<axis::batch>, found_axis<axis::positions>>
// FAIL wrong_extent: axis_extent_mismatch<axis::d, expected<4096>, found<2048>>
// FAIL wrong_model: axis_extent_mismatch<axis::ffn, expected<14336>, found<28672>>
// FAIL heads_not_merged: rank_mismatch<expected<3>, found<4>>
// FAIL no_positions: rank_mismatch<expected<3>, found<2>>
// FAIL merged_the_wrong_heads: axis_mismatch<2, expected_axis<axis::merged<heads, head_dim>>, found_axis<axis::merged<kv_heads, head_dim>>>
// FAIL w3_for_w1: weight_mismatch<expected_weight<weight_id::w1>, found_weight<weight_id::w3>>
// FAIL wv_for_wk: weight_mismatch<expected_weight<weight_id::wk>, found_weight<weight_id::wv>>
// FAIL embedding_for_output: weight_mismatch<expected_weight<weight_id::output>, found_weight<weight_id::tok_embeddings>>
// FAIL weight_of_another_model: axis_extent_mismatch<axis::merged<kv_heads, head_dim>, expected<1024>, found<4096>>
// FAIL rotate_queries_as_keys: axis_mismatch<2, expected_axis<axis::heads>, found_axis<axis::kv_heads>>
// FAIL gate_on_the_residual: axis_mismatch<2, expected_axis<axis::ffn>, found_axis<axis::d>>
#include "quipu/quipu.hpp"

using namespace quipu;
using M = models::llama3_8b;
using Other = models::llama3_70b;
using X = Residual<M>;

template <class C, class Input, class W = typename C::Weight>
using out = applied<C, W, Input>;

#if defined(QUIPU_FAIL_wrong_axis)
using Y = out<DownProjection<M>, X>;
#elif defined(QUIPU_FAIL_axes_exchanged)
using Y = out<QueryProjection<M>, Shape<PositionsDim, BatchDim, dim<axis::d, 4096>>>;
#elif defined(QUIPU_FAIL_wrong_extent)
using Y = out<QueryProjection<M>, Shape<BatchDim, PositionsDim, dim<axis::d, 2048>>>;
#elif defined(QUIPU_FAIL_wrong_model)
using Y = out<DownProjection<M>, Hidden<Other>>;
#elif defined(QUIPU_FAIL_heads_not_merged)
using Y = out<OutputProjection<M>, Queries<M>>;
#elif defined(QUIPU_FAIL_no_positions)
using Y = out<QueryProjection<M>, Shape<BatchDim, dim<axis::d, 4096>>>;
#elif defined(QUIPU_FAIL_merged_the_wrong_heads)
using Y = out<OutputProjection<M>, MergedKvHeads<M>>;
#elif defined(QUIPU_FAIL_w3_for_w1)
using Y = out<GateProjection<M>, X, UpProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_wv_for_wk)
using Y = out<KeyProjection<M>, X, ValueProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_embedding_for_output)
using Y = out<VocabularyProjection<M>, X, TokenEmbedding<M>::Weight>;
#elif defined(QUIPU_FAIL_weight_of_another_model)
using Y = out<KeyProjection<M>, X, KeyProjection<models::llama2_7b>::Weight>;
#elif defined(QUIPU_FAIL_rotate_queries_as_keys)
using Y = operated<RotaryEmbedding<M>, KeysOrValues<M>>;
#elif defined(QUIPU_FAIL_gate_on_the_residual)
using Y = operated<SiluGate<M>, X>;
#else
using Y = out<DownProjection<M>, operated<SiluGate<M>, out<GateProjection<M>, X>>>;
static_assert(same_shape<out<OutputProjection<M>, MergedHeads<M>>, X>);
static_assert(same_shape<out<KeyProjection<M>, X>, MergedKvHeads<M>>);
#endif
static_assert(Y::rank > 0);
