// What stands in a checkpoint's tensors of one card: least, greatest, mean, deviation, by layer.
// Siblings: atlas/count.hpp (how many), atlas/document.hpp (shows it).
#pragma once

#include <cmath>

#include "quipu/atlas/count.hpp"
#include "quipu/atlas/document.hpp"
#include "quipu/simd/dequantize.hpp"

namespace quipu::atlas {

/// The statistics of one tensor, summed in double in the order of the file. Elements that are not
/// finite are counted and left out. A type that quipu does not compute with: all zero but the
/// number of elements.
inline LayerStatistics statistics_of(const TensorRecord& record) {
  LayerStatistics s;
  s.tensor = record.name;
  s.type = record.type_name;
  s.elements = record.elements();
  if (!record.type || record.extents.empty() || s.elements == 0) return s;
  const std::size_t cols = record.extents.back();
  if (!row_is_whole_blocks(*record.type, cols)) return s;
  const std::size_t stride = row_bytes(*record.type, cols);
  std::vector<float> row(cols);
  double sum = 0, squares = 0;
  std::size_t finite = 0;
  for (std::size_t r = 0; r < s.elements / cols; ++r) {
    dequantize_row(*record.type, record.data + r * stride, row.data(), cols);
    for (float x : row) {
      if (!std::isfinite(x)) continue;
      s.least = finite == 0 ? x : (std::min)(s.least, x);
      s.greatest = finite == 0 ? x : (std::max)(s.greatest, x);
      ++finite;
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
  }
  s.not_finite = s.elements - finite;
  if (finite > 0) {
    const auto n = static_cast<double>(finite);
    s.mean = sum / n;
    s.deviation = std::sqrt((std::max)(0.0, squares / n - s.mean * s.mean));
  }
  return s;
}

/// Of every tensor of a checkpoint that the card's component applies, in the file's order.
inline std::vector<LayerStatistics> layer_statistics(const ModelEntry& entry, const Card& card,
                                                     const Checkpoint& checkpoint) {
  std::vector<LayerStatistics> all;
  if (!card.has_weight) return all;
  const FileNames names = names_of_applied(entry, card);
  for (const TensorRecord& record : checkpoint.tensors()) {
    const std::string name = with_any_layer(record.name);
    if (name == names.meta || name == names.hugging_face || name == names.gguf) {
      all.push_back(statistics_of(record));
    }
  }
  return all;
}

}  // namespace quipu::atlas
