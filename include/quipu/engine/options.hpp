// The run-time choices of loading and running a model. Everything has a default.
// Sibling: engine/engine.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "quipu/parallel/communicator.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/runtime/trace.hpp"
#include "quipu/shape/element_type.hpp"
#include "quipu/simd/product.hpp"

namespace quipu {

/// Told how far long work is: what is being done, how much is done and how much there is, in bytes
/// or tokens. Called on the thread that asked for the work.
using Progress = std::function<void(std::string_view what, std::size_t done, std::size_t total)>;

struct LoadOptions {
  /// Name of the compiled-in model to use; empty: chosen by the file's own configuration.
  std::string model;
  /// Workers of the model's own pool; 0: as many as the process may use. Ignored with `executor`.
  std::size_t threads = 0;
  /// An executor of the caller's instead of the model's own pool. Must outlive the model.
  std::optional<ExecutorRef> executor;
  /// Pack the weights into the kernels' layout. false: they are used in place in the mapped file,
  /// where every pass packs what it reads: no second copy, several times slower, the same bits.
  bool pack = true;
  /// Scale rotary frequencies as the pinned reference does (factor 8 for every scaled model)
  /// instead of as the model's release says. Differs for Llama 3.2 only.
  bool reference_rope = false;
  /// Model-parallel ranks, run by as many threads of this process, which share `threads` among
  /// their pools. The engine must have been built with this number (quipu_add_engine's RANKS).
  std::size_t ranks = 1;
  /// Which rank of how many this process is, where ranks are processes: only its part of the
  /// weights is loaded, and all of them must make the same calls. Must outlive the model.
  std::optional<CommunicatorRef> communicator;
  Progress progress;
};

struct SessionOptions {
  std::size_t batch = 1;
  /// Positions that a sequence can have.
  std::size_t capacity = 4096;
  /// Most tokens computed in one pass; longer input is cut into such chunks (same results).
  std::size_t chunk = 512;
  ElementType cache = ElementType::f32;  ///< f32 or bf16
  NumericMode mode = NumericMode::f32;
  ActivationMode activations = ActivationMode::f32;
  /// Input may start past the end of a sequence; positions between hold zeros, as in a fresh cache.
  bool allow_gaps = false;
};

}  // namespace quipu
