// Writes a file of torch.save (`.pth`): a zip archive of a pickle and of storages, a storage for
// each tensor, which torch.load(weights_only=True) and Meta's code read.
//
// Siblings: torch_pth.hpp and pickle.hpp read it back, zip_writer.hpp, tensor_stream.hpp.
// Source of the opcodes: PEP 307. Test: test/checkpoint/torch_pth_writer_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "quipu/checkpoint/pickle.hpp"
#include "quipu/checkpoint/tensor_stream.hpp"
#include "quipu/checkpoint/zip_writer.hpp"

namespace quipu {

/// A tensor to be written: f32, bf16 or f16; extents outermost first.
struct TorchPlan {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::size_t> extents;
};

/// Whether torch has the element type.
constexpr bool is_torch_type(ElementType type) { return info(type).block_elements == 1; }

class TorchWriter {
 public:
  /// Begins the file. ArgumentError for a type that torch lacks or a name given twice.
  TorchWriter(const std::string& path, std::span<const TorchPlan> plan, WriteProgress progress = {})
      : order_(path, planned(path, plan), std::move(progress)), zip_(path) {
    zip_.entry(root + "data.pkl", pickle(plan));
    zip_.entry(root + "byteorder", "little");
    begin_due();
  }

  /// Appends bytes (row-major) of the planned tensor that is due.
  void append(std::string_view name, std::span<const std::byte> bytes) {
    order_.check(name, bytes.size());
    zip_.append(bytes);
    order_.count(bytes.size());
    if (order_.due_is_whole()) {
      zip_.end();
      order_.next();
      begin_due();
    }
    order_.report();
  }

  /// Gives the file its name. ArgumentError if a tensor is not whole.
  void finish() {
    order_.check_finished();
    zip_.entry(root + "version", "3\n");
    zip_.finish();
  }

 private:
  static inline const std::string root = "consolidated/";

  void begin_due() {
    if (order_.due() == nullptr) return;
    zip_.begin(root + "data/" + std::to_string(storage_++), order_.due()->bytes);
  }

  static std::size_t elements_of(const TorchPlan& tensor) {
    std::size_t elements = 1;
    for (const std::size_t extent : tensor.extents)
      elements = checked_mul(elements, extent, "elements of a tensor");
    return elements;
  }

  static std::vector<detail::PlannedBytes> planned(const std::string& path,
                                                   std::span<const TorchPlan> plan) {
    std::vector<detail::PlannedBytes> out;
    std::unordered_set<std::string_view> names;
    for (const TorchPlan& tensor : plan) {
      const detail::Words what = detail::Words(path) + ": tensor " + detail::in_quotes(tensor.name);
      if (!names.insert(tensor.name).second) raise<ArgumentError>(what + ": the name is taken");
      if (!is_torch_type(tensor.type)) {
        raise<ArgumentError>(what + ": torch has no element type " + quipu::name(tensor.type));
      }
      const std::size_t elements = elements_of(tensor);
      if (elements == 0) raise<ArgumentError>(what + ": an extent is 0");
      out.push_back({tensor.name, checked_mul(elements, info(tensor.type).block_bytes)});
    }
    return out;
  }

  // Pieces of a pickle of protocol 2.
  static void text(std::string& out, std::string_view value) {
    out += 'X';  // BINUNICODE
    const auto length = static_cast<std::uint32_t>(value.size());
    char raw[4];
    std::memcpy(raw, &length, 4);
    out.append(raw, 4);
    out += value;
  }
  static void integer(std::string& out, std::size_t value) {
    char raw[9] = {};
    std::memcpy(raw, &value, 8);
    if (value < std::size_t{1} << 31) {
      out += 'J';  // BININT
      out.append(raw, 4);
    } else {
      out += "\x8a\x09";  // LONG1 of nine bytes, the last of which is the sign
      out.append(raw, 9);
    }
  }
  static void global(std::string& out, std::string_view module_and_name) {
    out += 'c';
    for (const char c : module_and_name) out += c == ' ' ? '\n' : c;
    out += '\n';
  }
  static void tuple(std::string& out, std::span<const std::size_t> values) {
    out += '(';
    for (const std::size_t value : values) integer(out, value);
    out += 't';
  }

  // A dictionary from names to _rebuild_tensor_v2(storage, 0, extents, strides, False,
  // OrderedDict()), where the storage is a persistent id.
  static std::string pickle(std::span<const TorchPlan> plan) {
    std::string out = "\x80\x02}(";
    std::size_t key = 0;
    for (const TorchPlan& tensor : plan) {
      text(out, tensor.name);
      global(out, detail::rebuild_tensor_global);
      out += "((";
      text(out, "storage");
      for (const TorchStorageType& type : detail::torch_storage_types) {
        if (type.type == tensor.type) global(out, type.global);
      }
      text(out, std::to_string(key++));
      text(out, "cpu");
      integer(out, elements_of(tensor));
      out += "tQ";  // TUPLE, BINPERSID
      integer(out, 0);
      tuple(out, tensor.extents);
      std::vector<std::size_t> strides(tensor.extents.size(), 1);
      for (std::size_t i = strides.size(); i-- > 1;)
        strides[i - 1] = strides[i] * tensor.extents[i];
      tuple(out, strides);
      out += '\x89';  // NEWFALSE
      global(out, detail::ordered_dict_global);
      out += ")RtR";
    }
    return out + "u.";
  }

  detail::TensorOrder order_;
  ZipWriter zip_;
  std::size_t storage_ = 0;
};

}  // namespace quipu
