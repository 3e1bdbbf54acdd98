// What the tests of text/ share: rows of JSON lines, the golden folder, SHA-256, threads with a
// small stack, and where Llama 3's tokenizer.model and the SmolLM2 file are looked for.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "quipu/text/tokenizer.hpp"
#include "support/message_of.hpp"

namespace text_test {

using quipu_test::message_of;

using Json = nlohmann::ordered_json;

inline std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::string data_path(const std::string& name) {
  return std::string(QUIPU_TEST_DATA) + "/text/" + name;
}

/// The rows of a file of test data. Lines end with \n and nothing else.
inline std::vector<Json> rows(const std::string& name) {
  const auto all = read_file(data_path(name));
  std::vector<Json> out;
  if (!all.has_value()) {
    ADD_FAILURE() << "cannot read " << data_path(name);
    return out;
  }
  for (std::size_t at = 0; at < all->size();) {
    const std::size_t end = std::min(all->find('\n', at), all->size());
    if (end > at) out.push_back(Json::parse(all->substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

/// Llama 3's tokenizer.model, which is not part of the repository: in QUIPU_GOLDEN_DIR, or in
/// shared/golden beside the checkout.
inline std::optional<std::string> llama3_file() {
  std::vector<std::string> folders;
  if (const char* golden = std::getenv("QUIPU_GOLDEN_DIR")) folders.emplace_back(golden);
  folders.push_back(std::string(QUIPU_TEST_DATA) + "/../../../shared/golden");
  for (const std::string& folder : folders) {
    auto bytes = read_file(folder + "/tokenizer/llama3.tokenizer.model");
    if (bytes.has_value()) return bytes;
  }
  return std::nullopt;
}

/// The bytes that hexadecimal digits write.
inline std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

/// SHA-256 (FIPS 180-4), in hexadecimal digits.
inline std::string sha256(std::string message) {
  constexpr std::array<std::uint32_t, 64> k{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  std::array<std::uint32_t, 8> h{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  message.push_back(static_cast<char>(0x80));
  while (message.size() % 64 != 56) message.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    message.push_back(static_cast<char>((bits >> shift) & 0xFF));
  }
  for (std::size_t block = 0; block < message.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i) {
      w[i / 4] = (w[i / 4] << 8) | static_cast<unsigned char>(message[block + i]);
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15];
      const std::uint32_t b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto v = h;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t t1 = v[7] +
                               (std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25)) +
                               ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      const std::uint32_t t2 = (std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22)) +
                               ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
    }
    for (std::size_t i = 0; i < 8; ++i) h[i] += v[i];
  }
  std::string out;
  for (const std::uint32_t word : h) {
    for (int shift = 28; shift >= 0; shift -= 4)
      out.push_back("0123456789abcdef"[(word >> shift) & 15]);
  }
  return out;
}

/// The bytes of ids as little-endian 32-bit words.
inline std::string little_endian(const std::vector<quipu::TokenId>& ids) {
  std::string out;
  for (const quipu::TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      out.push_back(static_cast<char>((static_cast<std::uint32_t>(id) >> shift) & 0xFF));
    }
  }
  return out;
}

/// Runs f in a thread whose stack is 128 KiB, where a recursion per character ends in a crash.
/// Returns the seconds of processor time that it took: wall time would measure the machine's other
/// work as well.
inline double on_small_stack(const std::function<void()>& f) {
  struct Task {
    const std::function<void()>& f;
    double seconds = 0;
  } task{f};
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{128} << 10), 0);
  const auto run = [](void* given) -> void* {
    auto& mine = *static_cast<Task*>(given);
    mine.f();
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    mine.seconds = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    return nullptr;
  };
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, run, &task);
  EXPECT_EQ(failed, 0);
  if (failed == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return task.seconds;
}

/// Whether this build is slowed down by a sanitizer or by the lack of optimisation, so that limits
/// of time mean nothing.
constexpr bool slow_build() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

/// `unit` a million times over; fewer in a slow build, whose point is not the time.
inline std::string many(const std::string& unit) {
  std::string text;
  const int copies = slow_build() ? 50'000 : 1'000'000;
  for (int i = 0; i < copies; ++i) text += unit;
  return text;
}

}  // namespace text_test
