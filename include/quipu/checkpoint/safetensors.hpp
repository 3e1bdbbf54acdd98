// safetensors files: an 8-byte header length, a JSON header, and the bytes of the tensors.
//
// Rules, as the format's reference has them, and each broken one is named: the header fits the file
// and begins with '{'; names are unique; a tensor's offsets agree with its type and shape; the
// tensors fill the rest of the file without overlap, gap or trailing bytes. A header may be padded
// with blanks. Tensors of zero elements are legal in this format. The start of a tensor may have
// any alignment in memory, because the header may have any length.
// Siblings: safetensors_writer.hpp, open_checkpoint.hpp (shards and their index).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/checkpoint/byte_reader.hpp"
#include "quipu/checkpoint/json_document.hpp"
#include "quipu/checkpoint/tensor_record.hpp"

namespace quipu {

namespace detail {
struct SafetensorsType {
  std::string_view name;
  std::size_t bytes;
  std::optional<ElementType> type;
};
inline constexpr SafetensorsType safetensors_types[] = {
    {"F32", 4, ElementType::f32},
    {"BF16", 2, ElementType::bf16},
    {"F16", 2, ElementType::f16},
    {"F64", 8, {}},
    {"I64", 8, {}},
    {"I32", 4, {}},
    {"I16", 2, {}},
    {"I8", 1, {}},
    {"U64", 8, {}},
    {"U32", 4, {}},
    {"U16", 2, {}},
    {"U8", 1, {}},
    {"BOOL", 1, {}},
    {"F8_E4M3", 1, {}},
    {"F8_E5M2", 1, {}},
    {"F8_E8M0", 1, {}},
    {"C64", 8, {}},
};
}  // namespace detail

/// The format's name of an element type; empty if it has none (block formats).
constexpr std::string_view safetensors_name(ElementType type) {
  for (const auto& entry : detail::safetensors_types) {
    if (entry.type == type) return entry.name;
  }
  return {};
}

struct SafetensorsLimits {
  /// Longest header accepted. The header of a checkpoint is some hundred bytes a tensor, and files
  /// with headers beyond 100 MB exist, so the cap is generous; a caller may raise it.
  std::uint64_t header_bytes = std::uint64_t{512} << 20;
};

/// The parsed header of a safetensors file. Views into bytes that must outlive it.
class SafetensorsFile {
 public:
  SafetensorsFile(std::span<const std::byte> bytes, std::string path,
                  const SafetensorsLimits& limits = {})
      : path_(std::move(path)) {
    parse(bytes, limits);
  }

  const std::string& path() const { return path_; }
  /// Sorted by their place in the file.
  std::span<const TensorRecord> tensors() const { return tensors_; }
  /// The strings of `__metadata__`.
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }

 private:
  void parse(std::span<const std::byte> bytes, const SafetensorsLimits& limits);
  void read_metadata(const JsonValue& value);
  std::pair<std::uint64_t, std::uint64_t> read_tensor(const JsonMember& member);

  std::string path_;
  std::vector<TensorRecord> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

inline void SafetensorsFile::parse(std::span<const std::byte> bytes,
                                   const SafetensorsLimits& limits) {
  detail::ByteReader reader(bytes, path_);
  const auto header_bytes = reader.read<std::uint64_t>("header length");
  // The file's size first: a header that cannot be there is damage, however long is allowed.
  if (header_bytes > reader.left()) {
    detail::bad_field(path_, "header length",
                      "at most " + detail::decimal(reader.left()) + " (the rest of the file)",
                      detail::decimal(header_bytes));
  }
  if (header_bytes > limits.header_bytes) {
    detail::bad_field(
        path_, "header length",
        "at most " + detail::decimal(limits.header_bytes) + " (SafetensorsLimits::header_bytes)",
        detail::decimal(header_bytes));
  }
  if (header_bytes < 2) {
    detail::bad_field(path_, "header length", "at least 2", detail::decimal(header_bytes));
  }
  const std::string_view header = reader.text(header_bytes, "header");
  if (header.front() != '{') {
    detail::bad_field(path_, "header", "'{' as the first byte",
                      detail::in_quotes(header.substr(0, 1)));
  }
  const JsonValue root = parse_json(header, path_, "header");

  using Range = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<std::pair<Range, std::size_t>> ranges;
  for (const JsonMember& member : *root.object()) {
    if (member.key == "__metadata__") {
      read_metadata(member.value);
    } else {
      const Range range = read_tensor(member);
      ranges.emplace_back(range, tensors_.size() - 1);
    }
  }

  std::sort(ranges.begin(), ranges.end());
  const std::span<const std::byte> data = bytes.subspan(reader.position());
  std::vector<TensorRecord> sorted;
  sorted.reserve(tensors_.size());
  std::uint64_t end = 0;
  for (const auto& [range, index] : ranges) {
    TensorRecord& tensor = tensors_[index];
    const detail::Words what = "tensor " + detail::in_quotes(tensor.name);
    if (range.first != end) {
      const detail::Words why = sorted.empty()      ? " (nothing stands before it)"
                                : range.first < end ? " (it overlaps tensor "
                                                    : " (a gap after tensor ";
      detail::bad_field(path_, what + ", begin of data_offsets", detail::decimal(end),
                        detail::decimal(range.first) + why +
                            (sorted.empty() ? "" : detail::in_quotes(sorted.back().name) + ")"));
    }
    if (range.second > data.size()) {
      detail::bad_format(path_, what + " ends at byte " + detail::decimal(range.second) +
                                    " of the tensor data, which has only " +
                                    detail::decimal(data.size()) + " bytes (is it cut short?)");
    }
    tensor.data = data.data() + range.first;
    tensor.bytes = static_cast<std::size_t>(range.second - range.first);
    end = range.second;
    sorted.push_back(std::move(tensor));
  }
  tensors_ = std::move(sorted);
  if (end != data.size()) {
    detail::bad_format(path_, detail::decimal(data.size() - end) +
                                  " bytes follow the last tensor; the format allows none");
  }
}

inline void SafetensorsFile::read_metadata(const JsonValue& value) {
  const JsonValue::Object* members = value.object();
  if (members == nullptr) {
    detail::bad_field(path_, "__metadata__", "an object of strings", value.describe());
  }
  for (const JsonMember& member : *members) {
    const std::string* text = member.value.text();
    if (text == nullptr) {
      detail::bad_field(path_, "__metadata__, " + detail::in_quotes(member.key), "a string",
                        member.value.describe());
    }
    metadata_.emplace_back(member.key, *text);
  }
}

inline std::pair<std::uint64_t, std::uint64_t> SafetensorsFile::read_tensor(
    const JsonMember& member) {
  const detail::Words what = "tensor " + detail::in_quotes(member.key);
  if (member.value.object() == nullptr) {
    detail::bad_field(path_, what, "an object", member.value.describe());
  }
  const auto field = [&](const char* key) -> const JsonValue& {
    const JsonValue* value = member.value.find(key);
    if (value == nullptr) detail::bad_format(path_, what + ": " + key + " is missing");
    return *value;
  };
  TensorRecord tensor;
  tensor.name = member.key;

  const JsonValue& dtype = field("dtype");
  if (dtype.text() == nullptr) {
    detail::bad_field(path_, what + ", dtype", "a string", dtype.describe());
  }
  tensor.type_name = *dtype.text();
  std::size_t element_bytes = 0;  // 0: a type that is not in the table
  for (const auto& entry : detail::safetensors_types) {
    if (entry.name == tensor.type_name) {
      element_bytes = entry.bytes;
      tensor.type = entry.type;
    }
  }

  const JsonValue& shape = field("shape");
  if (shape.array() == nullptr) {
    detail::bad_field(path_, what + ", shape", "an array", shape.describe());
  }
  std::size_t elements = 1;
  constexpr std::size_t limit = std::size_t{1} << 58;
  for (const JsonValue& extent : *shape.array()) {
    const std::optional<std::uint64_t> n = extent.unsigned_integer();
    if (!n) detail::bad_field(path_, what + ", shape", "sizes", extent.describe());
    if (elements != 0 && *n > limit / elements) {
      detail::bad_format(path_, what + ", shape: the product does not fit in 58 bits");
    }
    elements *= static_cast<std::size_t>(*n);
    tensor.extents.push_back(static_cast<std::size_t>(*n));
  }

  const JsonValue& offsets = field("data_offsets");
  const JsonValue::Array* pair = offsets.array();
  if (pair == nullptr || pair->size() != 2) {
    detail::bad_field(path_, what + ", data_offsets", "[begin, end]", offsets.describe());
  }
  const std::optional<std::uint64_t> begin = (*pair)[0].unsigned_integer();
  const std::optional<std::uint64_t> end = (*pair)[1].unsigned_integer();
  if (!begin || !end || *begin > *end) {
    detail::bad_field(path_, what + ", data_offsets", "two sizes, begin <= end",
                      "[" + (*pair)[0].describe() + ", " + (*pair)[1].describe() + "]");
  }
  if (element_bytes != 0 && *end - *begin != elements * element_bytes) {
    detail::bad_field(path_, what + ", data_offsets",
                      detail::decimal(elements * element_bytes) + " bytes for " + tensor.type_name +
                          " " + detail::extents_text(tensor.extents),
                      detail::decimal(*end - *begin));
  }
  tensors_.push_back(std::move(tensor));
  return {*begin, *end};
}

}  // namespace quipu
