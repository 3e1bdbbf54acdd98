// A list of models as a type: what an engine is made of.
#pragma once

namespace quipu {

/// Models in an order; an engine and an atlas are made of one.
template <class... Models>
struct ModelList {};

}  // namespace quipu
