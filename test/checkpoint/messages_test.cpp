// What a file says, in messages: names and values may be any bytes, of any length.
#include "quipu/checkpoint/messages.hpp"

#include <string>

#include "damage.hpp"
#include "quipu/checkpoint/json_document.hpp"

namespace quipu {
namespace {

std::string quoted(std::string_view text, std::size_t longest = 96) {
  return detail::in_quotes(text, longest);
}

TEST(Messages, ControlCharactersAreShownAndNotObeyed) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f\t"), "a\\x1b[2Jb\\x0a\\x7f\\x09");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // U+009B is ESC [ in one character
  EXPECT_EQ(printable("\u00a0\u0141\u4e2d"), "\u00a0\u0141\u4e2d");
  EXPECT_EQ(printable("\xc2"), "\xc2");  // cut UTF-8 is nobody's command
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(quoted("a\"b\\"), "\"a\\x22b\\x5c\"");
}

TEST(Messages, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(quoted("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(quoted("abcdefg", 6), "\"abcdef...\" (7 bytes)");
  EXPECT_EQ(quoted("abcd\u4e2d", 6), "\"abcd...\" (7 bytes)");
  EXPECT_EQ(first_bytes("\u4e2d", 2), "");
  EXPECT_EQ(first_bytes("\u4e2d", 3), "\u4e2d");
  EXPECT_EQ(first_bytes("a\x80\x80\x80\x80\x80\x80", 5), "a\x80\x80\x80\x80");  // not UTF-8
}

// Whatever a message quotes, and however the place that raises it wrote that down.
TEST(Messages, AnErrorIsOneLineOfNoMoreThanAScreen) {
  const auto message = [](const std::string& text) {
    return quipu_test::message_of<FormatError>([&] { raise<FormatError>(text); });
  };
  EXPECT_EQ(message("f: tensor \x1b]0;title\x07\nf: all is well"),
            "f: tensor \\x1b]0;title\\x07\\x0af: all is well");
  EXPECT_EQ(message("f: tensor " + std::string(1 << 20, 'n')).size(), 4096u + 3);
}

TEST(Messages, OfAStringInJsonAsMuchAsShowsWhichItIs) {
  const JsonValue value =
      parse_json(R"(["\u001b[31mred", ")" + std::string(1000, 'x') + R"("])", "f.json");
  EXPECT_EQ((*value.array())[0].describe(), "the string \"\\x1b[31mred\"");
  EXPECT_EQ((*value.array())[1].describe(),
            "the string \"" + std::string(40, 'x') + "...\" (1000 bytes)");
}

}  // namespace
}  // namespace quipu
