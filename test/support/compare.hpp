// How far two tensors are apart, and assertions that say so with the place of the worst element.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>

#include "support/float_bits.hpp"

namespace quipu_test {

/// Differences of `actual` against `expected`. A pair of which one is not finite and which are not
/// the same counts as infinitely far apart.
struct Difference {
  double rel_rms = 0;       ///< rms(actual - expected) / rms(expected)
  double max_abs = 0;       ///< largest |actual - expected|
  double max_expected = 0;  ///< largest |expected|
  double equal_share = 1;   ///< share of elements that are equal
  double equal_bf16 = 1;    ///< share of elements that are equal after rounding to bfloat16
  int max_bf16_steps = 0;   ///< largest distance in bfloat16 steps
  std::size_t worst = 0;    ///< index of the largest difference
  bool finite = true;       ///< no pair is infinitely far apart
};

inline Difference difference(std::span<const float> actual, std::span<const float> expected) {
  Difference d;
  double error = 0, power = 0;
  std::size_t equal = 0, equal_bf16 = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = actual[i], e = expected[i];
    const double gap = actual[i] == expected[i] ? 0 : std::abs(a - e);
    if (!std::isfinite(gap)) d.finite = false;
    if (!(gap <= d.max_abs)) d.max_abs = gap, d.worst = i;
    d.max_expected = (std::max)(d.max_expected, std::abs(e));
    error += gap * gap;
    power += e * e;
    equal += gap == 0;
    const int steps = bf16_steps(actual[i], expected[i]);
    equal_bf16 += steps == 0;
    d.max_bf16_steps = (std::max)(d.max_bf16_steps, steps);
  }
  if (!expected.empty()) {
    d.equal_share = static_cast<double>(equal) / static_cast<double>(expected.size());
    d.equal_bf16 = static_cast<double>(equal_bf16) / static_cast<double>(expected.size());
  }
  if (error > 0)
    d.rel_rms = power > 0 ? std::sqrt(error / power) : std::numeric_limits<double>::infinity();
  return d;
}

inline std::ostream& operator<<(std::ostream& out, const Difference& d) {
  return out << "rel_rms " << d.rel_rms << ", max_abs " << d.max_abs << " at element " << d.worst
             << " (largest golden value " << d.max_expected << "), equal " << 100 * d.equal_share
             << " %, equal as bf16 " << 100 * d.equal_bf16 << " %, at most " << d.max_bf16_steps
             << " bf16 steps";
}

/// What is allowed; a limit left alone allows everything.
struct Limits {
  double rel_rms = std::numeric_limits<double>::infinity();
  double max_abs = std::numeric_limits<double>::infinity();
  double max_abs_of_largest = std::numeric_limits<double>::infinity();  ///< times max |expected|
  double equal_bf16 = 0;                                                ///< least share
  int bf16_steps = (std::numeric_limits<int>::max)();
};

/// EXPECT_TRUE(close("layers.0.h", actual, expected, {.rel_rms = 1e-6})).
inline ::testing::AssertionResult close(const std::string& what, std::span<const float> actual,
                                        std::span<const float> expected, const Limits& limits) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << what << ": " << expected.size() << " elements expected, found " << actual.size();
  }
  const Difference d = difference(actual, expected);
  std::string broken;
  if (!d.finite) broken += " [an element is not finite]";
  if (!(d.rel_rms <= limits.rel_rms)) broken += " [rel_rms]";
  if (!(d.max_abs <= limits.max_abs)) broken += " [max_abs]";
  if (!(d.max_abs <= limits.max_abs_of_largest * d.max_expected || d.max_abs == 0)) {
    broken += " [max_abs / largest]";
  }
  if (d.equal_bf16 < limits.equal_bf16) broken += " [share equal as bf16]";
  if (d.max_bf16_steps > limits.bf16_steps) broken += " [bf16 steps]";
  if (broken.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << what << ": over the limit of" << broken << ": " << d << "; there expected "
         << expected[d.worst] << ", found " << actual[d.worst];
}

/// Every bit the same; names the first element that differs.
inline ::testing::AssertionResult same_bits(const std::string& what, std::span<const float> actual,
                                            std::span<const float> expected) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << what << ": " << expected.size() << " elements expected, found " << actual.size();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(actual[i]) != std::bit_cast<std::uint32_t>(expected[i])) {
      return ::testing::AssertionFailure()
             << what << ": element " << i << " expected " << expected[i] << ", found " << actual[i]
             << ", which differs by " << actual[i] - expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace quipu_test
