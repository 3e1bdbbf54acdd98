// Matrix products of every element type on every target that this processor runs.
//
// Two judges. A scalar product in the canonical order (simd/product.hpp), with std::fma, gives the
// very bits that targets with fused multiply-add must give, for any number of rows and threads and
// for both layouts. A float64 product bounds the error of all targets:
//   |y - exact| <= gamma_n * sum |terms|,  gamma_n = n u / (1 - n u),  u = 2^-24,
// with n the longest chain of roundings that a term passes (Higham, Accuracy and Stability, 3.1).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/product_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "quipu/simd/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu_test {
namespace HWY_NAMESPACE {

void MatMul(const quipu::Product* products, std::size_t count, const float* x, std::size_t x_stride,
            std::size_t m, quipu::ActivationMode mode, quipu::ExecutorRef executor,
            float* scratch) {
  quipu::HWY_NAMESPACE::MatMul(products, count, x, x_stride, m, mode, executor, scratch);
}
bool HasFma() { return HWY_NATIVE_FMA != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace quipu_test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quipu/runtime/thread_pool.hpp"
#include "quipu/simd/quantize.hpp"

namespace quipu_test {

HWY_EXPORT(MatMul);
HWY_EXPORT(HasFma);

namespace {

using quipu::ActivationMode;
using quipu::ElementType;
using quipu::MatrixView;

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

/// A weight matrix of a type in both layouts.
struct Weights {
  ElementType type;
  std::size_t rows, cols;
  std::vector<std::uint8_t> bytes;
  std::vector<std::byte> packed;

  Weights(ElementType t, std::size_t r, std::size_t c, unsigned seed) : type(t), rows(r), cols(c) {
    const std::vector<float> w = random_floats(rows * cols, seed);
    bytes.resize(quipu::row_bytes(type, cols) * rows);
    for (std::size_t i = 0; i < rows; ++i) {
      quipu::quantize_row(type, w.data() + i * cols,
                          bytes.data() + i * quipu::row_bytes(type, cols), cols);
    }
    // Levels that a quantiser hardly makes: int8 -128 is where sign tricks fail.
    if (type == ElementType::q8_0) {
      for (std::size_t i = 7; i < bytes.size(); i += 34) bytes[i] = 0x80;
    }
    packed.resize(quipu::packed_bytes(type, rows, cols));
    quipu::pack(row_major(), packed.data(), 0, quipu::packed_panels(rows));
  }
  MatrixView row_major() const { return quipu::row_major_view(bytes.data(), type, rows, cols); }
  MatrixView panels() const { return quipu::packed_view(packed.data(), type, rows, cols); }
  const std::uint8_t* row(std::size_t r) const {
    return bytes.data() + r * quipu::row_bytes(type, cols);
  }
};

/// A run of inputs of one row with one scale: value = scale * level + minimum.
struct Group {
  float scale = 1;
  float minimum = 0;
  std::vector<int> levels;
};

/// The groups of a row of block weights, written from the format's description.
std::vector<Group> groups_of(ElementType type, const std::uint8_t* row, std::size_t cols) {
  const auto half = [](const std::uint8_t* p) {
    return quipu::to_float(quipu::f16{static_cast<std::uint16_t>(p[0] | p[1] << 8)});
  };
  std::vector<Group> groups;
  const std::size_t block = quipu::info(type).block_elements;
  for (std::size_t k = 0; k < cols; k += block, row += quipu::info(type).block_bytes) {
    if (block == 32) {
      const bool has_minimum = type == ElementType::q4_1 || type == ElementType::q5_1;
      const bool has_fifth = type == ElementType::q5_0 || type == ElementType::q5_1;
      const int zero = type == ElementType::q4_0 ? 8 : type == ElementType::q5_0 ? 16 : 0;
      Group group{half(row), has_minimum ? half(row + 2) : 0, {}};
      const std::uint8_t* fifth = row + (has_minimum ? 4 : 2);
      const std::uint8_t* q = fifth + (has_fifth ? 4 : 0);
      for (std::size_t i = 0; i < 32; ++i) {
        if (type == ElementType::q8_0) {
          group.levels.push_back(static_cast<std::int8_t>(q[i]));
          continue;
        }
        int level = i < 16 ? q[i] & 15 : q[i - 16] >> 4;
        if (has_fifth) level += (fifth[i / 8] >> i % 8 & 1) * 16;
        group.levels.push_back(level - zero);
      }
      groups.push_back(group);
    } else if (type == ElementType::q6_k) {
      for (std::size_t s = 0; s < 16; ++s) {
        Group group{
            half(row + 208) * static_cast<float>(static_cast<std::int8_t>(row[192 + s])), 0, {}};
        for (std::size_t e = 16 * s; e < 16 * s + 16; ++e) {
          const std::size_t in_half = e % 128, base = e / 128;
          const int low = row[base * 64 + in_half % 64] >> (in_half < 64 ? 0 : 4) & 15;
          const int high = row[128 + base * 32 + in_half % 32] >> (in_half / 32 * 2) & 3;
          group.levels.push_back(low + 16 * high - 32);
        }
        groups.push_back(group);
      }
    } else {
      const bool has_fifth = type == ElementType::q5_k;
      for (std::size_t s = 0; s < 8; ++s) {
        const std::uint8_t* six = row + 4;
        const int scale = s < 4 ? six[s] & 63 : (six[s + 4] & 15) | six[s - 4] >> 6 << 4;
        const int minimum = s < 4 ? six[s + 4] & 63 : six[s + 4] >> 4 | six[s] >> 6 << 4;
        Group group{half(row) * static_cast<float>(scale),
                    -(half(row + 2) * static_cast<float>(minimum)),
                    {}};
        const std::uint8_t* q = row + (has_fifth ? 48 : 16) + s / 2 * 32;
        for (std::size_t i = 0; i < 32; ++i) {
          int level = s % 2 == 0 ? q[i] & 15 : q[i] >> 4;
          if (has_fifth) level += (row[16 + i] >> s & 1) * 16;
          group.levels.push_back(level);
        }
        groups.push_back(group);
      }
    }
  }
  return groups;
}

bool has_minimum(ElementType type) {
  return type == ElementType::q4_1 || type == ElementType::q5_1 || type == ElementType::q4_k ||
         type == ElementType::q5_k;
}

/// x rounded as the int8 mode does.
struct RoundedBlock {
  float scale;
  int q[32];
  int sum;
};
RoundedBlock rounded(const float* x) {
  float most = 0;
  for (std::size_t i = 0; i < 32; ++i) most = std::fmax(most, std::fabs(x[i]));
  RoundedBlock block{most / 127.0f, {}, 0};
  const float inverse = most > 0 ? 127.0f / most : 0.0f;
  for (std::size_t i = 0; i < 32; ++i) {
    block.q[i] = static_cast<int>(std::fma(x[i], inverse, 12582912.0f) - 12582912.0f);
    block.sum += block.q[i];
  }
  return block;
}

/// One output: in the canonical order, in float64, and the bound of their difference.
struct Expected {
  float canonical;
  double exact;
  double bound;
};

Expected expected(const Weights& w, std::size_t row, const float* x, ActivationMode mode) {
  const double u = 0x1p-24;
  Expected e{0, 0, 0};
  double terms = 0;
  if (quipu::info(w.type).block_elements == 1) {
    std::vector<float> values(w.cols);
    quipu::dequantize_row(w.type, w.row(row), values.data(), w.cols);
    for (std::size_t k = 0; k < w.cols; k += quipu::sum_panel) {
      float sum = 0;
      for (std::size_t i = k; i < std::min(w.cols, k + quipu::sum_panel); ++i) {
        sum = std::fma(values[i], x[i], sum);
        e.exact += static_cast<double>(values[i]) * x[i];
        terms += std::fabs(static_cast<double>(values[i]) * x[i]);
      }
      e.canonical = k == 0 ? sum : e.canonical + sum;
    }
    const double n =
        static_cast<double>(std::min(w.cols, quipu::sum_panel) + w.cols / quipu::sum_panel + 2);
    e.bound = n * u / (1 - n * u) * terms;
    return e;
  }
  const std::vector<Group> groups = groups_of(w.type, w.row(row), w.cols);
  float panel = 0;
  std::size_t k = 0;
  for (const Group& group : groups) {
    if (k % quipu::sum_panel == 0) panel = 0;
    const std::size_t count = group.levels.size();
    const RoundedBlock block = rounded(x + k / 32 * 32);
    float sum = 0;
    int dot = 0;
    float x_sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double level = group.levels[i];
      const int q = block.q[k % 32 + i];
      const double used =
          mode == ActivationMode::int8 ? static_cast<double>(block.scale) * q : x[k + i];
      sum = std::fma(static_cast<float>(level), x[k + i], sum);
      x_sum = x_sum + x[k + i];
      dot += group.levels[i] * q;
      e.exact += (group.scale * level + group.minimum) * used;
      terms += (std::fabs(group.scale * level) + std::fabs(static_cast<double>(group.minimum))) *
               std::fabs(used);
    }
    if (mode == ActivationMode::int8) {
      panel = std::fma(group.scale * block.scale, static_cast<float>(dot), panel);
      if (has_minimum(w.type)) {
        panel = std::fma(group.minimum, block.scale * static_cast<float>(block.sum), panel);
      }
    } else {
      panel = std::fma(group.scale, sum, panel);
      if (has_minimum(w.type)) panel = std::fma(group.minimum, x_sum, panel);
    }
    k += count;
    if (k % quipu::sum_panel == 0 || k == w.cols) {
      e.canonical = k <= quipu::sum_panel ? panel : e.canonical + panel;
    }
  }
  // A term passes 32 additions of its block, the scales, at most 32 additions to the panel (q6_k:
  // one per half block) and one per panel.
  const double n = static_cast<double>(32 + 4 + 34 + w.cols / quipu::sum_panel);
  e.bound = n * u / (1 - n * u) * terms;
  return e;
}

std::vector<ElementType> all_types() {
  std::vector<ElementType> types;
  for (std::size_t i = 0; i < quipu::element_type_count; ++i)
    types.push_back(static_cast<ElementType>(i));
  return types;
}

std::vector<float> product(const std::vector<quipu::MatrixView>& views, const std::vector<float>& x,
                           std::size_t m, ActivationMode mode, std::size_t threads) {
  const std::size_t cols = views[0].cols;
  std::size_t outputs = 0;
  for (const MatrixView& view : views) outputs += view.rows;
  // One float of room before and after each row of y: a kernel must not touch it.
  std::vector<float> y(m * (outputs + views.size()), -7.0f);
  std::vector<quipu::Product> products;
  std::size_t at = 0;
  for (const MatrixView& view : views) {
    products.push_back({view, y.data() + at, outputs + views.size()});
    at += view.rows + 1;
  }
  std::vector<float> scratch(quipu::product_scratch_floats(cols, m, threads));
  quipu::ThreadPool pool(threads);
  HWY_DYNAMIC_DISPATCH(MatMul)
  (products.data(), products.size(), x.data(), cols, m, mode, pool, scratch.data());
  std::vector<float> dense;
  for (std::size_t row = 0; row < m; ++row) {
    std::size_t i = row * (outputs + views.size());
    for (const MatrixView& view : views) {
      dense.insert(dense.end(), y.begin() + static_cast<std::ptrdiff_t>(i),
                   y.begin() + static_cast<std::ptrdiff_t>(i + view.rows));
      EXPECT_EQ(y[i + view.rows], -7.0f);
      i += view.rows + 1;
    }
  }
  return dense;
}

/// Each test runs once per target.
class ProductTest : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

std::string target_name(const testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void check_type(ElementType type, std::size_t rows, std::size_t cols, std::size_t m) {
  const Weights w(type, rows, cols, 1 + static_cast<unsigned>(cols));
  const std::vector<float> x = random_floats(m * cols, 99);
  const bool fused = HWY_DYNAMIC_DISPATCH(HasFma)();
  for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::int8}) {
    const std::vector<float> y = product({w.panels()}, x, m, mode, 1);
    const std::string what =
        std::string(quipu::name(type)) + (mode == ActivationMode::int8 ? " int8 " : " f32 ") +
        std::to_string(rows) + " x " + std::to_string(cols) + ", m " + std::to_string(m);
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t n = 0; n < rows; ++n) {
        const float found = y[row * rows + n];
        const Expected e = expected(w, n, x.data() + row * cols, mode);
        ASSERT_LE(std::fabs(found - e.exact), e.bound) << what << " row " << row << " output " << n;
        if (fused) {
          ASSERT_EQ(found, e.canonical) << what << " row " << row << " output " << n;
        }
      }
    }
    for (const std::size_t threads : {1u, 3u}) {
      const std::vector<float> in_place = product({w.row_major()}, x, m, mode, threads);
      const std::vector<float> threaded = product({w.panels()}, x, m, mode, threads);
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(same_bits(y[i], threaded[i])) << what << " threads " << threads << " at " << i;
        ASSERT_TRUE(same_bits(y[i], in_place[i]))
            << what << " row-major, threads " << threads << " at " << i;
      }
    }
  }
}

// A width that ends within a panel of 512, and for plain types within everything.
std::size_t odd_cols(ElementType type) {
  const std::size_t block = quipu::info(type).block_elements;
  return block == 1 ? 1051 : block == 32 ? 1056 : 1280;
}

TEST_P(ProductTest, OneRow) {
  for (const ElementType type : all_types())
    check_type(type, 101, odd_cols(type), 1);  // 4 + 3 panels
}
TEST_P(ProductTest, TwoRows) {
  for (const ElementType type : all_types()) check_type(type, 37, odd_cols(type), 2);
}
TEST_P(ProductTest, SeventeenRows) {
  for (const ElementType type : all_types())
    check_type(type, 145, odd_cols(type), 17);  // 8 + 2 panels
}
TEST_P(ProductTest, SmallestMatrices) {
  for (const ElementType type : all_types()) {
    const std::size_t block = quipu::info(type).block_elements;
    for (const std::size_t rows : {1u, 16u}) check_type(type, rows, block, 3);
    if (block == 1) check_type(type, 5, 3, 1);
  }
}

// More rows than a block of rows: every row has the bits that it has alone.
TEST_P(ProductTest, RowsOfABatchHaveTheirOwnBits) {
  for (const ElementType type : all_types()) {
    const std::size_t rows = 20, cols = odd_cols(type), m = quipu::detail::product_row_block + 6;
    const Weights w(type, rows, cols, 3);
    const std::vector<float> x = random_floats(m * cols, 5);
    for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::int8}) {
      const std::vector<float> y = product({w.panels()}, x, m, mode, 3);
      const std::vector<float> hundred = product({w.panels()}, x, 100, mode, 2);
      for (std::size_t i = 0; i < hundred.size(); ++i) ASSERT_TRUE(same_bits(y[i], hundred[i]));
      for (const std::size_t row : {std::size_t{0}, std::size_t{99}, m - 1}) {
        const std::vector<float> one_x(x.begin() + static_cast<std::ptrdiff_t>(row * cols),
                                       x.begin() + static_cast<std::ptrdiff_t>((row + 1) * cols));
        const std::vector<float> alone = product({w.panels()}, one_x, 1, mode, 1);
        for (std::size_t n = 0; n < rows; ++n) {
          ASSERT_TRUE(same_bits(y[row * rows + n], alone[n]))
              << quipu::name(type) << " row " << row;
        }
      }
    }
  }
}

// Products of different types and heights that share x give what each gives alone.
TEST_P(ProductTest, SharedActivations) {
  const std::size_t cols = 768;
  const Weights q(ElementType::q4_k, 100, cols, 1), k(ElementType::q6_k, 36, cols, 2),
      v(ElementType::bf16, 40, cols, 3), o(ElementType::q4_1, 200, cols, 4);
  const std::vector<MatrixView> views{q.panels(), k.panels(), v.row_major(), o.panels()};
  for (const std::size_t m : {1u, 9u}) {
    const std::vector<float> x = random_floats(m * cols, 7);
    for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::int8}) {
      for (const std::size_t threads : {1u, 2u, 3u, 5u}) {
        const std::vector<float> together = product(views, x, m, mode, threads);
        std::size_t at = 0;
        for (const MatrixView& view : views) {
          const std::vector<float> alone = product({view}, x, m, mode, 1);
          for (std::size_t row = 0; row < m; ++row) {
            for (std::size_t n = 0; n < view.rows; ++n) {
              ASSERT_TRUE(same_bits(together[row * 376 + at + n], alone[row * view.rows + n]));
            }
          }
          at += view.rows;
        }
      }
    }
  }
}

// A NaN or an infinity in x is seen in every output, in the int8 mode too. The input beside the
// last odd one of bf16 does not exist: an infinite last input must not become NaN through the
// padding.
TEST_P(ProductTest, BadActivationsAreNotHidden) {
  const Weights w(ElementType::q4_0, 20, 64, 1);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x = random_floats(2 * 64, 3);
    x[40] = bad;
    const std::vector<float> y = product({w.panels()}, x, 2, ActivationMode::int8, 1);
    for (std::size_t n = 0; n < 20; ++n) {
      EXPECT_TRUE(std::isnan(y[n])) << bad;
      EXPECT_TRUE(std::isfinite(y[20 + n]));
    }
  }
  const Weights odd(ElementType::bf16, 4, 5, 1);
  std::vector<float> x = random_floats(5, 3);
  x[4] = std::numeric_limits<float>::infinity();
  for (const float y : product({odd.panels()}, x, 1, ActivationMode::f32, 1))
    EXPECT_TRUE(std::isinf(y));
}

TEST_P(ProductTest, ZeroActivationsGiveZero) {
  const Weights w(ElementType::q4_1, 16, 64, 1);
  for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::int8}) {
    for (const float y : product({w.panels()}, std::vector<float>(64), 1, mode, 1))
      EXPECT_EQ(y, 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ProductTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), target_name);

}  // namespace
}  // namespace quipu_test

#endif  // HWY_ONCE
