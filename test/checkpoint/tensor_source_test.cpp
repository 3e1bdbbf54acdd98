#include "quipu/checkpoint/tensor_source.hpp"

#include <numeric>
#include <string>
#include <vector>

#include "damage.hpp"
#include "quipu/checkpoint/checkpoint.hpp"

namespace quipu {
namespace {

using test::expect_error;

TensorRecord record(std::string name, const std::vector<float>& values,
                    std::vector<std::size_t> extents) {
  TensorRecord out;
  out.name = std::move(name);
  out.type = ElementType::f32;
  out.type_name = "F32";
  out.extents = std::move(extents);
  out.data = reinterpret_cast<const std::byte*>(values.data());
  out.bytes = values.size() * sizeof(float);
  return out;
}

std::vector<float> read(const TensorSource& source) {
  std::vector<float> out(source.rows() * source.cols());
  source.read_rows(0, source.rows(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<float> count(std::size_t n) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), 0.0F);
  return out;
}

TEST(HuggingFaceRows, FollowThePublishedPermutation) {
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{2, 8, 12, 64, 128}) {
    for (std::size_t head = 0; head < 3; ++head) {
      for (std::size_t i = 0; i < head_dim / 2; ++i) {
        const std::size_t first = head * head_dim;
        EXPECT_EQ(hugging_face_row(first + 2 * i, head_dim), first + i);
        EXPECT_EQ(hugging_face_row(first + 2 * i + 1, head_dim), first + head_dim / 2 + i);
      }
    }
    for (std::size_t row = 0; row < 3 * head_dim; ++row) {
      EXPECT_EQ(meta_row(hugging_face_row(row, head_dim), head_dim), row);
    }
  }
  static_assert(hugging_face_row(3, 8) == 5 && meta_row(5, 8) == 3);
}

TEST(HuggingFaceRows, CopyThereAndBack) {
  const std::vector<float> in = count(16 * 3);
  std::vector<float> hf(in.size());
  std::vector<float> back(in.size());
  const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto* source = reinterpret_cast<const std::byte*>(in.data());
  reorder_rows(RowOrder::hugging_face_from_meta, source, bytes(hf), 16, 12, 8);
  EXPECT_EQ(hf[3], in[6]);  // row 1 of a head of 8 is Meta's row 2
  reorder_rows(RowOrder::meta_from_hugging_face, bytes(hf), bytes(back), 16, 12, 8);
  EXPECT_EQ(back, in);
  expect_error<ArgumentError>(
      [&] { reorder_rows(RowOrder::meta_from_hugging_face, source, bytes(hf), 12, 12, 8); },
      {"12 rows", "head_dim 8"});
  expect_error<ArgumentError>([&] { check_rotary_rows(9, 9, "q"); }, {"q: head_dim", "9"});
}

TEST(TensorSource, IsAViewWhereBytesStandInOnePiece) {
  const std::vector<float> values = count(24);
  const TensorSource whole = TensorSource::whole(record("m", values, {4, 6}));
  ASSERT_TRUE(whole.view().has_value());
  EXPECT_EQ(whole.view()->rows, 4U);
  EXPECT_EQ(whole.view()->row_stride, 24U);
  const TensorSource right = whole.slice(ShardAxis::columns, 1, 2);
  ASSERT_TRUE(right.view().has_value());  // a part of the columns needs only a stride
  EXPECT_EQ(right.view()->cols, 3U);
  EXPECT_EQ(right.view()->row_stride, 24U);
  EXPECT_EQ(read(right), (std::vector<float>{3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23}));
  EXPECT_FALSE(whole.reordered(RowOrder::meta_from_hugging_face, 2).view().has_value());
  const TensorSource vector = TensorSource::whole(record("v", values, {24}));
  EXPECT_EQ(vector.rows(), 1U);
  EXPECT_EQ(vector.cols(), 24U);
}

// Cut among `from` ranks, merged, and cut again among `to` ranks gives what cutting the whole
// gives.
TEST(TensorSource, MergesAndSplitsToEveryLegalSize) {
  constexpr std::size_t rows = 16;
  constexpr std::size_t cols = 24;
  const std::vector<float> values = count(rows * cols);
  const TensorRecord all = record("m", values, {rows, cols});
  for (const ShardAxis axis : {ShardAxis::rows, ShardAxis::columns}) {
    for (const std::size_t from : std::initializer_list<std::size_t>{1, 2, 4, 8}) {
      std::vector<std::vector<float>> shards;
      std::vector<TensorRecord> records;
      for (std::size_t rank = 0; rank < from; ++rank) {
        shards.push_back(read(TensorSource::whole(all).slice(axis, rank, from)));
      }
      for (const std::vector<float>& shard : shards) {
        records.push_back(record("m", shard,
                                 axis == ShardAxis::rows
                                     ? std::vector<std::size_t>{rows / from, cols}
                                     : std::vector<std::size_t>{rows, cols / from}));
        EXPECT_EQ(shard_axis_of(records.back(), rows, cols, from),
                  from > 1 ? axis : ShardAxis::none);
      }
      std::vector<const TensorRecord*> pointers;
      for (const TensorRecord& shard : records) pointers.push_back(&shard);
      const TensorSource merged = TensorSource::merge(pointers, axis);
      EXPECT_EQ(read(merged), values) << name(axis) << " " << from;
      for (const std::size_t to : std::initializer_list<std::size_t>{1, 2, 4, 8}) {
        for (std::size_t rank = 0; rank < to; ++rank) {
          for (const ShardAxis other : {ShardAxis::rows, ShardAxis::columns}) {
            EXPECT_EQ(read(merged.slice(other, rank, to)),
                      read(TensorSource::whole(all).slice(other, rank, to)))
                << name(axis) << " " << from << " -> " << name(other) << " " << rank << "/" << to;
          }
        }
      }
    }
  }
}

TEST(TensorSource, ReordersRowsOfMergedAndSplitMatrices) {
  constexpr std::size_t head_dim = 4;
  const std::vector<float> meta = count(16 * 3);
  std::vector<float> hf(meta.size());
  reorder_rows(RowOrder::hugging_face_from_meta, reinterpret_cast<const std::byte*>(meta.data()),
               reinterpret_cast<std::byte*>(hf.data()), 16, 12, head_dim);
  const TensorRecord all = record("q", hf, {16, 3});
  const TensorSource back =
      TensorSource::whole(all).reordered(RowOrder::meta_from_hugging_face, head_dim);
  EXPECT_EQ(read(back), meta);
  const std::vector<float> second = read(back.slice(ShardAxis::rows, 1, 2));
  EXPECT_EQ(second, std::vector<float>(meta.begin() + 24, meta.end()));
  expect_error<ArgumentError>([&] { (void)back.slice(ShardAxis::rows, 0, 8); },
                              {"\"q\"", "16 rows", "8 ranks", "units of 4"});
}

TEST(TensorSource, NamesWhatDoesNotDivide) {
  const std::vector<float> values = count(24);
  const TensorSource whole = TensorSource::whole(record("wo", values, {4, 6}));
  expect_error<ArgumentError>([&] { (void)whole.slice(ShardAxis::rows, 0, 3); },
                              {"\"wo\"", "4 rows", "3 ranks"});
  expect_error<ArgumentError>([&] { (void)whole.slice(ShardAxis::columns, 0, 4); },
                              {"6 columns", "4 ranks"});
  expect_error<ArgumentError>([&] { (void)whole.slice(ShardAxis::rows, 2, 2); }, {"rank 2 of 2"});
  std::vector<std::byte> out(1000);
  expect_error<ArgumentError>([&] { whole.read_rows(3, 2, out.data()); }, {"rows 3 to 5 of 4"});
}

TEST(TensorSource, KeepsBlocksWhole) {
  const std::string blocks(2 * 2 * 34, 'q');
  TensorRecord quantised;
  quantised.name = "w";
  quantised.type = ElementType::q8_0;
  quantised.extents = {2, 64};
  quantised.data = test::as_bytes(blocks).data();
  quantised.bytes = blocks.size();
  const TensorSource half = TensorSource::whole(quantised).slice(ShardAxis::columns, 1, 2);
  EXPECT_EQ(half.row_bytes(), 34U);
  expect_error<ArgumentError>(
      [&] { (void)TensorSource::whole(quantised).slice(ShardAxis::columns, 0, 4); },
      {"64 columns", "units of 32"});
  quantised.extents = {2, 63};
  expect_error<FormatError>([&] { TensorSource::whole(quantised); }, {"\"w\"", "63", "32"});
}

TEST(TensorSource, RefusesShardsThatDoNotBelongTogether) {
  const std::vector<float> a = count(12);
  std::vector<float> b = count(12);
  const auto merge = [](const TensorRecord& first, const TensorRecord& second, ShardAxis axis) {
    const TensorRecord* both[] = {&first, &second};
    (void)TensorSource::merge(both, axis);
  };
  const TensorRecord matrix = record("m", a, {3, 4});
  TensorRecord other = record("m", b, {4, 3});
  expect_error<FormatError>([&] { merge(matrix, other, ShardAxis::rows); },
                            {"\"m\"", "shard 1", "[3, 4]", "[4, 3]"});
  other = record("m", b, {3, 4});
  other.type = ElementType::bf16;
  other.type_name = "BF16";
  expect_error<FormatError>([&] { merge(matrix, other, ShardAxis::rows); }, {"F32", "BF16"});
  b[5] = -1;
  expect_error<FormatError>(
      [&] { merge(record("n", a, {12}), record("n", b, {12}), ShardAxis::none); },
      {"\"n\"", "copy", "differ"});
  expect_error<FormatError>(
      [&] { merge(record("n", a, {12}), record("n", b, {12}), ShardAxis::rows); }, {"vector"});
  other.type.reset();
  other.type_name = "IQ4_XS";
  expect_error<FormatError>([&] { TensorSource::whole(other); }, {"\"m\"", "IQ4_XS"});
  other = record("m", b, {3, 2, 2});
  expect_error<FormatError>([&] { TensorSource::whole(other); }, {"[3, 2, 2]"});
}

TEST(TensorSource, TellsTheRangesOfItsRows) {
  const std::vector<float> values = count(24);
  const TensorRecord all = record("m", values, {4, 6});
  std::size_t bytes = 0;
  TensorSource::whole(all).for_each_range(1, 2, [&](const std::byte* begin, std::size_t n) {
    EXPECT_EQ(begin, all.data + 24);
    bytes += n;
  });
  EXPECT_EQ(bytes, 48U);
}

}  // namespace
}  // namespace quipu
