// One call of the forward pass as plain values: what goes in, where results go, where scratch is.
// Shared by the callers (engine/) and every SIMD target, so it knows neither.
// Siblings: simd/forward_plan.hpp, simd/transformer-inl.hpp.
#pragma once

#include <cstdint>
#include <span>

#include "quipu/parallel/communicator.hpp"
#include "quipu/runtime/arena.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/runtime/kv_cache.hpp"
#include "quipu/runtime/numeric_mode.hpp"
#include "quipu/runtime/profile.hpp"
#include "quipu/runtime/sequence_chunk.hpp"
#include "quipu/runtime/trace.hpp"
#include "quipu/simd/forward_plan.hpp"
#include "quipu/simd/product.hpp"

namespace quipu {

/// Which positions' logits a caller wants: none, those of each sequence's last token, or all.
enum class LogitsWanted : unsigned char { none, last, all };

struct ForwardCall {
  std::span<const std::int32_t> tokens;     ///< of all chunks, one after the other
  std::span<const SequenceChunk> chunks;    ///< which of them belong to which sequence
  std::span<const std::size_t> logit_rows;  ///< tokens whose logits are computed, ascending
  float* logits = nullptr;                  ///< [logit_rows, vocabulary of all ranks]
  const KvCache* cache = nullptr;
  const float* inverse_frequencies = nullptr;  ///< head_dim / 2
  float norm_eps = 1e-5f;
  NumericMode mode = NumericMode::f32;
  ActivationMode activations = ActivationMode::f32;
  TraceHook trace = {};      ///< on for all ranks or for none; rank 0's is called
  ProfileHook profile = {};  ///< off unless given
  ExecutorRef executor;
  CommunicatorRef communicator = {};  ///< which rank of how many this call is
  const Arena* scratch = nullptr;     ///< made from `plan`
  const ForwardPlan* plan = nullptr;  ///< for at least this work
};

}  // namespace quipu
