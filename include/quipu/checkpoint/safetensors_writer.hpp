// Writes a safetensors file, tensor by tensor, under its name only when it is whole.
// Siblings: safetensors.hpp reads it back, tensor_stream.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "quipu/checkpoint/json_document.hpp"
#include "quipu/checkpoint/safetensors.hpp"
#include "quipu/checkpoint/tensor_stream.hpp"

namespace quipu {

/// A tensor to be written: its name, the format's word for its type ("F32", "BF16", "I64"; see
/// safetensors_name), and its extents, outermost first.
struct SafetensorsPlan {
  std::string name;
  std::string_view dtype;
  std::vector<std::size_t> extents;
};

class SafetensorsWriter {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  /// Begins the file: the header says everything, so all tensors are planned first. ArgumentError
  /// for a type the format lacks or a name given twice.
  SafetensorsWriter(std::string path, std::span<const SafetensorsPlan> plan,
                    const Metadata& metadata = {{"format", "pt"}}, WriteProgress progress = {})
      : stream_(path, planned(path, plan), 1, std::move(progress)) {
    std::string header = "{\"__metadata__\":{";
    for (std::size_t i = 0; i < metadata.size(); ++i) {
      if (i != 0) header += ',';
      header += json_quoted(metadata[i].first) + ":" + json_quoted(metadata[i].second);
    }
    header += '}';
    std::size_t offset = 0;
    for (const SafetensorsPlan& tensor : plan) {
      const std::size_t end = offset + bytes_of(path, tensor);
      header += ',';
      header += json_quoted(tensor.name) + ":{\"dtype\":\"" + std::string(tensor.dtype) +
                "\",\"shape\":[";
      for (std::size_t i = 0; i < tensor.extents.size(); ++i) {
        if (i != 0) header += ',';
        header += std::to_string(tensor.extents[i]);
      }
      header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
      offset = end;
    }
    header += '}';
    header.resize(round_up(header.size(), 8), ' ');  // so that the tensors are aligned to 8
    std::string head(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(head.data(), &length, sizeof(length));
    stream_.write_head(head + header);
  }

  /// Appends bytes (row-major, little-endian) of the planned tensor that is due.
  void append(std::string_view name, std::span<const std::byte> bytes) {
    stream_.append(name, bytes);
  }
  /// Gives the file its name. ArgumentError if a tensor is not whole.
  void finish() { stream_.finish(); }

 private:
  static std::size_t bytes_of(const std::string& path, const SafetensorsPlan& tensor) {
    for (const auto& entry : detail::safetensors_types) {
      if (entry.name != tensor.dtype) continue;
      std::size_t bytes = entry.bytes;
      for (const std::size_t extent : tensor.extents) {
        bytes = checked_mul(bytes, extent, "bytes of a tensor");
      }
      return bytes;
    }
    raise<ArgumentError>(path + ": tensor " + detail::in_quotes(tensor.name) +
                         ": safetensors has no "
                         "element type " +
                         detail::in_quotes(tensor.dtype));
  }
  static std::vector<detail::PlannedBytes> planned(const std::string& path,
                                                   std::span<const SafetensorsPlan> plan) {
    std::vector<detail::PlannedBytes> out;
    std::unordered_set<std::string_view> names{"__metadata__"};
    for (const SafetensorsPlan& tensor : plan) {
      if (!names.insert(tensor.name).second) {
        raise<ArgumentError>(path + ": tensor " + detail::in_quotes(tensor.name) +
                             ": the name is taken");
      }
      out.push_back({tensor.name, bytes_of(path, tensor)});
    }
    return out;
  }

  detail::TensorStream stream_;
};

}  // namespace quipu
