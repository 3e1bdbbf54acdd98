// Makes the run-time face of a list of model types: opening, choosing, verifying, loading. Included
// by the translation unit that quipu_add_engine writes and by quipu/run.hpp; programs that only use
// an engine include engine/engine.hpp, which costs them none of this.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/config/model_list.hpp"
#include "quipu/engine/engine.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/vocabulary_loader.hpp"
#include "quipu/engine/weight_loader.hpp"

namespace quipu {

namespace detail {

template <class Ranks = RankList<>, class... M>
std::vector<ModelEntry> entries_of(ModelList<M...>) {
  std::vector<ModelEntry> entries;
  (entries.push_back(entry_of<M, Ranks>(entries.size())), ...);
  return entries;
}

/// The executors and communicators of the ranks that this process runs.
inline void start_ranks(ModelState& state, const LoadOptions& options, std::size_t ranks) {
  const bool in_one_process = ranks > 1 && !options.communicator;
  if (options.executor && in_one_process) {
    raise<ArgumentError>("executor: " + std::to_string(ranks) +
                         " ranks in one process each need their own; give threads instead");
  }
  if (in_one_process) state.rank_threads = std::make_unique<RankThreads>(ranks);
  const std::size_t local = in_one_process ? ranks : 1;
  const std::size_t threads = options.threads == 0 ? default_thread_count() : options.threads;
  for (std::size_t r = 0; r < local; ++r) {
    if (options.executor) {
      state.executors.push_back(*options.executor);
    } else {
      state.pools.push_back(
          std::make_unique<ThreadPool>((std::max)(std::size_t{1}, threads / local)));
      state.executors.push_back(*state.pools.back());
    }
    state.communicators.push_back(in_one_process
                                      ? state.rank_threads->communicator(r)
                                      : options.communicator.value_or(CommunicatorRef()));
  }
}

inline Model load_model(std::span<const ModelEntry> models, EngineFunctions functions,
                        Checkpoint checkpoint, const LoadOptions& options) {
  const ModelEntry& entry = choose_model(models, checkpoint.facts, checkpoint.path, options.model);
  const std::size_t ranks = options.communicator ? options.communicator->ranks() : options.ranks;
  const RankEntry part = choose_ranks(entry, ranks);
  auto state = std::make_shared<ModelState>(std::move(checkpoint), entry, functions);
  state->part = part;
  start_ranks(*state, options, ranks);
  state->inverse_frequencies = options.reference_rope ? entry.numerics.reference_inverse_frequencies
                                                      : entry.numerics.inverse_frequencies;
  const RankParts parts{part, state->communicators[0].rank(), state->executors.size()};
  // One rank's pool has a share of the threads only; before anything runs, all of them can pack.
  std::optional<ThreadPool> loading;
  if (parts.count > 1) loading.emplace(options.threads);
  state->weights = load_weights(state->checkpoint, state->entry, parts, options,
                                loading ? ExecutorRef(*loading) : state->executors[0]);
  return Model(std::move(state));
}

inline Checkpoint open_any(const std::string& path) { return open_checkpoint(path); }

inline std::unique_ptr<Tokenizer> tokenizer_of(const Checkpoint& checkpoint) {
  std::optional<VocabularyData> data = vocabulary_of(checkpoint);
  if (!data) raise<FormatError>(checkpoint.path + ": there is no tokenizer in this checkpoint");
  return std::make_unique<Tokenizer>(std::move(*data));
}

}  // namespace detail

/// The engine of a ModelList with its forward passes, for one rank and for the numbers of a
/// RankList.
template <class List, class Ranks = RankList<>>
Engine make_engine(void (*forward)(std::size_t, const void*, const ForwardCall&),
                   const char* (*target)(), const KernelProbes& (*probes)()) {
  return Engine(detail::entries_of<Ranks>(List{}),
                EngineFunctions{forward, target, probes, &detail::load_model, &detail::open_any,
                                &detail::tokenizer_of});
}

}  // namespace quipu
