// What the scalar forward pass runs on: a configuration of plain numbers and weights in plain
// vectors, the four tiny golden models (T1 to T4), and models with generated weights of any shape.
// Siblings: scalar_forward.hpp (the forward pass), scalar_forward_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/float_bits.hpp"
#include "support/generator.hpp"
#include "support/safetensors.hpp"

namespace quipu_test {

struct ScalarConfig {
  std::size_t dim, n_layers, n_heads, n_kv_heads, head_dim, ffn, vocab_size;
  float norm_eps = 1e-5f;
  float rope_theta = 500000;
  float rope_factor = 1;  ///< 1: unscaled; else Llama 3.1's scaling by this factor (low 1, high 4)
  bool tied = false;      ///< the output matrix is the embedding
};

/// Matrices are [out, in], row-major, with rows of wq and wk in Meta's order (pairs side by side).
struct ScalarLayer {
  std::vector<float> attention_norm, wq, wk, wv, wo, ffn_norm, w1, w2, w3;
};

struct ScalarWeights {
  std::vector<float> tok_embeddings;
  std::vector<ScalarLayer> layers;
  std::vector<float> norm;
  std::vector<float> output;  ///< empty where tied
};

struct ScalarModel {
  ScalarConfig config;
  ScalarWeights weights;
};

/// f(name, vector) for each weight, under Meta's name (`layers.0.attention.wq.weight`).
template <class Weights, class F>
void for_each_weight(Weights& weights, F&& f) {
  f(std::string("tok_embeddings.weight"), weights.tok_embeddings);
  for (std::size_t n = 0; n < weights.layers.size(); ++n) {
    auto& layer = weights.layers[n];
    const std::string id = "layers." + std::to_string(n) + ".";
    f(id + "attention_norm.weight", layer.attention_norm);
    f(id + "attention.wq.weight", layer.wq);
    f(id + "attention.wk.weight", layer.wk);
    f(id + "attention.wv.weight", layer.wv);
    f(id + "attention.wo.weight", layer.wo);
    f(id + "ffn_norm.weight", layer.ffn_norm);
    f(id + "feed_forward.w1.weight", layer.w1);
    f(id + "feed_forward.w2.weight", layer.w2);
    f(id + "feed_forward.w3.weight", layer.w3);
  }
  f(std::string("norm.weight"), weights.norm);
  if (!weights.output.empty()) f(std::string("output.weight"), weights.output);
}

/// The weights rounded to bfloat16, as Meta's bf16 checkpoints hold them.
inline ScalarWeights round_bf16(ScalarWeights weights) {
  for_each_weight(weights, [](const std::string&, std::vector<float>& w) {
    for (float& x : w) x = round_bf16(x);
  });
  return weights;
}

/// Hugging Face's order of the rows of a q or k matrix (halves of a head apart) to Meta's (pairs
/// side by side).
inline std::vector<float> pairs_side_by_side(const std::vector<float>& halves, std::size_t head_dim,
                                             std::size_t inputs) {
  std::vector<float> pairs(halves.size());
  const std::size_t half = head_dim / 2;
  for (std::size_t row = 0; row < halves.size() / inputs; ++row) {
    const std::size_t first = row / head_dim * head_dim, i = row % head_dim;
    const std::size_t to = i < half ? first + 2 * i : first + 2 * (i - half) + 1;
    for (std::size_t k = 0; k < inputs; ++k) pairs[to * inputs + k] = halves[row * inputs + k];
  }
  return pairs;
}

/// A model from a folder in Hugging Face's layout with one model.safetensors.
inline ScalarModel load_hugging_face(const std::string& folder) {
  std::ifstream config_file(folder + "/config.json");
  if (!config_file) throw std::runtime_error(folder + "/config.json: cannot be read");
  const nlohmann::json json = nlohmann::json::parse(config_file);
  const auto number = [&](const char* key) { return json.at(key).get<std::size_t>(); };
  ScalarConfig c{
      number("hidden_size"),         number("num_hidden_layers"), number("num_attention_heads"),
      number("num_key_value_heads"), number("head_dim"),          number("intermediate_size"),
      number("vocab_size")};
  c.norm_eps = json.at("rms_norm_eps").get<float>();
  c.rope_theta = json.at("rope_theta").get<float>();
  if (!json.at("rope_scaling").is_null())
    c.rope_factor = json["rope_scaling"]["factor"].get<float>();
  c.tied = json.at("tie_word_embeddings").get<bool>();

  const TensorFile file(folder + "/model.safetensors");
  ScalarWeights w;
  w.tok_embeddings = file.at("model.embed_tokens.weight").values;
  for (std::size_t n = 0; n < c.n_layers; ++n) {
    const auto get = [&](const std::string& name) {
      return file.at("model.layers." + std::to_string(n) + "." + name + ".weight").values;
    };
    w.layers.push_back(
        {get("input_layernorm"), pairs_side_by_side(get("self_attn.q_proj"), c.head_dim, c.dim),
         pairs_side_by_side(get("self_attn.k_proj"), c.head_dim, c.dim), get("self_attn.v_proj"),
         get("self_attn.o_proj"), get("post_attention_layernorm"), get("mlp.gate_proj"),
         get("mlp.down_proj"), get("mlp.up_proj")});
  }
  w.norm = file.at("model.norm.weight").values;
  if (!c.tied) w.output = file.at("lm_head.weight").values;
  return {c, w};
}

/// A model of any shape with generated weights: matrices uniform in +-scale, norms 1 +- 0.1.
inline ScalarModel generated_model(const ScalarConfig& c, std::uint64_t seed, float scale = 0.08f) {
  ScalarWeights w;
  const auto matrix = [&](std::size_t out, std::size_t in) {
    return generated_tensor(seed++, out * in, scale);
  };
  const auto norm = [&] { return generated_tensor(seed++, c.dim, 0.1f, 1); };
  const std::size_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  w.tok_embeddings = matrix(c.vocab_size, c.dim);
  for (std::size_t n = 0; n < c.n_layers; ++n) {
    w.layers.push_back({norm(), matrix(q, c.dim), matrix(kv, c.dim), matrix(kv, c.dim),
                        matrix(c.dim, q), norm(), matrix(c.ffn, c.dim), matrix(c.dim, c.ffn),
                        matrix(c.ffn, c.dim)});
  }
  w.norm = norm();
  if (!c.tied) w.output = matrix(c.vocab_size, c.dim);
  return {c, w};
}

}  // namespace quipu_test
