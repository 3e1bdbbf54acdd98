// The trace hook: sees every named tensor of a forward pass. Costs one test of a pointer when off.
//
// Siblings: test/runtime/trace_test.cpp.
// Ids are those of the golden data and of the atlas: "layers.0.attention.xq_rope", "norm".
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "quipu/shape/element_type.hpp"

namespace quipu {

/// One tensor as the hook sees it. Pointer and id are valid during the call only.
struct TracedTensor {
  std::string_view id;
  const float* data = nullptr;           ///< row-major, dense
  std::array<std::size_t, 4> extents{};  ///< outermost first; those from `rank` on are 1
  std::size_t rank = 0;
  ElementType element = ElementType::f32;  ///< bf16: every value is a bf16 value

  constexpr std::size_t elements() const {
    return extents[0] * extents[1] * extents[2] * extents[3];
  }
};

/// A tensor that belongs to no layer.
inline constexpr std::size_t no_layer = static_cast<std::size_t>(-1);

/// The id of a tensor: "layers.N." before the name if it belongs to a layer.
inline std::string trace_id(std::size_t layer, std::string_view name) {
  if (layer == no_layer) return std::string(name);
  return "layers." + std::to_string(layer) + "." + std::string(name);
}

/// Function and context that receive tensors; a default-made hook is off. The call comes from the
/// thread that runs the forward pass, between its parallel regions. `wants`, if given, is asked
/// first, so that tensors which exist only for a trace are made only on demand.
struct TraceHook {
  void (*call)(void* context, const TracedTensor& tensor) = nullptr;
  void* context = nullptr;
  bool (*wants)(void* context, std::string_view id) = nullptr;

  explicit operator bool() const { return call != nullptr; }

  /// True if the hook is on and has not refused this id.
  bool wanted(std::size_t layer, std::string_view name) const {
    if (call == nullptr) return false;
    return wants == nullptr || wants(context, trace_id(layer, name));
  }

  /// Reports a tensor. The id is put together only if the hook is on.
  void operator()(std::size_t layer, std::string_view name, const float* data,
                  std::array<std::size_t, 4> extents, std::size_t rank,
                  ElementType element = ElementType::f32) const {
    if (call == nullptr) return;
    const std::string id = trace_id(layer, name);
    if (wants != nullptr && !wants(context, id)) return;
    call(context, TracedTensor{id, data, extents, rank, element});
  }
};

/// True if an id matches a pattern: '*' stands for any run of characters, dots included, '?' for
/// one; everything else for itself. "layers.*.attention.probs", "*.out", "logits".
constexpr bool id_matches(std::string_view pattern, std::string_view id) {
  // Greedy with one point of return: a later '*' makes an earlier one's choice irrelevant.
  std::size_t p = 0;
  std::size_t i = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (i < id.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = i;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == id[i])) {
      ++p;
      ++i;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace quipu
