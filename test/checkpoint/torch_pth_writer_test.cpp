// Files of torch.save as we write them, read by our own strict reader; that torch itself reads them
// is judged by test/engine/programs_test.py where torch is at hand.
#include "quipu/checkpoint/torch_pth_writer.hpp"

#include <gtest/gtest.h>

#include <random>

#include "damage.hpp"
#include "quipu/checkpoint/torch_pth.hpp"

namespace quipu {
namespace {

using test::expect_error;

std::vector<std::byte> random_bytes(std::size_t bytes) {
  std::mt19937 random(5);
  std::vector<std::byte> out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

TEST(TorchWriter, WritesWhatTheReaderReads) {
  const test::Folder folder;
  const std::string path = folder / "a.pth";
  const std::vector<TorchPlan> plan{{"tok_embeddings.weight", ElementType::bf16, {300, 70}},
                                    {"norm.weight", ElementType::f32, {7}},
                                    {"output.weight", ElementType::f16, {3, 1}}};
  std::vector<std::vector<std::byte>> values;
  std::size_t told = 0;
  TorchWriter writer(path, plan, [&](std::size_t done, std::size_t) { told = done; });
  for (const TorchPlan& tensor : plan) {
    std::size_t bytes = info(tensor.type).block_bytes;
    for (const std::size_t extent : tensor.extents) bytes *= extent;
    values.push_back(random_bytes(bytes));
    const std::span<const std::byte> all = values.back();
    writer.append(tensor.name, all.first(bytes / 3));
    writer.append(tensor.name, all.subspan(bytes / 3));
  }
  EXPECT_EQ(folder.files(), 1u);  // not yet under its name
  writer.finish();
  const std::string bytes = test::contents(path);
  const auto tensors = read_torch_file(test::as_bytes(bytes), path);
  ASSERT_EQ(tensors.size(), plan.size());
  std::size_t sum = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(tensors[i].name, plan[i].name);
    EXPECT_EQ(tensors[i].type, plan[i].type);
    EXPECT_EQ(tensors[i].extents, plan[i].extents);
    ASSERT_EQ(tensors[i].bytes, values[i].size());
    EXPECT_EQ(std::memcmp(tensors[i].data, values[i].data(), values[i].size()), 0);
    const auto* start = reinterpret_cast<const std::byte*>(bytes.data());
    EXPECT_EQ(static_cast<std::size_t>(tensors[i].data - start) % ZipWriter::alignment, 0u);
    sum += tensors[i].bytes;
  }
  EXPECT_EQ(told, sum);
  // The checksums too, which a reader of storages in place does not look at.
  const ZipArchive archive(test::as_bytes(bytes), path);
  for (const ZipEntry& entry : archive.entries()) {
    EXPECT_EQ(archive.unpack(entry, 1 << 20).size(), entry.bytes) << entry.name;
  }
}

TEST(TorchWriter, RefusesByNameAndLeavesNothing) {
  const test::Folder folder;
  const auto write = [&](std::vector<TorchPlan> plan) {
    return [&folder, plan = std::move(plan)] { TorchWriter(folder / "a.pth", plan); };
  };
  expect_error<ArgumentError>(write({{"a", ElementType::f32, {2}}, {"a", ElementType::f32, {2}}}),
                              {"a.pth", "tensor \"a\"", "taken"});
  expect_error<ArgumentError>(write({{"a", ElementType::q8_0, {32}}}), {"\"a\"", "q8_0"});
  expect_error<ArgumentError>(write({{"a", ElementType::f32, {2, 0}}}), {"\"a\"", "extent is 0"});
  expect_error<FileError>([&] { TorchWriter(folder / "no/such.pth", std::vector<TorchPlan>{}); },
                          {"no/such.pth"});
  {
    TorchWriter writer(folder / "a.pth",
                       std::vector<TorchPlan>{{"a", ElementType::f32, {2}}, {"b", {}, {1}}});
    const std::vector<std::byte> eight(8), four(4);
    expect_error<ArgumentError>([&] { writer.append("b", four); }, {"\"a\"", "\"b\""});
    writer.append("a", four);
    expect_error<ArgumentError>([&] { writer.append("a", eight); }, {"has 8 bytes", "12"});
    expect_error<ArgumentError>([&] { writer.finish(); }, {"\"a\"", "not written in full"});
  }
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace quipu
