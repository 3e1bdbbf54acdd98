// Conversions between all layouts: bytes that come back equal, logits with the same bits, element
// types within the rounding of the type, tokenizers that give the same ids, refusals by name.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "convert_fixture.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/message_of.hpp"

namespace quipu_test {
namespace {

namespace fs = std::filesystem;
using quipu::ConvertOptions;
using quipu::ConvertReport;
using quipu::ElementType;
using quipu::TokenId;
using quipu::WriteLayout;

class Convert : public ConvertFixture {
 protected:
  static std::string hugging_face(const std::string& model) {
    return find_golden("models/" + model + "/hf-f32");
  }
};

/// Through all three layouts and back: fewer kv heads (T2), as many (T3), a tied output (T4),
/// scaled frequencies (T2, T4).
TEST_F(Convert, RoundTripsKeepEveryBit) {
  for (const std::string model : {"T2", "T3", "T4"}) {
    const std::string start = hugging_face(model);
    const auto expected = logits(start);
    const struct {
      std::string from, to;
      WriteLayout layout;
    } steps[] = {{start, path(model + ".gguf"), WriteLayout::gguf},
                 {path(model + ".gguf"), path(model + "-meta"), WriteLayout::meta},
                 {path(model + "-meta"), path(model + "-hf"), WriteLayout::hugging_face},
                 {path(model + "-hf"), path(model + "-again.gguf"), WriteLayout::gguf},
                 {start, path(model + "-copy"), WriteLayout::hugging_face}};
    for (const auto& step : steps) {
      const ConvertReport report = convert(step.from, step.to, step.layout);
      EXPECT_TRUE(report.exact) << step.to;
      EXPECT_TRUE(same_bits(step.to, logits(step.to), expected));
    }
    EXPECT_EQ(contents(path(model + "-hf") + "/model.safetensors"),
              contents(path(model + "-copy") + "/model.safetensors"));
    EXPECT_EQ(contents(path(model + ".gguf")), contents(path(model + "-again.gguf")));
    // The copy holds each tensor of the original file as it stood there.
    const auto original = quipu::open_checkpoint(start),
               copy = quipu::open_checkpoint(path(model + "-copy"));
    ASSERT_EQ(original.tensors().size(), copy.tensors().size());
    for (const quipu::TensorRecord& record : original.tensors()) {
      const quipu::TensorRecord* ours = copy.find(record.name);
      ASSERT_NE(ours, nullptr) << record.name;
      EXPECT_EQ(ours->extents, record.extents) << record.name;
      ASSERT_EQ(ours->bytes, record.bytes) << record.name;
      EXPECT_EQ(std::memcmp(ours->data, record.data, record.bytes), 0) << record.name;
    }
  }
}

/// Golden Meta files, one and two parts, against the golden Hugging Face file: the permutation and
/// the merge as others wrote them.
TEST_F(Convert, MetasShardsBecomeTheHuggingFaceFile) {
  for (const char* meta : {"models/T3/meta-f32", "models/T2/meta-mp2-f32"}) {
    QUIPU_GOLDEN_OR_SKIP(from, meta);
    const std::string model = std::string(meta).substr(7, 2);
    convert(from, path(model), WriteLayout::hugging_face);
    const auto golden = quipu::open_checkpoint(hugging_face(model)),
               ours = quipu::open_checkpoint(path(model));
    for (const quipu::TensorRecord& record : golden.tensors()) {
      const quipu::TensorRecord* tensor = ours.find(record.name);
      ASSERT_NE(tensor, nullptr) << record.name;
      ASSERT_EQ(tensor->bytes, record.bytes) << record.name;
      EXPECT_EQ(std::memcmp(tensor->data, record.data, record.bytes), 0) << record.name;
    }
  }
}

/// Every model cut into the parts that it can be cut into, the parts cut again into others, and all
/// of it equal to the original; one that was cut by others compares part by part.
TEST_F(Convert, PartsAreCutAndMergedWithoutLoss) {
  for (const auto& model : test_engine::engine().models()) {
    const std::string name(model.name);
    if (name.size() != 2) continue;  // T1 to T4
    const std::string start = hugging_face(name);
    std::string from = start;
    for (const std::size_t parts : model.legal_ranks) {
      const std::string to = path(name + "-" + std::to_string(parts));
      EXPECT_TRUE(convert(from, to, WriteLayout::meta, {}, {}, false, parts).exact);
      EXPECT_EQ(quipu::open_checkpoint(to).parts, parts);
      convert(to, to + "-hf", WriteLayout::hugging_face);
      convert(start, path("expected"), WriteLayout::hugging_face);
      EXPECT_EQ(contents(to + "-hf/model.safetensors"),
                contents(path("expected") + "/model.safetensors"));
      fs::remove_all(path("expected"));
      from = to;
    }
    EXPECT_GE(model.legal_ranks.size(), 2u) << name;
    EXPECT_TRUE(same_bits(name, logits(from), logits(start)));
  }
  QUIPU_GOLDEN_OR_SKIP(golden, "models/T2/meta-mp2-f32");
  const auto theirs = quipu::open_checkpoint(golden), ours = quipu::open_checkpoint(path("T2-2"));
  for (const quipu::TensorRecord& record : theirs.tensors()) {
    if (record.name == "rope.freqs") continue;
    const quipu::TensorRecord* tensor = ours.find(record.name, record.file);
    ASSERT_NE(tensor, nullptr) << record.name;
    EXPECT_EQ(tensor->extents, record.extents) << record.name;
    ASSERT_EQ(tensor->bytes, record.bytes) << record.name;
    EXPECT_EQ(std::memcmp(tensor->data, record.data, record.bytes), 0) << record.name;
  }
}

TEST_F(Convert, Bf16IsTheGoldenRounding) {
  QUIPU_GOLDEN_OR_SKIP(golden, "models/T1/hf-bf16");
  EXPECT_FALSE(
      convert(hugging_face("T1"), path("t1"), WriteLayout::hugging_face, ElementType::bf16).exact);
  const auto expected = quipu::open_checkpoint(golden), ours = quipu::open_checkpoint(path("t1"));
  for (const quipu::TensorRecord& record : expected.tensors()) {
    const quipu::TensorRecord* tensor = ours.find(record.name);
    ASSERT_NE(tensor, nullptr) << record.name;
    ASSERT_EQ(tensor->bytes, record.bytes) << record.name;
    EXPECT_EQ(std::memcmp(tensor->data, record.data, record.bytes), 0) << record.name;
  }
}

/// Steps of the type against the largest weight of a block of normal weights bound the error of a
/// logit loosely; a wrong row order or block gives errors of the size of the logits.
TEST_F(Convert, ElementTypesAreAsCloseAsTheyCanBe) {
  const auto expected = logits(hugging_face("T1"));
  const struct {
    ElementType type;
    double rel_rms;
  } cases[] = {{ElementType::bf16, 1e-2}, {ElementType::f16, 2e-3},  {ElementType::q8_0, 2e-2},
               {ElementType::q4_0, 0.4},  {ElementType::q4_1, 0.35}, {ElementType::q5_0, 0.2},
               {ElementType::q5_1, 0.2}};
  for (const auto& c : cases) {
    const std::string out = path(std::string(quipu::name(c.type)) + ".gguf");
    const ConvertReport report = convert(hugging_face("T1"), out, WriteLayout::gguf, c.type);
    EXPECT_FALSE(report.exact);
    const auto file = quipu::open_checkpoint(out);
    EXPECT_EQ(file.find("blk.1.ffn_down.weight")->type, c.type);
    EXPECT_EQ(file.find("blk.1.ffn_norm.weight")->type, ElementType::f32);
    const auto actual = logits(out);
    EXPECT_TRUE(close(out, actual, expected, {.rel_rms = c.rel_rms}));
    EXPECT_GT(difference(actual, expected).rel_rms, c.rel_rms / 50) << out;
  }
  // A file of blocks written as f32 computes what the blocks say, to float32's rounding.
  convert(path("q4_1.gguf"), path("wide"), WriteLayout::hugging_face, ElementType::f32);
  EXPECT_TRUE(
      close("q4_1 widened", logits(path("wide")), logits(path("q4_1.gguf")), {.rel_rms = 1e-5}));
}

TEST_F(Convert, SaysWhatItCouldNotDoAsAsked) {
  // T2's rows of 96 and 192 are no blocks of 256.
  const ConvertReport report = convert(hugging_face("T2"), path("t2.gguf"), WriteLayout::gguf,
                                       ElementType::q4_k, ElementType::q6_k);
  const auto file = quipu::open_checkpoint(path("t2.gguf"));
  EXPECT_EQ(file.find("blk.0.attn_q.weight")->type, ElementType::q5_0);
  EXPECT_EQ(file.find("output.weight")->type, ElementType::q8_0);
  EXPECT_EQ(report.notes.at(0),
            "token_embd.weight and 18 more become q5_0: rows of 96 are not whole blocks of q4_k");
  EXPECT_NE(report.notes.back().find("without a tokenizer"), std::string::npos);
  const ConvertReport again =
      convert(path("t2.gguf"), path("again.gguf"), WriteLayout::gguf, ElementType::q4_0);
  EXPECT_NE(again.notes.at(0).find("q5_0 to q4_0"), std::string::npos);
}

template <class F>
std::string refusal(F&& f) {
  return message_of<quipu::ArgumentError>(f);
}

TEST_F(Convert, RefusesByNameAndLeavesNothingBehind) {
  const std::string t1 = hugging_face("T1");
  EXPECT_NE(refusal([&] {
              convert(t1, path("q"), WriteLayout::hugging_face, ElementType::q8_0);
            }).find("model.embed_tokens.weight: safetensors cannot hold the type q8_0"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              convert(t1, path("p"), WriteLayout::meta, {}, {}, false, 3);
            }).find("parts: 3: T1 cannot be cut so; it can into: 1, 2"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              convert(t1, path("p"), WriteLayout::gguf, {}, {}, false, 2);
            }).find("only Meta's layout"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              convert(t1, path("p"), WriteLayout::meta, ElementType::q8_0);
            }).find("torch.save cannot hold the type q8_0"),
            std::string::npos);
  convert(t1, path("taken.gguf"), WriteLayout::gguf);
  const std::string before = contents(path("taken.gguf"));
  EXPECT_NE(refusal([&] { convert(t1, path("taken.gguf"), WriteLayout::gguf); }).find("already"),
            std::string::npos);
  EXPECT_EQ(contents(path("taken.gguf")), before);
  convert(t1, path("taken.gguf"), WriteLayout::gguf, ElementType::f16, {}, true);
  EXPECT_LT(contents(path("taken.gguf")).size(), before.size());
  EXPECT_NE(refusal([&] {
              convert(t1, folder_.path().string(), WriteLayout::meta);
            }).find("new or empty"),
            std::string::npos);
  EXPECT_NE(message_of<quipu::FileError>([&] {
              convert(t1, path("no/such/out.gguf"), WriteLayout::gguf);
            }).find("no/such/out.gguf"),
            std::string::npos);

  // A weight past half's range: 70000 in the 65th row of w1.
  fs::create_directories(path("large"));
  fs::copy_file(t1 + "/config.json", path("large/config.json"));
  std::string bytes = contents(t1 + "/model.safetensors");
  {
    const auto file = quipu::open_checkpoint(t1);
    const std::byte* at = file.find("model.layers.0.mlp.gate_proj.weight")->data + 4 * 64 * 65;
    const float large = 70000;
    std::memcpy(bytes.data() + (at - file.files[0].bytes().data()), &large, 4);
  }
  std::ofstream(path("large/model.safetensors"), std::ios::binary) << bytes;
  EXPECT_NE(message_of<quipu::MismatchError>([&] {
              convert(path("large"), path("half.gguf"), WriteLayout::gguf, ElementType::f16);
            }).find("model.layers.0.mlp.gate_proj.weight: a value in rows"),
            std::string::npos);
  convert(path("large"), path("bf16.gguf"), WriteLayout::gguf, ElementType::bf16);
  // Past the range of the float16 that a block's scale is: 1e8 / 127 and 3e38, whose span is none
  // of float32 either.
  for (const auto& [at_row, huge] : {std::pair{65, 1e8f}, std::pair{66, -3e38f}}) {
    const auto file = quipu::open_checkpoint(t1);
    const std::byte* at = file.find("model.layers.0.mlp.gate_proj.weight")->data + 4 * 64 * at_row;
    std::memcpy(bytes.data() + (at - file.files[0].bytes().data()), &huge, 4);
    if (huge < 0) {
      const float other = -huge;
      std::memcpy(bytes.data() + (at + 4 - file.files[0].bytes().data()), &other, 4);
    }
    std::ofstream(path("large/model.safetensors"), std::ios::binary) << bytes;
    for (const ElementType type : {ElementType::q8_0, ElementType::q4_0, ElementType::q4_1,
                                   ElementType::q5_0, ElementType::q5_1}) {
      EXPECT_NE(message_of<quipu::MismatchError>([&] {
                  convert(path("large"), path("blocks.gguf"), WriteLayout::gguf, type);
                }).find("is too large for " + std::string(quipu::name(type))),
                std::string::npos);
    }
  }

  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"taken.gguf", "large", "bf16.gguf"}));
}

/// Of a folder without its last parts the first missing file is named, not a shape.
TEST_F(Convert, NamesTheMissingPartsOfAMetaFolder) {
  const auto refusal = [](const std::string& folder) {
    return message_of<quipu::MismatchError>([&] { logits(folder); });
  };
  convert(hugging_face("T1"), path("two"), WriteLayout::meta, {}, {}, false, 2);
  fs::remove(path("two/consolidated.01.pth"));
  EXPECT_NE(refusal(path("two"))
                .find("two: consolidated.01.pth missing: tensor "
                      "tok_embeddings.weight is cut into 2 parts (["),
            std::string::npos)
      << refusal(path("two"));
  convert(hugging_face("T3"), path("four"), WriteLayout::meta, {}, {}, false, 4);
  for (const char* part : {"2", "3"}) {
    fs::remove(path("four/consolidated.0" + std::string(part) + ".pth"));
  }
  EXPECT_NE(refusal(path("four")).find("consolidated.02.pth to consolidated.03.pth missing"),
            std::string::npos)
      << refusal(path("four"));
}

/// A tied model's matrix that two model-parallel parts repeat is compared in both.
TEST_F(Convert, ComparesARepeatedMatrixInEveryPart) {
  const std::string from = hugging_face("T4");
  convert(from, path("meta"), WriteLayout::meta);
  quipu::Checkpoint file = quipu::open_checkpoint(path("meta"));
  const quipu::ModelEntry& entry =
      quipu::choose_model(test_engine::engine().models(), file.facts, from);
  quipu::WeightsHolder holder = entry.make_weights();
  std::vector<quipu::TensorRecord> cut;
  std::vector<std::vector<std::byte>> bytes;
  std::byte* last = nullptr;  // of the output matrix in the second part
  for (const quipu::TensorSlot& slot : holder.slots) {
    const std::string& name = slot.name_in(file.naming);
    const quipu::TensorRecord& whole = *file.find(name);
    for (std::size_t part = 0; part < 2; ++part) {
      quipu::TensorSource source = quipu::TensorSource::whole(whole);
      if (slot.shard != quipu::ShardAxis::none) source = source.slice(slot.shard, part, 2);
      bytes.emplace_back(source.rows() * source.row_bytes());
      source.read_rows(0, source.rows(), bytes.back().data());
      quipu::TensorRecord record = whole;
      record.extents.back() = source.cols();
      if (!slot.vector) record.extents.front() = source.rows();
      record.data = bytes.back().data();
      record.bytes = bytes.back().size();
      record.file = part;
      cut.push_back(record);
      if (slot.shares_embedding && part == 1) last = &bytes.back().back();
    }
  }
  file.parts = 2;
  file.set_tensors(std::move(cut));
  ASSERT_NE(last, nullptr);
  EXPECT_NO_THROW(quipu::verify_tensors(file, entry, holder.slots));
  *last ^= std::byte{1};
  EXPECT_NE(message_of<quipu::MismatchError>([&] {
              quipu::verify_tensors(file, entry, holder.slots);
            }).find("shares this matrix with the embedding"),
            std::string::npos);
}

/// As Hugging Face repositories of Meta's models have it.
TEST_F(Convert, TakesTheTokenizerOfTheSubfolder) {
  const std::string t1 = hugging_face("T1");
  fs::create_directories(path("from/original"));
  for (const char* file : {"config.json", "model.safetensors"})
    fs::copy_file(t1 + "/" + file, path(std::string("from/") + file));
  std::ofstream(path("from/original/tokenizer.model")) << "the subfolder's";
  convert(path("from"), path("meta"), WriteLayout::meta);
  EXPECT_EQ(contents(path("meta/tokenizer.model")), "the subfolder's");
  std::ofstream(path("from/tokenizer.model")) << "the root's";
  convert(path("from"), path("again"), WriteLayout::meta);
  EXPECT_EQ(contents(path("again/tokenizer.model")), "the root's");
}

TEST(ConvertConfiguration, ParamsJsonHasTheRuleOfTheReleases) {
  using quipu::ffn_rule_of;
  // dim and ffn of Llama 2 7B and 70B, Llama 3 8B, 70B and 405B, 3.2 1B and 3B.
  const struct {
    std::size_t dim, ffn;
  } released[] = {{4096, 11008},  {8192, 28672}, {4096, 14336},
                  {16384, 53248}, {2048, 8192},  {3072, 8192}};
  for (const auto& [dim, ffn] : released) {
    const quipu::FfnRule rule = ffn_rule_of(dim, ffn);
    EXPECT_EQ(quipu::ffn_width_by_rule(dim, rule.multiple_of, rule.multiplier, ""), ffn);
    EXPECT_GE(rule.multiple_of, 256u) << ffn;
  }
  EXPECT_EQ(ffn_rule_of(4096, 11008).multiplier, std::nullopt);
  // Any width has a rule, odd ones too.
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::size_t dim = 2 * (1 + random() % 5000), ffn = 1 + random() % 40000;
    const quipu::FfnRule rule = ffn_rule_of(dim, ffn);
    EXPECT_EQ(quipu::ffn_width_by_rule(dim, rule.multiple_of, rule.multiplier, ""), ffn) << dim;
  }
}

/// A vocabulary of ranks where a token splits in several ways, and where a longer token has a
/// lesser rank than the parts it could also be made of.
quipu::VocabularyData ranks() {
  quipu::VocabularyData data;
  data.source = "ranks";
  data.model = "tiktoken";
  data.pre = "llama-bpe";
  for (int byte = 0; byte < 256; ++byte) data.tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token : {"ab", "bc", "abc", "cd", "abcd", "\xC3\xA9", " a", "  ", "    ", " ab",
                            "ca", "bcab", "da", "aa", "aaa", "aaaa"}) {
    data.tokens.emplace_back(token);
  }
  data.token_types.assign(data.tokens.size(), 1);
  data.tokens.emplace_back("<|begin_of_text|>");
  data.token_types.push_back(3);
  data.bos = static_cast<TokenId>(data.tokens.size() - 1);
  data.add_bos = true;
  return data;
}

TEST(ConvertTypes, LargestFiniteIsTheLastBeforeTheTie) {
  const float bf16 = quipu::detail::largest_finite(ElementType::bf16);
  EXPECT_EQ(quipu::to_bf16(bf16).bits, 0x7f7f);
  EXPECT_EQ(quipu::to_bf16(std::nextafter(bf16, HUGE_VALF)).bits, 0x7f80);
  const float f16 = quipu::detail::largest_finite(ElementType::f16);
  EXPECT_EQ(quipu::to_f16(f16).bits, 0x7bff);
  EXPECT_EQ(quipu::to_f16(std::nextafter(f16, HUGE_VALF)).bits, 0x7c00);
}

TEST(ConvertVocabulary, MergesGiveTheIdsOfTheRanks) {
  const quipu::Tokenizer by_rank(ranks()), by_merges(quipu::with_merges(ranks()));
  ASSERT_EQ(by_rank.size(), by_merges.size());
  for (std::size_t i = 0; i < by_rank.size(); ++i) {
    EXPECT_EQ(by_rank.piece(static_cast<TokenId>(i)), by_merges.piece(static_cast<TokenId>(i)));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    const std::string letters = i % 2 == 0 ? "abcd" : "abcd  \xC3\xA9\n\x80";
    for (std::size_t n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    EXPECT_EQ(by_rank.encode(text), by_merges.encode(text)) << text;
  }
}

/// The keys that set_vocabulary writes are those that vocabulary_from_gguf reads.
TEST_F(Convert, VocabulariesGoThroughGguf) {
  quipu::VocabularyData data = quipu::with_merges(ranks());
  data.eos = 3, data.eot = 4, data.eom = 5, data.unknown = 6, data.padding = 7;
  data.add_eos = false, data.add_space_prefix = true;
  data.chat_template = "{{ x }}";
  data.scores.assign(data.tokens.size(), 0.5f);
  quipu::GgufMetadata metadata;
  quipu::set_vocabulary(metadata, data);
  quipu::GgufWriter(path("v.gguf"), metadata, {}).finish();
  const quipu::MappedFile map(path("v.gguf"));
  const auto back = quipu::vocabulary_from_gguf(quipu::GgufFile(map.bytes(), map.path()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->model, "gpt2");
  EXPECT_EQ(back->pre, data.pre);
  EXPECT_EQ(back->tokens, data.tokens);
  EXPECT_EQ(back->merges, data.merges);
  EXPECT_EQ(back->scores, data.scores);
  EXPECT_EQ(back->token_types, data.token_types);
  EXPECT_EQ(back->chat_template, data.chat_template);
  EXPECT_EQ(back->bos, data.bos);
  EXPECT_EQ(back->eos, data.eos);
  EXPECT_EQ(back->eot, data.eot);
  EXPECT_EQ(back->eom, data.eom);
  EXPECT_EQ(back->unknown, data.unknown);
  EXPECT_EQ(back->padding, data.padding);
  EXPECT_EQ(back->add_bos, data.add_bos);
  EXPECT_EQ(back->add_eos, data.add_eos);
  EXPECT_EQ(back->add_space_prefix, data.add_space_prefix);
}

TEST(ConvertVocabulary, Llama3sTokenizerGivesTheGoldenIdsFromMerges) {
  QUIPU_GOLDEN_OR_SKIP(model, "tokenizer/llama3.tokenizer.model");
  QUIPU_GOLDEN_OR_SKIP(golden, "tokenizer/encode.jsonl");
  const quipu::Tokenizer tokenizer(
      quipu::with_merges(quipu::read_tiktoken(contents(model), quipu::SpecialNames::llama3)));
  std::ifstream in(golden);
  std::size_t compared = 0;
  for (std::string line; std::getline(in, line, '\n');) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row.at("allowed_special") != "none" || row.at("bos") == true || row.at("eos") == true)
      continue;
    EXPECT_EQ(tokenizer.encode(row.at("text").get<std::string>()),
              row.at("ids").get<std::vector<TokenId>>())
        << row.at("text");
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

}  // namespace
}  // namespace quipu_test
