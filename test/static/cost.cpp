// FLOPs and bytes, from literal dimensions.
#include "quipu/model/cost.hpp"

#include "quipu/config/catalogue.hpp"
#include "quipu/model/pass_parts.hpp"
#include "quipu/model/transformer.hpp"

using namespace quipu;
using M = models::llama3_1_8b;
constexpr std::size_t d = 4096, H = 32, K = 8, h = 128, f = 14336, V = 128256, N = 32;

constexpr Work one{};                                            // decoding the first token, bf16
constexpr Work later{.batch = 1, .positions = 1, .start = 999};  // one token, 1000 visible keys
constexpr Work prefill{.batch = 2, .positions = 7};              // 2 * (1 + ... + 7) pairs
constexpr Work eight_bits{.weights = ElementType::q8_0};

// The head: two FLOPs a weight and row; its matrix is read once whatever the batch.
static_assert(VocabularyProjection<M>::cost(one).flops == 2 * d * V);
static_assert(VocabularyProjection<M>::cost(one).weight_bytes == 2 * d * V);
static_assert(VocabularyProjection<M>::cost(prefill).flops == 2 * 7 * 2 * d * V);
static_assert(VocabularyProjection<M>::cost(prefill).weight_bytes == 2 * d * V);
static_assert(VocabularyProjection<M>::cost(eight_bits).weight_bytes == V * (d / 32 * 34));
// A tied head is no parameter of its own, and its FLOPs still happen.
using Tied = models::llama3_2_1b;
static_assert(VocabularyProjection<Tied>::cost(one).flops == 2 * 2048 * V);
static_assert(Transformer<Tied>::cost(one).flops > 2 * 2048 * V);

static_assert(KeyProjection<M>::cost(one).flops == 2 * K * h * d);
static_assert(DownProjection<M>::cost(prefill).flops == 14 * 2 * f * d);
static_assert(TokenEmbedding<M>::cost(prefill) == Cost{0, 14 * 2 * d, 0, 0});
static_assert(RmsNorm<M>::cost(prefill) == Cost{14 * (4 * d + 3), 4 * d, 0, 0});
static_assert(RotaryEmbedding<M>::cost(one).flops == 3 * (H + K) * h);
static_assert(SiluGate<M>::cost(one).flops == 5 * f &&
              ResidualAdd<M>::cost(prefill).flops == 14 * d);

// Scores and values over the visible keys only, and the cache that they read and write.
static_assert(one.visible_keys() == 1 && later.visible_keys() == 1000 &&
              prefill.visible_keys() == 56);
static_assert(Work{.batch = 1, .positions = 3, .start = 10}.visible_keys() == 11 + 12 + 13);
static_assert(ScaledDotProduct<M>::cost(later) ==
              Cost{1000 * H * (4 * h + 6), 0, 1000 * 2 * K* h * 2, 2 * K* h * 2});
static_assert(N * ScaledDotProduct<M>::cost(one).cache_write_bytes == 131'072);

// A token of the whole model: each matrix once, and what is not a matrix.
constexpr std::size_t matrices = N * (2 * d * H * h + 2 * d * K * h + 3 * d * f) + d * V;
constexpr std::size_t rest =
    N * (2 * (4 * d + 3) + 3 * (H + K) * h + H * (4 * h + 6) + 5 * f + 2 * d) + 4 * d + 3;
static_assert(Transformer<M>::cost(one).flops == 2 * matrices + rest);
static_assert(Transformer<M>::cost(one).weight_bytes == 2 * matrices + (2 * N + 1) * 4 * d + 2 * d);
static_assert(Transformer<M>::cost(one).bytes() ==
              Transformer<M>::cost(one).weight_bytes + 2 * 131'072);

// The parts of a pass are the whole model, whatever the work.
constexpr Cost sum_of_parts(const Work& w) {
  Cost sum;
  for (const PassPart& part : pass_parts<M>(w, w)) sum = sum + (part.in_block ? N : 1) * part.cost;
  return sum;
}
static_assert(sum_of_parts(one) == Transformer<M>::cost(one));
static_assert(sum_of_parts(later) == Transformer<M>::cost(later));
static_assert(sum_of_parts(prefill) == Transformer<M>::cost(prefill));
