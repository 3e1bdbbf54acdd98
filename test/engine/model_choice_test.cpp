// Which compiled-in model a configuration gets, and what the refusal says: the field, what the file
// has, what the type has.
#include "quipu/engine/model_choice.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "quipu/config/catalogue.hpp"
#include "quipu/config/model_list.hpp"
#include "quipu/engine/make_engine.hpp"

namespace quipu_test {
namespace {

using namespace quipu::models;

const std::vector<quipu::ModelEntry>& entries() {
  static const auto list =
      quipu::detail::entries_of(quipu::ModelList<llama3_8b, llama3_1_8b, llama3_1_70b, llama3_3_70b,
                                                 llama3_2_1b, smollm2_135m>{});
  return list;
}

quipu::ModelFacts facts_of_8b() {
  quipu::ModelFacts f;
  f.dim = 4096, f.n_layers = 32, f.n_heads = 32, f.n_kv_heads = 8, f.ffn = 14336,
  f.vocab_size = 128256;
  f.norm_eps = 1e-5, f.rope_theta = 500000, f.tied = false;
  return f;
}

std::string refusal(const quipu::ModelFacts& facts, std::string_view wanted = {}) {
  try {
    return "chosen: " + std::string(quipu::choose_model(entries(), facts, "file", wanted).name);
  } catch (const quipu::Error& error) {
    return error.what();
  }
}

TEST(ModelChoice, GoesByArchitectureAndNumerics) {
  quipu::ModelFacts facts = facts_of_8b();
  facts.rope_scaled = false;
  EXPECT_EQ(refusal(facts), "chosen: llama3_8b");
  facts.rope_scaled = true;
  EXPECT_EQ(refusal(facts), "chosen: llama3_1_8b");
  facts.rope_scaling = quipu::RopeScalingFacts{8, 1, 4, 8192};
  EXPECT_EQ(refusal(facts), "chosen: llama3_1_8b");
  facts.norm_eps = static_cast<double>(1e-5f);  // as GGUF holds it
  EXPECT_EQ(refusal(facts), "chosen: llama3_1_8b");
}

TEST(ModelChoice, NamesAreHintsAmongEquals) {
  quipu::ModelFacts facts;
  facts.dim = 8192, facts.n_layers = 80, facts.rope_scaled = true;
  EXPECT_EQ(refusal(facts), "chosen: llama3_1_70b");
  facts.name = "Llama-3.3-70B-Instruct";
  EXPECT_EQ(refusal(facts), "chosen: llama3_3_70b");
  EXPECT_EQ(refusal(facts, "llama3_1_70b"), "chosen: llama3_1_70b");
}

TEST(ModelChoice, RefusesByFieldWithBothValues) {
  quipu::ModelFacts facts = facts_of_8b();
  facts.rope_scaled = false;
  facts.n_kv_heads = 32;
  EXPECT_NE(
      refusal(facts).find("Nearest is llama3_8b: n_kv_heads: the file has 32, the type has 8"),
      std::string::npos)
      << refusal(facts);
  facts = facts_of_8b();
  facts.norm_eps = 1e-6;
  facts.rope_scaled = true;
  EXPECT_NE(refusal(facts).find("norm_eps: the file has 1e-06, the type has 1e-05"),
            std::string::npos);
  facts = facts_of_8b();
  facts.rope_scaled = true;
  facts.rope_scaling = quipu::RopeScalingFacts{32, 1, 4, 8192};
  EXPECT_NE(refusal(facts).find("rope_scaling.factor: the file has 32, the type has 8"),
            std::string::npos);
  facts = facts_of_8b();
  facts.architecture = "qwen2";
  facts.rope_scaled = false;
  EXPECT_NE(refusal(facts).find("architecture: the file has qwen2, the type has llama"),
            std::string::npos);
  facts = facts_of_8b();
  facts.rope_scaled = false;
  facts.tied = true;
  EXPECT_NE(refusal(facts).find("output: the file has tied, the type has separate"),
            std::string::npos);
  EXPECT_NE(
      refusal(facts_of_8b(), "llama9").find("'llama9' is not compiled in; there are: llama3_8b"),
      std::string::npos);
}

/// A folder in Hugging Face's layout has its vocabulary in files beside the weights.
TEST(Vocabulary, IsTokenizerJsonAndWhatStandsBesideIt) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "quipu_vocabulary";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  quipu::Checkpoint checkpoint;
  checkpoint.path = folder.string();
  EXPECT_FALSE(quipu::vocabulary_of(checkpoint));
  write("tokenizer.json", R"({"added_tokens": [{"id": 3, "content": "<|eot_id|>", "special": true}],
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  const quipu::Tokenizer plain(*quipu::vocabulary_of(checkpoint));
  EXPECT_EQ(plain.encode("abba"), (std::vector<quipu::TokenId>{2, 1, 0}));
  EXPECT_EQ(plain.stop_ids(), std::vector<quipu::TokenId>{3});
  EXPECT_EQ(plain.chat_template(), "");
  write("tokenizer_config.json", R"({"eos_token": "ab", "chat_template": "of the configuration"})");
  checkpoint.path = (folder / "model.safetensors").string();  // given by one of its files
  EXPECT_EQ(quipu::Tokenizer(*quipu::vocabulary_of(checkpoint)).eos(), 2);
  write("chat_template.jinja", "of its own");
  EXPECT_EQ(quipu::vocabulary_of(checkpoint)->chat_template, "of its own");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quipu_test
