// What the tests of checkpoint/ share: building files byte by byte, damaging them, and saying what
// the error must name.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "quipu/shape/error.hpp"
#include "support/folder.hpp"
#include "support/message_of.hpp"

namespace quipu::test {

using quipu_test::contents;
using quipu_test::Folder;

/// Appends the bytes of a number, little-endian.
template <class T>
void put(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

/// Overwrites the bytes at an offset.
template <class T>
void patch(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// f() throws E whose message has every one of the words.
template <class E, class F>
void expect_error(F&& f, std::initializer_list<std::string_view> words) {
  const std::string message = quipu_test::message_of<E>(f);
  for (const std::string_view word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "\"" << word << "\" is not in: " << message;
  }
}

/// Every shorter form of the file is refused (an exception, never a crash).
template <class F>
void expect_truncation_refused(const std::string& whole, F&& parse) {
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A buffer of exactly that size, so that AddressSanitizer sees a read past its end.
    const std::unique_ptr<char[]> cut(new char[size]);
    std::memcpy(cut.get(), whole.data(), size);
    EXPECT_THROW(parse(std::as_bytes(std::span(cut.get(), size))), Error) << "cut to " << size;
  }
}

/// Random damage from a fixed seed: parsing succeeds or throws, and whatever it then says of the
/// tensors lies inside the buffer. `parse` returns the records.
template <class F>
void fuzz(const std::string& whole, std::size_t rounds, F&& parse) {
  std::mt19937_64 random(20240418);
  volatile unsigned sink = 0;  // so that the reads happen
  for (std::size_t round = 0; round < rounds; ++round) {
    std::string damaged = whole;
    const std::size_t changes = 1 + random() % 4;
    for (std::size_t i = 0; i < changes; ++i) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
          break;
        case 2:
          damaged[at] = static_cast<char>(random() % 2 == 0 ? 0xff : 0x00);
          break;
        default:
          damaged.erase(at, 1 + random() % 3);
          break;
      }
      if (damaged.empty()) damaged = "x";
    }
    const std::unique_ptr<char[]> copy(new char[damaged.size()]);
    std::memcpy(copy.get(), damaged.data(), damaged.size());
    try {
      unsigned sum = 0;
      for (const auto& tensor : parse(std::as_bytes(std::span(copy.get(), damaged.size())))) {
        for (std::size_t i = 0; i < tensor.bytes; ++i) {
          sum += std::to_integer<unsigned>(tensor.data[i]);
        }
      }
      sink = sum;
    } catch (const Error&) {
      // Refused: as good as accepted, as long as nothing was read that is not there.
    }
  }
  (void)sink;
}

}  // namespace quipu::test
