// What an error says.
#pragma once

#include <string>

namespace quipu_test {

/// The message of the E that `f` throws; "not refused" if it throws nothing. Another exception is
/// passed on, and fails the test.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace quipu_test
