// The parameters of a card, counted from a checkpoint's tensors: names and extents as the file
// says, nothing from the type but which names belong to the card. Siblings:
// checkpoint/open_checkpoint.hpp, atlas/figures.hpp (names).
#pragma once

#include <set>

#include "quipu/atlas/figures.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"

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

/// True if the weight card `part` belongs to `whole`: itself, inside it, or any for the model.
inline bool belongs_to(const Card& part, const Card& whole) {
  return part.id == whole.id || whole.id == "transformer" ||
         part.id.substr(0, whole.id.size() + 1) == std::string(whole.id) + ".";
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
    FileNames names = file_names(weight);
    if (weight.shares_embedding) {
      // The matrix that it applies is the embedding table.
      names = file_names(find_card(entry, "tok_embeddings"));
    }
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

}  // namespace quipu::atlas
