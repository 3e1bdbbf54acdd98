// The tiny model T1 of the golden data, loaded through the engine, for tests of generation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "quipu/engine/session.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"
#include "test_engine.hpp"

namespace quipu_test {

inline constexpr std::size_t tiny_vocabulary = 512;

inline quipu::Model load_tiny(std::size_t threads = 2, const std::string& which = "T1",
                              bool pack = true) {
  quipu::LoadOptions options;
  options.threads = threads;
  options.pack = pack;
  return test_engine::engine().load(find_golden("models/" + which + "/hf-f32"), options);
}

/// Some tokens of T1's vocabulary, other ones for each seed.
inline std::vector<quipu::TokenId> some_tokens(std::size_t count, std::uint64_t seed) {
  std::vector<quipu::TokenId> tokens;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t z = (seed * 1000 + i + 1) * 0x9E3779B97F4A7C15u;
    tokens.push_back(static_cast<quipu::TokenId>((z >> 40) % tiny_vocabulary));
  }
  return tokens;
}

}  // namespace quipu_test
