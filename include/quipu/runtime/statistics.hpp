// The statistics of repeated timings.
// Sibling: test/runtime/statistics_test.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace quipu {

/// The middle value, or the mean of the two in the middle; 0 for none.
inline double median(std::span<const double> values) {
  if (values.empty()) return 0.0;
  std::vector<double> v(values.begin(), values.end());
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) return *middle;
  return (*std::max_element(v.begin(), middle) + *middle) / 2;
}

/// Standard deviation (of a sample: n - 1) over mean; 0 for fewer than two values.
inline double coefficient_of_variation(std::span<const double> values) {
  if (values.size() < 2) return 0.0;
  const auto n = static_cast<double>(values.size());
  double mean = 0.0, squares = 0.0;
  for (double v : values) mean += v / n;
  for (double v : values) squares += (v - mean) * (v - mean);
  return mean == 0.0 ? 0.0 : std::sqrt(squares / (n - 1)) / std::fabs(mean);
}

/// The value below which the fraction `at` (0..1) of the values lie, between two of them linearly;
/// 0 for none.
inline double quantile(std::span<const double> values, double at) {
  if (values.empty()) return 0.0;
  std::vector<double> v(values.begin(), values.end());
  std::sort(v.begin(), v.end());
  const double place = (std::clamp)(at, 0.0, 1.0) * static_cast<double>(v.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 == v.size()) return v.back();
  return v[below] + (place - static_cast<double>(below)) * (v[below + 1] - v[below]);
}

}  // namespace quipu
