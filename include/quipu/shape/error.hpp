// Named errors of the library.
//
// Every error that a user can cause is an exception derived from quipu::Error. Its message names
// the file, tensor or argument, what was expected and what was found. Nothing in the library
// prints. Built with -fno-exceptions, an error calls the handler set with set_error_handler and
// then aborts: there is no way to go on.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "quipu/shape/printable.hpp"

namespace quipu {

/// Base of all errors of the library.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value given to a function or a program is not usable (a negative temperature, a position
/// past the capacity, an unknown component id).
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be opened, mapped, read or written. The message has the path and the system's
/// reason.
class FileError : public Error {
 public:
  using Error::Error;
};

/// The bytes of a file are not what its format says. The message has the path and the field.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// A well-formed checkpoint does not belong to the model type: the message names the field or
/// tensor, what the file has and what the type has.
class MismatchError : public Error {
 public:
  using Error::Error;
};

/// A size does not fit its integer, or memory for it cannot be had.
class SizeError : public Error {
 public:
  using Error::Error;
};

/// Called with the message before abort() where exceptions are switched off.
using ErrorHandler = void (*)(const char* message);

namespace detail {
inline ErrorHandler& error_handler() {
  static ErrorHandler handler = nullptr;
  return handler;
}

/// What of a message is shown: a name in it may be as long as its file.
inline std::string shown_message(std::string_view message) {
  constexpr std::size_t most = 4096;
  const std::string_view shown = first_bytes(message, most);
  return printable(shown) + (shown.size() < message.size() ? "..." : "");
}
}  // namespace detail

/// Sets the handler used under -fno-exceptions; returns the former one.
inline ErrorHandler set_error_handler(ErrorHandler handler) {
  return std::exchange(detail::error_handler(), handler);
}

/// Throws E(message), of which at most 4096 bytes are shown, as printable() has them: what it
/// quotes of a file cannot move the cursor of whoever reads it, nor look like a line of its own.
/// Not constexpr on purpose: a constexpr function that reaches it at compile time is an error at
/// that line, and the same function still compiles with -fno-exceptions.
template <class E>
[[noreturn]] inline void raise(const std::string& message) {
#if defined(__cpp_exceptions)
  throw E(detail::shown_message(message));
#else
  if (detail::error_handler() != nullptr)
    detail::error_handler()(detail::shown_message(message).c_str());
  std::abort();
#endif
}

}  // namespace quipu
