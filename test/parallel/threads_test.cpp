// Ranks that are threads: what they do together, in the order of ranks, and that a rank which fails
// leaves nobody waiting.
#include "quipu/parallel/threads.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "quipu/parallel/serial.hpp"
#include "quipu/runtime/thread_pool.hpp"
#include "support/compare.hpp"

namespace quipu_test {
namespace {

using quipu::CommunicatorRef;
using quipu::RankThreads;

/// Values whose float32 sum depends on the order: what rank r has at i.
float value(std::size_t rank, std::size_t i) {
  const float large = rank == 1 ? 1e8f : rank == 2 ? -1e8f : 0.0f;
  return large + 0.37f * static_cast<float>((i * 7 + rank * 13) % 101);
}

TEST(RankThreads, SumInTheOrderOfRanksWithTheSameBitsEverywhere) {
  for (const std::size_t ranks : {1u, 2u, 3u, 4u, 8u}) {
    RankThreads threads(ranks);
    for (const std::size_t count : {0u, 1u, 3u, 1000u, 5003u}) {
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] = value(0, i);
        for (std::size_t r = 1; r < ranks; ++r) expected[i] += value(r, i);
      }
      std::vector<std::vector<float>> data(ranks);
      threads.run([&](std::size_t rank) {
        const CommunicatorRef all(threads.communicator(rank));
        ASSERT_EQ(all.rank(), rank);
        ASSERT_EQ(all.ranks(), ranks);
        for (std::size_t i = 0; i < count; ++i) data[rank].push_back(value(rank, i));
        all.all_reduce_sum(data[rank].data(), count);
      });
      for (const auto& d : data) EXPECT_TRUE(same_bits("sum", d, expected));
    }
  }
}

TEST(RankThreads, GatherColumnsIntoSharedAndOwnMemory) {
  constexpr std::size_t ranks = 3, rows = 5, width = 7;
  RankThreads threads(ranks);
  std::vector<float> expected(rows * ranks * width);
  std::iota(expected.begin(), expected.end(), 1.0f);
  for (const bool shared : {true, false}) {
    std::vector<std::vector<float>> own(ranks, std::vector<float>(expected.size()));
    threads.run([&](std::size_t rank) {
      float* whole = own[shared ? 0 : rank].data();
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t at = (row * ranks + rank) * width;
        std::copy_n(expected.data() + at, width, whole + at);
      }
      threads.communicator(rank).all_gather_columns(whole, rows, width);
    });
    for (std::size_t rank = 0; rank < (shared ? 1 : ranks); ++rank) {
      EXPECT_TRUE(same_bits("gathered", own[rank], expected));
    }
  }
}

TEST(RankThreads, BroadcastFromRankZero) {
  RankThreads threads(4);
  std::vector<int> got(4);
  threads.run([&](std::size_t rank) {
    int x = rank == 0 ? 42 : -1;
    threads.communicator(rank).broadcast(&x, sizeof x);
    got[rank] = x;
  });
  EXPECT_EQ(got, std::vector<int>(4, 42));
}

TEST(RankThreads, MeetManyTimesWithMoreRanksThanProcessors) {
  constexpr std::size_t ranks = 9;
  RankThreads threads(ranks);
  std::vector<float> sums(ranks);
  threads.run([&](std::size_t rank) {
    float x = 0;
    for (int i = 0; i < 300; ++i) {
      x = x / ranks + 1;
      threads.communicator(rank).all_reduce_sum(&x, 1);
    }
    sums[rank] = x;
  });
  for (const float x : sums) EXPECT_EQ(x, sums[0]);
}

TEST(RankThreads, AFailureReachesTheCallerAndLeavesNobodyWaiting) {
  constexpr std::size_t ranks = 4;
  RankThreads threads(ranks);
  for (std::size_t guilty = 0; guilty < ranks; ++guilty) {
    for (const int meetings : {0, 1, 5}) {
      std::atomic<int> told{0};
      std::string message;
      try {
        threads.run([&](std::size_t rank) {
          float x = 1;
          for (int i = 0; i < 10; ++i) {
            if (rank == guilty && i == meetings) quipu::raise<quipu::ArgumentError>("the cause");
            try {
              threads.communicator(rank).all_reduce_sum(&x, 1);
            } catch (const quipu::ParallelError&) {
              ++told;
              throw;
            }
          }
        });
      } catch (const quipu::ArgumentError& error) {
        message = error.what();
      }
      EXPECT_EQ(message, "the cause");
      EXPECT_EQ(told, 3);
    }
    // And the next run is as if nothing had been.
    float x = 0;
    threads.run([&](std::size_t rank) {
      float own = static_cast<float>(rank);
      threads.communicator(rank).all_reduce_sum(&own, 1);
      if (rank == 0) x = own;
    });
    EXPECT_EQ(x, 6);
  }
}

TEST(RankThreads, EachRankMayHaveAPoolOfItsOwn) {
  RankThreads threads(2);
  quipu::ThreadPool first(2), second(2);
  quipu::ThreadPool* pools[] = {&first, &second};
  std::vector<float> sums(2);
  threads.run([&](std::size_t rank) {
    for (int i = 0; i < 50; ++i) {
      std::atomic<int> tasks{0};
      pools[rank]->run(8, [&](std::size_t, std::size_t) { ++tasks; });
      float x = static_cast<float>(tasks.load());
      threads.communicator(rank).all_reduce_sum(&x, 1);
      sums[rank] += x;
    }
  });
  EXPECT_EQ(sums, std::vector<float>(2, 800));
}

TEST(SerialCommunicator, ChangesNothing) {
  quipu::SerialCommunicator alone;
  const CommunicatorRef all(alone), none;
  float x = 3;
  for (const CommunicatorRef& c : {all, none}) {
    EXPECT_EQ(c.rank(), 0u);
    EXPECT_EQ(c.ranks(), 1u);
    c.all_reduce_sum(&x, 1);
    c.all_gather_columns(&x, 1, 1);
    c.broadcast(&x, sizeof x);
  }
  EXPECT_EQ(x, 3);
}

}  // namespace
}  // namespace quipu_test
