// All cards of a model, in reading order, and finding one by id.
//
// The list of descriptions is the one place that names every component and tensor; a test holds it
// against the reference's state dict and the tensors of the golden data.
// Siblings: atlas/card.hpp, atlas/model_facts.hpp.
#pragma once

#include <span>
#include <string>

#include "quipu/atlas/card.hpp"
#include "quipu/atlas/model_facts.hpp"

namespace quipu::atlas {

/// A model with its cards.
struct ModelEntry {
  ModelFacts facts;
  std::span<const Card> cards;
  std::span<const float> inverse_frequencies;
};

namespace detail {

template <class... D>
inline constexpr std::array<Card, sizeof...(D)> cards_of{card<D>...};

template <class M>
constexpr std::span<const Card> model_cards() {
  using Embedding = TokenEmbedding<M>;
  using AttentionNorm = RmsNorm<M, weight_id::attention_norm>;
  using FfnNorm = RmsNorm<M, weight_id::ffn_norm>;
  using Rotary = RotaryEmbedding<M>;
  using Scores = ScaledDotProduct<M>;
  using Add = ResidualAdd<M>;
  return cards_of<
      typename Transformer<M>::description, typename Embedding::tokens_tensor,
      typename Embedding::description, typename Rotary::table_tensor, typename Scores::mask_tensor,
      typename Block<M>::description, typename Add::block_input,
      typename AttentionNorm::description, typename Attention<M>::description,
      typename QueryProjection<M>::description, typename QueryProjection<M>::tensor,
      typename KeyProjection<M>::description, typename KeyProjection<M>::tensor,
      typename ValueProjection<M>::description, typename ValueProjection<M>::tensor,
      typename Rotary::description, typename Rotary::rotated_queries, typename Rotary::rotated_keys,
      typename Scores::cached_keys, typename Scores::cached_values, typename Scores::description,
      typename Scores::probabilities, typename Scores::merged,
      typename OutputProjection<M>::description, typename OutputProjection<M>::tensor,
      typename Add::after_attention, typename Add::between, typename FfnNorm::description,
      typename FeedForward<M>::description, typename GateProjection<M>::description,
      typename UpProjection<M>::description, typename SiluGate<M>::description,
      typename SiluGate<M>::tensor, typename DownProjection<M>::description,
      typename DownProjection<M>::tensor, typename Add::after_feed_forward,
      typename Add::block_output, typename RmsNorm<M>::description,
      typename VocabularyProjection<M>::description, typename VocabularyProjection<M>::tensor>;
}

}  // namespace detail

/// The entry of one model.
template <class M>
inline constexpr ModelEntry model_entry{model_facts<M>(), detail::model_cards<M>(),
                                        inverse_frequencies<M>};

/// An id with the block's number made N (layers.7.h is layers.N.h), and that number, or npos.
struct CardId {
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  std::string id;
  std::size_t layer = npos;
};

/// Splits an id as a person or a file writes it. A number too large for any model stays large.
inline CardId split_id(std::string_view written) {
  constexpr std::string_view prefix = "layers.";
  if (written.substr(0, prefix.size()) != prefix) return {std::string(written)};
  std::string_view rest = written.substr(prefix.size());
  const std::size_t end = (std::min)(rest.find('.'), rest.size());
  const std::string_view number = rest.substr(0, end);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
    return {std::string(written)};
  }
  std::size_t layer = 0;
  for (char c : number) {
    layer = layer < 1'000'000 ? layer * 10 + static_cast<std::size_t>(c - '0') : layer;
  }
  return {std::string(prefix) + "N" + std::string(rest.substr(end)), layer};
}

/// The card of an id with N for the block's number, or null. An id may name a component and also,
/// in a trace, the tensor that it makes (layers.N.attention.wo): then the component's card is
/// given.
inline const Card* card_with_id(const ModelEntry& entry, std::string_view id) {
  for (const Card& card : entry.cards) {
    if (card.id == id) return &card;
  }
  for (const Card& card : entry.cards) {
    if (!card.alias.empty() && card.alias == id) return &card;
  }
  return nullptr;
}

/// The card of an id as a person writes it. ArgumentError for a block past the last, and for an
/// unknown id with what is nearest.
inline const Card& find_card(const ModelEntry& entry, std::string_view written) {
  const CardId split = split_id(written);
  if (split.layer != CardId::npos && split.layer >= entry.facts.n_layers) {
    raise<ArgumentError>(std::string(written) + ": " + std::string(entry.facts.name) + " has " +
                         std::to_string(entry.facts.n_layers) + " blocks, numbered from 0");
  }
  if (const Card* card = card_with_id(entry, split.id)) return *card;
  std::string near;
  const std::string_view tail = std::string_view(split.id).substr(split.id.rfind('.') + 1);
  for (const Card& card : entry.cards) {
    if (card.id.find(tail) == std::string_view::npos) continue;
    near += ' ';
    near += card.id;
  }
  raise<ArgumentError>("component " + std::string(written) + ": " + std::string(entry.facts.name) +
                       " has no such card" +
                       (near.empty() ? "; --list shows all" : "; near it:" + near));
}

/// True if the card `part` is `whole` or stands inside it; every card stands inside the model.
inline bool belongs_to(const Card& part, const Card& whole) {
  return part.id == whole.id || whole.id == "transformer" ||
         part.id.substr(0, whole.id.size() + 1) == std::string(whole.id) + ".";
}

/// True for a component that is made of others, such as attention: its cost is theirs.
inline bool has_parts(const ModelEntry& entry, const Card& card) {
  for (const Card& part : entry.cards) {
    if (&part != &card && part.cost != nullptr && belongs_to(part, card)) return true;
  }
  return false;
}

}  // namespace quipu::atlas
