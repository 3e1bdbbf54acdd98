// The three families of tensor names. Siblings: model/naming.hpp (makes the names), checkpoint/.
#pragma once

#include <string_view>

namespace quipu {

/// Whose names the tensors bear, which decides also the order of the rows of q and k:
///   meta          `layers.0.attention.wq.weight`; rotary pairs are neighbours (2i, 2i + 1)
///   hugging_face  `model.layers.0.self_attn.q_proj.weight`; pairs are halves (i, i + head_dim/2)
///   gguf          `blk.0.attn_q.weight`; for the architecture "llama" the converters of llama.cpp
///                 put q and k back into Meta's order, so rows are as in `meta`
enum class NamingScheme : unsigned char { meta, hugging_face, gguf };

/// "meta", "hugging_face" or "gguf".
constexpr std::string_view name(NamingScheme scheme) {
  constexpr std::string_view names[] = {"meta", "hugging_face", "gguf"};
  return names[static_cast<unsigned char>(scheme)];
}

}  // namespace quipu
