// Llama 3's own tokenizer.model against the reference's ids: every row of the golden data, and the
// inputs that make other tokenizers slow or crash. Skipped, by name, without that file.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "quipu/text/tiktoken.hpp"
#include "quipu/text/tokenizer.hpp"
#include "support.hpp"

namespace {

using quipu::SpecialNames;
using quipu::SpecialSet;
using quipu::TokenId;
using quipu::Tokenizer;
using text_test::Json;

class Llama3 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto bytes = text_test::llama3_file();
    if (!bytes.has_value()) return;
    for (const auto names : {SpecialNames::llama3, SpecialNames::llama3_1}) {
      tokenizers().push_back(Tokenizer(quipu::read_tiktoken(*bytes, names)));
    }
  }
  static void TearDownTestSuite() { tokenizers().clear(); }

  void SetUp() override {
    if (tokenizers().empty()) {
      GTEST_SKIP() << "Llama 3's tokenizer.model was not found (QUIPU_GOLDEN_DIR)";
    }
  }

  static std::vector<Tokenizer>& tokenizers() {
    static std::vector<Tokenizer> both;
    return both;
  }
  static const Tokenizer& llama3() { return tokenizers()[0]; }
  static const Tokenizer& llama3_1() { return tokenizers()[1]; }
};

SpecialSet special_set(const Json& json) {
  if (json == "none") return SpecialSet::none();
  if (json == "all") return SpecialSet::all();
  return SpecialSet::listed(json.get<std::vector<std::string>>());
}

TEST_F(Llama3, EncodesEveryGoldenRow) {
  std::size_t count = 0;
  for (const Json& row : text_test::rows("encode.jsonl")) {
    const Tokenizer& tokenizer = row["special_table"] == "llama3" ? llama3() : llama3_1();
    const std::string text = text_test::from_hex(row["utf8_hex"]);
    quipu::EncodeOptions options;
    options.bos = row["bos"];
    options.eos = row["eos"];
    options.allowed_special = special_set(row["allowed_special"]);
    const auto ids = tokenizer.encode(text, options);
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>())
        << row["category"] << ": " << row["text"];
    if (!options.bos && !options.eos) {
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
    ++count;
  }
  EXPECT_EQ(count, 621U);
}

TEST_F(Llama3, CutsLongInputsAsTheReferenceDoes) {
  std::size_t count = 0;
  for (const Json& row : text_test::rows("encode_long.jsonl")) {
    std::string text;
    for (const Json& segment : row["segments"]) {
      for (std::size_t i = 0; i < segment[1].get<std::size_t>(); ++i) text += segment[0];
    }
    const auto ids = llama3().encode(text);
    EXPECT_EQ(ids.size(), row["n_ids"].get<std::size_t>()) << row["segments"];
    EXPECT_EQ(text_test::sha256(text_test::little_endian(ids)),
              row["sha256_of_ids_as_little_endian_uint32"].get<std::string>())
        << row["segments"];
    ++count;
  }
  EXPECT_EQ(count, 14U);
}

TEST_F(Llama3, DecodesEveryGoldenRow) {
  std::size_t count = 0;
  for (const Json& row : text_test::rows("decode.jsonl")) {
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    // The rows with special tokens are of the 3.1 table.
    EXPECT_EQ(llama3_1().decode(ids), text_test::from_hex(row["bytes_hex"])) << row["note"];
    quipu::Utf8Stream stream;
    std::string text;
    for (const TokenId id : ids) text += stream.push(llama3_1().piece(id));
    text += stream.flush();
    EXPECT_EQ(text, row["text_replace"].get<std::string>()) << row["note"];
    ++count;
  }
  EXPECT_EQ(count, 107U);
}

TEST_F(Llama3, NamesTheSpecialTokens) {
  for (const auto& [file, tokenizer] :
       {std::pair<std::string, const Tokenizer*>{"special_tokens_llama3.json", &llama3()},
        {"special_tokens_llama3.1.json", &llama3_1()}}) {
    const Json table = Json::parse(text_test::read_file(text_test::data_path(file)).value_or("{}"));
    EXPECT_EQ(table["special_tokens"].size(), 256U);
    for (const auto& [name, id] : table["special_tokens"].items()) {
      EXPECT_EQ(tokenizer->special(name), id.get<TokenId>()) << file;
      EXPECT_EQ(tokenizer->piece(id), name) << file;
      EXPECT_TRUE(tokenizer->is_control(id)) << file;
    }
    EXPECT_EQ(tokenizer->size(), table["n_words"].get<std::size_t>());
    EXPECT_EQ(tokenizer->bos(), table["bos_id"].get<TokenId>());
    EXPECT_EQ(tokenizer->eos(), table["eos_id"].get<TokenId>());
    EXPECT_EQ(tokenizer->padding().value_or(-1), table["pad_id"].get<TokenId>());
    EXPECT_EQ(tokenizer->stop_ids(), table["stop_tokens"].get<std::vector<TokenId>>());
    EXPECT_TRUE(tokenizer->adds_bos());
  }
}

TEST_F(Llama3, RefusesDisallowedSpecialText) {
  quipu::EncodeOptions options;
  options.disallowed_special = SpecialSet::all();
  const std::string text = "abc<|eot_id|>";
  EXPECT_EQ(text_test::message_of<quipu::ArgumentError>([&] { llama3().encode(text, options); }),
            "text: the special token \"<|eot_id|>\" at byte 3 is not allowed");
  options.allowed_special = SpecialSet::listed({"<|eot_id|>"});
  EXPECT_EQ(llama3().encode(text, options).back(), 128009);
  options.allowed_special = SpecialSet::listed({"<|no_such|>"});
  EXPECT_EQ(text_test::message_of<quipu::ArgumentError>([&] { llama3().encode(text, options); }),
            "tokenizer.model: \"<|no_such|>\" is not a special token");
}

// A public report about another tokenizer quotes the first ids of this phrase's kind; what is
// required is that whole words of the vocabulary are found.
TEST_F(Llama3, FindsEveryTokenAsItself) {
  std::size_t whole = 0;
  for (TokenId id = 0; id < 128000; ++id) {
    const std::string_view bytes = llama3().piece(id);
    if (quipu::valid_utf8_prefix(bytes) != bytes.size()) continue;
    const auto ids = llama3().encode(bytes);
    whole += ids.size() == 1 && ids[0] == id ? 1 : 0;
    EXPECT_EQ(llama3().decode(ids), bytes);
  }
  // Every token that is well-formed text and that the pattern does not cut.
  EXPECT_GT(whole, 120000U);
}

// 0.1 to 0.4 s of processor time each, as measured, for the 2 s that are allowed.
TEST_F(Llama3, OneMillionCopiesOnASmallStack) {
  for (const std::string unit : {"^", "a", " ", "\n", "1", "\xE5\xAD\x97", "\xFF", "'s", " \n"}) {
    const std::string text = text_test::many(unit);
    std::vector<TokenId> ids;
    const double seconds = text_test::on_small_stack([&] { ids = llama3().encode(text); });
    if (!text_test::slow_build()) {
      EXPECT_LT(seconds, 2.0) << unit;
    }
    EXPECT_EQ(llama3().decode(ids), text) << unit;
  }
}

TEST_F(Llama3, AnyBytesComeBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const auto length = random() % 60;
    for (unsigned i = 0; i < length; ++i) {
      // Half from the letters and marks that the pattern cares about, half any byte.
      const std::string_view marks = "a1 \n\r'sS<|>\xC2\x85\xE2\x80\xA8\xF0\x9F\x98\x80";
      text.push_back(random() % 2 == 0 ? marks[random() % marks.size()]
                                       : static_cast<char>(random() % 256));
    }
    EXPECT_EQ(llama3().decode(llama3().encode(text)), text);
  }
}

}  // namespace
