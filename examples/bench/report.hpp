// Tables for people (Markdown) and machines (CSV), and what a measurement says of the machine.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <stdlib.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

/// A table of text; columns whose names begin with '>' stand right.
class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) {
    row.resize(columns_.size());
    rows_.push_back(std::move(row));
  }
  /// What a reader must know of the figures, after the table; may be nothing.
  void set_below(std::string text) { below_ = std::move(text); }
  const std::string& below() const { return below_; }

  std::string markdown() const {
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      width.push_back(name(c).size());
      for (const auto& row : rows_) width[c] = width[c] < row[c].size() ? row[c].size() : width[c];
    }
    std::string out, rule;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      out += cell(name(c), width[c], right(c));
      rule += "|-" + std::string(width[c], '-') + (right(c) ? ":" : "-");
    }
    out += "|\n" + rule + "|\n";
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) out += cell(row[c], width[c], right(c));
      out += "|\n";
    }
    return below_.empty() ? out : out + "\n" + below_;
  }

  /// RFC 4180: a field with a comma, a quote or a line's end is quoted.
  std::string csv() const {
    std::string out;
    const auto line = [&](const auto& field) {
      for (std::size_t c = 0; c < columns_.size(); ++c)
        out += (c > 0 ? "," : "") + quoted(field(c));
      out += "\n";
    };
    line([&](std::size_t c) { return name(c); });
    for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
    return out;
  }

 private:
  bool right(std::size_t c) const { return columns_[c].starts_with('>'); }
  std::string name(std::size_t c) const { return columns_[c].substr(right(c) ? 1 : 0); }
  static std::string cell(const std::string& text, std::size_t width, bool right) {
    const std::string gap(width - text.size(), ' ');
    return "| " + (right ? gap + text : text + gap) + " ";
  }
  static std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  }

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::string below_;
};

/// Three significant digits at least, no exponent: 0.123, 12.3, 1234.
inline std::string figure(double value) {
  const double size = value < 0 ? -value : value;
  if (value == 0) return "0";
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}
inline std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

/// Processes that ran or waited to run, mean of the last minute; 0 if the system does not say.
inline double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

/// Processors that this process may use.
inline std::size_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set))
                                                     : 1;
}

/// Above this spread of its repetitions a figure is to be taken as rough.
inline constexpr double rough_cv = 0.05;

}  // namespace bench
