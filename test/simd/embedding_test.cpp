// Embedding rows of any type and layout.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "embedding_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/embedding-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace embedding_test {
namespace HWY_NAMESPACE {
void Embed(const quipu::MatrixView& table, const std::int32_t* tokens, std::size_t count,
           float* out, quipu::NumericMode mode) {
  quipu::HWY_NAMESPACE::EmbedTokens(table, tokens, count, out, mode);
}
}  // namespace HWY_NAMESPACE
}  // namespace embedding_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "canonical.hpp"
#include "per_target.hpp"

namespace embedding_test {
HWY_EXPORT(Embed);
using quipu::ElementType;
using quipu::NumericMode;

const std::vector<std::int32_t> kTokens = {4, 0, 4, 6};

std::vector<float> embed(const quipu::MatrixView& table, NumericMode mode) {
  std::vector<float> out(kTokens.size() * table.cols);
  HWY_DYNAMIC_DISPATCH(Embed)(table, kTokens.data(), kTokens.size(), out.data(), mode);
  return out;
}

TEST(Embedding, RowsOfPlainTables) {
  const std::size_t cols = 37;
  const std::vector<float> f32 = quipu_test::random_floats(7 * cols, 1);
  std::vector<quipu::bf16> bf16(f32.size());
  for (std::size_t i = 0; i < f32.size(); ++i) bf16[i] = quipu::to_bf16(f32[i]);
  quipu_test::for_each_target([&](std::int64_t) {
    const auto a =
        embed(quipu::row_major_view(f32.data(), ElementType::f32, 7, cols), NumericMode::f32);
    const auto rounded =
        embed(quipu::row_major_view(f32.data(), ElementType::f32, 7, cols), NumericMode::bf16);
    const auto b =
        embed(quipu::row_major_view(bf16.data(), ElementType::bf16, 7, cols), NumericMode::f32);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t from = std::size_t(kTokens[i / cols]) * cols + i % cols;
      ASSERT_EQ(a[i], f32[from]);
      ASSERT_EQ(rounded[i], quipu_test::nearest_bf16(f32[from]));
      ASSERT_EQ(b[i], quipu_test::nearest_bf16(f32[from]));
    }
  });
}

// A packed table and a quantised one give what the scalar decoding gives for the row.
TEST(Embedding, RowsOfPackedAndQuantisedTables) {
  const std::size_t cols = 64;
  const std::vector<float> f32 = quipu_test::random_floats(7 * cols, 2);
  const auto plain = quipu::row_major_view(f32.data(), ElementType::f32, 7, cols);
  std::vector<std::byte> packed(quipu::packed_bytes(ElementType::f32, 7, cols));
  quipu::pack(plain, packed.data(), 0, 1);
  const auto panels = quipu::packed_view(packed.data(), ElementType::f32, 7, cols);

  std::vector<std::byte> blocks(7 * quipu::row_bytes(ElementType::q8_0, cols));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::byte(i * 37 % 60);
  const auto q8 = quipu::row_major_view(blocks.data(), ElementType::q8_0, 7, cols);
  quipu_test::for_each_target([&](std::int64_t) {
    EXPECT_EQ(embed(panels, NumericMode::f32), embed(plain, NumericMode::f32));
    const auto got = embed(q8, NumericMode::f32);
    for (std::size_t t = 0; t < kTokens.size(); ++t) {
      std::vector<float> row(cols);
      quipu::dequantize_row(q8, std::size_t(kTokens[t]), row.data());
      for (std::size_t i = 0; i < cols; ++i) ASSERT_EQ(got[t * cols + i], row[i]);
    }
  });
}

}  // namespace embedding_test
#endif
