// Our own small vocabularies against ids recorded from llama.cpp: both ways of merging and every
// family of pre-tokenizers, without any file of others (record_small.py).
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "quipu/text/tokenizer.hpp"
#include "small_vocabularies.hpp"
#include "support.hpp"

namespace {

using quipu::EncodeOptions;
using quipu::SpecialSet;
using quipu::TokenId;
using quipu::Tokenizer;
using text_test::Json;
using text_test::small_vocabulary;

EncodeOptions with_specials(bool special) {
  EncodeOptions options;
  if (special) options.allowed_special = SpecialSet::all();
  return options;
}

class ByPretokenizer : public testing::TestWithParam<const char*> {};

TEST_P(ByPretokenizer, GivesTheIdsOfLlamaCpp) {
  const Tokenizer tokenizer(small_vocabulary("small_bpe.json", GetParam()));
  EXPECT_TRUE(tokenizer.has_every_byte());
  std::size_t count = 0;
  for (const Json& row : text_test::rows("small_bpe_ids.jsonl")) {
    const std::string text = row["text"];
    const auto ids = tokenizer.encode(text, with_specials(row["special"]));
    EXPECT_EQ(ids, row["ids"][GetParam()].get<std::vector<TokenId>>()) << row["text"];
    EXPECT_EQ(tokenizer.decode(ids), text);
    ++count;
  }
  EXPECT_GE(count, 400U);
}

INSTANTIATE_TEST_SUITE_P(Text, ByPretokenizer,
                         testing::Values("llama-bpe", "smollm", "gpt-2", "qwen2", "default"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(SentencePiece, GivesTheIdsOfLlamaCpp) {
  const Tokenizer tokenizer(small_vocabulary("small_spm.json"));
  EXPECT_TRUE(tokenizer.has_every_byte());
  std::size_t count = 0;
  for (const Json& row : text_test::rows("small_spm_ids.jsonl")) {
    const std::string text = row["text"];
    const auto ids = tokenizer.encode(text, with_specials(row["special"]));
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << row["text"];
    if (text.find('<') == std::string::npos) {
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
    ++count;
  }
  EXPECT_GE(count, 400U);
}

// A vocabulary with a token across a space is merged as a whole, any other word by word: where the
// token does not occur the ids are the same.
TEST(SentencePiece, MergesAcrossSpacesWhereATokenDoes) {
  auto data = small_vocabulary("small_spm.json");
  const Tokenizer plain(data);
  const auto added = static_cast<TokenId>(data.tokens.size());
  data.tokens.emplace_back("s\xE2\x96\x81o");
  data.token_types.push_back(1);
  data.scores.push_back(1.0F);  // merges before all others
  const Tokenizer crossing(data);
  EncodeOptions bare;
  bare.space_prefix = false;
  EXPECT_TRUE(plain.encode("s o").size() > 1);
  EXPECT_FALSE(plain.encode("s o", bare) == std::vector<TokenId>{added});
  const auto ids = crossing.encode("cords of");
  EXPECT_EQ(crossing.decode(ids), "cords of");
  // "s" and " " and "o" never meet as such: " o" and "s" are no token together, as merging is by
  // pairs. The pair ("s", "\u2581o") is one.
  EXPECT_NE(std::find(ids.begin(), ids.end(), added), ids.end());
  for (const Json& row : text_test::rows("small_spm_ids.jsonl")) {
    const std::string text = row["text"];
    if (text.find("s o") != std::string::npos) continue;
    EXPECT_EQ(crossing.encode(text, with_specials(row["special"])),
              row["ids"].get<std::vector<TokenId>>());
  }
}

TEST(SentencePiece, PutsASpaceBeforeAndTakesItAway) {
  const Tokenizer tokenizer(small_vocabulary("small_spm.json"));
  EXPECT_TRUE(tokenizer.adds_bos());
  const auto ids = tokenizer.encode("the cord", tokenizer.prompt_options());
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(tokenizer.piece(ids[1]).front(), ' ');
  quipu::DecodeOptions text_only;
  text_only.control = false;
  EXPECT_EQ(tokenizer.decode(ids, text_only), "the cord");
  EXPECT_EQ(tokenizer.decode(ids), "<s>the cord");
  text_only.space_prefix = false;
  EXPECT_EQ(tokenizer.decode(ids, text_only), " the cord");
  EncodeOptions continued;
  continued.space_prefix = false;
  EXPECT_EQ(tokenizer.encode(" the cord", continued), tokenizer.encode("the cord"));
}

TEST(SentencePiece, WritesBytesWithoutATokenAsByteTokens) {
  const Tokenizer tokenizer(small_vocabulary("small_spm.json"));
  EncodeOptions bare;
  bare.space_prefix = false;
  const TokenId byte0 = 3;  // <0x00>
  EXPECT_EQ(tokenizer.encode("\xFF\xC3", bare), (std::vector<TokenId>{byte0 + 0xFF, byte0 + 0xC3}));
  EXPECT_EQ(tokenizer.kind(byte0), quipu::TokenKind::byte);
  EXPECT_EQ(tokenizer.piece(byte0 + 0xFF), "\xFF");
  // The text of a byte token is plain text, never that token.
  EXPECT_NE(tokenizer.encode("<0x41>", with_specials(true)),
            tokenizer.encode("A", with_specials(true)));
}

TEST(SentencePiece, TextOfAControlTokenStaysText) {
  const Tokenizer tokenizer(small_vocabulary("small_spm.json"));
  for (const std::string text : {"<s>", "</s>", "<unk>", "a</s>b"}) {
    const auto ids = tokenizer.encode(text);
    for (const TokenId id : ids) EXPECT_FALSE(tokenizer.is_control(id)) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST(ByteLevel, ControlTokensNeverComeFromPlainText) {
  const Tokenizer tokenizer(small_vocabulary("small_bpe.json", "smollm"));
  for (const std::string text : {"<|begin|>", "x<|end|>y", "<unk>", "<|im_end|>"}) {
    const auto ids = tokenizer.encode(text);
    for (const TokenId id : ids) EXPECT_FALSE(tokenizer.is_control(id)) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
  // User-defined tokens do, as files mean them to.
  EXPECT_EQ(tokenizer.encode("<knot>"), std::vector<TokenId>{tokenizer.special("<knot>").value()});
  // Only what is listed becomes a token.
  EncodeOptions listed;
  listed.allowed_special = SpecialSet::listed({"<|end|>"});
  const auto ids = tokenizer.encode("<|begin|><|end|>", listed);
  EXPECT_EQ(ids.back(), 1);
  EXPECT_NE(ids.front(), 0);
}

TEST(ByteLevel, AddsBosAndEosOnlyWhenAsked) {
  const Tokenizer tokenizer(small_vocabulary("small_bpe.json", "smollm"));
  EncodeOptions options;
  EXPECT_TRUE(tokenizer.encode("").empty());
  options.bos = options.eos = true;
  EXPECT_EQ(tokenizer.encode("", options), (std::vector<TokenId>{0, 1}));
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_TRUE(Tokenizer(small_vocabulary("small_bpe.json", "llama-bpe")).adds_bos());
  // eos of the file, and the end of a turn that files name only by its text.
  EXPECT_EQ(tokenizer.stop_ids(), (std::vector<TokenId>{1, *tokenizer.special("<|im_end|>")}));
}

// The kinds of text that overflow the stacks of other engines: one pattern, four patterns one after
// the other, and SentencePiece, which has none. (Llama 3's pattern has the same test with its own
// vocabulary.) 0.1 to 0.6 s of processor time each, as measured, for the 2 s that are allowed.
TEST(AnyVocabulary, OneMillionCopiesOnASmallStack) {
  std::vector<Tokenizer> tokenizers;
  for (const char* pre : {"smollm", "default"}) {
    tokenizers.emplace_back(small_vocabulary("small_bpe.json", pre));
  }
  tokenizers.emplace_back(small_vocabulary("small_spm.json"));
  for (const std::string unit : {"^", "a", " ", "\n", "1", "\xE5\xAD\x97", "\xFF", "<"}) {
    const std::string text = text_test::many(unit);
    for (const Tokenizer& tokenizer : tokenizers) {
      std::vector<TokenId> ids;
      const double seconds =
          text_test::on_small_stack([&] { ids = tokenizer.encode(text, with_specials(true)); });
      if (!text_test::slow_build()) {
        EXPECT_LT(seconds, 2.0) << unit;
      }
      EXPECT_EQ(tokenizer.decode(ids), text) << unit;
    }
  }
}

// The same steps as with JIT, and no more stack: what a processor without JIT, or a system that
// forbids executable memory, does.
TEST(AnyVocabulary, InterpretedPatternsCutAlike) {
  const quipu::detail::SplitPattern pattern(quipu::detail::llama3_pattern);
  const std::string head = quipu::detail::llama3_pattern.data();
  // (*NO_JIT) makes PCRE2 leave its JIT out for this one pattern.
  const quipu::detail::SplitPattern plain("(*NO_JIT)" + head);
  const std::string text = std::string(300'000, ' ') + std::string(300'000, '\n') + "x's 1234  y" +
                           std::string(300'000, '^') + std::string(300'000, 'a');
  text_test::on_small_stack([&] {
    quipu::detail::SplitScratch scratch;
    for (std::size_t at = 0; at < text.size();) {
      const auto with = scratch.find(pattern, text, at);
      ASSERT_EQ(scratch.find(plain, text, at), with);
      ASSERT_EQ(with.first, at);
      at = with.second;
    }
  });
}

TEST(AnyVocabulary, AnyBytesComeBack) {
  std::mt19937 random(11);
  std::vector<Tokenizer> tokenizers;
  for (const char* pre : {"llama-bpe", "smollm", "gpt-2", "qwen2", "default"}) {
    tokenizers.emplace_back(small_vocabulary("small_bpe.json", pre));
  }
  tokenizers.emplace_back(small_vocabulary("small_spm.json"));
  const std::string_view marks("a1 \n\r'sS<|>\0\xC2\x85\xE2\x80\xA8\xED\xA0\x80\xF0\x9F\x98\x80",
                               24);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const auto length = random() % 50;
    for (unsigned i = 0; i < length; ++i) {
      text.push_back(random() % 2 == 0 ? marks[random() % marks.size()]
                                       : static_cast<char>(random() % 256));
    }
    for (const Tokenizer& tokenizer : tokenizers) {
      // U+2581 and the space are one to SentencePiece.
      if (!tokenizer.adds_eos() && text.find("\xE2\x96\x81") != std::string::npos) continue;
      const auto ids = tokenizer.encode(text);
      EXPECT_EQ(tokenizer.decode(ids), text);
      quipu::Utf8Stream stream;
      std::string shown;
      for (const TokenId id : ids) {
        const std::string more = stream.push(tokenizer.piece(id));
        EXPECT_EQ(quipu::valid_utf8_prefix(more), more.size());
        shown += more;
      }
      shown += stream.flush();
      const bool spaced = !ids.empty() && tokenizer.kind(3) == quipu::TokenKind::byte;
      EXPECT_EQ(shown.substr(spaced ? 1 : 0), quipu::to_text(text));
    }
  }
}

TEST(AnyVocabulary, IsMovableAndSharedByThreads) {
  Tokenizer first(small_vocabulary("small_bpe.json", "smollm"));
  const auto expected = first.encode("knots on cords, 42 of them");
  const Tokenizer moved(std::move(first));
  std::vector<std::thread> threads;
  std::vector<std::vector<TokenId>> results(4);
  for (auto& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) result = moved.encode("knots on cords, 42 of them");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
