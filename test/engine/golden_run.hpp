// Running a session over the phases of a golden file and handing each traced tensor to a check.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "quipu/engine/session.hpp"
#include "support/golden.hpp"
#include "support/safetensors.hpp"

namespace quipu_test {

/// `layers.0.attention.xq` to the golden file's `layers.0/attention/xq`.
inline std::string golden_name(std::string id) {
  const std::size_t layer_end = id.starts_with("layers.") ? id.find('.', 7) : 0;
  std::replace(id.begin() + static_cast<std::ptrdiff_t>(layer_end), id.end(), '.', '/');
  return id;
}

/// check(phase, id, actual, expected) for each tensor of the golden file; returns the names of
/// those that no trace reported.
using Check = std::function<void(const std::string& phase, const std::string& id,
                                 std::span<const float> actual, std::span<const float> expected)>;

inline std::set<std::string> run_golden(const quipu::Model& model, quipu::SessionOptions options,
                                        const TensorFile& golden, const Check& check) {
  options.batch = 2;
  options.capacity = 512;
  options.allow_gaps = true;
  quipu::Session session(model, options);
  std::set<std::string> missing;
  for (const auto& [name, tensor] : golden.all()) missing.insert(name);
  struct Context {
    const TensorFile& golden;
    const Check& check;
    std::set<std::string>& missing;
    std::string phase;
  } context{golden, check, missing, ""};
  quipu::TraceHook hook;
  hook.context = &context;
  hook.call = [](void* opaque, const quipu::TracedTensor& tensor) {
    auto& c = *static_cast<Context*>(opaque);
    const std::string id(tensor.id);
    const std::string name = c.phase + "/" + golden_name(id);
    if (!c.golden.has(name)) return;
    c.missing.erase(name);
    const std::vector<std::size_t> extents(
        tensor.extents.begin(), tensor.extents.begin() + static_cast<std::ptrdiff_t>(tensor.rank));
    EXPECT_EQ(extents, c.golden.at(name).shape) << name;
    c.check(c.phase, id, {tensor.data, tensor.elements()}, c.golden.at(name).values);
  };
  session.set_trace(hook);
  for (const std::string phase : {"prefill", "decode0", "decode1", "decode2", "chunk", "far"}) {
    if (!golden.has(phase + "/tokens")) continue;
    context.phase = phase;
    missing.erase(phase + "/tokens");
    missing.erase(phase + "/start_pos");
    const auto& wide = golden.at(phase + "/tokens").integers;
    const std::vector<quipu::TokenId> tokens(wide.begin(), wide.end());
    const auto start = static_cast<std::size_t>(golden.at(phase + "/start_pos").integers.at(0));
    const std::size_t each = tokens.size() / 2;
    const std::span<const quipu::TokenId> all(tokens);
    const quipu::Feed feeds[] = {{0, all.first(each), start}, {1, all.last(each), start}};
    std::vector<float> logits(tokens.size() * model.architecture().vocab_size);
    session.forward(feeds, quipu::LogitsWanted::all, logits);
  }
  return missing;
}

}  // namespace quipu_test
