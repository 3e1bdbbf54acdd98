// A cursor over the bytes of a file that cannot leave them: every read is bounded before it
// happens, and an error names the field that did not fit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "quipu/checkpoint/messages.hpp"

namespace quipu::detail {

// Every format read here is little-endian. A big-endian host would need a swap at each load and in
// the tensors themselves.
static_assert(std::endian::native == std::endian::little,
              "quipu reads checkpoints on little-endian hosts only");

class ByteReader {
 public:
  /// `file` is the name in messages and must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }
  std::string_view file() const { return file_; }

  /// FormatError unless `size` more bytes are there; `what` names the field.
  void need(std::uint64_t size, const Words& what) const {
    if (size <= left()) return;
    bad_format(file_, what + " does not fit: " + decimal(size) + " bytes at offset " +
                          decimal(position_) + ", but the file has only " + decimal(left()) +
                          " more (is it cut short?)");
  }

  /// FormatError unless `count` items of at least `least` bytes each can still be there. Guards
  /// every allocation and loop against a count that a file only claims.
  void need_items(std::uint64_t count, std::size_t least, const Words& what) const {
    if (count <= left() / least) return;
    bad_format(file_, what + ": " + decimal(count) + " claimed, but the rest of the file (" +
                          decimal(left()) + " bytes) holds at most " + decimal(left() / least));
  }

  template <class T>
  T read(const Words& what) {
    static_assert(std::is_arithmetic_v<T>);
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> take(std::uint64_t size, const Words& what) {
    need(size, what);
    const auto part = bytes_.subspan(position_, static_cast<std::size_t>(size));
    position_ += part.size();
    return part;
  }

  std::string_view text(std::uint64_t size, const Words& what) {
    const auto part = take(size, what);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::size_t position_ = 0;
};

}  // namespace quipu::detail
