// The body of a checkpoint file under construction: tensors one after the other, each in as many
// pieces as the caller likes, so that no tensor is ever whole in memory for the writer's sake.
// Siblings: safetensors_writer.hpp and gguf_writer.hpp write the head and then use this.
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

class TensorStream {
 public:
  struct Planned {
    std::string name;
    std::size_t bytes;
  };

  /// Tensors are padded with zeros to multiples of `alignment` (1: no padding).
  TensorStream(std::string path, std::vector<Planned> plan, std::size_t alignment,
               WriteProgress progress)
      : file_(std::move(path)),
        plan_(std::move(plan)),
        alignment_(alignment),
        progress_(std::move(progress)) {
    for (const Planned& tensor : plan_)
      total_ = checked_add(total_, tensor.bytes, "bytes of a file");
    skip_finished();
  }

  void write_head(std::string_view head) { file_.write(head); }

  /// Appends to the tensor that is due, which must be `tensor_name`.
  void append(std::string_view tensor_name, std::span<const std::byte> bytes) {
    if (next_ == plan_.size()) {
      raise<ArgumentError>(file_.path() + ": tensor " + in_quotes(tensor_name) +
                           " after the last one that was planned");
    }
    const Planned& due = plan_[next_];
    if (due.name != tensor_name) {
      raise<ArgumentError>(file_.path() + ": expected bytes of tensor " + in_quotes(due.name) +
                           ", found " + in_quotes(tensor_name));
    }
    if (bytes.size() > due.bytes - written_) {
      raise<ArgumentError>(file_.path() + ": tensor " + in_quotes(tensor_name) + " has " +
                           detail::decimal(due.bytes) + " bytes, and " +
                           detail::decimal(written_ + bytes.size()) + " were given");
    }
    file_.write(bytes);
    written_ += bytes.size();
    done_ += bytes.size();
    skip_finished();
    if (progress_) progress_(done_, total_);
  }

  void finish() {
    if (next_ != plan_.size()) {
      raise<ArgumentError>(file_.path() + ": tensor " + in_quotes(plan_[next_].name) +
                           " was not written in full");
    }
    file_.commit();
  }

 private:
  void skip_finished() {
    while (next_ < plan_.size() && written_ == plan_[next_].bytes) {
      file_.write(std::string(round_up(written_, alignment_) - written_, '\0'));
      ++next_;
      written_ = 0;
    }
  }

  AtomicFile file_;
  std::vector<Planned> plan_;
  std::size_t alignment_;
  WriteProgress progress_;
  std::size_t next_ = 0;     // the tensor that is due
  std::size_t written_ = 0;  // of it
  std::size_t done_ = 0;
  std::size_t total_ = 0;
};

}  // namespace detail
}  // namespace quipu
