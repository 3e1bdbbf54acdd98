// What the programs share: command lines, exit codes, files of text, a progress bar, sizes and
// times as people write them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "quipu/shape/error.hpp"
#include "quipu/version.hpp"

namespace program {

constexpr const char* version = "quipu " QUIPU_VERSION;

/// 0: done; 1: it could not be done (a file or model is not usable, output cannot be written);
/// 2: the command line is wrong.
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

/// FileError if standard output could not take all that was written to it.
inline void finish_output() {
  if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    quipu::raise<quipu::FileError>("standard output: not all could be written");
  }
}

/// Runs a program's body; errors become one line on stderr and an exit code.
template <class Body>
int run(const char* name, Body&& body) {
  try {
    const int code = body();
    finish_output();
    return code;
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
  } catch (const std::system_error& error) {  // of fmt::print: standard output
    say("{}: {}\n", name, error.what());
    return failure;
  } catch (const std::bad_alloc&) {
    say("{}: there is not enough memory\n", name);
    return failure;
  } catch (const std::exception& error) {
    say("{}: unexpected: {}\n", name, quipu::printable(error.what()));
    return failure;
  }
}

/// Reads the command line, to which it adds --version; what the program ends with at once (help or
/// an error), or nothing. `check` may throw CLI::ParseError too.
template <class Check>
std::optional<int> parse(CLI::App& app, int argc, char** argv, Check&& check) {
  app.set_version_flag("--version", std::string(version));
  try {
    app.parse(argc, argv);
    check();
  } catch (const CLI::ParseError& error) {
    return run(app.get_name().c_str(), [&] { return app.exit(error) == 0 ? success : usage; });
  }
  return std::nullopt;
}
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  return parse(app, argc, argv, [] {});
}

/// The value of an option: an integer from `least` to `most`, refused as it was typed. (The parser
/// alone wraps or clamps some that are out of range.)
inline CLI::Validator integer(std::int64_t least, std::uint64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        const char* const end = text.data() + text.size();
        const bool negative = text.starts_with('-');
        std::int64_t low = 0;
        std::uint64_t high = 0;
        const auto [at, error] = negative ? std::from_chars(text.data(), end, low)
                                          : std::from_chars(text.data(), end, high);
        const bool whole = error == std::errc{} && at == end;
        if (whole &&
            (negative ? low >= least
                      : high <= most && (least <= 0 || high >= static_cast<std::uint64_t>(least))))
          return std::string();
        return fmt::format("expected an integer from {} to {}, found {}", least, most, text);
      },
      "");
}
/// Threads: 0 is as many as the process may use.
inline CLI::Validator thread_count() { return integer(0, 4096); }
/// Model-parallel ranks or parts; of which numbers a model can be cut into it says itself.
inline CLI::Validator rank_count() { return integer(1, 4096); }
/// How often to measure.
inline CLI::Validator repetition_count() { return integer(1, 1'000'000); }
/// Positions, sequences or tokens, of which an index has 31 bits.
inline CLI::Validator token_count(std::int64_t least) {
  return integer(least, (std::numeric_limits<std::int32_t>::max)());
}

/// All of a file of text, or of standard input for "-". FileError names it.
inline std::string read_text(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    quipu::raise<quipu::FileError>(path + ": is a directory, expected a file of text");
  std::ifstream in(path, std::ios::binary);
  if (!in) quipu::raise<quipu::FileError>(path + ": cannot be opened: " + std::strerror(errno));
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) quipu::raise<quipu::FileError>(path + ": cannot be read");
  return text;
}

/// ArgumentError if a file to be written is the checkpoint, or a file in its folder.
inline void protect_checkpoint(const char* option, const std::string& out,
                               const std::string& checkpoint) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // what is not there is not the same
  const bool folder = fs::is_directory(checkpoint, ignored);
  const fs::path of_checkpoint = folder ? fs::path(out).parent_path() / "." : fs::path(out);
  if (!fs::exists(out, ignored) || !fs::equivalent(of_checkpoint, checkpoint, ignored)) return;
  quipu::raise<quipu::ArgumentError>(
      std::string(option) + ": " + out +
      (folder ? " stands in the folder of the checkpoint" : " is the checkpoint"));
}

/// ArgumentError if there is a file of this name and `force` is not given.
inline void refuse_existing(const char* option, const std::string& out, bool force) {
  std::error_code ignored;
  if (force || !std::filesystem::exists(out, ignored)) return;
  quipu::raise<quipu::ArgumentError>(
      std::string(option) + ": " + out +
      ": there is a file of this name already (--force replaces it)");
}

}  // namespace program
