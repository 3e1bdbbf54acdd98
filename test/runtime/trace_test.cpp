// The trace hook and the patterns that choose ids.
#include "quipu/runtime/trace.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using quipu::id_matches;

static_assert(id_matches("logits", "logits"));
static_assert(!id_matches("logits", "logit"));
static_assert(!id_matches("logit", "logits"));
static_assert(id_matches("layers.*.attention.probs", "layers.12.attention.probs"));
static_assert(!id_matches("layers.*.attention.probs", "layers.12.attention.probs_f32"));
static_assert(id_matches("layers.?.h", "layers.3.h"));
static_assert(!id_matches("layers.?.h", "layers.13.h"));
static_assert(id_matches("*.out", "layers.0.out"));
static_assert(id_matches("*", ""));
static_assert(id_matches("*a*b*", "xxaxxbxx"));
static_assert(!id_matches("*a*b*", "xxbxxaxx"));
static_assert(!id_matches("", "x"));
// Linear in effect: a pattern that would send a recursive matcher through 2^30 ways.
static_assert(!id_matches("*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));

struct Seen {
  std::vector<std::string> ids;
  std::string refused;
  float sum = 0;

  static void call(void* context, const quipu::TracedTensor& tensor) {
    auto& self = *static_cast<Seen*>(context);
    self.ids.emplace_back(tensor.id);
    for (std::size_t i = 0; i < tensor.elements(); ++i) self.sum += tensor.data[i];
  }
  static bool wants(void* context, std::string_view id) {
    return id != static_cast<Seen*>(context)->refused;
  }
};

TEST(Trace, ReportsIdsAndValues) {
  Seen seen;
  const quipu::TraceHook hook{&Seen::call, &seen, nullptr};
  const float data[] = {1, 2, 3, 4, 5, 6};
  hook(12, "attention.xq", data, {1, 2, 3, 1}, 3);
  hook(quipu::no_layer, "norm", data, {1, 1, 2, 1}, 3, quipu::ElementType::bf16);
  EXPECT_EQ(seen.ids, (std::vector<std::string>{"layers.12.attention.xq", "norm"}));
  EXPECT_EQ(seen.sum, 24.0f);
}

TEST(Trace, RefusedIdsAreNotReported) {
  Seen seen;
  seen.refused = "layers.0.attention.probs";
  const quipu::TraceHook hook{&Seen::call, &seen, &Seen::wants};
  const float data[] = {1};
  EXPECT_FALSE(hook.wanted(0, "attention.probs"));
  EXPECT_TRUE(hook.wanted(1, "attention.probs"));
  hook(0, "attention.probs", data, {1, 1, 1, 1}, 4);
  EXPECT_TRUE(seen.ids.empty());
}

TEST(Trace, OffDoesNothing) {
  const quipu::TraceHook hook;
  EXPECT_FALSE(hook);
  EXPECT_FALSE(hook.wanted(0, "h"));
  hook(0, "h", nullptr, {5, 5, 5, 5}, 4);
}

}  // namespace
