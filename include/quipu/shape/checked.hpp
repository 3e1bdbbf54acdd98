// Size arithmetic that cannot wrap: sizes come from files and users as well as from types.
#pragma once

#include <cstddef>
#include <limits>

#include "quipu/shape/error.hpp"

namespace quipu {

namespace detail {
[[noreturn]] inline void size_overflow(const char* what) {
  raise<SizeError>(std::string(what) + ": the size does not fit in " +
                   std::to_string(sizeof(std::size_t) * 8) + " bits");
}
}  // namespace detail

/// a + b; SizeError (at compile time: an error at the call) if it does not fit. `what` names the
/// quantity in the message.
constexpr std::size_t checked_add(std::size_t a, std::size_t b, const char* what = "sum") {
  if (b > (std::numeric_limits<std::size_t>::max)() - a) detail::size_overflow(what);
  return a + b;
}

/// a * b, with the same rule.
constexpr std::size_t checked_mul(std::size_t a, std::size_t b, const char* what = "product") {
  if (b != 0 && a > (std::numeric_limits<std::size_t>::max)() / b) detail::size_overflow(what);
  return a * b;
}

/// The least multiple of `unit` (> 0) that is at least n.
constexpr std::size_t round_up(std::size_t n, std::size_t unit, const char* what = "rounding") {
  return checked_mul(n / unit + (n % unit != 0 ? 1 : 0), unit, what);
}

/// n / d rounded up, d > 0.
constexpr std::size_t ceil_div(std::size_t n, std::size_t d) {
  return n / d + (n % d != 0 ? 1 : 0);
}

}  // namespace quipu
