// The body of a checkpoint file under construction: tensors one after the other, each in as many
// pieces as the caller likes, so that no tensor is ever whole in memory for the writer's sake.
// Siblings: safetensors_writer.hpp and gguf_writer.hpp write the head and then use this;
// torch_pth_writer.hpp, whose tensors are entries of an archive, uses the order.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/checkpoint/atomic_file.hpp"
#include "quipu/checkpoint/messages.hpp"
#include "quipu/shape/checked.hpp"

namespace quipu {

/// Called as tensors are written: bytes done and bytes in all.
using WriteProgress = std::function<void(std::size_t done, std::size_t total)>;

namespace detail {

/// A tensor that is going to be written.
struct PlannedBytes {
  std::string name;
  std::size_t bytes;
};

/// Which tensor is due and how far it is: the order of a file under construction, and its progress.
class TensorOrder {
 public:
  TensorOrder(std::string path, std::vector<PlannedBytes> plan, WriteProgress progress)
      : path_(std::move(path)), plan_(std::move(plan)), progress_(std::move(progress)) {
    for (const PlannedBytes& tensor : plan_)
      total_ = checked_add(total_, tensor.bytes, "bytes of a file");
  }

  /// The tensor that is due; null after the last one.
  const PlannedBytes* due() const { return next_ < plan_.size() ? &plan_[next_] : nullptr; }
  bool due_is_whole() const { return due() != nullptr && written_ == due()->bytes; }
  /// Goes on to the next tensor.
  void next() {
    ++next_;
    written_ = 0;
  }

  /// ArgumentError unless so many bytes of `tensor_name` may come now.
  void check(std::string_view tensor_name, std::size_t bytes) const {
    if (due() == nullptr) {
      raise<ArgumentError>(path_ + ": tensor " + in_quotes(tensor_name) +
                           " after the last one that was planned");
    }
    if (due()->name != tensor_name) {
      raise<ArgumentError>(path_ + ": expected bytes of tensor " + in_quotes(due()->name) +
                           ", found " + in_quotes(tensor_name));
    }
    if (bytes > due()->bytes - written_) {
      raise<ArgumentError>(path_ + ": tensor " + in_quotes(tensor_name) + " has " +
                           decimal(due()->bytes) + " bytes, and " + decimal(written_ + bytes) +
                           " were given");
    }
  }
  /// Counts bytes of the due tensor that are in the file.
  void count(std::size_t bytes) {
    written_ += bytes;
    done_ += bytes;
  }
  void report() const {
    if (progress_) progress_(done_, total_);
  }
  void check_finished() const {
    if (due() != nullptr) {
      raise<ArgumentError>(path_ + ": tensor " + in_quotes(due()->name) +
                           " was not written in full");
    }
  }

 private:
  std::string path_;
  std::vector<PlannedBytes> plan_;
  WriteProgress progress_;
  std::size_t next_ = 0;     // the tensor that is due
  std::size_t written_ = 0;  // of it
  std::size_t done_ = 0;
  std::size_t total_ = 0;
};

/// A file of tensors one after the other, each padded with zeros to a multiple of `alignment` (1:
/// no padding).
class TensorStream {
 public:
  TensorStream(std::string path, std::vector<PlannedBytes> plan, std::size_t alignment,
               WriteProgress progress)
      : order_(path, std::move(plan), std::move(progress)),
        file_(std::move(path)),
        alignment_(alignment) {
    skip_finished();
  }

  void write_head(std::string_view head) { file_.write(head); }

  /// Appends to the tensor that is due, which must be `tensor_name`.
  void append(std::string_view tensor_name, std::span<const std::byte> bytes) {
    order_.check(tensor_name, bytes.size());
    file_.write(bytes);
    order_.count(bytes.size());
    skip_finished();
    order_.report();
  }

  void finish() {
    order_.check_finished();
    file_.commit();
  }

 private:
  void skip_finished() {
    for (; order_.due_is_whole(); order_.next()) {
      const std::size_t bytes = order_.due()->bytes;
      file_.write(std::string(round_up(bytes, alignment_) - bytes, '\0'));
    }
  }

  TensorOrder order_;
  AtomicFile file_;
  std::size_t alignment_;
};

}  // namespace detail
}  // namespace quipu
