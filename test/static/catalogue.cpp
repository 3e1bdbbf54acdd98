// Every total of the catalogue, and the closed formula of it from literal dimensions.
#include "quipu/config/catalogue.hpp"

#include "quipu/config/model_name.hpp"
#include "quipu/model/transformer.hpp"

using namespace quipu;

struct Literal {
  std::size_t dim, layers, heads, kv_heads, head_dim, ffn, vocabulary;
  bool tied;
};

// Embedding; per layer wq and wo, wk and wv, w1 w2 w3, two norms; final norm; output.
constexpr std::size_t formula(Literal m) {
  return m.vocabulary * m.dim +
         m.layers * (2 * m.dim * m.heads * m.head_dim + 2 * m.dim * m.kv_heads * m.head_dim +
                     3 * m.dim * m.ffn + 2 * m.dim) +
         m.dim + (m.tied ? 0 : m.vocabulary * m.dim);
}

template <class M>
constexpr bool is(const char* name, Literal m, std::size_t total) {
  using D = dims<M>;
  return ModelConfig<M> && model_name<M>() == name && D::dim == m.dim && D::n_layers == m.layers &&
         D::n_heads == m.heads && D::n_kv_heads == m.kv_heads && D::head_dim == m.head_dim &&
         D::ffn == m.ffn && D::vocab_size == m.vocabulary && D::tied_output == m.tied &&
         D::q_width == m.heads * m.head_dim && D::kv_width == m.kv_heads * m.head_dim &&
         D::heads_per_kv_head * m.kv_heads == m.heads && parameter_count<M> == total &&
         formula(m) == total;
}

using namespace quipu::models;
static_assert(is<llama2_7b>("llama2_7b", {4096, 32, 32, 32, 128, 11008, 32000, false},
                            6'738'415'616));
static_assert(is<llama2_13b>("llama2_13b", {5120, 40, 40, 40, 128, 13824, 32000, false},
                             13'015'864'320));
static_assert(is<llama2_70b>("llama2_70b", {8192, 80, 64, 8, 128, 28672, 32000, false},
                             68'976'648'192));
static_assert(is<llama3_8b>("llama3_8b", {4096, 32, 32, 8, 128, 14336, 128256, false},
                            8'030'261'248));
static_assert(is<llama3_70b>("llama3_70b", {8192, 80, 64, 8, 128, 28672, 128256, false},
                             70'553'706'496));
static_assert(is<llama3_1_8b>("llama3_1_8b", {4096, 32, 32, 8, 128, 14336, 128256, false},
                              8'030'261'248));
static_assert(is<llama3_1_70b>("llama3_1_70b", {8192, 80, 64, 8, 128, 28672, 128256, false},
                               70'553'706'496));
static_assert(is<llama3_1_405b>("llama3_1_405b", {16384, 126, 128, 8, 128, 53248, 128256, false},
                                405'853'388'800));
static_assert(is<llama3_2_1b>("llama3_2_1b", {2048, 16, 32, 8, 64, 8192, 128256, true},
                              1'235'814'400));
static_assert(is<llama3_2_3b>("llama3_2_3b", {3072, 28, 24, 8, 128, 8192, 128256, true},
                              3'212'749'824));
static_assert(is<llama3_3_70b>("llama3_3_70b", {8192, 80, 64, 8, 128, 28672, 128256, false},
                               70'553'706'496));
static_assert(is<smollm2_135m>("smollm2_135m", {576, 30, 9, 3, 64, 1536, 49152, true},
                               134'515'008));
static_assert(is<smollm2_360m>("smollm2_360m", {960, 32, 15, 5, 64, 2560, 49152, true},
                               361'821'120));
static_assert(is<smollm2_1_7b>("smollm2_1_7b", {2048, 24, 32, 32, 64, 8192, 49152, true},
                               1'711'376'384));
static_assert(is<tinyllama_1_1b>("tinyllama_1_1b", {2048, 22, 32, 4, 64, 5632, 32000, false},
                                 1'100'048'384));
static_assert(is<stories15m>("stories15m", {288, 6, 6, 6, 48, 768, 32000, true}, 15'191'712));
static_assert(is<stories110m>("stories110m", {768, 12, 12, 12, 64, 2048, 32000, true},
                              109'529'856));

// Dimensions alone are one type; what differs are numbers that enter as values.
static_assert(std::is_same_v<architecture_of<llama3_8b>, architecture_of<llama3_1_8b>>);
static_assert(std::is_same_v<architecture_of<llama3_1_70b>, architecture_of<llama3_3_70b>>);
static_assert(std::is_same_v<Transformer<llama3_8b>::Weights, Transformer<llama3_1_8b>::Weights>);
static_assert(!std::is_same_v<architecture_of<llama3_8b>, architecture_of<llama2_7b>>);

// Primary constants that no dimension shows.
static_assert(llama3_8b::rope_theta == 500000 && llama3_8b::norm_eps == 1e-5);
static_assert(llama2_7b::rope_theta == 10000 && smollm2_135m::rope_theta == 100000 &&
              smollm2_1_7b::rope_theta == 130000);
static_assert(llama3_1_8b::rope_scaling.factor == 8 && llama3_2_1b::rope_scaling.factor == 32 &&
              llama3_2_3b::rope_scaling.factor == 32 && llama3_3_70b::rope_scaling.factor == 8);
static_assert(llama3_1_8b::use_scaled_rope && !llama3_8b::use_scaled_rope);
