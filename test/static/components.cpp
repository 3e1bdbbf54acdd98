// Every component of Llama 3 8B: what goes in, what comes out, its weights and its exact count,
// from literal dimensions; and the same for decoding.
#include "quipu/model/composition.hpp"
#include "quipu/model/transformer.hpp"

#include "quipu/config/catalogue.hpp"

using namespace quipu;
using M = models::llama3_8b;
constexpr std::size_t d = 4096, H = 32, K = 8, h = 128, f = 14336, V = 128256, N = 32;

using B = dim<axis::batch>;
using T = dim<axis::positions>;
using Features = Shape<B, T, dim<axis::d, d>>;
using Q = Shape<B, T, dim<axis::heads, H>, dim<axis::head_dim, h>>;
using KV = Shape<B, T, dim<axis::kv_heads, K>, dim<axis::head_dim, h>>;
using QFlat = Shape<B, T, dim<axis::merged<axis::heads, axis::head_dim>, H * h>>;
using KVFlat = Shape<B, T, dim<axis::merged<axis::kv_heads, axis::head_dim>, K * h>>;
using Inner = Shape<B, T, dim<axis::ffn, f>>;

template <class C, class In, class Out>
inline constexpr bool maps =
    std::is_same_v<typename C::In, In>&& std::is_same_v<typename C::Out, Out>;
template <class C, std::size_t Out, std::size_t In, std::size_t Instances>
inline constexpr bool holds = C::Weight::out == Out&& C::Weight::in == In&& parameter_count<C> ==
                              Out* In&& C::instances == Instances;

static_assert(maps<TokenEmbedding<M>, Shape<B, T>, Features> && holds<TokenEmbedding<M>, V, d, 1>);
static_assert(maps<QueryProjection<M>, Features, QFlat> && holds<QueryProjection<M>, H * h, d, N>);
static_assert(maps<KeyProjection<M>, Features, KVFlat> && holds<KeyProjection<M>, K * h, d, N>);
static_assert(maps<ValueProjection<M>, Features, KVFlat> && holds<ValueProjection<M>, K * h, d, N>);
static_assert(maps<OutputProjection<M>, QFlat, Features> &&
              holds<OutputProjection<M>, d, H * h, N>);
static_assert(maps<GateProjection<M>, Features, Inner> && holds<GateProjection<M>, f, d, N>);
static_assert(maps<UpProjection<M>, Features, Inner> && holds<UpProjection<M>, f, d, N>);
static_assert(maps<DownProjection<M>, Inner, Features> && holds<DownProjection<M>, d, f, N>);
static_assert(maps<VocabularyProjection<M>, Features, Shape<B, T, dim<axis::vocabulary, V>>> &&
              holds<VocabularyProjection<M>, V, d, 1>);
static_assert(maps<RmsNorm<M>, Features, Features> && RmsNorm<M>::instances == 1 &&
              parameter_count<RmsNorm<M>> == d);
static_assert(RmsNorm<M, weight_id::ffn_norm>::instances == N &&
              RmsNorm<M, weight_id::attention_norm>::Weight::is_vector);
static_assert(maps<RotaryEmbedding<M>, Q, Q> && parameter_count<RotaryEmbedding<M>> == 0);
static_assert(std::is_same_v<RotaryEmbedding<M>::KeysIn, KV>);
static_assert(maps<ScaledDotProduct<M>, Q, QFlat> && parameter_count<ScaledDotProduct<M>> == 0);
static_assert(
    std::is_same_v<ScaledDotProduct<M>::Cache,
                   Shape<B, dim<axis::keys>, dim<axis::kv_heads, K>, dim<axis::head_dim, h>>>);
static_assert(maps<SiluGate<M>, Inner, Inner> && parameter_count<SiluGate<M>> == 0);
static_assert(maps<ResidualAdd<M>, Features, Features> && ResidualAdd<M>::instances == 2 * N);
static_assert(maps<Attention<M>, Features, Features> &&
              parameter_count<Attention<M>> == 2 * d * H * h + 2 * d * K * h);
static_assert(maps<FeedForward<M>, Features, Features> &&
              parameter_count<FeedForward<M>> == 3 * d * f);
static_assert(maps<Block<M>, Features, Features> && Block<M>::instances == N &&
              parameter_count<Block<M>> == 218'112'000);
static_assert(maps<Transformer<M>, Shape<B, T>, Shape<B, T, dim<axis::vocabulary, V>>>);
static_assert(parameter_count<Transformer<M>> == parameter_count<M>);
static_assert(parameter_count<M> == V * d + N * 218'112'000 + d + V * d);

// A tied head counts what it applies; the model counts the shared matrix once.
using Tied = models::llama3_2_1b;
static_assert(VocabularyProjection<Tied>::shares_embedding &&
              !VocabularyProjection<M>::shares_embedding);
static_assert(parameter_count<VocabularyProjection<Tied>> == 128256 * 2048);
static_assert(parameter_count<Tied> == 128256 * 2048 + 16 * parameter_count<Block<Tied>> + 2048);

// w1 and w3, wk and wv have equal extents and are different types.
static_assert(GateProjection<M>::Weight::size == UpProjection<M>::Weight::size &&
              !std::is_same_v<GateProjection<M>::Weight, UpProjection<M>::Weight>);
static_assert(!std::is_same_v<KeyProjection<M>::Weight, ValueProjection<M>::Weight>);

// The whole way of a block, and the extents of decoding carried along it.
template <class C, class X>
using through = applied<C, typename C::Weight, X>;
using One = with_extent<axis::positions, 1, Features>;
using Gate = through<GateProjection<M>, One>;
static_assert(extent_of<axis::positions, Gate> == 1 && extent_of<axis::ffn, Gate> == f);
static_assert(std::is_same_v<through<DownProjection<M>, operated<SiluGate<M>, Gate>>, One>);
static_assert(
    std::is_same_v<operated<ResidualAdd<M>, through<OutputProjection<M>, QFlat>>, Features>);
static_assert(
    std::is_same_v<merge<axis::kv_heads, axis::head_dim, KV>, through<KeyProjection<M>, Features>>);
static_assert(std::is_same_v<through<TokenEmbedding<M>, Tokens>, Features>);

// Thirty-two layers are an array of one type: the weights of 405B are views, not memory.
static_assert(sizeof(Transformer<models::llama3_1_405b>::Weights) < 1 << 20);
