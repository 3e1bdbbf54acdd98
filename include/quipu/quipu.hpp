// The typed side of quipu: models as types, with every dimension, shape, parameter, byte and FLOP
// known to the compiler. Needs a C++20 compiler and Boost's headers, nothing else.
// quipu/run.hpp adds what loads and runs a model.
#pragma once

#include "quipu/config/catalogue.hpp"
#include "quipu/config/model_name.hpp"
#include "quipu/config/rope.hpp"
#include "quipu/model/composition.hpp"
#include "quipu/model/naming.hpp"
#include "quipu/model/sharding.hpp"
#include "quipu/model/transformer.hpp"
#include "quipu/shape/view.hpp"
#include "quipu/version.hpp"
