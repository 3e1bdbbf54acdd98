// A loaded model behind a plain interface: what it is, its weights, its tokenizer, its executor.
//
// Made by Engine::load (engine/engine.hpp). Weights are const and shared by any number of sessions
// (engine/session.hpp).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/engine/loaded_weights.hpp"
#include "quipu/engine/model_entry.hpp"
#include "quipu/engine/options.hpp"
#include "quipu/parallel/threads.hpp"
#include "quipu/runtime/thread_pool.hpp"
#include "quipu/simd/forward_call.hpp"
#include "quipu/simd/probes.hpp"
#include "quipu/text/tokenizer.hpp"

namespace quipu {

class Model;
struct ModelState;

/// What an engine's translation units provide: loading, and one forward pass for every model of the
/// list on the SIMD target that the processor has. Function pointers, so that a program which uses
/// an engine compiles neither.
struct EngineFunctions {
  void (*forward)(std::size_t model, const void* weights, const ForwardCall& call) = nullptr;
  const char* (*target)() = nullptr;
  const KernelProbes& (*probes)() = nullptr;
  Model (*load)(std::span<const ModelEntry> models, EngineFunctions functions,
                Checkpoint checkpoint, const LoadOptions& options) = nullptr;
  Checkpoint (*open)(const std::string& path) = nullptr;
  std::unique_ptr<Tokenizer> (*make_tokenizer)(const Checkpoint& checkpoint) = nullptr;
};

/// What the copies of a Model share.
struct ModelState {
  ModelState(Checkpoint c, const ModelEntry& e, EngineFunctions f)
      : checkpoint(std::move(c)), entry(e), functions(f) {}
  Checkpoint checkpoint;
  ModelEntry entry;
  EngineFunctions functions;
  std::vector<std::unique_ptr<ThreadPool>> pools;
  std::unique_ptr<RankThreads> rank_threads;  ///< where this process runs several ranks
  RankEntry part;                             ///< what each rank has
  /// Of each rank that this process runs.
  std::vector<ExecutorRef> executors;
  std::vector<CommunicatorRef> communicators;
  std::span<const float> inverse_frequencies;
  LoadedWeights weights;
  std::mutex mutex, pass;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// A loaded model; copies share it.
class Model {
 public:
  /// Takes a state whose weights are loaded (engine/make_engine.hpp).
  explicit Model(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}

  /// The compiled-in model that the checkpoint belongs to.
  const ModelEntry& entry() const { return state_->entry; }
  std::string_view name() const { return state_->entry.name; }
  const ArchitectureFacts& architecture() const { return state_->entry.architecture; }
  std::size_t parameters() const { return state_->entry.parameters; }
  const Checkpoint& checkpoint() const { return state_->checkpoint; }
  const LoadedWeights& weights() const { return state_->weights; }
  /// Model-parallel ranks in all, and what one of them has of the architecture.
  std::size_t ranks() const { return state_->part.ranks; }
  const ArchitectureFacts& part() const { return state_->part.architecture; }
  /// Ranks that this process runs: all of them, or one where ranks are processes. The executor and
  /// the communicator of each are found by its place here.
  std::size_t local_ranks() const { return state_->executors.size(); }
  ExecutorRef executor(std::size_t local_rank = 0) const { return state_->executors[local_rank]; }
  CommunicatorRef communicator(std::size_t local_rank = 0) const {
    return state_->communicators[local_rank];
  }
  /// Threads that compute in this process.
  std::size_t threads() const {
    std::size_t sum = 0;
    for (const ExecutorRef& executor : state_->executors) sum += executor.concurrency();
    return sum;
  }
  /// The SIMD target that forward passes run on: "AVX2".
  std::string_view target() const { return state_->functions.target(); }
  /// What that target can do at most, and its product, for measurements.
  const KernelProbes& probes() const { return state_->functions.probes(); }
  /// Positions the model was trained for, if the checkpoint says so.
  std::optional<std::size_t> context_length() const {
    return state_->checkpoint.facts.context_length;
  }
  std::span<const float> inverse_frequencies() const { return state_->inverse_frequencies; }

  /// The tokenizer in (or beside) the checkpoint, made at the first call. FormatError if there is
  /// none.
  const Tokenizer& tokenizer() const {
    ModelState& s = *state_;
    const std::scoped_lock lock(s.mutex);
    if (!s.tokenizer) s.tokenizer = s.functions.make_tokenizer(s.checkpoint);
    return *s.tokenizer;
  }

  /// One pass, by a call for each rank of this process; sessions of a model take turns, since they
  /// share its executors.
  void forward(std::span<const ForwardCall> calls) const {
    ModelState& s = *state_;
    const std::scoped_lock lock(s.pass);
    const auto run = [&](std::size_t local_rank) {
      s.functions.forward(s.entry.index, s.weights.ranks[local_rank].weights.get(),
                          calls[local_rank]);
    };
    if (s.rank_threads) {
      s.rank_threads->run(run);
    } else {
      run(0);
    }
  }

 private:
  std::shared_ptr<ModelState> state_;
};

}  // namespace quipu
