// Writes a GGUF file (version 3), tensor by tensor, under its name only when it is whole.
// Siblings: gguf.hpp reads it back, gguf_types.hpp, tensor_stream.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "quipu/checkpoint/gguf.hpp"
#include "quipu/checkpoint/gguf_types.hpp"
#include "quipu/checkpoint/tensor_stream.hpp"

namespace quipu {

/// Metadata under construction.
class GgufMetadata {
 public:
  /// Adds a value: a fixed-size arithmetic type, bool or std::string_view. ArgumentError if the
  /// key is there already.
  template <class T>
  void set(std::string_view key, T value) {
    begin(key, gguf_type_of<T>());
    put_value(value);
  }
  template <class T>
  void set_array(std::string_view key, std::span<const T> values) {
    begin(key, GgufType::array);
    put(static_cast<std::uint32_t>(gguf_type_of<T>()));
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put_value(value);
  }
  /// Takes over an entry of another file (a tokenizer) as it stands.
  void copy(const GgufEntry& entry) {
    begin(entry.key, entry.type);
    if (entry.type == GgufType::array) {
      put(static_cast<std::uint32_t>(entry.element));
      put(static_cast<std::uint64_t>(entry.count));
    }
    bytes_.append(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  }

  bool contains(std::string_view key) const { return keys_.contains(std::string(key)); }
  std::size_t size() const { return keys_.size(); }
  std::string_view bytes() const { return bytes_; }

 private:
  template <class T>
  void put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  template <class T>
  void put_value(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<std::uint8_t>(value ? 1 : 0));
    } else if constexpr (std::is_arithmetic_v<T>) {
      put(value);
    } else {
      const std::string_view text = value;
      put(static_cast<std::uint64_t>(text.size()));
      bytes_ += text;
    }
  }
  void begin(std::string_view key, GgufType type) {
    if (key.empty() || !keys_.insert(std::string(key)).second) {
      raise<ArgumentError>("GGUF metadata: key " + detail::in_quotes(key) +
                           (key.empty() ? " is empty" : " is set twice"));
    }
    put(static_cast<std::uint64_t>(key.size()));
    bytes_ += key;
    put(static_cast<std::uint32_t>(type));
  }

  std::string bytes_;
  std::unordered_set<std::string> keys_;
};

/// A tensor to be written: extents outermost first ([out, in]).
struct GgufPlan {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::size_t> extents;
  /// Not 0: the tensor holds so many bytes of a layout of our own and is written as a vector of
  /// GGUF's type I8, so that nobody takes them for rows of `type`.
  std::size_t opaque_bytes = 0;
};

class GgufWriter {
 public:
  static constexpr std::size_t default_alignment = 32;  ///< of the format: needs no key

  /// Begins the file. `alignment` of the tensors is a power of two. ArgumentError for a name given
  /// twice, other than one to four extents, an extent of 0, rows that are not whole blocks, or
  /// metadata that sets `general.alignment`.
  GgufWriter(std::string path, GgufMetadata metadata, std::span<const GgufPlan> plan,
             WriteProgress progress = {}, std::size_t alignment = default_alignment)
      : stream_(path, planned(path, metadata, plan), alignment, std::move(progress)) {
    if (alignment != default_alignment) {
      metadata.set("general.alignment", static_cast<std::uint32_t>(alignment));
    }
    std::string head = "GGUF";
    const auto put = [&head](auto value) {
      char raw[sizeof(value)];
      std::memcpy(raw, &value, sizeof(value));
      head.append(raw, sizeof(value));
    };
    put(std::uint32_t{3});
    put(static_cast<std::uint64_t>(plan.size()));
    put(static_cast<std::uint64_t>(metadata.size()));
    head += metadata.bytes();
    std::size_t offset = 0;
    for (const GgufPlan& tensor : plan) {
      put(static_cast<std::uint64_t>(tensor.name.size()));
      head += tensor.name;
      if (tensor.opaque_bytes != 0) {
        put(std::uint32_t{1});
        put(static_cast<std::uint64_t>(tensor.opaque_bytes));
        put(ggml_i8);
      } else {
        put(static_cast<std::uint32_t>(tensor.extents.size()));
        for (std::size_t i = tensor.extents.size(); i-- > 0;) {
          put(static_cast<std::uint64_t>(tensor.extents[i]));
        }
        put(ggml_number(tensor.type));
      }
      put(static_cast<std::uint64_t>(offset));
      offset = round_up(checked_add(offset, bytes_of(tensor)), alignment);
    }
    head.resize(round_up(head.size(), alignment), '\0');
    stream_.write_head(head);
  }

  /// Appends bytes of the planned tensor that is due.
  void append(std::string_view name, std::span<const std::byte> bytes) {
    stream_.append(name, bytes);
  }
  /// Gives the file its name. ArgumentError if a tensor is not whole.
  void finish() { stream_.finish(); }

 private:
  static std::size_t bytes_of(const GgufPlan& tensor) {
    if (tensor.opaque_bytes != 0) return tensor.opaque_bytes;
    std::size_t bytes = row_bytes(tensor.type, tensor.extents.back());
    for (std::size_t i = 0; i + 1 < tensor.extents.size(); ++i) {
      bytes = checked_mul(bytes, tensor.extents[i], "bytes of a tensor");
    }
    return bytes;
  }
  static std::vector<detail::PlannedBytes> planned(const std::string& path,
                                                   const GgufMetadata& metadata,
                                                   std::span<const GgufPlan> plan) {
    if (metadata.contains("general.alignment")) {
      raise<ArgumentError>(path + ": key \"general.alignment\" is written by the writer alone");
    }
    std::vector<detail::PlannedBytes> out;
    std::unordered_set<std::string_view> names;
    for (const GgufPlan& tensor : plan) {
      const detail::Words what = detail::Words(path) + ": tensor " + detail::in_quotes(tensor.name);
      if (tensor.name.empty() || !names.insert(tensor.name).second) {
        raise<ArgumentError>(what + ": the name is empty or taken");
      }
      if (tensor.extents.empty() || tensor.extents.size() > 4) {
        raise<ArgumentError>(what + ": expected 1 to 4 extents, found " +
                             detail::decimal(tensor.extents.size()));
      }
      for (const std::size_t extent : tensor.extents) {
        if (extent == 0) raise<ArgumentError>(what + ": an extent is 0");
      }
      if (!row_is_whole_blocks(tensor.type, tensor.extents.back())) {
        raise<ArgumentError>(what + ": a row of " + detail::decimal(tensor.extents.back()) +
                             " elements is not whole blocks of " + quipu::name(tensor.type));
      }
      out.push_back({tensor.name, bytes_of(tensor)});
    }
    return out;
  }

  detail::TensorStream stream_;
};

}  // namespace quipu
