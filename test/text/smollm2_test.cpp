// SmolLM2's own vocabulary against ids recorded from llama.cpp, and its chat template against Jinja
// (record_smollm2.py). Needs the model file: QUIPU_SMOLLM2_GGUF, or where examples/demo.sh puts it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "gguf_vocabulary.hpp"
#include "quipu/text/chat.hpp"
#include "quipu/text/tokenizer.hpp"
#include "support.hpp"

namespace {

using quipu::TokenId;
using quipu::Tokenizer;
using text_test::Json;

std::optional<std::string> smollm2_file() {
  if (const char* path = std::getenv("QUIPU_SMOLLM2_GGUF")) return text_test::read_file(path);
  const char* home = std::getenv("HOME");
  if (home == nullptr) return std::nullopt;
  return text_test::read_file(std::string(home) + "/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf");
}

class SmolLm2 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const auto bytes = smollm2_file()) {
      tokenizer().emplace(text_test::GgufVocabulary(*bytes).data);
    }
  }
  static void TearDownTestSuite() { tokenizer().reset(); }
  void SetUp() override {
    if (!tokenizer().has_value()) {
      GTEST_SKIP() << "SmolLM2-135M-Instruct.Q4_1.gguf was not found (QUIPU_SMOLLM2_GGUF)";
    }
  }
  static std::optional<Tokenizer>& tokenizer() {
    static std::optional<Tokenizer> one;
    return one;
  }
};

TEST_F(SmolLm2, GivesTheIdsOfLlamaCpp) {
  std::size_t count = 0;
  for (const Json& row : text_test::rows("smollm2_ids.jsonl")) {
    quipu::EncodeOptions options;
    if (row["special"]) options.allowed_special = quipu::SpecialSet::all();
    const auto ids = tokenizer()->encode(row["text"].get<std::string>(), options);
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << row["text"];
    ++count;
  }
  EXPECT_GE(count, 400U);
}

TEST_F(SmolLm2, KnowsItself) {
  EXPECT_EQ(tokenizer()->size(), 49152U);
  EXPECT_FALSE(tokenizer()->adds_bos());
  EXPECT_FALSE(tokenizer()->has_every_byte());  // 21 rare bytes have no token
  EXPECT_EQ(tokenizer()->stop_ids(), (std::vector<TokenId>{0, 2}));
}

TEST_F(SmolLm2, WritesDialogsAsItsTemplateDoes) {
  const auto format =
      quipu::ChatFormat::from_template(tokenizer()->chat_template(), tokenizer()->source());
  EXPECT_EQ(format.style(), quipu::ChatStyle::chatml);
  EXPECT_EQ(format.default_system(),
            "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  std::size_t count = 0;
  for (const Json& row : text_test::rows("smollm2_chat.jsonl")) {
    std::vector<quipu::ChatMessage> dialog;
    for (const Json& message : row["messages"]) {
      const std::string role = message["role"];
      dialog.push_back({role == "system" ? quipu::ChatRole::system
                        : role == "user" ? quipu::ChatRole::user
                                         : quipu::ChatRole::assistant,
                        {message["content"].get<std::string>()}});
    }
    quipu::ChatOptions options;
    options.add_generation_prompt = row["add_generation_prompt"];
    EXPECT_EQ(format.encode(*tokenizer(), dialog, options), row["ids"].get<std::vector<TokenId>>())
        << row["messages"];
    ++count;
  }
  EXPECT_EQ(count, 14U);
}

}  // namespace
