// A model compiled into an engine, as run-time values and functions: what the choice by a
// checkpoint's own configuration, loading and running need to know of the type.
// Siblings: engine/make_engine.hpp (makes entries), engine/model_choice.hpp (chooses one).
#pragma once

#include <span>
#include <string_view>

#include "quipu/config/model_name.hpp"
#include "quipu/engine/architecture_facts.hpp"
#include "quipu/engine/tensor_slots.hpp"
#include "quipu/model/pass_parts.hpp"
#include "quipu/model/sharding.hpp"

namespace quipu {

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
  std::span<const std::size_t> legal_ranks{};  ///< numbers of ranks that the model can be cut for
};

namespace detail {

template <class M>
constexpr std::string_view description_of() {
  // A model derived from a catalogue entry inherits its description, which is not the model's own.
  if constexpr (requires { M::description, M::core_model_id; }) {
    if (M::core_model_id.substr(0, model_name<M>().size()) == model_name<M>())
      return M::description;
  }
  return {};
}

template <class M>
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
          legal_model_parallel_sizes<M>};
}

}  // namespace detail
}  // namespace quipu
