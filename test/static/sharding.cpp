// What one rank of a model-parallel run holds.
#include "quipu/model/sharding.hpp"

#include "quipu/config/catalogue.hpp"
#include "quipu/model/transformer.hpp"

using namespace quipu;
using M = models::llama3_1_8b;

template <class C, std::size_t Ranks, std::size_t Out, std::size_t In>
inline constexpr bool part = sharded<M, Ranks>::template weight<typename C::Weight>::out ==
                             Out&& sharded<M, Ranks>::template weight<typename C::Weight>::in == In;

// Output rows: queries, keys, values, gate, up, embedding, head. Input columns: wo, w2.
static_assert(part<QueryProjection<M>, 8, 512, 4096> && part<KeyProjection<M>, 8, 128, 4096> &&
              part<ValueProjection<M>, 4, 256, 4096> && part<GateProjection<M>, 8, 1792, 4096> &&
              part<UpProjection<M>, 2, 7168, 4096>);
static_assert(part<TokenEmbedding<M>, 8, 16032, 4096> &&
              part<VocabularyProjection<M>, 4, 32064, 4096>);
static_assert(part<OutputProjection<M>, 8, 4096, 512> && part<DownProjection<M>, 8, 4096, 1792>);
static_assert(part<RmsNorm<M>, 8, 1, 4096>);
static_assert(part<QueryProjection<M>, 1, 4096, 4096>);

// A part keeps the identity of its weight.
static_assert(std::is_same_v<sharded<M, 8>::weight<GateProjection<M>::Weight>::id, weight_id::w1>);

// What a rank computes with, as an architecture, has the very weights that sharding names.
template <template <class> class C>
inline constexpr bool agrees =
    std::is_same_v<sharded<M, 8>::weight<typename C<M>::Weight>, typename C<rank_of<M, 8>>::Weight>;
static_assert(agrees<TokenEmbedding> && agrees<QueryProjection> && agrees<KeyProjection> &&
              agrees<ValueProjection> && agrees<OutputProjection> && agrees<GateProjection> &&
              agrees<UpProjection> && agrees<DownProjection> && agrees<VocabularyProjection>);
using R = rank_of<M, 8>;
static_assert(R::dim == 4096 && R::n_heads == 4 && R::n_kv_heads == 1 && R::head_dim == 128);
static_assert(R::ffn == 1792 && R::vocab_size == 16032 && R::heads_per_kv_head == 4);
static_assert(std::is_same_v<rank_of<M, 1>, architecture_of<M>>);

template <class X, std::size_t... N>
constexpr bool legal(std::index_sequence<N...>) {
  constexpr auto& sizes = legal_model_parallel_sizes<X>;
  constexpr std::size_t expected[] = {N...};
  if (sizes.size() != sizeof...(N)) return false;
  for (std::size_t i = 0; i < sizeof...(N); ++i) {
    if (sizes[i] != expected[i]) return false;
  }
  return true;
}
static_assert(legal<M>(std::index_sequence<1, 2, 4, 8>{}));
static_assert(legal<models::smollm2_135m>(std::index_sequence<1, 3>{}));
static_assert(legal<models::llama2_7b>(std::index_sequence<1, 2, 4, 8, 16, 32>{}));
