#include "quipu/checkpoint/torch_pth.hpp"

#include <string>
#include <utility>
#include <vector>

#include "damage.hpp"

namespace quipu {
namespace {

using test::as_bytes;
using test::expect_error;
using test::put;

std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

struct Entry {
  std::string name;
  std::string bytes;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
};

std::string zip(const std::vector<Entry>& entries) {
  std::string out;
  std::string directory;
  for (const Entry& entry : entries) {
    const auto offset = static_cast<std::uint32_t>(out.size());
    const auto size = static_cast<std::uint32_t>(entry.bytes.size());
    std::string common;  // what the local and the central header share
    put(common, std::uint16_t{20});
    put(common, entry.flags);
    put(common, entry.method);
    put(common, std::uint32_t{0});  // time and date
    put(common, crc32_of(entry.bytes));
    put(common, size);
    put(common, size);
    put(common, static_cast<std::uint16_t>(entry.name.size()));
    put(common, std::uint16_t{0});  // extra field
    out += "PK\x03\x04" + common + entry.name + entry.bytes;
    directory += "PK\x01\x02";
    put(directory, std::uint16_t{20});
    directory += common;
    directory += std::string(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    put(directory, offset);
    directory += entry.name;
  }
  const auto start = static_cast<std::uint32_t>(out.size());
  out += directory + "PK\x05\x06" + std::string(4, '\0');
  put(out, static_cast<std::uint16_t>(entries.size()));
  put(out, static_cast<std::uint16_t>(entries.size()));
  put(out, static_cast<std::uint32_t>(directory.size()));
  put(out, start);
  put(out, std::uint16_t{0});
  return out;
}

std::string text_op(std::string_view text) {
  std::string out = "X";
  put(out, static_cast<std::uint32_t>(text.size()));
  return out + std::string(text);
}
std::string int_op(std::int32_t value) {
  std::string out = "J";
  put(out, value);
  return out;
}
std::string tuple_op(std::initializer_list<std::int32_t> values) {
  std::string out = "(";
  for (const std::int32_t value : values) out += int_op(value);
  return out + "t";
}

struct Tensor {
  std::string global = "ctorch._utils\n_rebuild_tensor_v2\n";
  std::string storage = "ctorch\nFloatStorage\n";
  std::string key = "0";
  std::int32_t storage_elements = 6;
  std::int32_t offset = 0;
  std::string extents = tuple_op({2, 3});
  std::string strides = tuple_op({3, 1});

  std::string pickle() const {
    return global + "((" + text_op("storage") + storage + text_op(key) + text_op("cpu") +
           int_op(storage_elements) + "tQ" + int_op(offset) + extents + strides + "\x89" +
           "ccollections\nOrderedDict\n)R" + "tR";
  }
};

const std::string begin =
    "\x80\x02"
    "ccollections\nOrderedDict\n)Rq" +
    std::string(1, '\0') + "(";

std::string state_dict(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::string out = begin;
  for (const auto& [name, tensor] : tensors) out += text_op(name) + tensor.pickle();
  return out + "u.";
}

std::string archive(const std::string& pickle, const std::string& storage = std::string(24, 's')) {
  return zip({{"m/data.pkl", pickle}, {"m/data/0", storage}, {"m/version", "3\n"}});
}

void expect_refused(const std::string& bytes, std::initializer_list<std::string_view> words) {
  expect_error<FormatError>([&] { (void)read_torch_file(as_bytes(bytes), "f.pth"); }, words);
}
void expect_tensor_refused(const Tensor& tensor, std::initializer_list<std::string_view> words) {
  expect_refused(archive(state_dict({{"w", tensor}})), words);
}

TEST(TorchPth, ReadsTensorsInPlace) {
  Tensor second;
  second.offset = 2;
  second.extents = tuple_op({1, 4});
  second.strides = tuple_op({99, 1});  // the stride of a single row is of no consequence
  const std::string bytes = archive(state_dict({{"a", {}}, {"b", second}}));
  const std::vector<TensorRecord> tensors = read_torch_file(as_bytes(bytes), "f");
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].extents, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(tensors[0].type, ElementType::f32);
  EXPECT_EQ(tensors[0].bytes, 24U);
  EXPECT_EQ(tensors[0].data, as_bytes(bytes).data() + bytes.find("ssss"));
  EXPECT_EQ(tensors[1].data - tensors[0].data, 8);
  EXPECT_EQ(tensors[1].bytes, 16U);
}

// What newer writers add: protocol 4 with frames, memo and STACK_GLOBAL; parameters; attributes of
// the dict; integers of other widths; lists and numbers in those attributes.
TEST(TorchPth, ReadsNewerPickles) {
  const std::string module =
      "\x8c\x0c"
      "torch._utils\x94\x8c\x12"
      "_rebuild_tensor_v2\x94\x93\x94";
  Tensor tensor;
  tensor.global = module;
  tensor.extents = std::string("K\x02M\x03\x00\x86", 6);
  tensor.strides = std::string("\x8a\x01\x03K\x01\x86", 6);
  std::string pickle = "\x80\x04\x95";
  put(pickle, std::uint64_t{100});
  pickle += "}\x94(" + text_op("w") + "ctorch._utils\n_rebuild_parameter\n" + tensor.pickle() +
            "\x88}\x87R" + "u";
  pickle += "}" + text_op("_metadata") +
            "](K\x01"
            "Ne" +
            "s";
  pickle += text_op("version") + "G" + std::string(8, '\0') + "s" + "b.";
  const std::string bytes = archive(pickle);
  const std::vector<TensorRecord> tensors = read_torch_file(as_bytes(bytes), "f");
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].extents, (std::vector<std::size_t>{2, 3}));
}

TEST(TorchPth, NeverCallsAnything) {
  const std::string system =
      "\x80\x02"
      "cos\nsystem\n" +
      text_op("true") + "\x85R.";
  expect_refused(archive(system),
                 {"f.pth", "\"os.system\"", "not allowed", "collections.OrderedDict",
                  "torch._utils._rebuild_tensor_v2", "torch.BFloat16Storage"});
  const std::string stack_global =
      "\x80\x04\x8c\x08"
      "builtins\x8c\x04"
      "eval\x93" +
      text_op("1") + "\x85R.";
  expect_refused(archive(stack_global), {"\"builtins.eval\""});
  Tensor tensor;
  tensor.global = "ctorch._utils\n_rebuild_qtensor\n";
  expect_tensor_refused(tensor, {"torch._utils._rebuild_qtensor"});
  const auto opcode = [](const std::string& tail, std::string_view name) {
    expect_refused(archive("\x80\x02" + tail), {"opcode", name, "ever executed"});
  };
  opcode("i", "INST");
  opcode("o", "OBJ");
  opcode("\x81", "NEWOBJ");
  opcode("\x82", "EXT1");
  opcode("P", "PERSID");
  opcode("\xf0", "240");
}

TEST(TorchPth, RefusesPicklesThatAreNoStateDict) {
  const auto refused = [](const std::string& tail, std::initializer_list<std::string_view> words) {
    expect_refused(archive("\x80\x02" + tail), words);
  };
  refused("N.", {"expected a dict", "None"});
  refused(".", {"stack is empty"});
  refused("NN.", {"left on the stack"});
  refused("}.more", {"4 bytes follow"});
  refused("}(" + text_op("w") + "Nu.", {"\"w\"", "expected a tensor", "None"});
  refused("}(" + text_op("w") + "u.", {"key without a value"});
  refused("}(NNu.", {"a key", "None"});
  refused("](NNu.", {"a list", "not in a dict"});
  refused("h\x07.", {"memo entry 7"});
  refused("t.", {"no mark"});
  refused("(R.", {"mark"});
  refused(std::string("(q\0", 3), {"memo"});
  refused("\x8a\x09" + std::string(9, 'x') + ".", {"9 bytes"});
  refused("NN\x85R.", {"function of a call", "None"});
  refused("ctorch\nFloatStorage\n)R.", {"FloatStorage", "not a function"});
  refused(
      "X\xff\xff\xff\xff"
      "abc",
      {"BINUNICODE", "4294967295"});
  refused("c" + std::string(3'000, 'a'), {"GLOBAL", "256"});
  refused("Nb.", {"stack is empty"});
  refused("NNb.", {"BUILD on None"});
  expect_refused(archive("\x80\x05}."), {"protocol", "2 to 4", "5"});
  expect_refused(archive("}."), {"PROTO"});
  const Tensor tensor;
  expect_refused(archive(state_dict({{"w", tensor}, {"w", tensor}})), {"\"w\" stands twice"});
}

TEST(TorchPth, SurvivesDeepNesting) {
  std::string deep = "\x80\x02N";
  for (int i = 0; i < 200'000; ++i) deep += '\x85';  // a tuple of a tuple of ...
  expect_refused(archive(deep + "."), {"expected a dict", "a tuple"});
  expect_refused(archive("\x80\x02" + std::string(200'000, '(')), {"opcode"});
}

TEST(TorchPth, RefusesTensorsThatLeaveTheirStorage) {
  const auto with = [](auto change) {
    Tensor tensor;
    change(tensor);
    return tensor;
  };
  expect_tensor_refused(with([](Tensor& t) { t.offset = 1; }),
                        {"\"w\"", "offset 1", "storage of 6"});
  expect_tensor_refused(with([](Tensor& t) { t.offset = -1; }), {"offset", "negative"});
  expect_tensor_refused(with([](Tensor& t) {
                          t.extents = tuple_op({0, 3});
                        }),
                        {"\"w\"", "extent is 0"});
  expect_tensor_refused(with([](Tensor& t) { t.extents = tuple_op({-2, 3}); }), {"negative"});
  expect_tensor_refused(with([](Tensor& t) {
                          t.extents = tuple_op({3, 3});
                        }),
                        {"\"w\"", "more elements"});
  expect_tensor_refused(with([](Tensor& t) {
                          t.extents = tuple_op({2147483647, 2147483647, 2147483647});
                          t.strides = tuple_op({1, 1, 1});
                        }),
                        {"\"w\""});
  expect_tensor_refused(with([](Tensor& t) {
                          t.strides = tuple_op({1, 2});
                        }),
                        {"\"w\"", "stride", "contiguous"});
  expect_tensor_refused(with([](Tensor& t) { t.strides = tuple_op({3}); }),
                        {"2 extents", "1 strides"});
  expect_tensor_refused(with([](Tensor& t) { t.extents = int_op(3); }), {"extents", "an int"});
  expect_tensor_refused(with([](Tensor& t) { t.key = "7"; }), {"\"w\"", "\"m/data/7\"", "not in"});
  expect_tensor_refused(with([](Tensor& t) { t.storage_elements = 7; }),
                        {"\"w\"", "7 elements", "24 bytes"});
  expect_tensor_refused(with([](Tensor& t) { t.storage = "ctorch\nDoubleStorage\n"; }),
                        {"float64"});
  expect_tensor_refused(with([](Tensor& t) { t.storage = "ccollections\nOrderedDict\n"; }),
                        {"no storage class"});
  Tensor scalar = with([](Tensor& t) {
    t.extents = tuple_op({});
    t.strides = tuple_op({});
    t.storage_elements = 0;
  });
  expect_refused(archive(state_dict({{"w", scalar}}), ""), {"\"w\"", "run past the end"});
}

TEST(TorchPth, RefusesOtherArchives) {
  const std::string pickle = state_dict({{"w", {}}});
  const Entry storage{"m/data/0", std::string(24, 's')};
  expect_refused(zip({{"a.txt", "x"}}), {"without NAME/data.pkl"});
  expect_refused(zip({{"m/data.pkl", pickle}, {"n/data.pkl", pickle}}), {"two pickles"});
  expect_refused(zip({{"m/data.pkl", pickle}, storage, {"m/constants.pkl", ""}}), {"TorchScript"});
  expect_refused(zip({{"m/data.pkl", pickle}, storage, {"m/byteorder", "big"}}),
                 {"byteorder", "little", "big"});
  expect_refused(zip({{"m/data.pkl", pickle}, storage, storage}), {"\"m/data/0\" stands twice"});
  Entry compressed = storage;
  compressed.method = 8;
  expect_refused(zip({{"m/data.pkl", pickle}, compressed}), {"\"m/data/0\"", "compressed"});
  Entry encrypted = storage;
  encrypted.flags = 1;
  expect_refused(zip({{"m/data.pkl", pickle}, encrypted}), {"\"m/data/0\"", "encrypted"});
  std::string legacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
  expect_refused(legacy, {"legacy format", "re-save"});
  std::string wrong = archive(pickle);
  wrong[wrong.find("OrderedDict")] = 'X';
  expect_refused(wrong, {"data.pkl", "CRC-32"});
}

TEST(TorchPth, RefusesTrailingBytes) {
  const std::string good = archive(state_dict({{"w", {}}}));
  for (const std::size_t more : std::initializer_list<std::size_t>{1, 22, 4096}) {
    expect_refused(good + std::string(more, '\0'), {"f.pth", "does not end with"});
  }
}

TEST(TorchPth, RefusesEveryTruncation) {
  test::expect_truncation_refused(archive(state_dict({{"w", {}}})),
                                  [](auto bytes) { (void)read_torch_file(bytes, "f"); });
}

TEST(TorchPth, SurvivesRandomDamage) {
  const std::string pickle = state_dict({{"w", {}}, {"v", {}}});
  test::fuzz(archive(pickle), 3'000, [](auto bytes) { return read_torch_file(bytes, "f"); });
  // The same on the pickle alone: in the archive its checksum catches nearly all damage.
  test::fuzz(pickle, 20'000, [](auto bytes) {
    (void)read_state_dict_pickle(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "f");
    return std::vector<TensorRecord>();
  });
}

}  // namespace
}  // namespace quipu
