// Lists as types: the models that an engine is made of, and the numbers of model-parallel ranks
// that it can run them with.
#pragma once

#include <cstddef>

namespace quipu {

/// Models in an order; an engine and an atlas are made of one.
template <class... Models>
struct ModelList {};

/// Numbers of ranks besides 1, which every engine can run.
template <std::size_t... Ranks>
struct RankList {};

}  // namespace quipu
