// Equations, source records and accounting, decided when compiled: nothing here runs.
#include "quipu/notation/description.hpp"
#include "quipu/quipu.hpp"

namespace {

using namespace quipu;
namespace n = quipu::notation;

using M = models::llama3_8b;
using B = dim<axis::batch>;
using T = dim<axis::positions>;
using D = dim<axis::d, 4096>;

// Shapes are computed from parts.
using Env = n::Symbols<
    n::in<symbol::z, Residual<M>>, n::weight<symbol::W_out, VocabularyProjection<M>::Weight>,
    n::weight<symbol::w_norm, RmsNorm<M>::Weight>, n::table<symbol::E, TokenEmbedding<M>::Weight>,
    n::given<symbol::t, Tokens>, n::given<symbol::epsilon>, n::given<symbol::q, Queries<M>>,
    n::given<symbol::k, KeysOrValues<M>>>;
template <class Expression>
using shape = n::shape_in<Env, std::remove_const_t<Expression>>;
template <class A, class Expected>
constexpr bool is = std::is_same_v<A, Expected>;

static_assert(is<shape<decltype(symbol::z * symbol::W_out)>, Logits<M>>);
static_assert(is<shape<decltype(n::lookup(symbol::E, symbol::t))>, Residual<M>>);
static_assert(is<shape<decltype(n::call<n::fn::mean>(symbol::z))>, Shape<B, T>>);
static_assert(is<shape<decltype(n::hadamard(symbol::z, symbol::w_norm))>, Residual<M>>);
static_assert(is<shape<decltype(symbol::z + symbol::epsilon)>, Residual<M>>);
static_assert(is<shape<decltype(n::call<n::fn::transpose>(symbol::W_out))>,
                 Shape<dim<axis::vocabulary, 128256>, D>>);
static_assert(is<shape<decltype(n::call<n::fn::complex_pairs>(symbol::q))>,
                 Shape<B, T, dim<axis::heads, 32>, dim<axis::pairs, 64>>>);
static_assert(is<shape<decltype(n::each_head(symbol::q))>, Shape<B, T, dim<axis::head_dim, 128>>>);
static_assert(is<shape<decltype(n::concat_heads(n::each_head(symbol::q)))>, MergedHeads<M>>);

// Lines of accounting add up, tied or not.
static_assert(n::total(n::account_of<Transformer<M>>()) == 8'030'261'248);
static_assert(n::total(n::account_of<Transformer<models::llama3_2_1b>>()) == 1'235'814'400);
static_assert(n::total(n::account_of<Attention<M>>()) == 41'943'040);
static_assert(n::account_of<Block<M>>().size() == 9);

// Llama 3 cites its own file; Llama 3.1 llama-models' first; others as context.
constexpr n::SourceList of_3 = VocabularyProjection<M>::description::sources();
constexpr n::SourceList of_3_1 = VocabularyProjection<models::llama3_1_8b>::description::sources();
constexpr n::SourceList of_small =
    VocabularyProjection<models::smollm2_135m>::description::sources();
static_assert(of_3[0].file.repository == "meta-llama/llama3");
static_assert(of_3_1[0].file.repository == "meta-llama/llama-models");
static_assert(of_3_1[1].file.repository == "meta-llama/llama3");
static_assert(of_3[0].evidence == n::Evidence::direct);
static_assert(of_small[0].evidence == n::Evidence::contextual);

}  // namespace
