// Packed files and generated models: the same bits as from the original, no copy of the weights in
// memory, and made-up weights whose size is what it should be.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "convert_fixture.hpp"
#include "support/compare.hpp"
#include "support/golden.hpp"

namespace quipu_test {
namespace {

namespace fs = std::filesystem;
using quipu::ConvertOptions;
using quipu::ConvertReport;
using quipu::ElementType;
using quipu::TokenId;
using quipu::WriteLayout;

class Packed : public ConvertFixture {
 protected:
  static void generate(const std::string& model, const std::string& to, WriteLayout layout,
                       std::optional<ElementType> type, std::size_t threads = 2,
                       std::uint64_t seed = 1) {
    ConvertOptions options;
    options.layout = layout;
    options.type = type;
    quipu::ThreadPool pool(threads);
    for (const quipu::ModelEntry& entry : test_engine::engine().models()) {
      if (entry.name != model) continue;
      quipu::generate_checkpoint(entry, seed, to, options, quipu::ExecutorRef(pool));
      return;
    }
    FAIL() << model;
  }
};

/// Whether two files hold the same tensors, byte for byte; their metadata may stand in another
/// order.
bool same_tensors(const std::string& a, const std::string& b) {
  const quipu::Checkpoint x = quipu::open_checkpoint(a), y = quipu::open_checkpoint(b);
  if (x.tensors().size() != y.tensors().size()) return false;
  for (const quipu::TensorRecord& record : x.tensors()) {
    const quipu::TensorRecord* other = y.find(record.name);
    if (other == nullptr || other->type != record.type || other->layout != record.layout ||
        other->extents != record.extents || other->bytes != record.bytes ||
        std::memcmp(other->data, record.data, record.bytes) != 0) {
      return false;
    }
  }
  return true;
}

/// T1 has a separate output, T4 a tied one; every element type that their widths allow.
TEST_F(Packed, RunsFromTheMapWithTheSameBits) {
  for (const std::string name : {"T1", "T4"}) {
    const std::string from = find_golden("models/" + name + "/hf-f32");
    for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::f16,
                                   ElementType::q8_0, ElementType::q4_0, ElementType::q5_1}) {
      const std::string gguf = path("model.gguf"), packed = path("model.quipu"),
                        back = path("back.gguf");
      for (const std::string& old : {gguf, packed, back}) fs::remove(old);
      convert(from, gguf, WriteLayout::gguf, type);
      EXPECT_TRUE(convert(gguf, packed, WriteLayout::packed).exact);
      const quipu::Model model = load(packed);
      EXPECT_TRUE(same_bits(name, logits(model), logits(load(gguf))));
      // Nothing was copied, and what is mapped is the file but for its head and padding.
      EXPECT_EQ(model.weights().owned_bytes, 0u);
      EXPECT_GT(model.weights().mapped_bytes, 0u);
      EXPECT_LE(model.weights().mapped_bytes, fs::file_size(packed));
      EXPECT_EQ(model.weights().types, load(gguf).weights().types);
      EXPECT_TRUE(convert(packed, back, WriteLayout::gguf).exact);
      EXPECT_TRUE(same_tensors(gguf, back)) << name << " " << quipu::name(type);
    }
  }
}

/// Packing while generating is packing what was generated; threads change nothing, the seed does.
TEST_F(Packed, GeneratedModelsAreAFunctionOfTheSeed) {
  generate("T1", path("a.gguf"), WriteLayout::gguf, ElementType::q8_0, 1);
  generate("T1", path("b.gguf"), WriteLayout::gguf, ElementType::q8_0, 3);
  generate("T1", path("c.gguf"), WriteLayout::gguf, ElementType::q8_0, 1, 2);
  generate("T1", path("a.quipu"), WriteLayout::packed, ElementType::q8_0);
  convert(path("a.gguf"), path("again.quipu"), WriteLayout::packed);
  EXPECT_TRUE(contents(path("a.gguf")) == contents(path("b.gguf")));
  EXPECT_FALSE(same_tensors(path("a.gguf"), path("c.gguf")));
  EXPECT_TRUE(same_tensors(path("a.quipu"), path("again.quipu")));
  generate("T4", path("hf"), WriteLayout::hugging_face, std::nullopt);
  const auto out = logits(load(path("hf")));
  for (const float x : out) ASSERT_TRUE(std::isfinite(x));
}

/// Sixty-four rows of 4096: the mean of so many has a deviation of 1/512 of one element's, their
/// mean square varies by 1/360. The bounds leave room for the scales' and levels' coarseness.
TEST(GeneratedRows, HaveTheDeviationThatKeepsActivations) {
  constexpr std::size_t cols = 4096, rows = 64;
  for (std::size_t t = 0; t < quipu::element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    const quipu::GeneratedRows make(7, "layers.0.attention.wq", type, cols, false);
    std::vector<std::byte> stored(quipu::row_bytes(type, cols));
    std::vector<float> row(cols);
    double sum = 0, squares = 0, most = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      make(r, stored.data());
      quipu::dequantize_row(type, stored.data(), row.data(), cols);
      for (const float x : row) {
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
        most = (std::max)(most, std::fabs(static_cast<double>(x)));
      }
    }
    const double deviation = 64 * std::sqrt(squares / (rows * cols));  // of 1 / sqrt(4096)
    EXPECT_NEAR(deviation, 1, 0.06) << quipu::name(type);
    EXPECT_LT(std::fabs(64 * sum / (rows * cols)), 0.03) << quipu::name(type);
    EXPECT_LT(64 * most, 5) << quipu::name(type);
    EXPECT_GT(64 * most, 1.5) << quipu::name(type);
  }
  const quipu::GeneratedRows norm(7, "norm", ElementType::f32, cols, true);
  std::vector<float> weights(cols);
  norm(0, reinterpret_cast<std::byte*>(weights.data()));
  for (const float w : weights) ASSERT_TRUE(w > 0.6f && w < 1.4f);
}

/// Kilobytes of a line "Field:  123 kB" of a file of /proc/self.
std::size_t kilobytes(const char* file, const std::string& field) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return std::stoul(line.substr(field.size() + 1));
  }
  ADD_FAILURE() << file << " has no " << field;
  return 0;
}
std::size_t resident() { return 1024 * kilobytes("/proc/self/smaps_rollup", "Rss"); }
/// The most that was resident since the last call of forget_peak().
std::size_t peak() { return 1024 * kilobytes("/proc/self/status", "VmHWM"); }
bool forget_peak() {
  std::ofstream out("/proc/self/clear_refs");
  return static_cast<bool>(out << "5" << std::flush);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// By the kernel's counters, on 269 MB of weights: packing at load never holds them twice, and a
/// packed file is mapped and not copied. Two percent are the goal; a session of so few positions
/// and the pages of code and heap that a first pass touches are some megabytes more.
TEST_F(Packed, WeightsAreResidentOnce) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  if (!fs::exists("/proc/self/smaps_rollup") || !forget_peak()) {
    GTEST_SKIP() << "/proc/self/smaps_rollup and clear_refs are not there";
  }
  generate("smollm2_135m", path("model.gguf"), WriteLayout::gguf, ElementType::bf16);
  generate("smollm2_135m", path("model.quipu"), WriteLayout::packed, ElementType::bf16);
  constexpr double allowance = 12e6;
  for (const char* file : {"model.gguf", "model.quipu"}) {
    const std::size_t before = resident();
    forget_peak();
    const quipu::Model model = load(path(file));
    const auto loaded = static_cast<double>(peak() - before);
    EXPECT_FALSE(logits(model).empty());
    const auto used = static_cast<double>(resident() - before);
    const auto weights = static_cast<double>(model.weights().weight_bytes);
    const bool packed = file == std::string("model.quipu");
    EXPECT_EQ(model.weights().owned_bytes == 0, packed);
    EXPECT_LT(loaded, packed ? allowance : 1.1 * weights + allowance) << file;
    EXPECT_LT(used, 1.02 * weights + allowance) << file;
    EXPECT_GT(used, 0.9 * weights) << file;
  }
}

}  // namespace
}  // namespace quipu_test
