// GGUF files through an engine: T1, written here as GGUF, computes what T1 in Hugging Face's layout
// computes, bit for bit; and a file that is cut short, padded or has one wrong field is refused
// with a message that names it. The damage is done to that small file and to the head of
// SmolLM2-135M-Instruct.Q4_1.gguf where that is present (QUIPU_SMOLLM2_GGUF).
// Siblings: smollm2_test.cpp, test/checkpoint/gguf_test.cpp (the reader alone, byte by byte).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "checkpoint/damage.hpp"
#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/checkpoint/mapped_file.hpp"
#include "test_engine.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/safetensors.hpp"

namespace quipu_test {
namespace {

using quipu::test::patch;

/// Rows of q or k from Hugging Face's order (first halves of the rotary pairs, then second) to
/// GGUF's, where a pair's rows are neighbours: test/data/golden/README.md, "q/k permutation".
std::vector<float> neighbours(const Tensor& t, std::size_t head_dim) {
  const std::size_t cols = t.shape[1];
  std::vector<float> out(t.values.size());
  for (std::size_t row = 0; row < t.shape[0]; ++row) {
    const std::size_t in_head = row % head_dim;
    const std::size_t from = row - in_head + in_head / 2 + in_head % 2 * (head_dim / 2);
    std::copy_n(t.values.begin() + static_cast<std::ptrdiff_t>(from * cols), cols,
                out.begin() + static_cast<std::ptrdiff_t>(row * cols));
  }
  return out;
}

/// Writes T1 as llama.cpp's converter would name it, in float32.
void write_t1(const std::string& path) {
  const TensorFile weights(find_golden("models/T1/hf-f32") + "/model.safetensors");
  quipu::GgufMetadata metadata;
  metadata.set("general.architecture", std::string_view("llama"));
  metadata.set("llama.block_count", std::uint32_t{2});
  metadata.set("llama.embedding_length", std::uint32_t{64});
  metadata.set("llama.feed_forward_length", std::uint32_t{224});
  metadata.set("llama.attention.head_count", std::uint32_t{4});
  metadata.set("llama.attention.head_count_kv", std::uint32_t{2});
  metadata.set("llama.rope.dimension_count", std::uint32_t{16});
  metadata.set("llama.rope.freq_base", 500000.0f);
  metadata.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  metadata.set("llama.vocab_size", std::uint32_t{512});
  const std::pair<const char*, const char*> parts[] = {
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  std::vector<std::pair<std::string, std::string>> names = {
      {"token_embd.weight", "model.embed_tokens.weight"}};
  for (const std::string layer : {"0", "1"}) {
    for (const auto& [gguf, hugging_face] : parts) {
      names.emplace_back("blk." + layer + "." + gguf + ".weight",
                         "model.layers." + layer + "." + hugging_face + ".weight");
    }
  }
  names.emplace_back("output_norm.weight", "model.norm.weight");
  names.emplace_back("output.weight", "lm_head.weight");
  std::vector<quipu::GgufPlan> plan;
  for (const auto& [gguf, hugging_face] : names) {
    plan.push_back({gguf, quipu::ElementType::f32, weights.at(hugging_face).shape});
  }
  quipu::GgufWriter writer(path, metadata, plan);
  for (const auto& [gguf, hugging_face] : names) {
    const Tensor& tensor = weights.at(hugging_face);
    const bool rotary = gguf.ends_with("attn_q.weight") || gguf.ends_with("attn_k.weight");
    const std::vector<float> values = rotary ? neighbours(tensor, 16) : tensor.values;
    writer.append(gguf, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

TEST(GgufLoad, GivesTheBitsOfTheSameModelInHuggingFacesLayout) {
  const quipu::test::Folder folder;
  write_t1(folder / "t1.gguf");
  const TensorFile golden(find_golden("models/T1/acts/f32.safetensors"));
  const auto& wide = golden.at("prefill/tokens").integers;
  const std::vector<quipu::TokenId> tokens(wide.begin(), wide.begin() + 7);
  std::vector<std::vector<float>> logits;
  for (const std::string& path : {folder / "t1.gguf", find_golden("models/T1/hf-f32")}) {
    const quipu::Model model = test_engine::engine().load(path);
    EXPECT_EQ(model.name(), "T1");
    quipu::Session session(model, {.capacity = 16});
    logits.emplace_back(7 * 512);
    const quipu::Feed feed{0, tokens, std::nullopt};
    session.forward({&feed, 1}, quipu::LogitsWanted::all, logits.back());
  }
  EXPECT_TRUE(same_bits("GGUF against Hugging Face", logits[0], logits[1]));
  // The limits of golden_test.cpp for T1 in float32.
  const std::span<const float> expected(golden.at("prefill/logits").values);
  EXPECT_TRUE(close("GGUF against golden data", logits[0], expected.first(7 * 512),
                    {.rel_rms = 3e-6, .max_abs_of_largest = 5e-6}));
}

/// The head of a GGUF file, to be damaged, and the size of the whole. Damaged copies have no data:
/// a hole in the file stands for it, since everything is verified before the first byte is used.
class Image {
 public:
  explicit Image(const std::string& path) : map_(path), file_(map_.bytes(), path) {
    data_begin_ = offset_of(file_.tensors().front().data);
    for (const quipu::TensorRecord& t : file_.tensors()) {
      data_begin_ = (std::min)(data_begin_, offset_of(t.data));
      if (offset_of(t.data) + t.bytes > data_end_) {
        data_end_ = offset_of(t.data) + t.bytes;
        last_ = t.name;
      }
    }
    head.assign(reinterpret_cast<const char*>(map_.bytes().data()), data_begin_);
    size = map_.size();
  }

  const quipu::GgufFile& file() const { return file_; }
  std::size_t data_begin() const { return data_begin_; }
  std::size_t data_end() const { return data_end_; }
  const std::string& last_tensor() const { return last_; }

  /// Where the value of a key stands.
  std::size_t value_of(std::string_view key) const {
    return offset_of(file_.find(key)->value.data());
  }
  /// Where the description of a tensor stands, after its name: number of extents (u32), extents
  /// (u64 each, innermost first), type (u32), offset (u64).
  std::size_t description_of(const std::string& tensor) const {
    std::string field;
    quipu::test::put(field, std::uint64_t{tensor.size()});
    return head.rfind(field + tensor) + field.size() + tensor.size();
  }

  /// The file that head and size now describe.
  std::string write(const quipu::test::Folder& folder) const {
    const std::string path = folder.write(
        "damaged.gguf", std::string_view(head).substr(0, (std::min)(head.size(), size)));
    EXPECT_EQ(::truncate(path.c_str(), static_cast<::off_t>(size)), 0);
    return path;
  }

  std::string head;
  std::size_t size = 0;

 private:
  std::size_t offset_of(const std::byte* p) const {
    return static_cast<std::size_t>(p - map_.bytes().data());
  }

  quipu::MappedFile map_;
  quipu::GgufFile file_;
  std::size_t data_begin_ = 0, data_end_ = 0;
  std::string last_;
};

struct Subject {
  const char* name;
  const quipu::Engine& (*engine)();
  const char* matrix;  ///< a matrix of the file that is not square
};

class DamagedGguf : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam().name) == "T1") {
      path_ = folder_ / "whole.gguf";
      write_t1(path_);
      return;
    }
    if (const char* named = std::getenv("QUIPU_SMOLLM2_GGUF")) {
      path_ = named;
    } else if (const char* home = std::getenv("HOME")) {
      path_ = std::string(home) + "/.cache/quipu/SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    if (!std::ifstream(path_).good()) {
      GTEST_SKIP() << "SmolLM2-135M-Instruct.Q4_1.gguf was not found (QUIPU_SMOLLM2_GGUF)";
    }
  }

  /// The damaged file is refused, and the message has every one of the words.
  void refuse(const std::string& what, const std::function<void(Image&)>& damage,
              std::initializer_list<std::string_view> words) {
    Image image(path_);
    damage(image);
    const std::string damaged = image.write(folder_);
    try {
      GetParam().engine().load(damaged);
      ADD_FAILURE() << what << ": accepted";
    } catch (const quipu::Error& error) {
      const std::string_view message = error.what();
      EXPECT_NE(message.find("damaged.gguf: "), message.npos) << what << ": " << message;
      for (const std::string_view word : words) {
        EXPECT_NE(message.find(word), message.npos)
            << what << ": \"" << word << "\" is not in: " << message;
      }
      if (std::getenv("QUIPU_SHOW_MESSAGES") != nullptr)
        std::cout << what << ": " << message << '\n';
    }
  }

  quipu::test::Folder folder_;
  std::string path_;
};

/// So that it is the damage which the other tests see refused, and not the hole.
TEST_P(DamagedGguf, IsAcceptedWithoutDamage) {
  EXPECT_NO_THROW(GetParam().engine().load(Image(path_).write(folder_)));
}

TEST_P(DamagedGguf, CutShort) {
  const Image whole(path_);
  const auto cut = [&](std::size_t size, std::initializer_list<std::string_view> words) {
    refuse(
        "cut to " + std::to_string(size), [=](Image& image) { image.size = size; }, words);
  };
  cut(0, {"empty"});
  cut(3, {"magic"});
  cut(6, {"version"});
  cut(12, {"tensor"});
  cut(20, {"metadata"});
  cut(whole.value_of("llama.block_count") + 2, {"claimed, but the rest of the file"});
  cut(whole.description_of(GetParam().matrix) + 6, {"tensors"});
  cut(whole.description_of(GetParam().matrix) + 40, {"tensors"});
  cut(whole.data_begin(), {"token_embd.weight"});
  cut((whole.data_begin() + whole.data_end()) / 2, {"tensor"});
  cut(whole.data_end() - 1, {whole.last_tensor()});
}

TEST_P(DamagedGguf, Padded) {
  for (const std::size_t more : {1, 32, 4096}) {
    refuse("padded by " + std::to_string(more), [=](Image& image) { image.size += more; },
           {std::to_string(more)});
  }
}

TEST_P(DamagedGguf, OneWrongNumberOfTheConfiguration) {
  const std::pair<const char*, const char*> counts[] = {
      {"llama.block_count", "n_layers"},
      {"llama.embedding_length", "dim"},
      {"llama.feed_forward_length", "ffn"},
      {"llama.attention.head_count", "n_heads"},
      {"llama.attention.head_count_kv", "n_kv_heads"},
      {"llama.rope.dimension_count", "head_dim"},
      {"llama.vocab_size", "vocab_size"}};
  for (const auto& [key, field] : counts) {
    const auto right = static_cast<std::uint32_t>(*Image(path_).file().get_unsigned(key));
    for (const std::uint32_t wrong : {right - 1, right + 1, 2 * right}) {
      refuse(std::string(key) + " " + std::to_string(wrong),
             [=](Image& image) { patch(image.head, image.value_of(key), wrong); },
             {std::string(field) + ": the file has " + std::to_string(wrong) + ", the type has " +
              std::to_string(right)});
    }
  }
  refuse("theta",
         [](Image& image) { patch(image.head, image.value_of("llama.rope.freq_base"), 10000.0f); },
         {"rope_theta: the file has 10000, the type has "});
  refuse("epsilon",
         [](Image& image) {
           patch(image.head, image.value_of("llama.attention.layer_norm_rms_epsilon"), 1e-6f);
         },
         {"norm_eps: the file has ", "the type has 1e-05"});
  refuse("architecture",
         [](Image& image) { image.head[image.value_of("general.architecture") + 8] = 'L'; },
         {"architecture: the file has Llama, the type has llama"});
  refuse("type of a value",
         [](Image& image) {
           patch(image.head, image.value_of("llama.block_count") - 4, std::uint32_t{6});
         },
         {"llama.block_count", "f32"});
}

TEST_P(DamagedGguf, OneWrongFieldOfATensor) {
  const std::string matrix = GetParam().matrix;
  const auto change = [&](const char* what, std::size_t at, auto value,
                          std::initializer_list<std::string_view> words) {
    refuse(
        what, [&](Image& image) { patch(image.head, image.description_of(matrix) + at, value); },
        words);
  };
  const Image whole(path_);
  std::uint64_t in = 0, out = 0, offset = 0;
  const std::size_t at = whole.description_of(matrix);
  std::memcpy(&in, whole.head.data() + at + 4, 8);
  std::memcpy(&out, whole.head.data() + at + 12, 8);
  std::memcpy(&offset, whole.head.data() + at + 24, 8);
  ASSERT_NE(in, out);
  refuse(
      "extents in the other order",
      [&](Image& image) {
        patch(image.head, at + 4, out);
        patch(image.head, at + 12, in);
      },
      {matrix, "the file has the shape [" + std::to_string(in) + ", " + std::to_string(out) + "]",
       "has [" + std::to_string(out) + ", " + std::to_string(in) + "]"});
  change("longer rows", 4, in + 32, {"tensor"});
  change("fewer rows", 12, out - 1, {"tensor"});
  change("no rows", 12, std::uint64_t{0}, {matrix});
  change("an enormous extent", 12, std::uint64_t{1} << 62, {matrix});
  change("too many extents", 0, std::uint32_t{9}, {matrix});
  change("another element type", 20, std::uint32_t{1}, {"tensor"});
  change("an unknown element type", 20, std::uint32_t{99}, {matrix});
  change("another offset", 24, offset + 32, {matrix});
  change("an offset that is not aligned", 24, offset + 1, {matrix});
  change("an offset past the end", 24, std::uint64_t{1} << 40, {"tensor", "offset"});
  refuse("another name", [&](Image& image) { image.head[at - matrix.size()] = 'B'; },
         {matrix.substr(1)});
  refuse("an integer norm",
         [](Image& image) {
           patch(image.head, image.description_of("blk.0.attn_norm.weight") + 12,
                 std::uint32_t{26});
         },
         {"blk.0.attn_norm.weight", "I32"});
}

TEST_P(DamagedGguf, OneWrongFieldOfTheHead) {
  const auto change = [&](const char* what, std::size_t at, auto value,
                          std::initializer_list<std::string_view> words) {
    refuse(
        what, [&](Image& image) { patch(image.head, at, value); }, words);
  };
  const Image whole(path_);
  const std::uint64_t tensors = whole.file().tensors().size();
  const std::uint64_t entries = whole.file().metadata().size();
  change("magic", 0, std::uint32_t{0x46554746}, {"magic", "GGUF"});
  change("version", 4, std::uint32_t{9}, {"version", "9"});
  change("one tensor more", 8, tensors + 1, {"tensor"});
  change("one tensor fewer", 8, tensors - 1, {"tensor"});
  change("no tensors", 8, std::uint64_t{0}, {"without tensors"});
  change("countless tensors", 8, ~std::uint64_t{0}, {"tensor"});
  change("one entry more", 16, entries + 1, {"tensor 0"});
  change("one entry fewer", 16, entries - 1, {"tensor"});
  change("countless entries", 16, ~std::uint64_t{0}, {"metadata"});
}

INSTANTIATE_TEST_SUITE_P(
    Files, DamagedGguf,
    ::testing::Values(Subject{"T1", &test_engine::engine, "blk.0.ffn_down.weight"},
                      Subject{"SmolLM2", &test_engine::engine, "blk.0.ffn_down.weight"}),
    [](const auto& subject) { return std::string(subject.param.name); });

}  // namespace
}  // namespace quipu_test
