// Scratch plans and arenas: offsets, sharing, and that what is allocated equals the plan.
#include "quipu/runtime/arena.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace {

struct TwoPieces {
  quipu::ArenaPlan plan;
  quipu::ArenaSlot<float> a = plan.add_array<float>(17);  // 68 bytes: two lines
  quipu::ArenaSlot<std::int8_t> b = plan.add_array<std::int8_t>(64);
};
constexpr TwoPieces kPieces;
static_assert(kPieces.a.offset == 0 && kPieces.b.offset == 128);
static_assert(kPieces.plan.total() == 192);

constexpr std::size_t shared_total() {
  quipu::ArenaPlan plan;
  plan.add(64);
  const std::size_t mark = plan.mark();
  plan.add(1000);
  plan.rewind(mark);
  plan.add(200);
  return plan.total();
}
static_assert(shared_total() == 64 + 1024);

TEST(Arena, AllocatesThePlanZeroedAndAligned) {
  const quipu::Arena arena(kPieces.plan);
  EXPECT_EQ(arena.bytes_total(), kPieces.plan.total());
  float* a = arena.at(kPieces.a);
  std::int8_t* b = arena.at(kPieces.b);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<char*>(b) - reinterpret_cast<char*>(a), 128);
  for (std::size_t i = 0; i < 17; ++i) EXPECT_EQ(a[i], 0.0f);
  a[16] = 1;
  b[63] = 1;
}

TEST(Arena, EmptyPlan) { EXPECT_EQ(quipu::Arena(quipu::ArenaPlan()).bytes_total(), 0u); }

TEST(Arena, MovesKeepTheMemory) {
  quipu::Arena first(kPieces.plan);
  float* a = first.at(kPieces.a);
  quipu::Arena second = std::move(first);
  EXPECT_EQ(second.at(kPieces.a), a);
}

TEST(Arena, RefusesAForeignSlot) {
  const quipu::Arena arena(kPieces.plan);
  EXPECT_THROW(arena.at(quipu::ArenaSlot<float>{128, 17}), quipu::ArgumentError);
  EXPECT_THROW(arena.at(quipu::ArenaSlot<float>{256, 0}), quipu::ArgumentError);
}

TEST(Arena, SumsDoNotWrap) {
  quipu::ArenaPlan plan;
  plan.add(64);
  EXPECT_THROW(plan.add((std::numeric_limits<std::size_t>::max)() - 64), quipu::SizeError);
  EXPECT_THROW(plan.add_array<float>((std::numeric_limits<std::size_t>::max)() / 2),
               quipu::SizeError);
}

TEST(Arena, MemoryThatCannotBeHadIsANamedError) {
  quipu::ArenaPlan plan;
  plan.add(std::size_t{1} << 60);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the program at such a request";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
  GTEST_SKIP() << "sanitizers end the program at such a request";
#endif
#endif
  EXPECT_THROW(quipu::Arena{plan}, quipu::SizeError);
}

}  // namespace
