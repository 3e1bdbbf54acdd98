// Plots as SVG: a few series over axes that are linear or logarithmic, readable on a light and on a
// dark page, with a tip on every point.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct PlotPoint {
  double x, y;
  std::string tip;
};

/// Points of one name; a roof is a limit: a line without markers, dashed or not, that is no entry
/// of the legend.
struct Series {
  std::string name;
  std::vector<PlotPoint> points;
  bool roof = false, dashed = false;
};

struct Plot {
  std::string title, subtitle, x_label, y_label;
  bool log_x = true, log_y = true;
  std::vector<Series> series;
};

namespace detail {

inline std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// One axis: values onto pixels, and where its ticks stand.
class Axis {
 public:
  Axis(bool logarithmic, double low, double high, double from, double to)
      : log_(logarithmic), from_(from), to_(to) {
    if (log_) {
      low_ = std::log10(nice(low, false));
      high_ = std::log10(nice((std::max)(high, 2 * low), true));
    } else {
      const double step = step_of(high);
      low_ = 0;
      high_ = step * std::ceil(high / step + 1e-9);
    }
  }
  double operator()(double value) const {
    const double v = log_ ? std::log10(value) : value;
    return from_ + (to_ - from_) * (v - low_) / (high_ - low_);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (!log_) {
      const double step = step_of(high_);
      for (double v = 0; v <= high_ + step / 2; v += step) out.push_back(v);
      return out;
    }
    // Over many decades only their beginnings are named.
    const bool few = high_ - low_ < 3.5;
    for (double e = std::floor(low_); e <= high_; ++e) {
      for (double m : {1.0, 2.0, 5.0}) {
        const double v = m * std::pow(10.0, e), at = std::log10(v);
        if ((few || m == 1.0) && at >= low_ - 1e-9 && at <= high_ + 1e-9) out.push_back(v);
      }
    }
    return out;
  }

 private:
  static double step_of(double high) {
    const double rough = (std::max)(high, 1e-12) / 5,
                 power = std::pow(10.0, std::floor(std::log10(rough)));
    for (double m : {1.0, 2.0, 5.0}) {
      if (m * power >= rough) return m * power;
    }
    return 10 * power;
  }
  // The next 1, 2 or 5 times a power of ten, above or below.
  static double nice(double value, bool above) {
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    double below = power;
    for (double m : {1.0, 2.0, 5.0, 10.0}) {
      if (above && m * power >= value * (1 - 1e-9)) return m * power;
      if (m * power <= value * (1 + 1e-9)) below = m * power;
    }
    return below;
  }
  bool log_;
  double from_, to_, low_, high_;
};

}  // namespace detail

/// The plot as one SVG document.
inline std::string svg(const Plot& plot) {
  constexpr double width = 860, height = 480, left = 74, right = 640, top = 64, bottom = 420;
  // Of middle lightness, told apart also by people who do not see red or green (Okabe and Ito).
  constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f"};
  double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = 0;
  for (const Series& s : plot.series) {
    for (const PlotPoint& p : s.points) {
      x_low = (std::min)(x_low, p.x), x_high = (std::max)(x_high, p.x);
      y_low = (std::min)(y_low, p.y), y_high = (std::max)(y_high, p.y);
    }
  }
  const detail::Axis x(plot.log_x, x_low, x_high, left, right);
  const detail::Axis y(plot.log_y, y_low, y_high, bottom, top);

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
      "<title>{2}</title>\n"
      "<style>text{{fill:#333}}.grid{{stroke:#8884;stroke-width:1}}.roof{{stroke:#666;"
      "stroke-width:1.5;fill:none}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}"
      ".roof{{stroke:#aaa}}}}</style>\n"
      "<text x=\"{3}\" y=\"26\" font-size=\"15\" font-weight=\"600\">{2}</text>\n"
      "<text x=\"{3}\" y=\"46\">{4}</text>\n",
      width, height, detail::escaped(plot.title), left, detail::escaped(plot.subtitle));
  for (double v : x.ticks()) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        x(v), top, bottom, bottom + 17, v);
  }
  for (double v : y.ticks()) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        y(v), left, right, left - 7, y(v) + 4, v);
  }
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text x=\"18\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {})\">{}</text>\n",
      (left + right) / 2, bottom + 40, detail::escaped(plot.x_label), (top + bottom) / 2,
      (top + bottom) / 2, detail::escaped(plot.y_label));
  std::size_t named = 0;
  for (const Series& s : plot.series) {
    std::string line;
    for (const PlotPoint& p : s.points)
      line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x(p.x), y(p.y));
    if (s.roof) {
      out += fmt::format("<polyline class=\"roof\"{} points=\"{}\"/>\n",
                         s.dashed ? " stroke-dasharray=\"6 4\"" : "", line);
      continue;
    }
    const char* colour = colours[named % std::size(colours)];
    const double row = top + 8 + 20 * static_cast<double>(named);
    // The ninth colour is the first again, with hollow markers.
    const char* fill = named < std::size(colours) ? colour : "none";
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"0.45\"/>\n"
        "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        line, colour, right + 18, row, fill, colour, right + 30, row + 4, detail::escaped(s.name));
    for (const PlotPoint& p : s.points) {
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"><title>{}</title>"
          "</circle>\n",
          x(p.x), y(p.y), fill, colour, detail::escaped(p.tip));
    }
    ++named;
  }
  return out + "</svg>\n";
}

}  // namespace bench
