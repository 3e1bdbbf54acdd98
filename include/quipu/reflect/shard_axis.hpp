// How a tensor is cut among model-parallel ranks. Siblings: reflect/weight.hpp (a weight's cut),
// model/sharding.hpp (checked at compile time), checkpoint/tensor_source.hpp (merging files).
#pragma once

#include <string_view>

namespace quipu {

/// How FairScale cuts a tensor for model parallelism: not at all, by output rows (column parallel
/// layers and the vocabulary-parallel embedding), by input columns (row parallel layers).
enum class ShardAxis : unsigned char { none, rows, columns };

/// "none", "rows" or "columns".
constexpr std::string_view name(ShardAxis axis) {
  return axis == ShardAxis::none ? "none" : axis == ShardAxis::rows ? "rows" : "columns";
}

}  // namespace quipu
