// A reader of safetensors files for tests, small and independent of checkpoint/.
// It trusts its files: it serves golden data, not users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/float_bits.hpp"

namespace quipu_test {

/// A tensor of the file: F32 and BF16 elements widened to float32, or I64 elements.
struct Tensor {
  std::string dtype;
  std::vector<std::size_t> shape;
  std::vector<float> values;
  std::vector<std::int64_t> integers;
};

class TensorFile {
 public:
  explicit TensorFile(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    std::uint64_t header_bytes = 0;
    file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
    std::string header(file ? header_bytes : 0, '\0');
    file.read(header.data(), static_cast<std::streamsize>(header.size()));
    if (!file) throw std::runtime_error(path_ + ": cannot be read");
    const nlohmann::json records = nlohmann::json::parse(header);
    for (const auto& [name, record] : records.items()) {
      if (name == "__metadata__") continue;
      const auto begin = record["data_offsets"][0].get<std::size_t>();
      const auto end = record["data_offsets"][1].get<std::size_t>();
      std::vector<char> bytes(end - begin);
      file.seekg(static_cast<std::streamoff>(8 + header_bytes + begin));
      file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      if (!file) throw std::runtime_error(path_ + ": " + name + " is cut short");
      Tensor tensor{record["dtype"], record["shape"], {}, {}};
      decode(name, bytes, tensor);
      tensors_.emplace(name, std::move(tensor));
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }

  const Tensor& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error(path_ + ": no tensor " + name);
    return found->second;
  }

  const std::map<std::string, Tensor>& all() const { return tensors_; }

 private:
  void decode(const std::string& name, const std::vector<char>& bytes, Tensor& tensor) const {
    if (tensor.dtype == "F32") {
      tensor.values.resize(bytes.size() / sizeof(float));
      if (!bytes.empty()) std::memcpy(tensor.values.data(), bytes.data(), bytes.size());
    } else if (tensor.dtype == "BF16") {
      std::vector<std::uint16_t> halves(bytes.size() / 2);
      if (!bytes.empty()) std::memcpy(halves.data(), bytes.data(), bytes.size());
      for (const std::uint16_t bits : halves) tensor.values.push_back(from_bf16_bits(bits));
    } else if (tensor.dtype == "I64") {
      tensor.integers.resize(bytes.size() / sizeof(std::int64_t));
      if (!bytes.empty()) std::memcpy(tensor.integers.data(), bytes.data(), bytes.size());
    } else {
      throw std::runtime_error(path_ + ": " + name + " has the type " + tensor.dtype);
    }
  }

  std::string path_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace quipu_test
