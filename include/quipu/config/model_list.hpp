// A list of models as a type: what an engine is made of.
#pragma once

namespace quipu {

template <class... Models>
struct ModelList {};

}  // namespace quipu
