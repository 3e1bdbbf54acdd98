// A model compiled into an engine, as run-time values and functions: what the choice by a
// checkpoint's own configuration, loading and running need to know of the type.
// Siblings: engine/make_engine.hpp (makes entries), engine/model_choice.hpp (chooses one).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "quipu/config/model_list.hpp"
#include "quipu/config/model_name.hpp"
#include "quipu/engine/architecture_facts.hpp"
#include "quipu/engine/tensor_slots.hpp"
#include "quipu/model/pass_parts.hpp"
#include "quipu/model/sharding.hpp"

namespace quipu {

/// What one rank of a model-parallel run has of a model.
struct RankEntry {
  std::size_t ranks = 1;
  ArchitectureFacts architecture{};  ///< of a rank: its share of heads, hidden width, vocabulary
  WeightsHolder (*make_weights)() = nullptr;
};

struct ModelEntry {
  std::string_view name;         ///< the type's name, "llama3_1_8b"
  std::string_view description;  ///< empty if the configuration has none
  ArchitectureFacts architecture{};
  NumericFacts numerics{};
  std::size_t parameters = 0;  ///< a shared matrix counted once
  std::size_t index = 0;       ///< the model's place in the engine's list
  WeightsHolder (*make_weights)() = nullptr;
  /// What the parts of a pass cost (model/pass_parts.hpp).
  PassParts (*parts)(const Work& work, const Work& logits) = nullptr;
  std::span<const RankEntry> rank_entries{};   ///< compiled in besides one rank, ascending
  std::span<const std::size_t> legal_ranks{};  ///< numbers of ranks that the model can be cut for
};

namespace detail {

template <class A, std::size_t... Ranks>
consteval auto rank_entries_of(RankList<Ranks...>) {
  std::array<RankEntry, (std::size_t{0} + ... + (can_be_cut<A, Ranks> ? 1 : 0))> entries{};
  std::size_t i = 0;
  [[maybe_unused]] const auto add = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    if constexpr (can_be_cut<A, N>) {
      using Part = rank_of<A, N>;
      entries[i++] = {N, architecture_facts<Part>, &quipu::make_weights<Part>};
    }
  };
  (add(std::integral_constant<std::size_t, Ranks>{}), ...);
  return entries;
}
template <class A, class Ranks>
inline constexpr auto rank_entries = rank_entries_of<A>(Ranks{});

template <class M>
constexpr std::string_view description_of() {
  // A model derived from a catalogue entry inherits its description, which is not the model's own.
  if constexpr (requires { M::description, M::core_model_id; }) {
    if (M::core_model_id.substr(0, model_name<M>().size()) == model_name<M>())
      return M::description;
  }
  return {};
}

template <class M, class Ranks = RankList<>>
ModelEntry entry_of(std::size_t index) {
  using A = architecture_of<M>;
  return {model_name<M>(),
          description_of<M>(),
          architecture_facts<A>,
          numeric_facts<M>(),
          Transformer<M>::parameters,
          index,
          &quipu::make_weights<A>,
          &pass_parts<A>,
          rank_entries<A, Ranks>,
          legal_model_parallel_sizes<M>};
}

}  // namespace detail
}  // namespace quipu
