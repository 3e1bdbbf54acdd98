// The facts of a model that stand on every card of it: its configuration and what follows from it.
// Siblings: config/catalogue.hpp, atlas/cards.hpp.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "quipu/config/model_name.hpp"
#include "quipu/config/rope.hpp"
#include "quipu/model/sharding.hpp"
#include "quipu/model/transformer.hpp"
#include "quipu/notation/reference.hpp"

namespace quipu::atlas {

/// A configuration and what follows from it, in elements and parameters.
struct ModelFacts {
  std::string_view name;                                          ///< llama3_1_8b
  std::string_view core_model_id, description, huggingface_repo;  ///< empty: a user's own model
  int pth_file_count = 0;
  bool use_scaled_rope = false;
  std::size_t dim = 0, n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn = 0,
              vocab_size = 0;
  long long multiple_of = 0;      ///< 0: the hidden width is given as a number
  double ffn_dim_multiplier = 0;  ///< 0: likewise
  double norm_eps = 0, rope_theta = 0;
  llama3_scaling scaling{};  ///< meaningful if use_scaled_rope
  bool tied_output = false;
  std::size_t parameters = 0;
  std::size_t embedding_parameters = 0;
  std::size_t kv_elements_per_position = 0;  ///< keys and values of all layers
  std::array<std::size_t, 16> parallel_sizes{};
  std::size_t parallel_size_count = 0;
};

/// The facts of a configuration, a constant.
template <class M>
constexpr ModelFacts model_facts() {
  using D = dims<M>;
  ModelFacts f;
  f.name = model_name<M>();
  if constexpr (notation::is_catalogue_model<M>) {
    f.core_model_id = M::core_model_id;
    f.description = M::description;
    f.huggingface_repo = M::huggingface_repo;
    f.pth_file_count = M::pth_file_count;
  }
  f.use_scaled_rope = notation::has_scaled_rope<M>;
  if constexpr (notation::has_scaled_rope<M>) f.scaling = quipu::detail::scaling_of<M>();
  f.dim = D::dim;
  f.n_layers = D::n_layers;
  f.n_heads = D::n_heads;
  f.n_kv_heads = D::n_kv_heads;
  f.head_dim = D::head_dim;
  f.ffn = D::ffn;
  f.vocab_size = D::vocab_size;
  if constexpr (requires { M::ffn.multiple_of; }) {
    f.multiple_of = M::ffn.multiple_of;
    f.ffn_dim_multiplier = M::ffn.ffn_dim_multiplier;
  }
  f.norm_eps = static_cast<double>(M::norm_eps);
  f.rope_theta = static_cast<double>(M::rope_theta);
  f.tied_output = D::tied_output;
  f.parameters = Transformer<M>::parameters;
  f.embedding_parameters = TokenEmbedding<M>::parameters;
  f.kv_elements_per_position = 2 * D::n_layers * D::kv_width;
  for (std::size_t n : legal_model_parallel_sizes<M>) {
    if (f.parallel_size_count < f.parallel_sizes.size()) {
      f.parallel_sizes[f.parallel_size_count++] = n;
    }
  }
  return f;
}

/// The name that people read: "Llama 3.1 8B" for the description "Llama 3.1 8b model"; the type's
/// name where there is no description.
inline std::string title(const ModelFacts& facts) {
  std::string_view text = facts.description;
  if (text.empty()) return std::string(facts.name);
  text = text.substr(0, text.find(" model"));
  std::string out(text);
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i] == 'b' && out[i - 1] >= '0' && out[i - 1] <= '9') out[i] = 'B';
  }
  return out;
}

}  // namespace quipu::atlas
