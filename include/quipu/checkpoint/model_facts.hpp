// What a checkpoint says about its model, in one vocabulary: Meta's names, every field optional.
//
// A field is empty where the file does not say; nothing is guessed. The facts are compared with a
// model type where types are known. Siblings: gguf_facts.hpp and json_facts.hpp fill them in.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "quipu/checkpoint/messages.hpp"
#include "quipu/config/choices.hpp"

namespace quipu {

/// The numbers of Llama 3.1's rotary scaling.
struct RopeScalingFacts {
  double factor = 0;
  double low = 0;                      ///< low_freq_factor
  double high = 0;                     ///< high_freq_factor
  std::size_t original_positions = 0;  ///< original_max_position_embeddings
};

struct ModelFacts {
  std::string source;  ///< where the facts stand, for messages: "config.json", "GGUF metadata"
  std::string architecture;  ///< "llama" or another word of the file; empty if it does not say
  std::string name;          ///< a hint only
  std::optional<std::size_t> dim;
  std::optional<std::size_t> n_layers;
  std::optional<std::size_t> n_heads;
  std::optional<std::size_t> n_kv_heads;
  std::optional<std::size_t> head_dim;
  std::optional<std::size_t> ffn;
  std::optional<std::size_t> vocab_size;
  std::optional<double> norm_eps;    ///< GGUF holds a float32: compare as float32
  std::optional<double> rope_theta;  ///< the same
  /// Whether the rotary frequencies are scaled. A file may say so without the numbers: params.json
  /// has only `use_scaled_rope`, GGUF has the factors as the tensor rope_freqs.weight.
  std::optional<bool> rope_scaled;
  std::optional<RopeScalingFacts> rope_scaling;
  std::optional<std::size_t> context_length;
  std::optional<bool> tied;  ///< whether the output matrix is the embedding
};

/// The feed-forward width of Meta's reference: two thirds of 4 dim, times the multiplier if there
/// is one (both cut to integers), rounded up to a multiple. FormatError on numbers that leave no
/// sensible width. Source: the FeedForward constructor of meta-llama/llama3, llama/model.py.
inline std::size_t ffn_width_by_rule(std::size_t dim, std::size_t multiple_of,
                                     std::optional<double> multiplier, std::string_view file) {
  constexpr std::size_t limit = std::size_t{1} << 40;
  if (dim == 0 || dim > limit) {
    detail::bad_field(file, "dim", "1 to 2^40", detail::decimal(dim));
  }
  if (multiple_of == 0 || multiple_of > limit) {
    detail::bad_field(file, "multiple_of", "1 to 2^40", detail::decimal(multiple_of));
  }
  const double factor = multiplier.value_or(1.0);
  if (!(factor > 0 && factor * 3 * static_cast<double>(dim) < static_cast<double>(limit))) {
    detail::bad_field(file, "ffn_dim_multiplier", "a width of 1 to 2^40", std::to_string(factor));
  }
  return static_cast<std::size_t>(
      ffn_width_by(static_cast<long long>(dim), static_cast<long long>(multiple_of), factor));
}

}  // namespace quipu
