// GGUF files, versions 2 and 3: metadata and tensors, read in place.
//
// Layout: "GGUF", version, number of tensors, number of metadata entries; the entries; the tensors'
// names, extents (innermost first), types and offsets; the tensors' bytes, aligned. Rules here:
//   - every count, length and offset is bounded by the file's size before anything is allocated;
//   - keys and tensor names are unique, extents are positive, rows are whole blocks;
//   - tensors lie one after the other, each at the next aligned offset, without overlap or gap, as
//     llama.cpp requires too;
//   - the file ends with the last tensor or with its padding to the alignment: further bytes are
//     refused, for they are as likely damage as padding.
// q and k of architecture "llama" stand in Meta's row order (see NamingScheme::gguf).
// Siblings: gguf_types.hpp, gguf_facts.hpp, gguf_writer.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "quipu/checkpoint/byte_reader.hpp"
#include "quipu/checkpoint/gguf_types.hpp"
#include "quipu/checkpoint/tensor_record.hpp"

namespace quipu {

/// One metadata entry. `value` are the bytes after the type (for arrays: after element type and
/// count), already checked to be whole.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  ///< of an array
  std::size_t count = 1;            ///< of an array
  std::span<const std::byte> value;

  /// "u32", "array of string".
  std::string type_text() const {
    return type == GgufType::array ? "array of " + std::string(name(element))
                                   : std::string(name(type));
  }
};

/// The parsed head of a GGUF file. Views into bytes that must outlive it.
class GgufFile {
 public:
  /// Parses and checks the file; `path` is its name in messages. FormatError names the field.
  GgufFile(std::span<const std::byte> bytes, std::string path) : path_(std::move(path)) {
    parse(bytes);
  }

  const std::string& path() const { return path_; }
  std::uint32_t version() const { return version_; }
  std::size_t alignment() const { return alignment_; }
  std::span<const GgufEntry> metadata() const { return entries_; }
  std::span<const TensorRecord> tensors() const { return tensors_; }

  /// The entry of that key, or null.
  const GgufEntry* find(std::string_view key) const {
    const auto at = std::lower_bound(
        by_key_.begin(), by_key_.end(), key,
        [this](std::size_t i, std::string_view wanted) { return entries_[i].key < wanted; });
    return at != by_key_.end() && entries_[*at].key == key ? &entries_[*at] : nullptr;
  }

  /// The value of a key that must be there with exactly the type T (a fixed-size arithmetic type,
  /// bool or std::string_view). FormatError names key, expected and found type.
  template <class T>
  T get(std::string_view key) const {
    return scalar<T>(require(key), name(gguf_type_of<T>()));
  }

  /// The same, empty if the key is missing (a wrong type is still an error).
  template <class T>
  std::optional<T> get_if(std::string_view key) const {
    if (find(key) == nullptr) return std::nullopt;
    return get<T>(key);
  }

  /// An integer of any width, not negative: converters differ in the widths they write.
  std::optional<std::uint64_t> get_unsigned(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    const auto read = [&]<class T>(T) -> std::uint64_t {
      const T value = scalar<T>(*entry, "");
      if constexpr (std::is_signed_v<T>) {
        if (value < 0) {
          detail::bad_field(path_, key_text(key), "no negative number", detail::decimal(value));
        }
      }
      return static_cast<std::uint64_t>(value);
    };
    switch (entry->type) {
      case GgufType::u8:
        return read(std::uint8_t{});
      case GgufType::i8:
        return read(std::int8_t{});
      case GgufType::u16:
        return read(std::uint16_t{});
      case GgufType::i16:
        return read(std::int16_t{});
      case GgufType::u32:
        return read(std::uint32_t{});
      case GgufType::i32:
        return read(std::int32_t{});
      case GgufType::u64:
        return read(std::uint64_t{});
      case GgufType::i64:
        return read(std::int64_t{});
      default:
        wrong_type(*entry, "an integer");
    }
  }

  /// A number in float32 or float64.
  std::optional<double> get_real(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) return std::nullopt;
    if (entry->type == GgufType::f32) return scalar<float>(*entry, "");
    if (entry->type == GgufType::f64) return scalar<double>(*entry, "");
    wrong_type(*entry, "f32 or f64");
  }

  /// The elements of an array of exactly T, copied out (strings as views into the file).
  template <class T>
  std::vector<T> get_array(std::string_view key) const {
    const GgufEntry& entry = require(key);
    if (entry.type != GgufType::array || entry.element != gguf_type_of<T>()) {
      wrong_type(entry, detail::Words("array of ") + name(gguf_type_of<T>()));
    }
    std::vector<T> out;
    out.reserve(entry.count);
    detail::ByteReader reader(entry.value, path_);
    for (std::size_t i = 0; i < entry.count; ++i) {
      if constexpr (std::is_same_v<T, std::string_view>) {
        out.push_back(reader.text(reader.read<std::uint64_t>("length"), "string"));
      } else if constexpr (std::is_same_v<T, bool>) {
        out.push_back(reader.read<std::uint8_t>("bool") != 0);
      } else {
        out.push_back(reader.read<T>("element"));
      }
    }
    return out;
  }
  template <class T>
  std::optional<std::vector<T>> get_array_if(std::string_view key) const {
    if (find(key) == nullptr) return std::nullopt;
    return get_array<T>(key);
  }

 private:
  static detail::Words key_text(std::string_view key) { return "key " + detail::in_quotes(key); }

  const GgufEntry& require(std::string_view key) const {
    const GgufEntry* entry = find(key);
    if (entry == nullptr) detail::bad_format(path_, key_text(key) + " is missing");
    return *entry;
  }

  [[noreturn]] void wrong_type(const GgufEntry& entry, const detail::Words& expected) const {
    detail::bad_field(path_, key_text(entry.key), "type " + expected, "type " + entry.type_text());
  }

  template <class T>
  T scalar(const GgufEntry& entry, const detail::Words& expected) const {
    if (entry.type != gguf_type_of<T>()) wrong_type(entry, expected);
    if constexpr (std::is_same_v<T, std::string_view>) {
      return {reinterpret_cast<const char*>(entry.value.data()) + 8, entry.value.size() - 8};
    } else if constexpr (std::is_same_v<T, bool>) {
      return entry.value[0] != std::byte{0};
    } else {
      T value;
      std::memcpy(&value, entry.value.data(), sizeof(T));
      return value;
    }
  }

  // A tensor as the file lists it, before its place is known to be good.
  struct Placement {
    std::uint64_t offset;
    std::size_t bytes;  ///< 0: of an unknown type, to be taken from the neighbours
  };

  void parse(std::span<const std::byte> bytes);
  GgufEntry read_entry(detail::ByteReader& reader) const;
  void skip_values(detail::ByteReader& reader, GgufType type, std::uint64_t count,
                   const detail::Words& what) const;
  TensorRecord read_tensor(detail::ByteReader& reader, Placement& placement) const;
  void place_tensors(std::span<const std::byte> bytes, std::size_t head_bytes,
                     std::span<const Placement> placements);

  std::string path_;
  std::uint32_t version_ = 0;
  std::size_t alignment_ = 32;
  std::vector<GgufEntry> entries_;
  std::vector<std::size_t> by_key_;
  std::vector<TensorRecord> tensors_;
};

inline void GgufFile::parse(std::span<const std::byte> bytes) {
  detail::ByteReader reader(bytes, path_);
  const std::string_view magic = reader.text(4, "the magic \"GGUF\"");
  if (magic != "GGUF") detail::bad_field(path_, "magic", "\"GGUF\"", detail::in_quotes(magic));
  version_ = reader.read<std::uint32_t>("version");
  if (version_ != 0 && (version_ & 0xffffU) == 0) {
    detail::bad_format(path_, "a big-endian GGUF file (version " + detail::decimal(version_ >> 24) +
                                  " with its bytes in reverse order); quipu reads little-endian "
                                  "files: convert it again with --outtype and no --bigendian");
  }
  if (version_ != 2 && version_ != 3) {
    detail::bad_field(path_, "version", "2 or 3", detail::decimal(version_));
  }
  const auto tensor_count = reader.read<std::uint64_t>("number of tensors");
  const auto entry_count = reader.read<std::uint64_t>("number of metadata entries");

  // The least entry: an empty key's length (8), a type (4), one byte of value.
  reader.need_items(entry_count, 13, "metadata entries");
  entries_.reserve(static_cast<std::size_t>(entry_count));
  for (std::uint64_t i = 0; i < entry_count; ++i) entries_.push_back(read_entry(reader));
  by_key_.resize(entries_.size());
  for (std::size_t i = 0; i < by_key_.size(); ++i) by_key_[i] = i;
  std::sort(by_key_.begin(), by_key_.end(),
            [this](std::size_t a, std::size_t b) { return entries_[a].key < entries_[b].key; });
  for (std::size_t i = 1; i < by_key_.size(); ++i) {
    const std::string_view key = entries_[by_key_[i]].key;
    if (key == entries_[by_key_[i - 1]].key) {
      detail::bad_format(path_, key_text(key) + " stands twice in the metadata");
    }
  }

  alignment_ = get_if<std::uint32_t>("general.alignment").value_or(32);
  if (alignment_ == 0 || (alignment_ & (alignment_ - 1)) != 0) {
    detail::bad_field(path_, key_text("general.alignment"), "a power of two",
                      detail::decimal(alignment_));
  }

  // The least tensor: name length (8), number of extents (4), one extent (8), type (4), offset (8).
  reader.need_items(tensor_count, 32, "tensors");
  tensors_.reserve(static_cast<std::size_t>(tensor_count));
  std::vector<Placement> placements;
  placements.reserve(static_cast<std::size_t>(tensor_count));
  for (std::uint64_t i = 0; i < tensor_count; ++i) {
    Placement placement{};
    tensors_.push_back(read_tensor(reader, placement));
    placements.push_back(placement);
  }
  std::unordered_set<std::string_view> names;
  for (const TensorRecord& tensor : tensors_) {
    if (!names.insert(tensor.name).second) {
      detail::bad_format(path_, "tensor " + detail::in_quotes(tensor.name) + " stands twice");
    }
  }
  place_tensors(bytes, reader.position(), placements);
}

inline GgufEntry GgufFile::read_entry(detail::ByteReader& reader) const {
  GgufEntry entry;
  const detail::Words ordinal = "metadata entry " + detail::decimal(entries_.size());
  entry.key =
      reader.text(reader.read<std::uint64_t>(ordinal + ", length of the key"), ordinal + ", key");
  if (entry.key.empty()) detail::bad_format(path_, ordinal + ": the key is empty");
  const detail::Words what = key_text(entry.key);
  const auto read_type = [&](const char* field) {
    const auto type = reader.read<std::uint32_t>(what + ", " + field);
    if (!is_gguf_type(type)) {
      detail::bad_field(path_, what + ", " + field, "0 to 12", detail::decimal(type));
    }
    return static_cast<GgufType>(type);
  };
  entry.type = read_type("value type");
  std::uint64_t count = 1;
  if (entry.type == GgufType::array) {
    entry.element = read_type("element type");
    if (entry.element == GgufType::array) {
      detail::bad_format(path_, what + ": an array of arrays, which no model file needs");
    }
    count = reader.read<std::uint64_t>(what + ", number of elements");
  }
  // Measures the value with a reader of its own, then takes the bytes in one piece.
  detail::ByteReader measure = reader;
  skip_values(measure, entry.type == GgufType::array ? entry.element : entry.type, count, what);
  entry.count = static_cast<std::size_t>(count);
  entry.value = reader.take(measure.position() - reader.position(), what);
  return entry;
}

inline void GgufFile::skip_values(detail::ByteReader& reader, GgufType type, std::uint64_t count,
                                  const detail::Words& what) const {
  if (type == GgufType::string) {
    reader.need_items(count, 8, what + ", strings");
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto length = reader.read<std::uint64_t>(what);
      if (length > reader.left()) {
        detail::bad_format(path_, what + ": a string of " + detail::decimal(length) +
                                      " bytes runs past the end of the file");
      }
      reader.take(length, what);
    }
    return;
  }
  reader.need_items(count, gguf_scalar_bytes(type), what + ", elements");
  const auto values = reader.take(count * gguf_scalar_bytes(type), what);
  if (type != GgufType::boolean) return;
  for (const std::byte b : values) {
    if (b > std::byte{1}) {
      detail::bad_field(path_, what, "a bool of 0 or 1",
                        detail::decimal(std::to_integer<unsigned>(b)));
    }
  }
}

inline TensorRecord GgufFile::read_tensor(detail::ByteReader& reader, Placement& placement) const {
  TensorRecord tensor;
  const detail::Words ordinal = "tensor " + detail::decimal(tensors_.size());
  tensor.name =
      reader.text(reader.read<std::uint64_t>(ordinal + ", length of the name"), ordinal + ", name");
  if (tensor.name.empty()) detail::bad_format(path_, ordinal + ": the name is empty");
  const detail::Words what = "tensor " + detail::in_quotes(tensor.name);
  const auto rank = reader.read<std::uint32_t>(what + ", number of extents");
  if (rank < 1 || rank > 4) {
    detail::bad_field(path_, what + ", number of extents", "1 to 4", detail::decimal(rank));
  }
  std::size_t elements = 1;
  constexpr std::size_t limit = std::size_t{1} << 62;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const auto extent = reader.read<std::uint64_t>(what + ", extents");
    if (extent == 0) detail::bad_format(path_, what + ": an extent is 0");
    if (extent > limit / elements) {
      detail::bad_format(path_, what + ": the product of the extents does not fit in 62 bits");
    }
    elements *= static_cast<std::size_t>(extent);
    tensor.extents.push_back(static_cast<std::size_t>(extent));
  }
  const std::size_t row = tensor.extents.front();  // innermost first in the file
  std::reverse(tensor.extents.begin(), tensor.extents.end());
  const auto type = reader.read<std::uint32_t>(what + ", element type");
  placement.offset = reader.read<std::uint64_t>(what + ", offset");
  tensor.type = element_type_of_ggml(type);
  if (const GgmlType* ggml = find_ggml_type(type)) {
    tensor.type_name = ggml->name;
    if (row % ggml->block_elements != 0) {
      detail::bad_format(path_, what + ": a row of " + detail::decimal(row) + " elements is not " +
                                    "whole blocks of " + detail::decimal(ggml->block_elements) +
                                    ", as type " + tensor.type_name + " needs");
    }
    const std::size_t blocks = elements / ggml->block_elements;
    if (blocks > limit / ggml->block_bytes) {
      detail::bad_format(path_, what + ": its size in bytes does not fit in 62 bits");
    }
    placement.bytes = blocks * ggml->block_bytes;
  } else {
    tensor.type_name = "ggml type " + detail::decimal(type);
  }
  return tensor;
}

inline void GgufFile::place_tensors(std::span<const std::byte> bytes, std::size_t head_bytes,
                                    std::span<const Placement> placements) {
  // A file without tensors (a vocabulary alone) may end with its head or with the head's padding.
  const std::size_t padded_head = round_up(head_bytes, alignment_, "head of a GGUF file");
  if (tensors_.empty()) {
    if (bytes.size() > padded_head) {
      detail::bad_format(path_, detail::decimal(bytes.size() - head_bytes) +
                                    " bytes follow the metadata of a file without tensors");
    }
    return;
  }
  if (padded_head > bytes.size()) {
    detail::bad_format(path_, "the file ends at " + detail::decimal(bytes.size()) +
                                  " bytes, before the tensors, which begin at " +
                                  detail::decimal(padded_head));
  }
  const std::span<const std::byte> data = bytes.subspan(padded_head);

  std::vector<std::size_t> order(tensors_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return placements[a].offset != placements[b].offset
               ? placements[a].offset < placements[b].offset
               : a < b;
  });
  std::size_t end = 0;  // of the tensors so far, without padding
  for (std::size_t i = 0; i < order.size(); ++i) {
    TensorRecord& tensor = tensors_[order[i]];
    const Placement& placement = placements[order[i]];
    const detail::Words what = "tensor " + detail::in_quotes(tensor.name);
    const std::size_t expected = round_up(end, alignment_, "offset of a tensor");
    if (placement.offset != expected) {
      detail::Words why = " (not a multiple of the alignment)";
      if (placement.offset % alignment_ == 0) {
        why = i == 0                   ? " (nothing stands before it)"
              : placement.offset < end ? " (it overlaps tensor "
                                       : " (a gap after tensor ";
        if (i > 0) why = why + detail::in_quotes(tensors_[order[i - 1]].name) + ")";
      }
      detail::bad_field(path_, what + ", offset", detail::decimal(expected),
                        detail::decimal(placement.offset) + why);
    }
    if (expected > data.size()) {
      detail::bad_format(path_, what + " begins at byte " + detail::decimal(expected) +
                                    " of the tensor data, which has only " +
                                    detail::decimal(data.size()) + " bytes (is it cut short?)");
    }
    std::size_t size = placement.bytes;
    if (size == 0) {  // a type whose size nobody knows here: up to its neighbour
      const std::uint64_t next =
          i + 1 < order.size() ? placements[order[i + 1]].offset : data.size();
      size = static_cast<std::size_t>(next > expected ? next - expected : 0);
    }
    if (size > data.size() - expected) {
      detail::bad_format(path_, what + " needs " + detail::decimal(size) + " bytes at offset " +
                                    detail::decimal(expected) + " of the tensor data, which has " +
                                    detail::decimal(data.size()) + " bytes (is it cut short?)");
    }
    tensor.data = data.data() + expected;
    tensor.bytes = size;
    end = expected + size;
  }
  if (data.size() > round_up(end, alignment_, "end of the tensors")) {
    detail::bad_format(path_, detail::decimal(data.size() - end) +
                                  " bytes follow the last tensor " +
                                  detail::in_quotes(tensors_[order.back()].name) +
                                  ", more than the padding to " + detail::decimal(alignment_));
  }
  for (const std::byte b : data.subspan(end)) {
    if (b != std::byte{0})
      detail::bad_format(path_, "the padding after the last tensor is not zero");
  }
}

}  // namespace quipu
