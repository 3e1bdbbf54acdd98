// Every model that the tests of the engine run: one engine serves them all, since kernels are
// compiled once for any number of models.
#pragma once

#include "quipu/config/catalogue.hpp"
#include "tiny_models.hpp"
#include "wide_models.hpp"
