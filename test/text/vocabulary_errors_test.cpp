// Vocabularies that are none: each is refused by name, none crashes.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/text/tiktoken.hpp"
#include "quipu/text/tokenizer.hpp"
#include "small_vocabularies.hpp"
#include "support.hpp"

namespace {

using quipu::FormatError;
using quipu::SpecialNames;
using quipu::Tokenizer;
using quipu::VocabularyData;
using text_test::message_of;
using text_test::small_vocabulary;

template <class Change>
std::string refusal(const std::string& file, Change&& change) {
  VocabularyData data = small_vocabulary(file, "smollm");
  data.source = "m.gguf";
  change(data);
  return message_of<FormatError>([&] { const Tokenizer tokenizer(data); });
}

TEST(VocabularyErrors, NameTheField) {
  const std::string bpe = "small_bpe.json";
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.tokens.clear(); }),
            "m.gguf: tokens: expected at least one token, found none");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.model = "bert"; }),
            "m.gguf: model: expected \"gpt2\", \"llama\" or \"tiktoken\", found \"bert\"");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.token_types.resize(5); }),
            "m.gguf: token types: expected one per token (604), found 5");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.token_types[4] = 9; }),
            "m.gguf: token types: token 4 has the type 9; known are 0 to 6");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.merges.clear(); }),
            "m.gguf: merges: expected a list of merges, found none");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.merges[3] = "ab"; }),
            "m.gguf: merges: merge 3 (\"ab\"): expected two tokens and a blank between");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.merges[3] = "zq xx"; }),
            "m.gguf: merges: merge 3 (\"zq xx\"): \"zq\" is not a token");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.bos = 604; }),
            "m.gguf: bos: id 604 is outside the vocabulary of 604");
  EXPECT_EQ(refusal(bpe, [](auto& d) { d.eom = -1; }),
            "m.gguf: eom: id -1 is outside the vocabulary of 604");
  EXPECT_TRUE(refusal(bpe, [](auto& d) { d.pre = "viking"; })
                  .starts_with("m.gguf: unknown pre-tokenizer \"viking\" (tokenizer.ggml.pre); "
                               "known are llama-bpe, "));
  const std::string spm = "small_spm.json";
  EXPECT_TRUE(refusal(spm, [](auto& d) {
                d.scores.pop_back();
              }).starts_with("m.gguf: scores: expected one per token ("));
  EXPECT_EQ(refusal(spm, [](auto& d) { d.scores[300] = std::numeric_limits<float>::quiet_NaN(); }),
            "m.gguf: scores: token 300 has the score NaN");
  EXPECT_EQ(refusal(spm, [](auto& d) { d.tokens[5] = "<0xG0>"; }),
            "m.gguf: tokens: token 5 is a byte, but its text is \"<0xG0>\"; expected one like "
            "\"<0x0A>\"");
}

TEST(VocabularyErrors, IdsOutsideAreNamed) {
  const Tokenizer tokenizer(small_vocabulary("small_bpe.json", "smollm"));
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { tokenizer.piece(604); }),
            "small_bpe.json: token id 604 is outside the vocabulary of 604");
  const std::vector<quipu::TokenId> ids{1, -7};
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { tokenizer.decode(ids); }),
            "small_bpe.json: token id -7 is outside the vocabulary of 604");
}

TEST(VocabularyErrors, BosThatDoesNotExist) {
  VocabularyData data = small_vocabulary("small_bpe.json", "smollm");
  data.bos.reset();
  const Tokenizer tokenizer(data);
  quipu::EncodeOptions options;
  options.bos = true;
  EXPECT_EQ(message_of<quipu::ArgumentError>([&] { tokenizer.encode("a", options); }),
            "small_bpe.json: a begin-of-text token was asked for, but there is none");
}

std::string tiktoken_refusal(std::string_view bytes) {
  return message_of<FormatError>(
      [&] { quipu::read_tiktoken(bytes, SpecialNames::llama3, "t.model"); });
}

TEST(Tiktoken, ReadsLines) {
  // "a", "b", "ab", out of order, with both kinds of line ends.
  const auto data =
      quipu::read_tiktoken("Yg== 1\nYQ== 0\r\n\nYWI= 2", SpecialNames::llama3_1, "t.model");
  EXPECT_EQ(data.tokens.size(), 3U + 256U);
  const Tokenizer tokenizer(data);
  EXPECT_EQ(tokenizer.encode("aabb"), (std::vector<quipu::TokenId>{0, 2, 1}));
  EXPECT_EQ(tokenizer.special("<|eom_id|>"), 3 + 8);
  EXPECT_FALSE(tokenizer.has_every_byte());
}

TEST(Tiktoken, NamesTheLine) {
  EXPECT_EQ(tiktoken_refusal(""), "t.model: no tokens");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg==1"),
            "t.model, line 2: expected \"base64 rank\", found no blank");
  EXPECT_EQ(tiktoken_refusal("YQ= 0"), "t.model, line 1: \"YQ=\" is not base64");
  EXPECT_EQ(tiktoken_refusal("YR== 0"), "t.model, line 1: \"YR==\" is not base64");
  EXPECT_EQ(tiktoken_refusal("Y!== 0"), "t.model, line 1: \"Y!==\" is not base64");
  EXPECT_EQ(tiktoken_refusal("==== 0"), "t.model, line 1: \"====\" is not base64");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg== x"), "t.model, line 2: \"x\" is not a rank");
  EXPECT_EQ(tiktoken_refusal("YQ== -1"), "t.model, line 1: \"-1\" is not a rank");
  EXPECT_EQ(tiktoken_refusal("YQ== 99999999999999999999"),
            "t.model, line 1: \"99999999999999999999\" is not a rank");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg== 7"),
            "t.model, line 2: rank 7 in a file of 2 lines: ranks must have no gap");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg== 0"), "t.model, line 2: rank 0 is given twice");
  EXPECT_EQ(tiktoken_refusal("YQ== 0\nYg== 2\n"), "t.model: 2 tokens, but rank 1 is missing");
  EXPECT_EQ(tiktoken_refusal(std::string_view("\0\xFF\x80 0", 5)).substr(0, 15), "t.model, line 1");
}

}  // namespace
