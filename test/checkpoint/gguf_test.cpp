#include "quipu/checkpoint/gguf.hpp"

#include <limits>
#include <string>
#include <vector>

#include "damage.hpp"
#include "quipu/checkpoint/gguf_facts.hpp"
#include "quipu/checkpoint/gguf_writer.hpp"

namespace quipu {
namespace {

using test::as_bytes;
using test::expect_error;
using test::patch;
using test::put;

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

struct TensorField {
  std::string name;
  std::vector<std::uint64_t> extents;  // innermost first, as in the file
  std::uint32_t type;
  std::uint64_t offset;
};

// A small file with every field in reach: one string key, one array, then the given entries.
struct Parts {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::string entries;  // further metadata
  std::uint64_t entry_count = 2;
  std::vector<TensorField> tensors = {{"a", {4, 2}, 0, 0}, {"b", {32, 1}, 8, 32}};
  std::uint64_t tensor_count = 2;
  std::size_t data_bytes = 96;  // a: 32 bytes; b: 34, padded to 64

  std::string bytes() const {
    std::string out = magic;
    put(out, version);
    put(out, tensor_count);
    put(out, entry_count);
    put_text(out, "general.architecture");
    put(out, std::uint32_t{8});
    put_text(out, "llama");
    put_text(out, "tokenizer.ggml.tokens");
    put(out, std::uint32_t{9});
    put(out, std::uint32_t{8});
    put(out, std::uint64_t{2});
    put_text(out, "x");
    put_text(out, "yz");
    out += entries;
    for (const TensorField& tensor : tensors) {
      put_text(out, tensor.name);
      put(out, static_cast<std::uint32_t>(tensor.extents.size()));
      for (const std::uint64_t extent : tensor.extents) put(out, extent);
      put(out, tensor.type);
      put(out, tensor.offset);
    }
    out.resize((out.size() + 31) / 32 * 32 + data_bytes, '\0');
    return out;
  }
};

void entry(Parts& parts, std::string_view key, std::uint32_t type, std::string_view value) {
  put_text(parts.entries, key);
  put(parts.entries, type);
  parts.entries += value;
  ++parts.entry_count;
}
template <class T>
std::string raw(T value) {
  std::string out;
  put(out, value);
  return out;
}

void expect_refused(const std::string& bytes, std::initializer_list<std::string_view> words) {
  expect_error<FormatError>([&] { GgufFile(as_bytes(bytes), "f.gguf"); }, words);
}

TEST(Gguf, ReadsTensorsAndMetadata) {
  Parts parts;
  entry(parts, "u", 4, raw(std::uint32_t{7}));
  entry(parts, "i", 5, raw(std::int32_t{-1}));
  entry(parts, "flag", 7, raw(std::uint8_t{1}));
  entry(parts, "eps", 6, raw(1e-5F));
  const std::string bytes = parts.bytes();
  const GgufFile file(as_bytes(bytes), "f.gguf");
  EXPECT_EQ(file.get<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(file.get_array<std::string_view>("tokenizer.ggml.tokens"),
            (std::vector<std::string_view>{"x", "yz"}));
  EXPECT_EQ(file.get<std::uint32_t>("u"), 7U);
  EXPECT_EQ(file.get_unsigned("u"), 7U);
  EXPECT_TRUE(file.get<bool>("flag"));
  EXPECT_EQ(file.get_real("eps"), static_cast<double>(1e-5F));
  EXPECT_EQ(file.get_if<float>("none"), std::nullopt);
  expect_error<FormatError>([&] { (void)file.get<std::uint64_t>("u"); },
                            {"f.gguf", "key \"u\"", "expected type u64", "found type u32"});
  expect_error<FormatError>([&] { (void)file.get<std::uint32_t>("none"); },
                            {"\"none\" is missing"});
  expect_error<FormatError>([&] { (void)file.get_unsigned("i"); }, {"\"i\"", "-1"});
  expect_error<FormatError>([&] { (void)file.get_unsigned("eps"); }, {"an integer", "type f32"});
  expect_error<FormatError>([&] { (void)file.get_array<float>("tokenizer.ggml.tokens"); },
                            {"array of f32", "array of string"});
  ASSERT_EQ(file.tensors().size(), 2U);
  const TensorRecord& a = file.tensors()[0];
  EXPECT_EQ(a.extents, (std::vector<std::size_t>{2, 4}));  // outermost first
  EXPECT_EQ(a.type, ElementType::f32);
  EXPECT_EQ(a.bytes, 32U);
  EXPECT_EQ(file.tensors()[1].type, ElementType::q8_0);
  EXPECT_EQ(file.tensors()[1].data - a.data, 32);
}

TEST(Gguf, ReadsVersion2AndRefusesOthers) {
  Parts parts;
  parts.version = 2;
  EXPECT_EQ(GgufFile(as_bytes(parts.bytes()), "f").version(), 2U);
  parts.version = 1;
  expect_refused(parts.bytes(), {"f.gguf", "version", "2 or 3", "found 1"});
  parts.version = 0x03000000;
  expect_refused(parts.bytes(), {"big-endian"});
  parts.version = 3;
  parts.magic = "GGML";
  expect_refused(parts.bytes(), {"magic", "\"GGML\""});
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  for (const std::uint64_t count : {std::uint64_t{1} << 60, std::uint64_t{1} << 31,
                                    (std::numeric_limits<std::uint64_t>::max)()}) {
    Parts parts;
    parts.tensor_count = count;
    expect_refused(parts.bytes(), {"tensors", std::to_string(count)});
    parts = {};
    parts.entry_count = count;
    expect_refused(parts.bytes(), {"metadata entries", std::to_string(count)});
  }
}

TEST(Gguf, RefusesBadMetadata) {
  const auto refused = [](std::string_view key, std::uint32_t type, std::string_view value,
                          std::initializer_list<std::string_view> words) {
    Parts parts;
    entry(parts, key, type, value);
    expect_refused(parts.bytes(), words);
  };
  constexpr std::uint64_t huge = std::uint64_t{1} << 60;
  refused("k", 13, "", {"key \"k\"", "value type", "13"});
  refused("k", 8, raw(huge), {"key \"k\"", "string"});
  refused("k", 8, raw((std::numeric_limits<std::uint64_t>::max)()), {"key \"k\"", "string"});
  refused("k", 9, raw(std::uint32_t{4}) + raw(huge), {"key \"k\"", "elements"});
  refused("k", 9, raw(std::uint32_t{8}) + raw(huge), {"key \"k\"", "strings"});
  refused("k", 9, raw(std::uint32_t{99}) + raw(huge), {"key \"k\"", "element type", "99"});
  refused("k", 9, raw(std::uint32_t{9}) + raw(std::uint64_t{1}), {"key \"k\"", "array of arrays"});
  refused("k", 7, raw(std::uint8_t{2}), {"key \"k\"", "bool", "2"});
  refused("", 4, raw(std::uint32_t{1}), {"entry 2", "empty"});
  refused("general.architecture", 4, raw(std::uint32_t{1}), {"general.architecture", "twice"});
  refused("general.alignment", 8, raw(std::uint64_t{0}), {"general.alignment", "u32", "string"});
  refused("general.alignment", 4, raw(std::uint32_t{0}), {"general.alignment", "power of two"});
  refused("general.alignment", 4, raw(std::uint32_t{48}), {"general.alignment", "48"});
}

TEST(Gguf, RefusesBadTensors) {
  const auto refused = [](std::size_t index, TensorField tensor,
                          std::initializer_list<std::string_view> words) {
    Parts parts;
    parts.tensors[index] = std::move(tensor);
    expect_refused(parts.bytes(), words);
  };
  constexpr std::uint64_t huge = std::uint64_t{1} << 40;
  refused(0, {"a", {4, 0}, 0, 0}, {"tensor \"a\"", "extent is 0"});
  refused(0, {"a", {huge, huge}, 0, 0}, {"tensor \"a\"", "does not fit"});
  refused(0, {"a", {huge}, 0, 0}, {"tensor \"a\"", "needs"});
  refused(0, {"a", {}, 0, 0}, {"tensor \"a\"", "number of extents", "0"});
  refused(0, {"a", {1, 1, 1, 1, 1}, 0, 0}, {"tensor \"a\"", "number of extents", "5"});
  refused(0, {"", {4, 2}, 0, 0}, {"tensor 0", "empty"});
  refused(1, {"a", {32, 1}, 8, 32}, {"tensor \"a\"", "twice"});
  refused(1, {"b", {31, 1}, 8, 32}, {"tensor \"b\"", "31", "blocks of 32", "Q8_0"});
  refused(1, {"b", {33, 1}, 2, 32}, {"tensor \"b\"", "33", "Q4_0"});
  refused(1, {"b", {255, 1}, 12, 32}, {"tensor \"b\"", "255", "256", "Q4_K"});
  refused(1, {"b", {32, 1}, 8, 0}, {"offset", "expected 32", "found 0", "overlaps"});
  refused(1, {"b", {32, 1}, 8, 64}, {"tensor \"b\"", "offset", "found 64", "gap"});
  refused(1, {"b", {32, 1}, 8, 33}, {"tensor \"b\"", "offset", "multiple of the alignment"});
  refused(1, {"b", {32, 1}, 8, (std::numeric_limits<std::uint64_t>::max)() - 31},
          {"tensor \"b\"", "offset"});
  refused(0, {"a", {4, 2}, 0, 96}, {"offset"});
  refused(1, {"b", {32, 9}, 8, 32}, {"tensor \"b\"", "306 bytes", "cut short"});
}

TEST(Gguf, ListsTypesItDoesNotComputeWith) {
  Parts parts;
  parts.tensors[1].type = 20;  // IQ4_NL: blocks of 18 bytes
  const std::string known = parts.bytes();
  EXPECT_THROW(GgufFile(as_bytes(known), "f"), FormatError);  // 32 bytes of padding too many
  parts.data_bytes = 64;
  const std::string fits = parts.bytes();
  const GgufFile file(as_bytes(fits), "f");
  EXPECT_EQ(file.tensors()[1].type, std::nullopt);
  EXPECT_EQ(file.tensors()[1].type_name, "IQ4_NL");
  parts.tensors[1].type = 777;
  const std::string unknown = parts.bytes();
  const GgufFile other(as_bytes(unknown), "f");
  EXPECT_EQ(other.tensors()[1].type_name, "ggml type 777");
  EXPECT_EQ(other.tensors()[1].bytes, 32U);
}

TEST(Gguf, RefusesTrailingBytes) {
  const std::string good = Parts{}.bytes();
  EXPECT_NO_THROW(GgufFile(as_bytes(good), "f"));
  EXPECT_NO_THROW(GgufFile(as_bytes(good.substr(0, good.size() - 30)), "f"));  // unpadded
  for (const std::size_t more : std::initializer_list<std::size_t>{1, 32, 4096}) {
    expect_refused(good + std::string(more, '\0'), {"bytes follow the last tensor \"b\""});
  }
  std::string dirty = good;
  dirty.back() = 'x';
  expect_refused(dirty, {"padding", "not zero"});
}

TEST(Gguf, RefusesEveryTruncation) {
  const std::string good = Parts{}.bytes();
  // The last 30 bytes are padding, which a file may lack.
  test::expect_truncation_refused(good.substr(0, good.size() - 30),
                                  [](auto bytes) { GgufFile(bytes, "f"); });
}

TEST(Gguf, SurvivesRandomDamage) {
  Parts parts;
  entry(parts, "general.alignment", 4, raw(std::uint32_t{32}));
  entry(parts, "llama.block_count", 4, raw(std::uint32_t{2}));
  test::fuzz(parts.bytes(), 40'000, [](auto bytes) {
    const GgufFile file(bytes, "f");
    try {
      (void)facts_from_gguf(file);
      (void)file.get_array_if<std::string_view>("tokenizer.ggml.tokens");
    } catch (const FormatError&) {
    }
    return std::vector<TensorRecord>(file.tensors().begin(), file.tensors().end());
  });
}

TEST(Gguf, StatesFacts) {
  Parts parts;
  const auto size = [&](std::string_view key, std::uint32_t value) {
    entry(parts, key, 4, raw(value));
  };
  size("llama.embedding_length", 576);
  size("llama.block_count", 30);
  size("llama.attention.head_count", 9);
  size("llama.attention.head_count_kv", 3);
  size("llama.feed_forward_length", 1536);
  size("llama.rope.dimension_count", 64);
  size("llama.context_length", 8192);
  entry(parts, "llama.rope.freq_base", 6, raw(100000.0F));
  entry(parts, "llama.attention.layer_norm_rms_epsilon", 6, raw(1e-5F));
  const std::string bytes = parts.bytes();
  const ModelFacts facts = facts_from_gguf(GgufFile(as_bytes(bytes), "f"));
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.dim, 576U);
  EXPECT_EQ(facts.n_layers, 30U);
  EXPECT_EQ(facts.n_heads, 9U);
  EXPECT_EQ(facts.n_kv_heads, 3U);
  EXPECT_EQ(facts.head_dim, 64U);
  EXPECT_EQ(facts.ffn, 1536U);
  EXPECT_EQ(facts.vocab_size, 2U);  // the tokenizer's, for want of llama.vocab_size
  EXPECT_EQ(facts.context_length, 8192U);
  EXPECT_EQ(facts.rope_theta, 100000.0);
  EXPECT_EQ(facts.norm_eps, static_cast<double>(1e-5F));
  EXPECT_EQ(facts.tied, true);
  EXPECT_EQ(facts.rope_scaled, false);

  entry(parts, "llama.attention.key_length", 4, raw(std::uint32_t{32}));
  const std::string partial = parts.bytes();
  expect_error<FormatError>([&] { facts_from_gguf(GgufFile(as_bytes(partial), "f")); },
                            {"llama.rope.dimension_count", "32", "64"});
}

TEST(Gguf, WriterIsReadBack) {
  const test::Folder folder;
  const std::string path = folder / "w.gguf";
  GgufMetadata metadata;
  metadata.set("general.architecture", std::string_view("llama"));
  metadata.set("llama.block_count", std::uint32_t{1});
  metadata.set("flag", true);
  const std::vector<std::string_view> tokens = {"a", "", "\xff"};
  metadata.set_array("tokenizer.ggml.tokens", std::span<const std::string_view>(tokens));
  const std::string source = Parts{}.bytes();
  const GgufFile other(as_bytes(source), "f");
  expect_error<ArgumentError>([&] { metadata.copy(*other.find("general.architecture")); },
                              {"general.architecture", "twice"});
  const std::vector<GgufPlan> plan = {{"v", ElementType::f32, {3}},
                                      {"m", ElementType::q8_0, {2, 64}}};
  std::vector<std::size_t> done;
  GgufWriter writer(path, metadata, plan,
                    [&](std::size_t now, std::size_t) { done.push_back(now); });
  const std::string v(12, 'v');
  const std::string m(136, 'm');
  expect_error<ArgumentError>([&] { writer.append("m", as_bytes(m)); }, {"\"v\"", "\"m\""});
  writer.append("v", as_bytes(v).subspan(0, 5));
  writer.append("v", as_bytes(v).subspan(5));
  expect_error<ArgumentError>([&] { writer.finish(); }, {"\"m\"", "in full"});
  writer.append("m", as_bytes(m));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.finish();
  EXPECT_EQ(done, (std::vector<std::size_t>{5, 12, 148}));
  EXPECT_EQ(folder.files(), 1U);

  const std::string bytes = test::contents(path);
  const GgufFile file(as_bytes(bytes), path);
  EXPECT_EQ(file.get_array<std::string_view>("tokenizer.ggml.tokens"), tokens);
  EXPECT_TRUE(file.get<bool>("flag"));
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[1].extents, (std::vector<std::size_t>{2, 64}));
  EXPECT_EQ(std::memcmp(file.tensors()[0].data, v.data(), v.size()), 0);
  EXPECT_EQ(std::memcmp(file.tensors()[1].data, m.data(), m.size()), 0);
}

TEST(Gguf, AbandonedWriterLeavesTheFormerFile) {
  const test::Folder folder;
  const std::string path = folder.write("w.gguf", "former");
  const std::vector<GgufPlan> plan = {{"v", ElementType::f32, {3}}};
  { GgufWriter writer(path, GgufMetadata{}, plan); }
  EXPECT_EQ(test::contents(path), "former");
  EXPECT_EQ(folder.files(), 1U);
  const auto refused = [&](GgufPlan tensor, std::initializer_list<std::string_view> words) {
    const std::vector<GgufPlan> bad = {std::move(tensor)};
    expect_error<ArgumentError>([&] { GgufWriter(path, GgufMetadata{}, bad); }, words);
  };
  refused({"v", ElementType::q4_k, {255}}, {"\"v\"", "255", "q4_k"});
  refused({"v", ElementType::f32, {}}, {"\"v\"", "extents"});
  refused({"v", ElementType::f32, {0}}, {"\"v\"", "0"});
  expect_error<FileError>([&] { GgufWriter(folder / "no/w.gguf", GgufMetadata{}, plan); },
                          {"no/w.gguf", "No such file"});
}

}  // namespace
}  // namespace quipu
