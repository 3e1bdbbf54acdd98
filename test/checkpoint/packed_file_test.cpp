// Packed files as files: what a record says of panels, whole and damaged, and that nobody else
// takes them for anything. Loading and running: test/engine/packed_test.cpp.
#include "quipu/checkpoint/packed_file.hpp"

#include <gtest/gtest.h>

#include <random>

#include "damage.hpp"
#include "quipu/checkpoint/open_checkpoint.hpp"

namespace quipu {
namespace {

using test::as_bytes;
using test::expect_error;

std::vector<std::byte> random_rows(ElementType type, std::size_t rows, std::size_t cols) {
  std::mt19937 random(3);
  std::vector<std::byte> bytes(rows * row_bytes(type, cols));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

/// A file of two matrices in panels (20 outputs leave a part of a panel empty) and a vector.
struct SmallFile {
  std::vector<std::byte> a = random_rows(ElementType::q8_0, 20, 64);
  std::vector<std::byte> b = random_rows(ElementType::f32, 3, 5);
  test::Folder folder;
  std::string bytes;

  /// `change` may add to or replace the metadata's keys.
  explicit SmallFile(std::uint32_t version = packed_layout_version,
                     std::uint32_t width = panel_outputs,
                     std::vector<std::string_view> types = {"q8_0", "f32"},
                     std::vector<std::uint64_t> extents = {20, 64, 3, 5}) {
    std::vector<GgufPlan> plan{
        {"blk.0.a", ElementType::q8_0, {20, 64}, packed_bytes(ElementType::q8_0, 20, 64)},
        {"norm", ElementType::f32, {4}},
        {"blk.0.b", ElementType::f32, {3, 5}, packed_bytes(ElementType::f32, 3, 5)}};
    GgufMetadata metadata;
    metadata.set("general.architecture", packed_architecture);
    metadata.set("quipu.packed_layout", version);
    metadata.set("quipu.panel_outputs", width);
    metadata.set_array<std::string_view>("quipu.panels.types", types);
    metadata.set_array<std::uint64_t>("quipu.panels.extents", extents);
    const std::string path = folder / "small.quipu";
    GgufWriter writer(path, metadata, plan, {}, packed_alignment);
    std::vector<std::byte> panels(plan[0].opaque_bytes);
    pack(row_major_view(a.data(), ElementType::q8_0, 20, 64), panels.data(), 0, 2);
    writer.append("blk.0.a", panels);
    writer.append("norm", std::vector<std::byte>(16));
    panels.resize(plan[2].opaque_bytes);
    pack(row_major_view(b.data(), ElementType::f32, 3, 5), panels.data(), 0, 1);
    writer.append("blk.0.b", panels);
    writer.finish();
    bytes = test::contents(path);
  }
};

std::vector<TensorRecord> records(std::span<const std::byte> bytes) {
  return checkpoint_from_bytes(bytes, "f.quipu").tensors();
}

TEST(PackedFile, RecordsAreTheLogicalMatrices) {
  const SmallFile small;
  const Checkpoint file = checkpoint_from_bytes(as_bytes(small.bytes), "f.quipu");
  EXPECT_EQ(file.format, FileFormat::packed);
  EXPECT_EQ(file.facts.architecture, "llama");
  const TensorRecord& a = *file.find("blk.0.a");
  EXPECT_EQ(a.type, ElementType::q8_0);
  EXPECT_EQ(a.type_name, "Q8_0");
  EXPECT_EQ(a.layout, Layout::panels);
  EXPECT_EQ(a.extents, (std::vector<std::size_t>{20, 64}));
  EXPECT_EQ(a.elements(), 1280u);
  EXPECT_EQ(file.find("norm")->layout, Layout::row_major);
  for (const TensorRecord& tensor : file.tensors()) {
    EXPECT_EQ(static_cast<std::size_t>(tensor.data - as_bytes(small.bytes).data()) % 64, 0u);
  }
}

/// Rows come back as they were packed: whole, cut by rows and by columns.
TEST(PackedFile, RowsComeBack) {
  const SmallFile small;
  const Checkpoint file = checkpoint_from_bytes(as_bytes(small.bytes), "f.quipu");
  const TensorSource a = file.source("blk.0.a", ShardAxis::none);
  std::vector<std::byte> rows(small.a.size());
  a.read_rows(0, 20, rows.data());
  EXPECT_EQ(rows, small.a);
  ASSERT_TRUE(a.view());
  EXPECT_EQ(a.view()->layout, Layout::panels);
  const TensorSource plain = TensorSource::whole(
      {"a", ElementType::q8_0, "Q8_0", {20, 64}, small.a.data(), small.a.size()});
  for (const ShardAxis axis : {ShardAxis::rows, ShardAxis::columns}) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const TensorSource ours = a.slice(axis, rank, 2), theirs = plain.slice(axis, rank, 2);
      ASSERT_EQ(ours.rows(), theirs.rows());
      ASSERT_EQ(ours.row_bytes(), theirs.row_bytes());
      std::vector<std::byte> x(ours.rows() * ours.row_bytes()), y(x.size());
      ours.read_rows(0, ours.rows(), x.data());
      theirs.read_rows(0, ours.rows(), y.data());
      EXPECT_EQ(x, y);
      EXPECT_FALSE(ours.view());  // 10 rows are no whole panel, half the columns no whole run
    }
  }
  const TensorSource b = file.source("blk.0.b", ShardAxis::none);
  rows.resize(small.b.size());
  b.read_rows(0, 3, rows.data());
  EXPECT_EQ(rows, small.b);
}

/// What other readers see: an architecture that they do not know, and bytes instead of numbers.
TEST(PackedFile, IsNothingToOtherReaders) {
  const SmallFile small;
  const GgufFile file(as_bytes(small.bytes), "f.quipu");
  EXPECT_EQ(file.get<std::string_view>("general.architecture"), "quipu-packed");
  for (const TensorRecord& tensor : file.tensors()) {
    EXPECT_EQ(tensor.type_name, tensor.name == "norm" ? "F32" : "I8");
    EXPECT_EQ(tensor.extents.size(), 1u);
  }
}

TEST(PackedFile, RefusesWhatItCannotUse) {
  const auto refused = [](const SmallFile& file, std::initializer_list<std::string_view> words) {
    expect_error<FormatError>([&] { records(as_bytes(file.bytes)); }, words);
  };
  refused(SmallFile(packed_layout_version + 1),
          {"f.quipu", "\"quipu.packed_layout\"", "expected", "quipu-convert --pack"});
  refused(SmallFile(packed_layout_version, 32),
          {"\"quipu.panel_outputs\"", "expected 16, found 32", "quipu-convert --pack"});
  const auto lists = [](std::vector<std::string_view> types, std::vector<std::uint64_t> extents) {
    return SmallFile(packed_layout_version, panel_outputs, std::move(types), std::move(extents));
  };
  refused(lists({"q8_0"}, {20, 64, 3, 5}), {"2 tensors of bytes", "names 1", "has 4"});
  refused(lists({"q8_0", "f32"}, {20, 64, 3, 5, 6}), {"has 5"});
  refused(lists({"q9_9", "f32"}, {20, 64, 3, 5}), {"blk.0.a", "q9_9"});
  refused(lists({"q8_0", "f32"}, {20, 65, 3, 5}), {"blk.0.a", "20 x 65"});
  refused(lists({"q8_0", "f32"}, {0, 64, 3, 5}), {"blk.0.a", "0 x 64"});
  refused(lists({"q8_0", "f32"}, {20, std::uint64_t{1} << 60, 3, 5}), {"blk.0.a"});
  refused(lists({"q8_0", "f32"}, {33, 64, 3, 5}), {"blk.0.a", "bytes of its panels"});
  refused(lists({"q4_0", "f32"}, {20, 64, 3, 5}), {"blk.0.a", "bytes of its panels"});
}

TEST(PackedFile, DamageIsRefusedOrHarmless) {
  const SmallFile small;
  test::expect_truncation_refused(small.bytes, records);
  test::fuzz(small.bytes, 3000, records);
}

}  // namespace
}  // namespace quipu
