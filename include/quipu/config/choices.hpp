// The constants of a configuration that can be decided in two ways: the type says which.
// Sibling: config/rules.hpp.
#pragma once

#include <cstddef>

namespace quipu {

/// Hidden width by the reference's rule: two thirds of 4 dim, times the multiplier, rounded up to a
/// multiple. Source: meta-llama/llama3 a0940f9cf706, llama/model.py 202-206.
struct ffn_rule {
  long long multiple_of = 256;
  double ffn_dim_multiplier = 1.0;  ///< 1: the reference's `None`
};

/// The width by that rule for a model width; every argument positive. Both products are cut to
/// integers, as the reference's int() does.
constexpr long long ffn_width_by(long long dim, long long multiple_of, double multiplier) {
  long long hidden = 2 * (4 * dim) / 3;
  hidden = static_cast<long long>(multiplier * static_cast<double>(hidden));
  return (hidden + multiple_of - 1) / multiple_of * multiple_of;
}

/// Hidden width as a number.
struct ffn_width {
  long long n = 0;
};

/// head_dim = dim / n_heads (the reference's rule; model.py 98). Otherwise head_dim is a number.
struct from_heads {};

/// No scaling of the rotary frequencies.
struct none {};

/// Llama 3.1's scaling of the rotary frequencies in three bands by wavelength.
/// Source: meta-llama/llama-models a9c89c471f79, models/llama3/model.py 45-62.
struct llama3_scaling {
  double factor = 8;
  double low = 1;
  double high = 4;
  double original_positions = 8192;
};

/// The output matrix is a tensor of its own.
struct separate {};
/// The output matrix is the token embedding table.
struct tied {};

}  // namespace quipu
