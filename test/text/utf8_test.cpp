// UTF-8 decoding and streaming: what Python makes of the same bytes, whole and in pieces.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "quipu/text/utf8.hpp"

namespace {

using quipu::Utf8Stream;

// bytes.decode(errors="replace") of CPython 3.11; R stands for U+FFFD.
TEST(Utf8, ReplacesEachMaximalIllFormedPrefix) {
  struct Case {
    std::string_view bytes;
    std::string_view shown;
  };
  for (const Case& c : {Case{"a\xFFz", "aRz"},
                        {"\xC3", "R"},
                        {"\xC3(", "R("},
                        {"\xE2\x82", "R"},
                        {"\xE2\x82(", "R("},
                        {"\xE2(\xAC", "R(R"},
                        {"\xF0\x9F\x98", "R"},
                        {"\xF0\x9F\x98z", "Rz"},
                        {"\xF0\x9F(\x98", "R(R"},
                        {"\xC0\xAF", "RR"},            // overlong
                        {"\xE0\x80\xAF", "RRR"},       // overlong
                        {"\xED\xA0\x80", "RRR"},       // a lone surrogate
                        {"\xF4\x90\x80\x80", "RRRR"},  // above U+10FFFF
                        {"\xF8\x88\x80\x80", "RRRR"},  // no lead byte
                        {"\x80\x80", "RR"},
                        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
                        {"\xEF\xBF\xBD", "\xEF\xBF\xBD"},
                        {std::string_view("a\0b", 3), std::string_view("a\0b", 3)},
                        {"", ""}}) {
    std::string expected;
    for (const char shown : c.shown) {
      if (shown == 'R') {
        quipu::append_utf8(expected, quipu::replacement_character);
      } else {
        expected.push_back(shown);
      }
    }
    EXPECT_EQ(quipu::to_text(c.bytes), expected);
    // However the bytes are cut, the text is the same, and nothing is shown too early.
    for (std::size_t cut = 0; cut <= c.bytes.size(); ++cut) {
      Utf8Stream stream;
      std::string shown = stream.push(c.bytes.substr(0, cut));
      EXPECT_TRUE(expected.starts_with(shown));
      shown += stream.push(c.bytes.substr(cut));
      shown += stream.flush();
      EXPECT_EQ(shown, expected);
    }
  }
}

TEST(Utf8, NeverShowsHalfACharacter) {
  const std::string_view emoji = "\xF0\x9F\xA6\x99";  // a llama
  for (const std::size_t first : {1U, 2U, 3U}) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push(emoji.substr(0, first)), "");
    EXPECT_EQ(stream.pending(), first);
    EXPECT_EQ(stream.push(emoji.substr(first)), emoji);
    EXPECT_EQ(stream.pending(), 0U);
    EXPECT_EQ(stream.flush(), "");
  }
}

TEST(Utf8, IsNewAfterFlush) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push("\xAC"), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push("ok"), "ok");
}

TEST(Utf8, CodePointsComeBack) {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    quipu::append_utf8(bytes, c);
    const quipu::CodePoint decoded = quipu::decode_code_point(bytes + "x");
    EXPECT_TRUE(decoded.valid);
    EXPECT_EQ(decoded.value, c);
    EXPECT_EQ(decoded.length, bytes.size());
  }
}

TEST(Utf8, RandomBytesInRandomPiecesAreThoseOfTheWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes;
    for (auto i = random() % 12; i != 0; --i) {
      const unsigned leads[] = {0xC3, 0xE2, 0xED, 0xF0, 0xF4, 0x80, 0x9F, 0xA0, 0x61};
      bytes.push_back(static_cast<char>(leads[random() % 9]));
    }
    Utf8Stream stream;
    std::string shown;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + random() % 3;
      shown += stream.push(std::string_view(bytes).substr(at, size));
      at += size;
    }
    shown += stream.flush();
    EXPECT_EQ(shown, quipu::to_text(bytes));
    EXPECT_EQ(quipu::valid_utf8_prefix(shown), shown.size());
  }
}

TEST(Utf8, StripsAsPythonDoes) {
  EXPECT_EQ(quipu::python_strip("  a b \n\n"), "a b");
  EXPECT_EQ(quipu::python_strip("\xE3\x80\x80\xC2\xA0x\xC2\x85\x1C"), "x");
  EXPECT_EQ(quipu::python_strip("\xE2\x80\x8Bx\xEF\xBB\xBF"), "\xE2\x80\x8Bx\xEF\xBB\xBF");
  EXPECT_EQ(quipu::python_strip(" \t "), "");
  EXPECT_EQ(quipu::python_strip(""), "");
  EXPECT_EQ(quipu::python_strip(" \xFF "), "\xFF");
}

}  // namespace
