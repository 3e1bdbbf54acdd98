// A profile: where the time of a pass goes, component by component, beside what each must read and
// compute and what the machine can do.
//
// Written as JSON ("quipu-profile-1") for the atlas and for other programs:
//   {"format", "model", "target", "threads", "batch", "positions", "at", "weights": [type, ...],
//    "cache", "activations", "mode", "ceilings": {"read_bytes_per_second", "fma_flops_per_second",
//    "int8_ops_per_second", "signed_int8_ops_per_second"}, "passes", "seconds", "components":
//    [{"id", "seconds", "bytes", "flops"}, ...]}
// A component's id is that of its card; `bytes` are those of weights and cache, each read or
// written once; times are medians over the passes. What the components lack to `seconds` is
// unaccounted. Siblings: runtime/profile.hpp (the times), model/pass_parts.hpp (the costs),
// engine/ceilings.hpp, test/engine/profile_test.cpp.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "quipu/engine/ceilings.hpp"
#include "quipu/engine/session.hpp"

namespace quipu {

/// One component of a pass.
struct ProfileComponent {
  std::string id;                        ///< "layers.3.attention.wq", "output"
  double seconds = 0;                    ///< of a pass, the median
  std::size_t bytes = 0;                 ///< of weights and cache that it must read and write
  std::size_t flops = 0;                 ///< a multiply-add counts two
  std::optional<ElementType> weights{};  ///< of the matrix that it multiplies by, if any
};

/// The passes that a profile is of: `positions` tokens for each of `batch` sequences, from position
/// `at` on.
struct PassShape {
  std::size_t batch = 1, positions = 1, at = 0;
};

struct Profile {
  std::string model, target, cache, activations, mode;
  std::size_t threads = 0;
  PassShape shape;
  std::vector<std::string> weights;  ///< element types of the matrices
  Ceilings ceilings;
  std::size_t passes = 0;
  double seconds = 0;  ///< of a pass, the median
  std::vector<ProfileComponent> components;

  /// What the components take together.
  double accounted_seconds() const {
    double sum = 0;
    for (const ProfileComponent& c : components) sum += c.seconds;
    return sum;
  }
};

inline std::string_view name(NumericMode mode) {
  return mode == NumericMode::bf16 ? "bf16" : "f32";
}
inline std::string_view name(ActivationMode mode) {
  return mode == ActivationMode::int8 ? "int8" : "f32";
}

/// What each component of a pass must read, write and compute, in the order of the work, with the
/// weights in the types that they have in memory and the logits of every sequence's last token.
/// Times are 0.
inline std::vector<ProfileComponent> pass_costs(const Model& model, ElementType cache,
                                                const PassShape& shape) {
  const Work work{.batch = shape.batch,
                  .positions = shape.positions,
                  .start = shape.at,
                  .cache_element_bytes = info(cache).block_bytes};
  Work logits = work;
  logits.positions = 1;
  const PassParts parts = model.entry().parts(work, logits);
  std::vector<ProfileComponent> costs;
  const auto add = [&](std::size_t layer, const PassPart& part) {
    costs.push_back({trace_id(layer, part.name), 0.0, part.cost.bytes(), part.cost.flops});
  };
  const auto in_block = [](const PassPart& part) { return part.in_block; };
  const auto first = std::find_if(parts.begin(), parts.end(), in_block);
  const auto last = std::find_if_not(first, parts.end(), in_block);
  for (auto part = parts.begin(); part != first; ++part) add(no_layer, *part);
  for (std::size_t layer = 0; layer < model.architecture().n_layers; ++layer) {
    for (auto part = first; part != last; ++part) add(layer, *part);
  }
  for (auto part = last; part != parts.end(); ++part) add(no_layer, *part);

  std::map<std::string_view, ProfileComponent*> by_id;
  for (ProfileComponent& c : costs) by_id[c.id] = &c;
  for (const TensorSlot& slot : model.weights().ranks.front().slots) {
    const auto found = by_id.find(slot.path);
    if (found == by_id.end() || slot.vector) continue;
    found->second->bytes =
        predicted_weight_bytes(slot.view->type, slot.embedding ? work.rows() : slot.out, slot.in);
    if (!slot.embedding) found->second->weights = slot.view->type;
  }
  return costs;
}

/// The profile of passes of one shape that `times` saw `session` make, each with the logits of
/// every sequence's last token. ArgumentError for a model that several ranks run.
inline Profile make_profile(const Session& session, const PassTimes& times, const PassShape& shape,
                            const Ceilings& ceilings) {
  const Model& model = session.model();
  const SessionOptions& o = session.options();
  if (model.ranks() > 1) {
    raise<ArgumentError>("profile: times are one rank's and costs the whole model's; found " +
                         std::to_string(model.ranks()) + " ranks");
  }
  Profile p;
  p.model = model.name();
  p.target = model.target();
  p.cache = name(o.cache);
  p.activations = name(o.activations);
  p.mode = name(o.mode);
  p.threads = model.executor().concurrency();
  p.shape = shape;
  for (const ElementType type : model.weights().types) p.weights.emplace_back(name(type));
  p.ceilings = ceilings;
  p.passes = times.passes();
  p.seconds = median(times.pass_seconds());
  std::map<std::string, ProfileComponent> costs;
  for (ProfileComponent& c : pass_costs(model, o.cache, shape)) costs.emplace(c.id, c);
  for (const PassTimes::Component& c : times.components()) {
    ProfileComponent& component = costs[c.id()];
    component.id = c.id();
    component.seconds = median(c.seconds);
    p.components.push_back(component);
  }
  return p;
}

/// {"read_bytes_per_second", "fma_flops_per_second", "int8_ops_per_second",
/// "signed_int8_ops_per_second"}
inline nlohmann::ordered_json to_json(const Ceilings& c) {
  return {{"read_bytes_per_second", c.read_bytes_per_second},
          {"fma_flops_per_second", c.fma_flops_per_second},
          {"int8_ops_per_second", c.int8_ops_per_second},
          {"signed_int8_ops_per_second", c.signed_int8_ops_per_second}};
}

/// The file format above.
inline nlohmann::ordered_json to_json(const Profile& p) {
  nlohmann::ordered_json components = nlohmann::ordered_json::array();
  for (const ProfileComponent& c : p.components) {
    components.push_back(
        {{"id", c.id}, {"seconds", c.seconds}, {"bytes", c.bytes}, {"flops", c.flops}});
  }
  return {{"format", "quipu-profile-1"},
          {"model", p.model},
          {"target", p.target},
          {"threads", p.threads},
          {"batch", p.shape.batch},
          {"positions", p.shape.positions},
          {"at", p.shape.at},
          {"weights", p.weights},
          {"cache", p.cache},
          {"activations", p.activations},
          {"mode", p.mode},
          {"ceilings", to_json(p.ceilings)},
          {"passes", p.passes},
          {"seconds", p.seconds},
          {"components", components}};
}

}  // namespace quipu
