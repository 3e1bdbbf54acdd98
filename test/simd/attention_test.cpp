// Attention: against double precision, against the canonical order bit for bit, and the same bits
// for every way to cut the work.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/attention-inl.hpp"
#include "quipu/simd/kv_append-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace attention_test {
namespace HWY_NAMESPACE {
void Append(const quipu::KvCache& cache, std::size_t layer, const quipu::SequenceChunk& chunk,
            const float* k, std::size_t k_stride, const float* v, std::size_t v_stride) {
  quipu::HWY_NAMESPACE::AppendKeysValues(cache, layer, chunk, k, k_stride, v, v_stride);
}
void Attend(const quipu::AttentionCall& call, quipu::ExecutorRef executor) {
  quipu::HWY_NAMESPACE::Attend(call, executor);
}
}  // namespace HWY_NAMESPACE
}  // namespace attention_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <utility>

#include "canonical.hpp"
#include "per_target.hpp"
#include "quipu/runtime/thread_pool.hpp"

namespace attention_test {
HWY_EXPORT(Append);
HWY_EXPORT(Attend);
using quipu::ElementType;
using quipu::NumericMode;
using quipu::SequenceChunk;

struct Heads {
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t head_dim;
};

// A sequence's queries, keys and values, [positions][heads][head_dim], and the ways to run it.
struct Sequence {
  Heads heads;
  std::size_t positions;
  ElementType element;
  NumericMode mode;
  std::vector<float> q, k, v;

  Sequence(Heads h, std::size_t n, ElementType e = ElementType::f32,
           NumericMode m = NumericMode::f32, unsigned seed = 1)
      : heads(h), positions(n), element(e), mode(m) {
    q = quipu_test::random_floats(n * h.heads * h.head_dim, seed, 3.0f);
    k = quipu_test::random_floats(n * h.kv_heads * h.head_dim, seed + 1, 2.0f);
    v = quipu_test::random_floats(n * h.kv_heads * h.head_dim, seed + 2);
    if (m == NumericMode::bf16) q = quipu_test::bf16_values(q);
    if (e == ElementType::bf16) {
      k = quipu_test::bf16_values(k);
      v = quipu_test::bf16_values(v);
    }
  }
  std::size_t width() const { return heads.heads * heads.head_dim; }
  std::size_t kv_width() const { return heads.kv_heads * heads.head_dim; }
  const float* query(std::size_t t, std::size_t h) const {
    return q.data() + t * width() + h * heads.head_dim;
  }
  std::size_t kv_index(std::size_t p, std::size_t h) const {
    return p * kv_width() + h / (heads.heads / heads.kv_heads) * heads.head_dim;
  }
};

struct Probs {
  std::vector<float>* after = nullptr;
  std::vector<float>* before = nullptr;
};

// Runs several sequences of equal heads together: every step takes each sequence's next `chunk`
// tokens. Returns the results of each, [positions][heads][head_dim]. The first `unattended`
// positions are only written to the cache.
std::vector<std::vector<float>> run(const std::vector<const Sequence*>& sequences,
                                    std::size_t chunk, quipu::ExecutorRef executor,
                                    Probs probs = {}, std::size_t unattended = 0) {
  const Sequence& first = *sequences[0];
  std::size_t capacity = 0;
  for (const Sequence* s : sequences) capacity = (std::max)(capacity, s->positions);
  const std::size_t layer = 1;
  const quipu::KvCache cache(quipu::KvCacheShape{sequences.size(), 2, first.heads.kv_heads,
                                                 first.heads.head_dim, capacity, first.element});
  std::vector<float> scratch(
      quipu::attention_scratch_floats(first.heads.head_dim, capacity, executor.concurrency()));
  std::vector<std::vector<float>> results(sequences.size());
  for (std::size_t start = 0, step = 0; start < capacity; start += step) {
    step = start < unattended ? unattended : chunk;
    std::vector<SequenceChunk> chunks;
    std::vector<float> q;
    std::vector<float> k;
    std::vector<float> v;
    std::size_t rows = 0;
    std::size_t traced = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const Sequence& s = *sequences[i];
      if (start >= s.positions) continue;
      const std::size_t n = (std::min)(step, s.positions - start);
      chunks.push_back({i, start, n, rows});
      const auto append = [&](std::vector<float>& to, const std::vector<float>& from,
                              std::size_t width) {
        to.insert(to.end(), from.begin() + std::ptrdiff_t(start * width),
                  from.begin() + std::ptrdiff_t((start + n) * width));
      };
      append(q, s.q, s.width());
      append(k, s.k, s.kv_width());
      append(v, s.v, s.kv_width());
      HWY_DYNAMIC_DISPATCH(Append)
      (cache, layer, chunks.back(), k.data(), s.kv_width(), v.data(), s.kv_width());
      rows += n;
      traced += s.heads.heads * n * (start + n);
    }
    if (start < unattended) continue;
    std::vector<float> out(rows * first.width(), -77);
    if (probs.after != nullptr) probs.after->assign(traced, -77);
    if (probs.before != nullptr) probs.before->assign(traced, -77);
    quipu::AttentionCall call;
    call.q = q.data();
    call.q_stride = first.width();
    call.out = out.data();
    call.out_stride = first.width();
    call.heads = first.heads.heads;
    call.cache = &cache;
    call.layer = layer;
    call.chunks = chunks;
    call.mode = first.mode;
    call.scratch = scratch.data();
    call.probs = probs.after != nullptr ? probs.after->data() : nullptr;
    call.probs_before_rounding = probs.before != nullptr ? probs.before->data() : nullptr;
    HWY_DYNAMIC_DISPATCH(Attend)(call, executor);
    for (const SequenceChunk& c : chunks) {
      std::vector<float>& to = results[c.cache_row];
      to.insert(to.end(), out.begin() + std::ptrdiff_t(c.first_row * first.width()),
                out.begin() + std::ptrdiff_t((c.first_row + c.tokens) * first.width()));
    }
  }
  return results;
}

std::vector<float> run_alone(const Sequence& s, std::size_t chunk) {
  const quipu::SerialExecutor serial;
  return run({&s}, chunk, serial)[0];
}

// The canonical order in scalar code.
std::vector<float> canonical_attention(const Sequence& s) {
  const std::size_t dim = s.heads.head_dim;
  const bool round = s.mode == NumericMode::bf16;
  const auto rounded = [round](float x) { return round ? quipu_test::nearest_bf16(x) : x; };
  const float divisor = std::sqrt(float(dim));
  std::vector<float> out(s.positions * s.width());
  for (std::size_t t = 0; t < s.positions; ++t) {
    for (std::size_t h = 0; h < s.heads.heads; ++h) {
      std::vector<float> p(t + 1);
      for (std::size_t j = 0; j <= t; ++j) {
        float sum = 0;
        for (std::size_t i = 0; i < dim; ++i) {
          sum = std::fma(s.query(t, h)[i], s.k[s.kv_index(j, h) + i], sum);
        }
        p[j] = rounded(rounded(sum) / divisor);
      }
      const float largest = *std::max_element(p.begin(), p.end());
      for (float& x : p) x = quipu_test::canonical_exp(x - largest);
      float total = 0;
      for (std::size_t begin = 0; begin < p.size(); begin += 512) {
        total += quipu_test::canonical_sum(p.data() + begin,
                                           (std::min)(p.size() - begin, std::size_t{512}));
      }
      for (float& x : p) x = rounded(x / total);
      for (std::size_t i = 0; i < dim; ++i) {
        float result = 0;
        for (std::size_t begin = 0; begin < p.size(); begin += 512) {
          float block = 0;
          for (std::size_t j = begin; j < (std::min)(p.size(), begin + 512); ++j) {
            block = std::fma(p[j], s.v[s.kv_index(j, h) + i], block);
          }
          result = begin == 0 ? block : result + block;
        }
        out[t * s.width() + h * dim + i] = rounded(result);
      }
    }
  }
  return out;
}

const Heads kGrouped{6, 2, 16};
const Heads kTwelve{4, 2, 12};  // features that fill no vector of eight
const Heads kSingle{3, 3, 8};   // a kv head for every head
const Heads kWide{20, 1, 6};    // a group that no tile holds
const Heads kMany{2, 1, 64};

TEST(Attention, AgainstDouble) {
  for (const auto& [heads, n] :
       {std::pair{kGrouped, 40}, {kTwelve, 35}, {kSingle, 33}, {kWide, 9}, {kMany, 530}}) {
    const Sequence s(heads, std::size_t(n));
    const std::size_t dim = heads.head_dim;
    quipu_test::for_each_target([&](std::int64_t) {
      const std::vector<float> out = run_alone(s, s.positions);
      for (std::size_t t = 0; t < s.positions; t += 1 + s.positions / 40) {
        for (std::size_t h = 0; h < heads.heads; ++h) {
          std::vector<double> p(t + 1);
          double largest = -1e300;
          double score_error = 0;
          for (std::size_t j = 0; j <= t; ++j) {
            double sum = 0;
            double magnitude = 0;
            for (std::size_t i = 0; i < dim; ++i) {
              const double product = double(s.query(t, h)[i]) * s.k[s.kv_index(j, h) + i];
              sum += product;
              magnitude += std::abs(product);
            }
            p[j] = sum / std::sqrt(double(dim));
            largest = (std::max)(largest, p[j]);
            // dim products (and sums, where the target does not fuse), root, quotient, and the
            // difference to the largest, which is below twice the magnitude.
            score_error = (std::max)(score_error, (2 * double(dim) + 5) * quipu_test::kRounding *
                                                      magnitude / std::sqrt(double(dim)));
          }
          double total = 0;
          for (double& x : p) total += x = std::exp(x - largest);
          for (std::size_t i = 0; i < dim; ++i) {
            double exact = 0;
            double magnitude = 0;
            for (std::size_t j = 0; j <= t; ++j) {
              exact += p[j] / total * s.v[s.kv_index(j, h) + i];
              magnitude += p[j] / total * std::abs(s.v[s.kv_index(j, h) + i]);
            }
            // Errors of scores act on an exponential and on the sum; exponentials, sum and quotient
            // as in the softmax test; the weighted sum adds at most 512 terms and then blocks.
            const double terms = double((std::min)(t + 1, std::size_t{512}));
            const double bound =
                magnitude * (2 * score_error + (60 + 2 * terms) * quipu_test::kRounding);
            ASSERT_NEAR(out[t * s.width() + h * dim + i], exact, bound)
                << t << ' ' << h << ' ' << i;
          }
        }
      }
    });
  }
}

TEST(Attention, CanonicalBitsOnFusingTargets) {
  for (const auto& [heads, n] :
       {std::pair{kGrouped, 40}, {kTwelve, 35}, {kSingle, 33}, {kWide, 9}, {kMany, 530}}) {
    for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
      for (const ElementType element : {ElementType::f32, ElementType::bf16}) {
        if (mode == NumericMode::bf16 && element == ElementType::f32) continue;
        const Sequence s(heads, std::size_t(n), element, mode);
        const std::vector<float> canonical = canonical_attention(s);
        quipu_test::for_each_target([&](std::int64_t target) {
          if (!quipu_test::fuses_multiply_add(target)) return;
          EXPECT_EQ(run_alone(s, s.positions), canonical);
        });
      }
    }
  }
}

TEST(Attention, SameBitsForEveryChunk) {
  for (const Heads heads : {kGrouped, kTwelve, kSingle, kWide}) {
    const Sequence s(heads, 50, ElementType::bf16);
    quipu_test::for_each_target([&](std::int64_t) {
      const std::vector<float> whole = run_alone(s, 50);
      for (const std::size_t chunk : {1u, 2u, 7u, 16u, 17u, 49u}) {
        ASSERT_EQ(run_alone(s, chunk), whole) << chunk;
      }
    });
  }
}

TEST(Attention, SameBitsAcrossBlocksOfPositions) {
  const Sequence s({2, 1, 8}, 1100);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> whole = run_alone(s, 1100);
    ASSERT_EQ(run_alone(s, 333), whole);
    ASSERT_EQ(run_alone(s, 512), whole);
    ASSERT_EQ(run_alone(s, 1), whole);
  });
}

TEST(Attention, SameBitsForEveryNumberOfThreads) {
  const Sequence s(kGrouped, 70);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> alone = run_alone(s, 70);
    for (const std::size_t threads : {2u, 3u, 5u}) {
      quipu::ThreadPool pool(threads);
      ASSERT_EQ(run({&s}, 70, pool)[0], alone) << threads;
      ASSERT_EQ(run({&s}, 17, pool)[0], alone) << threads;
    }
  });
}

// A long context with few tiles: blocks of positions are shared out among the workers.
TEST(Attention, SameBitsWhenBlocksAreSharedOut) {
  for (const NumericMode mode : {NumericMode::f32, NumericMode::bf16}) {
    const Sequence s({3, 1, 16}, 3001, ElementType::bf16, mode);
    quipu_test::for_each_target([&](std::int64_t) {
      const quipu::SerialExecutor serial;
      quipu::ThreadPool pool(3);
      std::vector<float> alone_before;
      std::vector<float> alone_after;
      std::vector<float> before;
      std::vector<float> after;
      // Ten tokens are two tiles, one is one tile, and each has six blocks.
      const auto alone = run({&s}, 10, serial, {&alone_after, &alone_before}, 2991);
      ASSERT_EQ(run({&s}, 10, pool, {&after, &before}, 2991), alone);
      EXPECT_EQ(after, alone_after);
      EXPECT_EQ(before, alone_before);
      ASSERT_EQ(run({&s}, 1, pool, {}, 2991), alone);
    });
  }
}

TEST(Attention, SameBitsInABatchOfOtherLengths) {
  std::vector<Sequence> sequences;
  for (const std::size_t n : {1u, 17u, 40u, 33u, 5u}) {
    sequences.emplace_back(kGrouped, n, ElementType::f32, NumericMode::f32, unsigned(n));
  }
  std::vector<const Sequence*> all;
  for (const Sequence& s : sequences) all.push_back(&s);
  quipu_test::for_each_target([&](std::int64_t) {
    quipu::ThreadPool pool(2);
    for (const std::size_t chunk : {1u, 9u, 64u}) {
      const auto together = run(all, chunk, pool);
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(together[i], run_alone(sequences[i], 64)) << i;
      }
    }
  });
}

// A later token's values, even if they are not numbers, cannot reach an earlier token of the chunk.
TEST(Attention, LaterPositionsAreNotSeen) {
  Sequence s(kGrouped, 30);
  quipu_test::for_each_target([&](std::int64_t) {
    const std::vector<float> clean = run_alone(s, 30);
    Sequence poisoned = s;
    for (std::size_t i = 20 * s.kv_width(); i < s.k.size(); ++i) {
      poisoned.k[i] = std::numeric_limits<float>::quiet_NaN();
      poisoned.v[i] = std::numeric_limits<float>::infinity();
    }
    const std::vector<float> out = run_alone(poisoned, 30);
    for (std::size_t i = 0; i < 20 * s.width(); ++i) ASSERT_EQ(out[i], clean[i]) << i;
    EXPECT_TRUE(std::isnan(out[25 * s.width()]));
  });
}

TEST(Attention, TracedProbabilities) {
  const Sequence a(kGrouped, 9, ElementType::bf16, NumericMode::bf16);
  const Sequence b(kGrouped, 9, ElementType::bf16, NumericMode::bf16, 50);
  quipu_test::for_each_target([&](std::int64_t) {
    const quipu::SerialExecutor serial;
    std::vector<float> after;
    std::vector<float> before;
    const auto traced = run({&a, &b}, 9, serial, {&after, &before});
    ASSERT_EQ(traced[1], run_alone(b, 9));
    ASSERT_EQ(after.size(), 2u * 6 * 9 * 9);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t t = i / 9 % 9;
      if (i % 9 > t) {
        ASSERT_EQ(after[i], 0.0f);
        ASSERT_EQ(before[i], 0.0f);
      } else {
        ASSERT_GT(before[i], 0.0f);
        ASSERT_EQ(after[i], quipu_test::nearest_bf16(before[i]));
      }
    }
    for (std::size_t row = 0; row < before.size(); row += 9) {
      double sum = 0;
      for (std::size_t j = 0; j < 9; ++j) sum += before[row + j];
      ASSERT_NEAR(sum, 1.0, 1e-6);
    }
    // The first token sees itself alone: its result is its value.
    for (std::size_t h = 0; h < 6; ++h) {
      for (std::size_t i = 0; i < 16; ++i) {
        ASSERT_EQ(traced[0][h * 16 + i], a.v[a.kv_index(0, h) + i]);
      }
    }
  });
}

static_assert(quipu::attention_scratch_floats(128, 4096, 2) ==
              2 * 24 * ((4096 + 16) + 7 * 128 + 16));

}  // namespace attention_test
#endif
