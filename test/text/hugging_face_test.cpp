// tokenizer.json: the same ids as the same vocabulary from another file, and refusals by name. The
// files are put together here from our own small vocabulary (record_small.py).
#include "quipu/text/hugging_face_tokenizer.hpp"

#include <gtest/gtest.h>

#include "quipu/text/tokenizer.hpp"
#include "small_vocabularies.hpp"
#include "support.hpp"

namespace {

using quipu::FormatError;
using quipu::TokenId;
using quipu::Tokenizer;
using text_test::Json;
using text_test::message_of;
using text_test::small_vocabulary;

const char* const llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

/// The small vocabulary as a file of SmolLM2's kind ("smollm"), of GPT-2's or of Llama 3's.
Json file_of(const std::string& pre) {
  const quipu::VocabularyData data = small_vocabulary("small_bpe.json", pre);
  Json vocab = Json::object(), added = Json::array();
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    const auto type = static_cast<quipu::TokenKind>(data.token_types[id]);
    vocab[data.tokens[id]] = id;
    if (type != quipu::TokenKind::normal) {
      added.push_back({{"id", id},
                       {"content", data.tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", type != quipu::TokenKind::user_defined}});
    }
  }
  Json steps = Json::array();
  if (pre == "smollm") steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (pre == "llama-bpe") {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", llama3_pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back(byte_level(pre != "llama-bpe"));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
          {"post_processor", nullptr},
          {"decoder", byte_level(true)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", pre == "llama-bpe"},
            {"vocab", vocab},
            {"merges", data.merges}}}};
}

quipu::VocabularyData read(const Json& file) {
  return quipu::read_tokenizer_json(file.dump(), "t.json");
}

TEST(TokenizerJson, GivesTheIdsOfTheSameVocabulary) {
  for (const std::string pre : {"smollm", "llama-bpe", "gpt-2"}) {
    const Tokenizer tokenizer(read(file_of(pre)));
    std::size_t rows = 0;
    for (const Json& row : text_test::rows("small_bpe_ids.jsonl")) {
      const std::string text = row["text"];
      quipu::EncodeOptions options;
      if (row["special"].get<bool>()) options.allowed_special = quipu::SpecialSet::all();
      EXPECT_EQ(tokenizer.encode(text, options), row["ids"][pre].get<std::vector<TokenId>>())
          << pre << ": " << row["text"];
      ++rows;
    }
    EXPECT_GT(rows, 400U);
    EXPECT_FALSE(tokenizer.adds_bos());
  }
}

TEST(TokenizerJson, ReadsMergesAsPairsAndASingleStep) {
  Json file = file_of("gpt-2");
  for (Json& merge : file["model"]["merges"]) {
    const std::string line = merge;
    const std::size_t blank = line.find(' ', 1);
    merge = Json::array({line.substr(0, blank), line.substr(blank + 1)});
  }
  file["pre_tokenizer"] = byte_level(true);
  EXPECT_EQ(Tokenizer(read(file)).encode("the llama and the thing"),
            Tokenizer(read(file_of("gpt-2"))).encode("the llama and the thing"));
}

TEST(TokenizerJson, TakesBosFromTheTemplateAndTheRestFromTheConfiguration) {
  Json file = file_of("llama-bpe");
  file["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {byte_level(true),
                              {{"type", "TemplateProcessing"},
                               {"single",
                                {{{"SpecialToken", {{"id", "<|begin|>"}, {"type_id", 0}}}},
                                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                               {"pair", Json::array()}}}}};
  quipu::VocabularyData data = read(file);
  quipu::read_tokenizer_config(
      R"({"bos_token": "<|begin|>", "eos_token": {"content": "<|end|>", "special": true}, "pad_token": null,
          "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]})",
      data);
  const Tokenizer tokenizer(data);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_FALSE(tokenizer.adds_eos());
  EXPECT_EQ(tokenizer.bos(), 0);
  EXPECT_EQ(tokenizer.eos(), 1);
  EXPECT_EQ(tokenizer.stop_ids(), (std::vector<TokenId>{1, 603}));  // <|im_end|> by its name
  EXPECT_EQ(tokenizer.chat_template(), "yes");
  EXPECT_EQ(tokenizer.encode("a", tokenizer.prompt_options()).front(), 0);
  // User text never becomes a special token.
  for (const TokenId id : tokenizer.encode("<|begin|>")) EXPECT_GT(id, 2);
  EXPECT_EQ(message_of<FormatError>([&] {
              quipu::read_tokenizer_config(R"({"eos_token": "<|none|>"})", data, "c.json");
            }),
            "c.json: eos_token: \"<|none|>\" is no token of t.json");
}

template <class Change>
std::string refusal(const std::string& pre, Change&& change) {
  Json file = file_of(pre);
  change(file);
  return message_of<FormatError>([&] { read(file); });
}

TEST(TokenizerJson, RefusesByNameWhatItWouldComputeOtherwise) {
  EXPECT_EQ(refusal("smollm",
                    [](Json& f) {
                      f["normalizer"] = {{"type", "NFC"}};
                    }),
            "t.json: normalizer: quipu computes without it only, found an object");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["type"] = "Unigram"; }),
            "t.json: model.type: known is BPE, found \"Unigram\"");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["byte_fallback"] = true; }),
            "t.json: model.byte_fallback: quipu computes without it only, found true");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["ignore_merges"] = true; }),
            "t.json: model.ignore_merges: expected false with the pre-tokenizer of smollm");
  EXPECT_EQ(refusal("llama-bpe", [](Json& f) { f["model"].erase("ignore_merges"); }),
            "t.json: model.ignore_merges: expected true with the pre-tokenizer of llama-bpe");
  EXPECT_EQ(
      refusal("llama-bpe",
              [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\s+"; }),
      "t.json: pre_tokenizer.pattern.Regex: known are those of Llama 3 and Qwen 2, found \"\\s+\"");
  EXPECT_EQ(
      refusal("llama-bpe",
              [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }),
      "t.json: pre_tokenizer.behavior: known is Isolated, found \"Removed\"");
  EXPECT_EQ(refusal("llama-bpe",
                    [](Json& f) { f["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }),
            "t.json: pre_tokenizer.use_regex: ByteLevel's own pattern after a Split is not known");
  EXPECT_EQ(refusal("smollm",
                    [](Json& f) {
                      f["pre_tokenizer"] = {{"type", "Metaspace"}};
                    }),
            "t.json: pre_tokenizer: known are Digits, ByteLevel, and Split with ByteLevel, found "
            "\"Metaspace\"");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["pre_tokenizer"] = nullptr; }),
            "t.json: pre_tokenizer: expected a ByteLevel step, found none");
  EXPECT_EQ(
      refusal("smollm",
              [](Json& f) { f["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
      "t.json: pre_tokenizer.add_prefix_space: quipu computes without it only, found true");
  EXPECT_EQ(
      refusal("smollm", [](Json& f) { f["added_tokens"][0]["lstrip"] = true; }),
      "t.json: added_tokens: \"<|begin|>\": lstrip: quipu computes without it only, found true");
  EXPECT_EQ(refusal("smollm",
                    [](Json& f) {
                      f["post_processor"] = {{"type", "BertProcessing"}};
                    }),
            "t.json: post_processor.type: known is ByteLevel, TemplateProcessing, found "
            "\"BertProcessing\"");
  EXPECT_EQ(refusal("smollm",
                    [](Json& f) {
                      f["decoder"] = {{"type", "WordPiece"}};
                    }),
            "t.json: decoder.type: known is ByteLevel, found \"WordPiece\"");
}

TEST(TokenizerJson, RefusesDamage) {
  EXPECT_TRUE(message_of<FormatError>([] {
                quipu::read_tokenizer_json("{", "t.json");
              }).starts_with("t.json: not valid JSON"));
  EXPECT_EQ(refusal("smollm", [](Json& f) { f.erase("model"); }), "t.json: model: there is none");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["vocab"]["!"] = 60000; }),
            "t.json: model.vocab: the id 60000 of \"!\" leaves a gap");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["vocab"]["!"] = -1; }),
            "t.json: model.vocab: \"!\": expected an id, found -1");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["vocab"]["!"] = f["model"]["vocab"]["#"]; }),
            "t.json: model.vocab: the id 38 is given twice");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["added_tokens"][0]["id"] = 38; }),
            "t.json: added_tokens: \"<|begin|>\": it has the id 0 in model.vocab and 38 here");
  EXPECT_EQ(refusal("smollm",
                    [](Json& f) {
                      f["added_tokens"][0].update({{"id", 38}, {"content", "<new>"}});
                    }),
            "t.json: added_tokens: \"<new>\": the id 38 belongs to \"#\" and to \"<new>\"");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["vocab"].erase("!"); }),
            "t.json: model.vocab: no token has the id 36 of 604");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["added_tokens"][0]["content"] = "!"; }),
            "t.json: added_tokens: \"!\": it has the id 36 in model.vocab and 0 here");
  EXPECT_EQ(refusal("smollm", [](Json& f) { f["model"]["merges"][2] = 7; }),
            "t.json: model.merges[2]: expected a string, found 7");
}

}  // namespace
