// A measured run laid over the cards: the time of each component beside what the model predicts for
// the same work, and how much of the machine's ceilings that uses. Siblings: atlas/profile.hpp
// (reads the file), atlas/document.hpp and atlas/card_json.hpp (show it),
// test/atlas/profile_test.cpp.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "quipu/atlas/figures.hpp"

namespace quipu::atlas {

/// What the machine was seen to do at most, all threads used together.
struct Ceilings {
  double read_bytes_per_second = 0;
  double fma_flops_per_second = 0;
  double int8_ops_per_second = 0;         ///< 0: not measured
  double signed_int8_ops_per_second = 0;  ///< of any signed bytes (Q8_0); 0: not measured
};

/// The time of one component (or of making one tensor) in one block (or of one outside the blocks),
/// the median of the passes.
struct ProfileEntry {
  std::size_t layer = 0;  ///< 0 outside the blocks
  double seconds = 0;
  double bytes = 0, flops = 0;  ///< by the profile's own accounting
};

/// A profile as it was read, held against the model that it names.
struct Profile {
  std::string file;    ///< as it was opened
  std::string target;  ///< "AVX2"
  std::string cache, activations, mode;
  std::vector<ElementType> weights;  ///< those in use, in the file's order
  std::size_t threads = 0, passes = 0;
  Work work;           ///< batch, positions, start, bytes of a cached element
  double seconds = 0;  ///< one whole pass, the median
  Ceilings ceilings;
  std::map<std::string_view, std::vector<ProfileEntry>> entries;  ///< by the id of the card
};

/// A card's part of a profile: sums over its blocks, beside the model's prediction.
struct Measured {
  std::size_t blocks = 0;  ///< in how many blocks it was timed; 1 outside the blocks
  double seconds = 0;      ///< all of them together
  double least = 0, median = 0, greatest = 0;  ///< seconds of one block
  double share = 0;                            ///< of the times of all components, 0 to 1
  double bytes = 0, flops = 0;                 ///< by the profile's accounting
  double predicted_bytes = 0, predicted_flops = 0;
  double least_seconds = 0;  ///< the least time that the ceilings allow for the prediction
  bool memory_bound = true;  ///< which ceiling sets most of it

  double bytes_per_second() const { return bytes / seconds; }
  double flops_per_second() const { return flops / seconds; }
  /// How much of the ceilings is used: 1 is as fast as the machine was seen to be.
  double efficiency() const { return least_seconds / seconds; }
};

namespace detail {

/// The arithmetic ceiling of a card: a product of int8 activations runs in int8, with the ceiling
/// of signed bytes if no other quantised weights are in use.
inline double arithmetic_ceiling(const Profile& p, const Card& card) {
  const bool product = card.has_weight && !card.weight.is_vector && card.id != "tok_embeddings";
  if (!product || p.activations != "int8" || p.ceilings.int8_ops_per_second == 0)
    return p.ceilings.fma_flops_per_second;
  const bool narrow = std::any_of(p.weights.begin(), p.weights.end(), [](ElementType type) {
    return info(type).block_elements > 1 && type != ElementType::q8_0;
  });
  return narrow || p.ceilings.signed_int8_ops_per_second == 0
             ? p.ceilings.int8_ops_per_second
             : p.ceilings.signed_int8_ops_per_second;
}

/// The model's cost of one entry; none for a tensor (the rotary table), which has a time alone. A
/// file may hold several element types: that one is meant whose bytes are the entry's; with none,
/// the first stands in.
inline Cost predicted(const Profile& p, const Card& card, const ProfileEntry& e) {
  if (card.cost == nullptr) return {};
  Work work = p.work;
  for (ElementType type : p.weights) {
    work.weights = type;
    const Cost cost = card.cost(work);
    if (static_cast<double>(cost.bytes()) == e.bytes) return cost;
  }
  work.weights = p.weights.front();
  return card.cost(work);
}

}  // namespace detail

/// What a profile says of a card: of itself, or of all that stands inside it. Nothing if it was not
/// timed.
inline std::optional<Measured> measured(const ModelEntry& entry, const Card& card,
                                        const Profile& profile) {
  Measured m;
  std::map<std::size_t, double> by_block;
  double whole = 0, memory = 0;
  for (const auto& [id, entries] : profile.entries) {
    const Card& part = *card_with_id(entry, id);
    const bool inside = belongs_to(part, card);
    for (const ProfileEntry& e : entries) {
      whole += e.seconds;
      if (!inside) continue;
      const Cost cost = detail::predicted(profile, part, e);
      const auto bytes = static_cast<double>(cost.bytes()), flops = static_cast<double>(cost.flops);
      const double reading = bytes / profile.ceilings.read_bytes_per_second;
      const double computing = flops / detail::arithmetic_ceiling(profile, part);
      by_block[card.instances > 1 ? e.layer : 0] += e.seconds;
      m.seconds += e.seconds;
      m.bytes += e.bytes;
      m.flops += e.flops;
      m.predicted_bytes += bytes;
      m.predicted_flops += flops;
      m.least_seconds += (std::max)(reading, computing);
      if (reading >= computing) memory += reading;
    }
  }
  if (by_block.empty()) return std::nullopt;
  std::vector<double> times;
  for (const auto& [layer, seconds] : by_block) times.push_back(seconds);
  std::sort(times.begin(), times.end());
  m.blocks = times.size();
  m.least = times.front();
  m.greatest = times.back();
  m.median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  m.share = m.seconds / whole;
  m.memory_bound = memory * 2 >= m.least_seconds;
  return m;
}

}  // namespace quipu::atlas
