// The profile hook: told where each component of a forward pass ends, so that whoever keeps it can
// say where the time goes. Costs one test of a pointer a component when off.
//
// Siblings: runtime/trace.hpp (ids), engine/profile.hpp (a profile with bytes and FLOPs),
// test/runtime/profile_test.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/runtime/trace.hpp"

namespace quipu {

/// Function and context that are told the end of each component's work; a default-made hook is off.
/// Two components are none: pass_start, and pass_end after the last. The call comes from the thread
/// that runs the pass, between its parallel regions; `component` lives as long as the program.
/// While a hook is on, products that share a parallel region run one after the other, so that each
/// has its own time.
struct ProfileHook {
  static constexpr std::string_view pass_start = "", pass_end = "pass";

  void (*call)(void* context, std::size_t layer, std::string_view component) = nullptr;
  void* context = nullptr;

  explicit operator bool() const { return call != nullptr; }

  /// A pass starts here.
  void start() const {
    if (call != nullptr) call(context, no_layer, pass_start);
  }
  /// The pass ends here: what came after the last component is nobody's.
  void finish() const {
    if (call != nullptr) call(context, no_layer, pass_end);
  }
  /// What was done since the last call was this component's.
  void lap(std::size_t layer, std::string_view component) const {
    if (call != nullptr) call(context, layer, component);
  }
};

/// Times of the components of passes of one kind, gathered through its hook. A component that ends
/// several times in a pass gets the sum.
class PassTimes {
 public:
  using Clock = std::chrono::steady_clock;
  struct Component {
    std::size_t layer;  ///< no_layer outside the blocks
    std::string_view name;
    std::vector<double> seconds;  ///< one a pass

    std::string id() const { return trace_id(layer, name); }
  };

  /// The hook that fills in this object, which must stay where it is while the hook is used.
  ProfileHook hook() {
    return {[](void* self, std::size_t layer, std::string_view component) {
              static_cast<PassTimes*>(self)->note(layer, component);
            },
            this};
  }

  /// Passes started.
  std::size_t passes() const { return passes_; }
  /// Of the passes that ended, from start to end.
  const std::vector<double>& pass_seconds() const { return pass_seconds_; }
  /// In the order in which they ended in the first pass.
  const std::vector<Component>& components() const { return components_; }

 private:
  void note(std::size_t layer, std::string_view component) {
    const Clock::time_point now = Clock::now();
    if (component == ProfileHook::pass_start) {
      ++passes_;
      next_ = 0;
      start_ = now;
    } else if (component == ProfileHook::pass_end) {
      pass_seconds_.push_back(std::chrono::duration<double>(now - start_).count());
    } else {
      Component& c = at(layer, component);
      c.seconds.resize(passes_, 0.0);
      c.seconds.back() += std::chrono::duration<double>(now - last_).count();
    }
    last_ = Clock::now();  // what this call took is nobody's
  }

  // Passes of one kind end their components in one order: the next is nearly always the right one.
  Component& at(std::size_t layer, std::string_view name) {
    const auto is = [&](const Component& c) { return c.layer == layer && c.name == name; };
    if (next_ < components_.size() && is(components_[next_])) return components_[next_++];
    const auto found = std::find_if(components_.begin(), components_.end(), is);
    if (found != components_.end()) {
      next_ = static_cast<std::size_t>(found - components_.begin()) + 1;
      return *found;
    }
    components_.push_back({layer, name, {}});
    next_ = components_.size();
    return components_.back();
  }

  std::vector<Component> components_;
  std::size_t passes_ = 0, next_ = 0;
  std::vector<double> pass_seconds_;
  Clock::time_point start_{}, last_{};
};

}  // namespace quipu
