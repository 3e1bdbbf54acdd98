// Random numbers of sampling: a counter and a mixing function of our own definition, so that a seed
// gives the same draws on every platform and with every standard library.
// Sibling: sampling.hpp. Tests: test/generate/sampling_test.cpp.
#pragma once

#include <cstdint>

namespace quipu {

/// Draw number n is a function of (seed, stream, n) alone. The whole state is the count of draws,
/// which makes saving, restoring and rolling back an assignment.
class Random {
 public:
  /// A stream is an independent sequence of the same seed, such as one for each row of a batch.
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0)
      : key_(mix(mix(seed + step) + stream * step)) {}

  /// 64 random bits. The sequence from a key is SplitMix64's: a counter in steps of the golden
  /// ratio through a bijection of 64 bits, which passes the usual batteries of tests.
  constexpr std::uint64_t bits() {
    ++drawn_;
    return mix(key_ + drawn_ * step);
  }

  /// A number in [0, 1): the upper 53 bits over 2^53, exact in a double.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Draws made so far; `rewind_to` goes back (or forward) to where so many had been made.
  constexpr std::uint64_t drawn() const { return drawn_; }
  constexpr void rewind_to(std::uint64_t drawn) { drawn_ = drawn; }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15u;

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
  std::uint64_t drawn_ = 0;
};

}  // namespace quipu
