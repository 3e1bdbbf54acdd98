// The parameters of a card, counted from a checkpoint's tensors: names and extents as the file
// says, nothing from the type but which names belong to the card. Siblings:
// checkpoint/open_checkpoint.hpp, atlas/figures.hpp (names).
#pragma once

#include <set>

#include "quipu/atlas/figures.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/model_choice.hpp"

namespace quipu::atlas {

/// "blk.7.attn_q.weight" as "blk.N.attn_q.weight"; a name without a block's number as it is.
inline std::string with_any_layer(std::string_view name) {
  std::string out;
  std::size_t at = 0;
  while (at <= name.size()) {
    const std::size_t end = (std::min)(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    out += digits ? std::string("N") : std::string(part);
    if (end < name.size()) out += '.';
    at = end + 1;
  }
  return out;
}

/// The names of the matrix that a card's component applies: a tied output's is the embedding table.
inline FileNames names_of_applied(const ModelEntry& entry, const Card& card) {
  return file_names(card.shares_embedding ? find_card(entry, "tok_embeddings") : card);
}

/// Parameters of all instances of a card in a checkpoint. Of several model-parallel files, tensors
/// that every rank holds whole count once; a shared output matrix that a file stores again is not
/// counted again.
inline std::size_t count_parameters(const ModelEntry& entry, const Card& card,
                                    const Checkpoint& checkpoint) {
  std::size_t n = 0;
  for (const Card& weight : entry.cards) {
    if (!weight.has_weight || !belongs_to(weight, card)) continue;
    if (weight.shares_embedding && weight.id != card.id) continue;
    const FileNames names = names_of_applied(entry, weight);
    std::set<std::string, std::less<>> seen;
    for (const TensorRecord& record : checkpoint.tensors()) {
      const std::string name = with_any_layer(record.name);
      if (name != names.meta && name != names.hugging_face && name != names.gguf) continue;
      const bool first = seen.insert(record.name).second;
      if (first || weight.weight.shard != ShardAxis::none) n += record.elements();
    }
  }
  return n;
}

namespace detail {

/// What the comparison with a file needs of a model.
inline quipu::ModelEntry engine_entry(const ModelEntry& entry) {
  const ModelFacts& f = entry.facts;
  quipu::ModelEntry e;
  e.name = f.name;
  e.architecture = {f.dim,      f.n_layers, f.n_heads,    f.n_kv_heads,
                    f.head_dim, f.ffn,      f.vocab_size, f.tied_output};
  e.numerics.norm_eps = f.norm_eps;
  e.numerics.rope_theta = f.rope_theta;
  if (f.use_scaled_rope) e.numerics.rope_scaling = f.scaling;
  return e;
}

}  // namespace detail

/// MismatchError if the configuration of a checkpoint is not that of `entry`: it names both models
/// (that of the file among `entries`, or by its own name) and every field that differs.
inline void require_model(std::span<const ModelEntry> entries, const ModelEntry& entry,
                          const Checkpoint& checkpoint) {
  const auto mismatches = compare(checkpoint.facts, detail::engine_entry(entry));
  if (mismatches.empty()) return;
  std::string found = checkpoint.facts.name.empty() ? "another model" : checkpoint.facts.name;
  for (const ModelEntry& other : entries) {
    if (!compare(checkpoint.facts, detail::engine_entry(other)).empty()) continue;
    found = other.facts.name;
    break;
  }
  raise<MismatchError>(checkpoint.path + ": holds " + found + ", not " +
                       std::string(entry.facts.name) + ": " + describe(mismatches));
}

}  // namespace quipu::atlas
