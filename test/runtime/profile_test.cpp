// The profile hook and the times gathered through it.
#include "quipu/runtime/profile.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace quipu {
namespace {

TEST(ProfileHook, DoesNothingWhenOff) {
  const ProfileHook off;
  EXPECT_FALSE(off);
  off.start();
  off.lap(0, "attention.wq");
}

TEST(PassTimes, KeepsComponentsInOrderWithOneTimeAPass) {
  PassTimes times;
  const ProfileHook hook = times.hook();
  EXPECT_TRUE(hook);
  for (int pass = 0; pass < 3; ++pass) {
    hook.start();
    hook.lap(no_layer, "tok_embeddings");
    for (std::size_t layer : {0u, 1u}) hook.lap(layer, "attention.wq");
    hook.lap(no_layer, "output");
  }
  ASSERT_EQ(times.passes(), 3u);
  ASSERT_EQ(times.components().size(), 4u);
  EXPECT_EQ(times.components()[0].id(), "tok_embeddings");
  EXPECT_EQ(times.components()[2].id(), "layers.1.attention.wq");
  for (const auto& c : times.components()) EXPECT_EQ(c.seconds.size(), 3u) << c.id();
}

TEST(PassTimes, AComponentHasTheTimeSinceTheLastCall) {
  using namespace std::chrono_literals;
  PassTimes times;
  const ProfileHook hook = times.hook();
  std::this_thread::sleep_for(20ms);  // before the pass: nobody's
  hook.start();
  hook.lap(0, "short");
  std::this_thread::sleep_for(20ms);
  hook.lap(0, "long");
  hook.lap(0, "short");  // a second end adds to the first
  std::this_thread::sleep_for(20ms);
  hook.lap(0, "long");
  ASSERT_EQ(times.components().size(), 2u);
  EXPECT_LT(times.components()[0].seconds[0], 0.015);
  EXPECT_GE(times.components()[1].seconds[0], 0.040);
}

TEST(PassTimes, AComponentMissingFromAPassHasNoTimeThere) {
  PassTimes times;
  const ProfileHook hook = times.hook();
  hook.start();
  hook.lap(0, "a");
  hook.start();
  hook.start();
  hook.lap(0, "b");
  hook.lap(0, "a");
  ASSERT_EQ(times.components().size(), 2u);
  EXPECT_EQ(times.components()[0].seconds.size(), 3u);
  EXPECT_EQ(times.components()[0].seconds[1], 0.0);
  EXPECT_EQ(times.components()[1].seconds.size(), 3u);
}

}  // namespace
}  // namespace quipu
