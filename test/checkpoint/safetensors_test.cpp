#include "quipu/checkpoint/safetensors.hpp"

#include <string>
#include <vector>

#include "damage.hpp"
#include "quipu/checkpoint/safetensors_writer.hpp"

namespace quipu {
namespace {

using test::as_bytes;
using test::expect_error;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string out;
  test::put(out, static_cast<std::uint64_t>(header.size()));
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>('A' + i % 26);
  return out;
}

const std::string good_header =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})";

void expect_refused(const std::string& header, std::size_t data_bytes,
                    std::initializer_list<std::string_view> words) {
  const std::string bytes = file_of(header, data_bytes);
  expect_error<FormatError>([&] { SafetensorsFile(as_bytes(bytes), "f.safetensors"); }, words);
}

TEST(Safetensors, ReadsTensors) {
  const std::string bytes = file_of(good_header + "   ", 32);
  const SafetensorsFile file(as_bytes(bytes), "f");
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].extents, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(file.tensors()[0].type, ElementType::f32);
  EXPECT_EQ(file.tensors()[1].type, ElementType::bf16);
  EXPECT_EQ(file.tensors()[1].data - file.tensors()[0].data, 24);
  ASSERT_EQ(file.metadata().size(), 1U);
  EXPECT_EQ(file.metadata()[0].second, "pt");
}

TEST(Safetensors, AcceptsOtherTypesEmptyTensorsAndNone) {
  const std::string bytes = file_of(R"({"t":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                                    R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]},)"
                                    R"("x":{"dtype":"F4_NEW","shape":[3],"data_offsets":[8,10]}})",
                                    10);
  const SafetensorsFile file(as_bytes(bytes), "f");
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].type, std::nullopt);
  EXPECT_EQ(file.tensors()[0].type_name, "I64");
  EXPECT_EQ(file.tensors()[1].elements(), 0U);
  EXPECT_EQ(file.tensors()[2].type_name, "F4_NEW");
  EXPECT_TRUE(SafetensorsFile(as_bytes(file_of("{}", 0)), "f").tensors().empty());
}

TEST(Safetensors, ChecksTheHeaderLengthAgainstTheFileFirst) {
  const auto refused = [](std::uint64_t length, const SafetensorsLimits& limits,
                          std::initializer_list<std::string_view> words) {
    std::string bytes = file_of(good_header, 32);
    test::patch(bytes, 0, length);
    expect_error<FormatError>([&] { SafetensorsFile(as_bytes(bytes), "f", limits); }, words);
  };
  refused(0, {}, {"header length", "at least 2", "found 0"});
  refused(1, {}, {"header length", "found 1"});
  refused(8, {}, {"header", "JSON"});
  refused(100'000'001, {}, {"header length", "rest of the file", "100000001"});
  refused(std::uint64_t{1} << 63, {}, {"header length", "9223372036854775808"});
  refused(good_header.size(), {.header_bytes = 10}, {"SafetensorsLimits::header_bytes"});
}

TEST(Safetensors, RefusesBadHeaders) {
  expect_refused("[]", 0, {"header", "'{'"});
  expect_refused("{\"a\":", 0, {"JSON"});
  expect_refused("{} {}", 0, {"JSON"});
  expect_refused("{\"\xff\":1}", 0, {"JSON"});
  expect_refused(R"({"a":1})", 0, {"tensor \"a\"", "an object", "found 1"});
  const auto tensor = [](const char* fields) { return std::string(R"({"a":{)") + fields + "}}"; };
  expect_refused(tensor(R"("shape":[1],"data_offsets":[0,4])"), 4, {"\"a\"", "dtype is missing"});
  expect_refused(tensor(R"("dtype":"F32","data_offsets":[0,4])"), 4, {"shape is missing"});
  expect_refused(tensor(R"("dtype":"F32","shape":[1])"), 4, {"data_offsets is missing"});
  expect_refused(tensor(R"("dtype":5,"shape":[1],"data_offsets":[0,4])"), 4, {"dtype", "5"});
  expect_refused(tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4, {"shape", "-1"});
  expect_refused(tensor(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), 4, {"shape"});
  expect_refused(tensor(R"("dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,4])"), 4,
                 {"shape", "does not fit"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4,
                 {"\"a\"", "8 bytes", "F32 [2]", "found 4"});
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4, {"begin <= end"});
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), 4, {"[begin, end]"});
  expect_refused(tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8,
                 {"\"a\"", "expected 0", "found 4"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                 2, {"\"a\" twice"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                 3, {"\"b\"", "overlaps tensor \"a\""});
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
                 5, {"\"b\"", "gap after tensor \"a\""});
  expect_refused(R"({"__metadata__":{"format":1}})", 0, {"__metadata__", "format"});
  expect_refused(std::string(100'000, '['), 0, {"'{'"});
  expect_refused("{\"a\":" + std::string(100'000, '['), 0, {"nested deeper"});
}

TEST(Safetensors, RefusesTrailingBytesAndEveryTruncation) {
  const std::string good = file_of(good_header, 32);
  for (const std::size_t more : std::initializer_list<std::size_t>{1, 4096}) {
    const std::string bytes = good + std::string(more, '\0');
    expect_error<FormatError>([&] { SafetensorsFile(as_bytes(bytes), "f"); },
                              {std::to_string(more) + " bytes follow"});
  }
  test::expect_truncation_refused(good, [](auto bytes) { SafetensorsFile(bytes, "f"); });
}

TEST(Safetensors, SurvivesRandomDamage) {
  test::fuzz(file_of(good_header, 32), 40'000, [](auto bytes) {
    const SafetensorsFile file(bytes, "f");
    return std::vector<TensorRecord>(file.tensors().begin(), file.tensors().end());
  });
}

TEST(Safetensors, WriterIsReadBack) {
  const test::Folder folder;
  const std::string path = folder / "w.safetensors";
  const std::string odd = "q\"\\\n\x01 \xc3\xa9";  // a name that JSON must escape
  const std::vector<SafetensorsPlan> plan = {
      {odd, "F32", {2, 2}}, {"empty", "BF16", {0}}, {"ids", "I64", {3}}};
  SafetensorsWriter writer(path, plan, {{"format", "pt"}, {"k", "v"}});
  const std::string first(16, 'x');
  const std::string last(24, 'y');
  writer.append(odd, as_bytes(first));
  expect_error<ArgumentError>([&] { writer.append("ids", as_bytes(last + "z")); },
                              {"\"ids\"", "24 bytes", "25"});
  writer.append("ids", as_bytes(last));
  writer.finish();
  const std::string bytes = test::contents(path);
  const SafetensorsFile file(as_bytes(bytes), path);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, odd);
  EXPECT_EQ(file.metadata().size(), 2U);
  EXPECT_EQ((file.tensors()[0].data - as_bytes(bytes).data()) % 8, 0);
  EXPECT_EQ(std::memcmp(file.tensors()[2].data, last.data(), last.size()), 0);

  const auto refused = [&](std::vector<SafetensorsPlan> bad, std::string_view word) {
    expect_error<ArgumentError>([&] { SafetensorsWriter(path, bad); }, {word});
  };
  refused({{"a", "Q8_0", {32}}}, "Q8_0");
  refused({{"a", "F32", {1}}, {"a", "F32", {1}}}, "taken");
  EXPECT_EQ(safetensors_name(ElementType::bf16), "BF16");
  EXPECT_EQ(safetensors_name(ElementType::q8_0), "");
}

}  // namespace
}  // namespace quipu
