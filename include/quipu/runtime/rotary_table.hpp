// Cosines and sines of the rotary embedding for the positions of a forward pass.
//
// Siblings: config/rope.hpp (inverse frequencies), simd/rotary-inl.hpp (applies the rows),
// test/runtime/rotary_table_test.cpp.
// Built on demand: 64 pairs of a position take about 2 microseconds, a table for 131072 positions
// would take 128 MB.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "quipu/runtime/sequence_chunk.hpp"

namespace quipu {

/// Floats of a row: head_dim cosines, then head_dim sines.
constexpr std::size_t rotary_row_floats(std::size_t head_dim) { return 2 * head_dim; }

/// Writes the row of one position, head_dim / 2 inverse frequencies long. Both halves repeat each
/// value for the two features of a pair, the sine with the sign of its use: (c0, c0, c1, c1, ...),
/// (-s0, s0, -s1, s1, ...), so that rotating is x * cosines + swapped pairs of x * sines.
///
/// The angle is the float32 product of position and frequency, as the reference forms it; its
/// cosine and sine are computed in double and rounded once. (Forming the angle in double would
/// move cosines at position 131071 by 2e-3.)
inline void fill_rotary_row(const float* inverse_frequencies, std::size_t head_dim,
                            std::size_t position, float* row) {
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    const float angle = static_cast<float>(position) * inverse_frequencies[i];
    const auto cosine = static_cast<float>(std::cos(static_cast<double>(angle)));
    const auto sine = static_cast<float>(std::sin(static_cast<double>(angle)));
    row[2 * i] = cosine;
    row[2 * i + 1] = cosine;
    row[head_dim + 2 * i] = -sine;
    row[head_dim + 2 * i + 1] = sine;
  }
}

/// Writes the rows of all tokens of a chunk into a table with one row per activation row.
inline void fill_rotary_rows(const float* inverse_frequencies, std::size_t head_dim,
                             const SequenceChunk& chunk, float* table) {
  for (std::size_t t = 0; t < chunk.tokens; ++t) {
    fill_rotary_row(inverse_frequencies, head_dim, chunk.start + t,
                    table + (chunk.first_row + t) * rotary_row_floats(head_dim));
  }
}

}  // namespace quipu
