// One tensor on its way into a file: read (or made up) row by row, rounded to its new element type
// and, for a packed file, put into panels; a few megabytes are held at a time.
//
// Siblings: engine/convert.hpp (plans the tensors), engine/generated_rows.hpp (makes rows up),
// simd/quantize.hpp, simd/packing.hpp. Tests: test/engine/convert_test.cpp, packed_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/runtime/executor.hpp"
#include "quipu/runtime/run_catching.hpp"
#include "quipu/simd/packing.hpp"
#include "quipu/simd/quantize.hpp"

namespace quipu {
namespace detail {

/// The largest magnitude that rounds to a finite value of the type: of f16 and bf16 the float32
/// before the tie with the infinity, which is even.
inline float largest_finite(ElementType type) {
  return type == ElementType::f16    ? 65519.996f
         : type == ElementType::bf16 ? 0x1.fefffep127f
                                     : 3.4028235e38f;
}

/// Whether the float16 scales and minimums of a row of blocks are finite: a weight that is a finite
/// float32 may need a scale past float16's range.
inline bool block_scales_finite(ElementType type, const std::byte* row, std::size_t cols) {
  const ElementTypeInfo& facts = info(type);
  const std::size_t first = type == ElementType::q6_k ? 208 : 0;
  const bool has_minimum = type == ElementType::q4_1 || type == ElementType::q5_1 ||
                           type == ElementType::q4_k || type == ElementType::q5_k;
  const auto* block = reinterpret_cast<const std::uint8_t*>(row);
  for (std::size_t i = 0; i < cols; i += facts.block_elements, block += facts.block_bytes) {
    if (!std::isfinite(load_half(block + first))) return false;
    if (has_minimum && !std::isfinite(load_half(block + 2))) return false;
  }
  return true;
}

/// A tensor to be written: where it comes from and what it becomes.
struct WrittenTensor {
  std::string name;
  TensorSource source;  ///< empty for a tensor that is made up
  ElementType type = ElementType::f32;
  std::size_t rows = 0, cols = 0;
  bool vector = false;
  Layout layout = Layout::row_major;  ///< panels: in a packed file
  ShardAxis shard = ShardAxis::none;  ///< how model-parallel parts cut it
  /// Makes up row `row` in the type `type`, for a tensor without a source.
  std::function<void(std::size_t row, std::byte* out)> make_row;

  std::vector<std::size_t> extents() const {
    return vector ? std::vector{cols} : std::vector{rows, cols};
  }
  std::size_t bytes() const {
    return layout == Layout::panels ? packed_bytes(type, rows, cols)
                                    : checked_mul(rows, row_bytes(type, cols), "bytes of a tensor");
  }
};

/// Whether each value of `from` is one of `to`.
constexpr bool holds_all(ElementType from, ElementType to) {
  return from == to || to == ElementType::f32;
}

/// Of a matrix whose rows are no whole blocks of the type wanted: the nearest type that fits.
constexpr ElementType fitting_type(ElementType wanted, std::size_t cols) {
  if (row_is_whole_blocks(wanted, cols)) return wanted;
  const ElementType small = wanted == ElementType::q4_k   ? ElementType::q5_0
                            : wanted == ElementType::q5_k ? ElementType::q5_1
                                                          : ElementType::q8_0;
  return row_is_whole_blocks(small, cols) ? small : ElementType::f16;
}

/// What one of several model-parallel parts has of a tensor.
inline WrittenTensor part_of(const WrittenTensor& whole, std::size_t part, std::size_t parts) {
  WrittenTensor cut = whole;
  if (parts == 1 || whole.shard == ShardAxis::none) return cut;
  const bool by_rows = whole.shard == ShardAxis::rows;
  (by_rows ? cut.rows : cut.cols) /= parts;
  if (!whole.make_row) {
    cut.source = whole.source.slice(whole.shard, part, parts);
  } else if (by_rows) {
    cut.make_row = [make = whole.make_row, first = part * cut.rows](
                       std::size_t row, std::byte* out) { make(first + row, out); };
  } else {
    cut.make_row = [make = whole.make_row, all = row_bytes(whole.type, whole.cols),
                    bytes = row_bytes(cut.type, cut.cols), part](std::size_t row, std::byte* out) {
      std::vector<std::byte> full(all);
      make(row, full.data());
      std::memcpy(out, full.data() + part * bytes, bytes);
    };
  }
  return cut;
}

/// Writes one row of a tensor in its new type to `to`, through `widened` (cols floats). False if a
/// value is too large for the type or, for blocks, not finite.
inline bool convert_row(const WrittenTensor& tensor, std::size_t row, float* widened,
                        std::byte* raw, std::byte* to) {
  const TensorSource& source = tensor.source;
  if (tensor.make_row) {
    tensor.make_row(row, to);
    return true;
  }
  if (source.type() == tensor.type) {
    source.read_rows(row, 1, to);
    return true;
  }
  source.read_rows(row, 1, raw);
  dequantize_row(source.type(), raw, widened, tensor.cols);
  const float limit = largest_finite(tensor.type);
  const bool blocks = info(tensor.type).block_elements > 1;
  for (std::size_t i = 0; i < tensor.cols; ++i) {
    if (std::isfinite(widened[i]) ? !(std::fabs(widened[i]) <= limit) : blocks) return false;
  }
  quantize_row(tensor.type, widened, to, tensor.cols);
  return !blocks || block_scales_finite(tensor.type, to, tensor.cols);
}

/// Calls append(span of bytes) with the tensor as its file has it, some megabytes at a time, and
/// lets the pages go that it has read. MismatchError if a value does not fit the type.
template <class Append>
void write_rows(const Checkpoint& file, const WrittenTensor& tensor, ExecutorRef executor,
                Append&& append) {
  constexpr std::size_t batch_bytes = std::size_t{8} << 20;
  constexpr std::size_t rows_per_task = panel_outputs;
  const std::size_t cols = tensor.cols, out_bytes = row_bytes(tensor.type, cols);
  const bool panels = tensor.layout == Layout::panels;
  const bool read = !tensor.make_row;
  const std::size_t raw_bytes = read ? tensor.source.row_bytes() : 0;
  const std::size_t fitting = batch_bytes / (cols * sizeof(float)) / rows_per_task * rows_per_task;
  const std::size_t batch = (std::min)((std::max)(rows_per_task, fitting), tensor.rows);
  const std::size_t tasks = ceil_div(batch, rows_per_task);
  std::vector<std::byte> out(batch * out_bytes), raw(tasks * raw_bytes);
  std::vector<std::byte> packed(panels ? packed_bytes(tensor.type, batch, cols) : 0);
  std::vector<float> widened(tasks * cols);
  for (std::size_t first = 0; first < tensor.rows; first += batch) {
    const std::size_t rows = (std::min)(batch, tensor.rows - first);
    std::atomic<bool> fits{true};
    run_catching(executor, ceil_div(rows, rows_per_task), [&](std::size_t task, std::size_t) {
      const std::size_t begin = task * rows_per_task;
      const std::size_t end = (std::min)(rows, begin + rows_per_task);
      std::byte* const to = out.data() + begin * out_bytes;
      for (std::size_t row = begin; row < end; ++row) {
        if (!convert_row(tensor, first + row, widened.data() + task * cols,
                         raw.data() + task * raw_bytes, to + (row - begin) * out_bytes)) {
          fits = false;
        }
      }
      if (panels) {
        pack(row_major_view(to, tensor.type, end - begin, cols),
             packed.data() + task * packed_panel_bytes(tensor.type, cols), 0, 1);
      }
    });
    if (!fits) {
      raise<MismatchError>(file.path + ": tensor " + tensor.source.name() + ": a value in rows " +
                           std::to_string(first) + " to " + std::to_string(first + rows - 1) +
                           " is too large for " + std::string(name(tensor.type)) +
                           " or not finite");
    }
    append(panels ? std::span<const std::byte>(packed).first(packed_bytes(tensor.type, rows, cols))
                  : std::span<const std::byte>(out).first(rows * out_bytes));
    const auto release = [&](const std::byte* begin, std::size_t bytes) {
      file.release(begin, bytes);
    };
    if (read) tensor.source.for_each_range(first, rows, release);
  }
  // Pages that two batches share, or (rows in another order) that a batch read beyond its own.
  if (read) {
    tensor.source.for_each_range(0, tensor.rows, [&](const std::byte* begin, std::size_t bytes) {
      file.release(begin, bytes);
    });
  }
}

}  // namespace detail
}  // namespace quipu
