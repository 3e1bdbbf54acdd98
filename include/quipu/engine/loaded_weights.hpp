// What loading a model's weights leaves in memory.
// Sibling: engine/weight_loader.hpp (fills it in).
#pragma once

#include <cstddef>
#include <vector>

#include "quipu/engine/tensor_slots.hpp"
#include "quipu/runtime/aligned_buffer.hpp"

namespace quipu {

/// A model's weights in memory: the structs of views, one for each rank that this process runs, and
/// what keeps their bytes alive.
struct LoadedWeights {
  std::vector<WeightsHolder> ranks;
  std::vector<AlignedBuffer> owned;  ///< packed matrices and widened norms
  std::size_t owned_bytes = 0;
  std::size_t mapped_bytes = 0;    ///< used in place in the checkpoint's maps
  std::size_t weight_bytes = 0;    ///< of this process's ranks, as stored; what is shared, once
  std::vector<ElementType> types;  ///< element types found, each once, in order of appearance
};

}  // namespace quipu
