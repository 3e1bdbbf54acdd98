// The ModelConfig concept, derived dimensions and user's own models.
#include "quipu/config/dims.hpp"

#include <cstdint>

#include "quipu/config/catalogue.hpp"
#include "quipu/config/model_name.hpp"
#include "quipu/shape/element_type.hpp"

using namespace quipu;
using models::llama3_8b;

// --- models derived from another: what follows from a changed constant follows ------------------
struct narrow : llama3_8b {
  static constexpr int dim = 2048;
};
// ffn: 4 * 2048 = 8192, two thirds cut to 5461, times 1.3 cut to 7099, up to a multiple of 1024.
static_assert(dims<narrow>::head_dim == 64 && dims<narrow>::ffn == 7168 &&
              dims<narrow>::kv_width == 512 && dims<narrow>::q_width == 2048);
static_assert(model_name<narrow>() == "narrow");

struct wide_heads : llama3_8b {  // head_dim is a constant of its own, not dim / n_heads
  static constexpr unsigned head_dim = 256;
};
static_assert(dims<wide_heads>::head_dim == 256 && dims<wide_heads>::q_width == 8192 &&
              dims<wide_heads>::kv_width == 2048 && dims<wide_heads>::dim == 4096);

struct uneven : llama3_8b {  // heads need not divide dim where head_dim is given
  static constexpr int dim = 4100, head_dim = 128;
};
static_assert(ModelConfig<uneven> && dims<uneven>::dim == 4100);

// The reference's T1 to T4 of the golden data, as a user would write them.
struct t1 {
  static constexpr std::int8_t dim = 64, n_layers = 2, n_heads = 4, n_kv_heads = 2;
  static constexpr std::uint64_t vocab_size = 512;
  static constexpr ffn_rule ffn{.multiple_of = 32, .ffn_dim_multiplier = 1.3};
  static constexpr float norm_eps = 1e-5f;
  static constexpr long rope_theta = 500000;
};
static_assert(ModelConfig<t1> && dims<t1>::ffn == 224 && dims<t1>::head_dim == 16 &&
              dims<t1>::vocab_size == 512 && !dims<t1>::tied_output);
struct t2 : t1 {
  static constexpr short dim = 96, n_layers = 3, n_heads = 6, vocab_size = 320;
  static constexpr ffn_rule ffn{.multiple_of = 16, .ffn_dim_multiplier = 0.7};
};
static_assert(dims<t2>::ffn == 192 && dims<t2>::heads_per_kv_head == 3);
struct t3 {  // n_kv_heads left out: n_heads
  static constexpr long long dim = 32, n_layers = 2, n_heads = 4, vocab_size = 256;
  static constexpr ffn_rule ffn{.multiple_of = 64};
  static constexpr double norm_eps = 1e-5, rope_theta = 500000;
};
static_assert(ModelConfig<t3> && dims<t3>::ffn == 128 && dims<t3>::n_kv_heads == 4);
struct t4 : t1 {
  static constexpr unsigned char dim = 48, n_layers = 1, vocab_size = 128;
  static constexpr ffn_rule ffn{.multiple_of = 8, .ffn_dim_multiplier = 1.5};
  static constexpr tied output{};
};
static_assert(dims<t4>::ffn == 192 && dims<t4>::head_dim == 12 && dims<t4>::tied_output);

// --- what is no configuration; the messages are matched in test/compile_fail ---------------------
#define QUIPU_REFUSES(name, field) \
  struct name : llama3_8b {        \
    static constexpr field;        \
  };                               \
  static_assert(!ModelConfig<name>)
QUIPU_REFUSES(five_kv_heads, int n_kv_heads = 5);
QUIPU_REFUSES(more_kv_heads_than_heads, int n_kv_heads = 64);
QUIPU_REFUSES(no_kv_heads, int n_kv_heads = 0);
QUIPU_REFUSES(negative_dim, int dim = -4096);
QUIPU_REFUSES(indivisible_dim, int dim = 4100);
QUIPU_REFUSES(odd_head, int head_dim = 127);
QUIPU_REFUSES(no_layers, int n_layers = 0);
QUIPU_REFUSES(negative_eps, double norm_eps = -1e-5);
QUIPU_REFUSES(eps_is_one, double norm_eps = 1);
QUIPU_REFUSES(no_theta, double rope_theta = 0);
QUIPU_REFUSES(bare_ffn, int ffn = 14336);
QUIPU_REFUSES(negative_ffn, ffn_width ffn{-1});
QUIPU_REFUSES(tied_is_a_bool, bool output = true);
QUIPU_REFUSES(hugging_faces_name, int hidden_size = 4096);
QUIPU_REFUSES(ggufs_name, int block_count = 32);
QUIPU_REFUSES(misspelt, int n_layer = 32);
QUIPU_REFUSES(bands_equal, llama3_scaling rope_scaling = (llama3_scaling{8, 4, 4, 8192}));
#undef QUIPU_REFUSES
struct empty {};
static_assert(!ModelConfig<empty> && !ModelConfig<int>);
static_assert(ModelConfig<llama3_8b> && ModelConfig<models::smollm2_135m>);

// --- the KV cache -------------------------------------------------------------------------------
static_assert(kv_cache_bytes<models::llama3_1_8b, bf16>(1, 1) == 128 * 1024);
static_assert(kv_cache_bytes<models::llama3_1_8b, f16>(1, 4096) == 512u << 20);
static_assert(kv_cache_bytes<models::llama3_1_8b, bf16>(1, 131072) == 16ull << 30);
static_assert(kv_cache_bytes<models::llama3_1_8b, float>(3, 7) == 3 * 7 * 256 * 1024);
static_assert(kv_cache_bytes<models::llama2_7b, bf16>(1, 1) == 2 * 32 * 4096 * 2);
