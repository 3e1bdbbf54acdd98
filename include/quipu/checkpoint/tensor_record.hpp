// What a checkpoint file says of one tensor, whatever the file's format.
//
// A record is a claim of the file, checked against the file's own size but not against any model:
// that is done where a model type is known. Siblings: checkpoint.hpp gathers records,
// tensor_source.hpp reads the elements.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quipu/model/naming_scheme.hpp"
#include "quipu/shape/checked.hpp"
#include "quipu/shape/element_type.hpp"
#include "quipu/shape/matrix.hpp"

namespace quipu {

enum class FileFormat : unsigned char { gguf, safetensors, torch_pth, packed };

constexpr std::string_view name(FileFormat format) {
  constexpr std::string_view names[] = {"GGUF", "safetensors", "torch.save archive", "packed GGUF"};
  return names[static_cast<unsigned char>(format)];
}

struct TensorRecord {
  std::string name;
  std::optional<ElementType> type;   ///< empty: a type that quipu does not compute with
  std::string type_name;             ///< the file's own name of the type ("BF16", "IQ4_XS")
  std::vector<std::size_t> extents;  ///< outermost first: a matrix is [out, in]; empty: a scalar
  const std::byte* data = nullptr;   ///< in the file's bytes, at any alignment
  std::size_t bytes = 0;
  std::size_t file = 0;               ///< index into Checkpoint::files
  Layout layout = Layout::row_major;  ///< panels: in a packed file (packed_file.hpp)

  /// Number of elements. Readers have checked that the product fits.
  std::size_t elements() const {
    std::size_t n = 1;
    for (const std::size_t extent : extents) n = checked_mul(n, extent, "elements of a tensor");
    return n;
  }
};

}  // namespace quipu
