// Packed files: weights in the layout of the kernels, so that loading is mapping and nothing else.
//
// A packed file is a GGUF file (version 3) whose matrices stand as panels (simd/packing.hpp):
//   general.architecture  "quipu-packed": a reader that does not know it stops there
//   general.alignment     a multiple of 64
//   quipu.packed_layout   the version of the layout; quipu.panel_outputs: outputs of a panel
//   quipu.panels.types    the element type of each matrix in panels: "q8_0", ...
//   quipu.panels.extents  two for each: outputs, inputs
//   llama.*, tokenizer.*  configuration and tokenizer, as in any GGUF file
// A matrix in panels is a vector of GGUF's type I8, in the order of the two lists, so that no
// reader takes its bytes for rows of numbers either. Norms are F32; an embedding that is only
// looked up stands in rows, under its own type. Names are GGUF's. Siblings: gguf.hpp (judges places
// and sizes first), engine/convert.hpp (writes). Test: test/engine/packed_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "quipu/checkpoint/gguf.hpp"
#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/runtime/aligned_buffer.hpp"
#include "quipu/simd/packing.hpp"

namespace quipu {

inline constexpr std::string_view packed_architecture = "quipu-packed";

/// Alignment of the tensors of a packed file, from its first byte on.
inline constexpr std::size_t packed_alignment = memory_alignment;

/// Whether a GGUF file says that it is a packed one.
inline bool is_packed(const GgufFile& file) {
  const GgufEntry* entry = file.find("general.architecture");
  return entry != nullptr && entry->type == GgufType::string &&
         file.get<std::string_view>("general.architecture") == packed_architecture;
}

/// Gives the records of a packed file the types, extents and layout that its metadata say.
/// FormatError, naming the field and the way out, for another version of the layout, another width
/// of panels, or lists that do not agree with the tensors.
inline void read_packed(const GgufFile& file, std::vector<TensorRecord>& tensors) {
  const auto expect = [&](std::string_view key, std::uint32_t expected) {
    const auto found = file.get<std::uint32_t>(key);
    if (found == expected) return;
    detail::bad_field(file.path(), "key " + detail::in_quotes(key), detail::decimal(expected),
                      detail::decimal(found) +
                          ": packed for another version of quipu; pack the original weights again "
                          "(quipu-convert --pack FROM TO)");
  };
  expect("quipu.packed_layout", packed_layout_version);
  expect("quipu.panel_outputs", panel_outputs);
  if (file.alignment() % packed_alignment != 0) {
    detail::bad_field(file.path(), "key \"general.alignment\"",
                      "a multiple of " + detail::decimal(packed_alignment),
                      detail::decimal(file.alignment()));
  }
  const auto types = file.get_array<std::string_view>("quipu.panels.types");
  const auto extents = file.get_array<std::uint64_t>("quipu.panels.extents");
  std::size_t panels = 0;
  for (const TensorRecord& tensor : tensors) panels += tensor.type_name == "I8";
  if (types.size() != panels || extents.size() / 2 != panels || extents.size() % 2 != 0) {
    detail::bad_format(file.path(),
                       "the file has " + detail::decimal(panels) +
                           " tensors of bytes, but quipu.panels.types names " +
                           detail::decimal(types.size()) + " and quipu.panels.extents has " +
                           detail::decimal(extents.size()) + " values, not twice as many");
  }
  std::size_t next = 0;
  for (TensorRecord& tensor : tensors) {
    if (tensor.type_name != "I8") continue;
    const detail::Words what = "tensor " + detail::in_quotes(tensor.name);
    const std::string_view type_name = types[next];
    const std::optional<ElementType> type = element_type_named(type_name);
    if (!type) {
      detail::bad_format(file.path(), what +
                                          ": quipu.panels.types: " + detail::in_quotes(type_name) +
                                          " is none that quipu computes with");
    }
    const std::uint64_t out = extents[2 * next], in = extents[2 * next + 1];
    constexpr std::uint64_t limit = std::uint64_t{1} << 30;  // so that no product wraps
    if (out == 0 || in == 0 || out > limit || in > limit ||
        !row_is_whole_blocks(*type, static_cast<std::size_t>(in))) {
      detail::bad_format(file.path(), what + ": quipu.panels.extents: " + detail::decimal(out) +
                                          " x " + detail::decimal(in) + " is no matrix of " +
                                          type_name);
    }
    tensor.extents = {static_cast<std::size_t>(out), static_cast<std::size_t>(in)};
    tensor.type = type;
    tensor.type_name = find_ggml_type(ggml_number(*type))->name;
    tensor.layout = Layout::panels;
    const std::size_t bytes = packed_bytes(*type, tensor.extents[0], tensor.extents[1]);
    if (tensor.bytes != bytes) {
      detail::bad_field(file.path(), what + ", bytes of its panels", detail::decimal(bytes),
                        detail::decimal(tensor.bytes));
    }
    ++next;
  }
}

/// Sets the keys of a packed file; `plan` are its tensors, those in panels with `opaque_bytes`.
inline void set_packed(GgufMetadata& metadata, std::span<const GgufPlan> plan) {
  metadata.set("quipu.packed_layout", packed_layout_version);
  metadata.set("quipu.panel_outputs", static_cast<std::uint32_t>(panel_outputs));
  std::vector<std::string_view> types;
  std::vector<std::uint64_t> extents;
  for (const GgufPlan& tensor : plan) {
    if (tensor.opaque_bytes == 0) continue;
    types.push_back(name(tensor.type));
    extents.insert(extents.end(), tensor.extents.begin(), tensor.extents.end());
  }
  metadata.set_array<std::string_view>("quipu.panels.types", types);
  metadata.set_array<std::uint64_t>("quipu.panels.extents", extents);
}

}  // namespace quipu
