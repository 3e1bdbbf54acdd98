// Makes the run-time face of a list of model types: opening, choosing, verifying, loading. Included
// by the translation unit that quipu_add_engine writes and by quipu/run.hpp; programs that only use
// an engine include engine/engine.hpp, which costs them none of this.
#pragma once

#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/config/model_list.hpp"
#include "quipu/engine/engine.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/vocabulary_loader.hpp"
#include "quipu/engine/weight_loader.hpp"

namespace quipu {

namespace detail {

template <class... M>
std::vector<ModelEntry> entries_of(ModelList<M...>) {
  std::vector<ModelEntry> entries;
  (entries.push_back(entry_of<M>(entries.size())), ...);
  return entries;
}

inline Model load_model(std::span<const ModelEntry> models, EngineFunctions functions,
                        Checkpoint checkpoint, const LoadOptions& options) {
  const ModelEntry& entry = choose_model(models, checkpoint.facts, checkpoint.path, options.model);
  auto state = std::make_shared<ModelState>(std::move(checkpoint), entry, functions);
  if (options.executor) {
    state->executor = *options.executor;
  } else {
    state->pool = std::make_unique<ThreadPool>(options.threads);
    state->executor = ExecutorRef(*state->pool);
  }
  state->inverse_frequencies = options.reference_rope ? entry.numerics.reference_inverse_frequencies
                                                      : entry.numerics.inverse_frequencies;
  state->weights = load_weights(state->checkpoint, state->entry, options, *state->executor);
  return Model(std::move(state));
}

inline Checkpoint open_any(const std::string& path) { return open_checkpoint(path); }

inline std::unique_ptr<Tokenizer> tokenizer_of(const Checkpoint& checkpoint) {
  std::optional<VocabularyData> data = vocabulary_of(checkpoint);
  if (!data) raise<FormatError>(checkpoint.path + ": there is no tokenizer in this checkpoint");
  return std::make_unique<Tokenizer>(std::move(*data));
}

}  // namespace detail

/// The engine of a ModelList with its forward passes.
template <class List>
Engine make_engine(void (*forward)(std::size_t, const void*, const ForwardCall&),
                   const char* (*target)(), const KernelProbes& (*probes)()) {
  return Engine(detail::entries_of(List{}),
                EngineFunctions{forward, target, probes, &detail::load_model, &detail::open_any,
                                &detail::tokenizer_of});
}

}  // namespace quipu
