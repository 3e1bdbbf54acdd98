// What the programs share: the engine they are built for, exit codes, a progress bar, sizes and
// times as people write them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "quipu/shape/error.hpp"

namespace program {

/// 0: done; 1: a file or model is not usable; 2: the command line is not.
enum ExitCode : int { success = 0, failure = 1, usage = 2 };

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "95.2 MB": powers of ten below, as file managers and vendors count.
inline std::string bytes_text(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

/// 8030261248 as "8,030,261,248".
inline std::string grouped(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

/// ", 2 ranks"; nothing for one.
inline std::string ranks_text(std::size_t ranks) {
  return ranks == 1 ? std::string() : fmt::format(", {} ranks", ranks);
}

/// Prints to stderr, whatever becomes of it: a message that nobody can read must not end the
/// program.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fputs(text.c_str(), stderr);
}

/// A bar on the terminal's last line of stderr, drawn only if the work has taken half a second and
/// stderr is a terminal; it erases itself at the end.
class ProgressBar {
 public:
  void operator()(std::string_view what, std::size_t done, std::size_t total) {
    if (!terminal_ || total == 0 || seconds_since(start_) < 0.5) return;
    if (done < total && shown_ && seconds_since(drawn_) < 0.1) return;
    if (done >= total) return erase();
    constexpr std::size_t width = 32;
    const double part = static_cast<double>(done) / static_cast<double>(total);
    const auto filled = static_cast<std::size_t>(part * width);
    say("\r{} [{}{}] {:3.0f} %", what, std::string(filled, '#'), std::string(width - filled, '.'),
        100 * part);
    std::fflush(stderr);
    drawn_ = Clock::now();
    shown_ = true;
  }
  ~ProgressBar() { erase(); }

 private:
  void erase() {
    if (shown_) say("\r\033[K");
    shown_ = false;
  }

  bool terminal_ = isatty(2) != 0;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
};

/// The signal that asked the program to end, after stop_on_signals(); else 0.
inline volatile std::sig_atomic_t caught_signal = 0;

/// Thrown by check_signals(), so that what is half done is cleared away.
struct Interrupted {};

/// From now on SIGINT, SIGTERM and SIGHUP are only noted, for check_signals() to act on; a signal
/// that was ignored (nohup) stays so.
inline void stop_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(number, SIG_IGN) == SIG_IGN) continue;
    std::signal(number, [](int caught) { caught_signal = caught; });
  }
}
inline void check_signals() {
  if (caught_signal != 0) throw Interrupted{};
}

/// Runs a program's body; errors become one line on stderr and an exit code.
template <class Body>
int run(const char* name, Body&& body) {
  try {
    return body();
  } catch (const Interrupted&) {
    say("{}: interrupted\n", name);
    std::signal(caught_signal, SIG_DFL);
    std::raise(caught_signal);  // the parent sees what ended the program
    return failure;
  } catch (const quipu::ArgumentError& error) {
    say("{}: {}\n", name, error.what());
    return usage;
  } catch (const quipu::Error& error) {
    say("{}: {}\n", name, error.what());
    return failure;
  } catch (const std::exception& error) {
    say("{}: unexpected: {}\n", name, error.what());
    return failure;
  }
}

}  // namespace program
