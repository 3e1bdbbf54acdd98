// The full-width golden pieces: one transformer block of Llama 3 or 3.1 8B whose weights, inputs
// and cache come from the closed-form generator (0.9 GB in float32, no file).
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/scalar_model.hpp"
#include "support/float_bits.hpp"
#include "support/generator.hpp"

namespace quipu_test {

/// The index of a generated golden piece: seed, scale and base of each of its tensors.
class GeneratedTensors {
 public:
  explicit GeneratedTensors(const std::string& json_path)
      : json_(nlohmann::json::parse(std::ifstream(json_path))) {}

  const nlohmann::json& json() const { return json_; }

  std::uint64_t seed(const std::string& name) const {
    return std::stoull(json_.at("seeds").at(name).get<std::string>(), nullptr, 16);
  }
  float scale(const std::string& name) const { return json_.at("scales").at(name).get<float>(); }
  float base(const std::string& name) const { return json_.at("bases").value(name, 0.0f); }

  /// `count` elements; with `bf16` rounded, as the golden bf16 and bf16w-f32c runs have them.
  std::vector<float> make(const std::string& name, std::size_t count, bool bf16) const {
    std::vector<float> values = generated_tensor(seed(name), count, scale(name), base(name));
    if (bf16) {
      for (float& x : values) x = round_bf16(x);
    }
    return values;
  }

  /// Elements of an input, whose extents the index has.
  std::vector<float> input(const std::string& name, bool bf16) const {
    std::size_t count = 1;
    for (const std::size_t extent : json_.at("shapes").at(name)) count *= extent;
    return make(name, count, bf16);
  }

 private:
  nlohmann::json json_;
};

/// The block as a model of one layer, without embedding and output.
inline ScalarModel wide_block(const GeneratedTensors& piece, bool bf16) {
  const nlohmann::json& p = piece.json().at("params");
  ScalarConfig c{.dim = p.at("dim"),
                 .n_layers = 1,
                 .n_heads = p.at("n_heads"),
                 .n_kv_heads = p.at("n_kv_heads"),
                 .head_dim = p.at("dim").get<std::size_t>() / p.at("n_heads").get<std::size_t>(),
                 .ffn = piece.json().at("ffn_hidden"),
                 .vocab_size = 0,
                 .norm_eps = p.at("norm_eps"),
                 .rope_theta = p.at("rope_theta"),
                 .rope_factor = p.value("use_scaled_rope", false) ? 8.0f : 1.0f};
  const std::size_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  const auto make = [&](const char* name, std::size_t n) { return piece.make(name, n, bf16); };
  ScalarWeights w;
  w.layers.push_back({make("attention_norm", c.dim), make("attention.wq", q * c.dim),
                      make("attention.wk", kv * c.dim), make("attention.wv", kv * c.dim),
                      make("attention.wo", c.dim * q), make("ffn_norm", c.dim),
                      make("feed_forward.w1", c.ffn * c.dim),
                      make("feed_forward.w2", c.dim * c.ffn),
                      make("feed_forward.w3", c.ffn * c.dim)});
  return {c, w};
}

}  // namespace quipu_test
