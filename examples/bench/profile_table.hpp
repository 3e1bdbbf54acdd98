// A profile for people: the components of a pass, those of all blocks together.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ceilings.hpp"
#include "quipu/engine/profile.hpp"

namespace bench {

/// Components of one kind, all blocks together, in the order of the work.
inline std::vector<quipu::ProfileComponent> by_kind(const quipu::Profile& p) {
  std::vector<quipu::ProfileComponent> kinds;
  for (const quipu::ProfileComponent& c : p.components) {
    std::string_view name = c.id;
    if (name.starts_with("layers.")) name = name.substr(name.find('.', 7) + 1);
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const quipu::ProfileComponent& k) { return k.id == name; });
    if (kind == kinds.end()) kind = kinds.insert(kind, {std::string(name), 0.0, 0, 0, c.weights});
    kind->seconds += c.seconds;
    kind->bytes += c.bytes;
    kind->flops += c.flops;
  }
  return kinds;
}

/// The least time that the ceilings allow a component: reading or arithmetic, whichever is longer.
/// Block-quantised weights meet int8 activations in byte dot products.
inline double least_seconds(const quipu::Profile& p, const quipu::ProfileComponent& c) {
  const bool bytes = p.activations == "int8" && p.mode == "f32";
  const double arithmetic = c.weights
                                ? quipu::arithmetic_ceiling(p.ceilings, *c.weights,
                                                            bytes ? quipu::ActivationMode::int8
                                                                  : quipu::ActivationMode::f32)
                                : p.ceilings.fma_flops_per_second;
  return (std::max)(static_cast<double>(c.bytes) / p.ceilings.read_bytes_per_second,
                    static_cast<double>(c.flops) / arithmetic);
}

inline std::string profile_notes(const quipu::Profile& p) {
  return fmt::format(
      "{}: passes of {} x {} tokens from position {}, median of {}: {} ms; {}, {} thread{}, "
      "activations {}, cache {}\nceilings: {}\n",
      p.model, p.shape.batch, p.shape.positions, p.shape.at, p.passes, figure(p.seconds * 1e3),
      p.target, p.threads, p.threads == 1 ? "" : "s", p.activations, p.cache,
      ceilings_text(p.ceilings));
}

inline Table profile_table(const quipu::Profile& p) {
  Table table({"component", ">ms", ">share", ">GB/s", ">GFLOP/s", ">of ceiling"});
  const auto rate = [](std::size_t amount, double seconds) {
    return amount == 0 || seconds == 0 ? "" : figure(static_cast<double>(amount) / seconds * 1e-9);
  };
  quipu::ProfileComponent sum{"pass", p.seconds, 0, 0};
  double least = 0;
  OverCeiling part;
  for (const quipu::ProfileComponent& c : by_kind(p)) {
    const double bound = least_seconds(p, c);
    table.add({c.id, fmt::format("{:.3f}", c.seconds * 1e3), percent(c.seconds / p.seconds),
               rate(c.bytes, c.seconds), rate(c.flops, c.seconds),
               c.seconds > 0 && c.bytes > 0 ? part(bound / c.seconds) : ""});
    sum.bytes += c.bytes;
    sum.flops += c.flops;
    least += bound;
  }
  const double rest = p.seconds - p.accounted_seconds();
  table.add(
      {"unaccounted", fmt::format("{:.3f}", rest * 1e3), percent(rest / p.seconds), "", "", ""});
  table.add({sum.id, fmt::format("{:.3f}", sum.seconds * 1e3), percent(1),
             rate(sum.bytes, p.seconds), rate(sum.flops, p.seconds), part(least / p.seconds)});
  table.set_below(part.note());
  return table;
}

}  // namespace bench
