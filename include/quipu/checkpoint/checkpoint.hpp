// A checkpoint as a whole: its files, its tensors under one form, and what it says of its model.
//
// Nothing here knows a model type. Siblings: open_checkpoint.hpp makes one of these from a path,
// tensor_source.hpp reads tensors, model_facts.hpp holds the configuration.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/checkpoint/gguf.hpp"
#include "quipu/checkpoint/mapped_file.hpp"
#include "quipu/checkpoint/model_facts.hpp"
#include "quipu/checkpoint/tensor_record.hpp"
#include "quipu/checkpoint/tensor_source.hpp"

namespace quipu {

/// Owns the maps of all files of a checkpoint; the records point into them. Move-only.
class Checkpoint {
 public:
  std::string path;  ///< as it was opened
  FileFormat format = FileFormat::gguf;
  NamingScheme naming = NamingScheme::gguf;
  ModelFacts facts;
  /// Model-parallel ranks of Meta's consolidated.NN.pth. With more than one, each tensor stands in
  /// every part (cut or copied), and `file` of a record is its part.
  std::size_t parts = 1;
  std::vector<MappedFile> files;
  std::optional<GgufFile> gguf;    ///< metadata and tokenizer of a GGUF file
  std::vector<std::string> notes;  ///< what was found and left aside, for a program to show

  Checkpoint() = default;
  Checkpoint(Checkpoint&&) noexcept = default;
  Checkpoint& operator=(Checkpoint&&) noexcept = default;

  /// All records, in the order of the files and within them of the bytes or of the state dict.
  const std::vector<TensorRecord>& tensors() const { return tensors_; }

  /// Takes the records; afterwards find() works. FormatError if a name stands twice in a part.
  void set_tensors(std::vector<TensorRecord> tensors) {
    tensors_ = std::move(tensors);
    by_name_.resize(tensors_.size());
    for (std::size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    std::sort(by_name_.begin(), by_name_.end(), [this](std::size_t a, std::size_t b) {
      return key(a) != key(b) ? key(a) < key(b) : a < b;
    });
    for (std::size_t i = 1; i < by_name_.size(); ++i) {
      if (key(by_name_[i]) == key(by_name_[i - 1])) {
        const TensorRecord& again = tensors_[by_name_[i]];
        detail::bad_format(files[again.file].path(),
                           "tensor " + detail::in_quotes(again.name) + " stands in " +
                               files[tensors_[by_name_[i - 1]].file].path() + " too");
      }
    }
  }

  /// The record of that name (in that part), or null.
  const TensorRecord* find(std::string_view tensor_name, std::size_t part = 0) const {
    const std::pair<std::string_view, std::size_t> wanted{tensor_name, part};
    const auto at =
        std::lower_bound(by_name_.begin(), by_name_.end(), wanted,
                         [this](std::size_t i, const auto& value) { return key(i) < value; });
    return at != by_name_.end() && key(*at) == wanted ? &tensors_[*at] : nullptr;
  }

  /// The tensor of that name put together from all parts; `axis` says how this kind of tensor is
  /// cut. FormatError that names the tensor (and the part) if it is missing or does not fit.
  TensorSource source(std::string_view tensor_name, ShardAxis axis) const {
    std::vector<const TensorRecord*> shards;
    for (std::size_t part = 0; part < parts; ++part) {
      const TensorRecord* record = find(tensor_name, part);
      if (record == nullptr) {
        detail::bad_format(parts > 1 ? files[part].path() : path,
                           "tensor " + detail::in_quotes(tensor_name) + " is missing");
      }
      shards.push_back(record);
    }
    return TensorSource::merge(shards, axis);
  }

  /// Lets the system drop the pages of a range of a record's file that was packed or copied.
  /// `begin` points into one of the maps.
  void release(const std::byte* begin, std::size_t bytes) const noexcept {
    for (const MappedFile& file : files) {
      const std::span<const std::byte> all = file.bytes();
      if (begin >= all.data() && begin < all.data() + all.size()) {
        file.release(static_cast<std::size_t>(begin - all.data()), bytes);
      }
    }
  }

 private:
  std::pair<std::string_view, std::size_t> key(std::size_t i) const {
    return {tensors_[i].name, parts > 1 ? tensors_[i].file : 0};
  }

  std::vector<TensorRecord> tensors_;
  std::vector<std::size_t> by_name_;
};

/// How a matrix [rows, cols] was cut, judged by the extents of one of `parts` shards. The one kind
/// of tensor where this is needed is tok_embeddings: Llama 3 cuts its rows, older checkpoints its
/// columns. Empty if the extents fit neither.
inline std::optional<ShardAxis> shard_axis_of(const TensorRecord& shard, std::size_t rows,
                                              std::size_t cols, std::size_t parts) {
  if (shard.extents.size() != 2) return std::nullopt;
  const std::size_t r = shard.extents[0];
  const std::size_t c = shard.extents[1];
  if (r == rows && c == cols) return ShardAxis::none;
  if (c == cols && r == rows / parts && rows % parts == 0) return ShardAxis::rows;
  if (r == rows && c == cols / parts && cols % parts == 0) return ShardAxis::columns;
  return std::nullopt;
}

}  // namespace quipu
