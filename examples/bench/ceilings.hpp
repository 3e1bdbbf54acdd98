// The machine's ceilings as reports have them: in words, as JSON, and what a figure above one
// means.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/report.hpp"
#include "quipu/engine/profile.hpp"

namespace bench {

/// "reading 20.5 GB/s, float32 multiply-adds ..."
inline std::string ceilings_text(const quipu::Ceilings& c) {
  return fmt::format(
      "reading {} GB/s, float32 multiply-adds {} GFLOP/s, byte dot products {} GOP/s ({} of any "
      "signed bytes)",
      figure(c.read_bytes_per_second * 1e-9), figure(c.fma_flops_per_second * 1e-9),
      figure(c.int8_ops_per_second * 1e-9), figure(c.signed_int8_ops_per_second * 1e-9));
}

/// Pairs of a number of threads and their ceilings as a list of objects.
template <class ByThreads>
nlohmann::ordered_json ceilings_json(const ByThreads& by_threads) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& [threads, ceilings] : by_threads) {
    out.push_back({{"threads", threads}});
    out.back().update(quipu::to_json(ceilings));
  }
  return out;
}

/// What stands below a table in which a figure is more than 100 % of a ceiling; else nothing.
class OverCeiling {
 public:
  /// The part as a figure of the table.
  std::string operator()(double part) {
    seen_ = seen_ || part >= 1.0005;  // shown as more than 100.0 %
    return percent(part);
  }
  std::string note() const {
    if (!seen_) return "";
    return "more than 100 %: the reading ceiling is the best of several loops over more than the\n"
           "caches hold, and they may hold a part of what was read here; the machine may also "
           "have\n"
           "changed its pace between the two measurements\n";
  }

 private:
  bool seen_ = false;
};

}  // namespace bench
