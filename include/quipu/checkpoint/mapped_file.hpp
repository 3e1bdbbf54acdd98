// A file as bytes: a read-only memory map, or bytes that the caller holds already.
//
// Weights are used where they stand, so that a checkpoint is read once and lives in the page cache.
// POSIX only (open, fstat, mmap, madvise). A file that another process cuts short while it is
// mapped ends the program with SIGBUS: no map can guard against that.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "quipu/shape/checked.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

namespace detail {
[[noreturn]] inline void file_failed(const std::string& path, const char* action, int code) {
  raise<FileError>(path + ": " + action + ": " + std::generic_category().message(code));
}
}  // namespace detail

/// How a range of a map is about to be read.
enum class Access : unsigned char { sequential, random, will_need };

/// Owns the map of one file, or refers to the bytes of a caller. Move-only; moving does not move
/// the bytes, so pointers into them stay good for as long as one owner lives.
class MappedFile {
 public:
  MappedFile() = default;

  /// Maps a regular file of at least one byte. FileError with the path and the system's reason if
  /// it is missing, not readable, a directory, not a regular file, empty, or cannot be mapped.
  explicit MappedFile(std::string path) : path_(std::move(path)) {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) detail::file_failed(path_, "cannot open", errno);
    struct ::stat status {};
    int code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
    if (code == 0 && S_ISDIR(status.st_mode)) code = EISDIR;
    const bool regular = code == 0 && S_ISREG(status.st_mode);
    void* address = MAP_FAILED;
    if (regular && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (address == MAP_FAILED) code = errno;
    }
    ::close(descriptor);
    if (code != 0) {
      detail::file_failed(path_, regular ? "cannot map the file into memory" : "cannot read", code);
    }
    if (!regular) raise<FileError>(path_ + ": not a regular file");
    if (address == MAP_FAILED) raise<FileError>(path_ + ": the file is empty (0 bytes)");
    data_ = static_cast<const std::byte*>(address);
    mapped_ = true;
  }

  /// Refers to bytes that outlive the object; `name` stands for the path in messages.
  static MappedFile from_bytes(std::span<const std::byte> bytes, std::string name) {
    MappedFile file;
    file.path_ = std::move(name);
    file.data_ = bytes.data();
    file.size_ = bytes.size();
    return file;
  }

  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    MappedFile taken(std::move(other));
    swap(taken);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }

  /// Tells the system that the range will not be read again soon (it was packed): its whole pages
  /// leave the resident set. Reading them later is still right, and reads the file again.
  void release(std::size_t offset, std::size_t size) const noexcept {
    advise_pages(offset, size, MADV_DONTNEED, /*inwards=*/true);
  }

  /// A hint about the coming accesses to a range.
  void advise(Access access, std::size_t offset, std::size_t size) const noexcept {
    const int advice = access == Access::sequential ? MADV_SEQUENTIAL
                       : access == Access::random   ? MADV_RANDOM
                                                    : MADV_WILLNEED;
    advise_pages(offset, size, advice, /*inwards=*/false);
  }
  void advise(Access access) const noexcept { advise(access, 0, size_); }

 private:
  void swap(MappedFile& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  // Pages shared with a neighbour stay when a range is released, and count when it is announced.
  void advise_pages(std::size_t offset, std::size_t size, int advice, bool inwards) const noexcept {
    if (!mapped_ || offset >= size_) return;
    const std::size_t end = size < size_ - offset ? offset + size : size_;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t first = inwards ? ceil_div(offset, page) * page : offset / page * page;
    const std::size_t last = inwards && end != size_ ? end / page * page : end;
    if (first >= last) return;
    // A hint that the system does not take is not an error.
    (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, advice);
  }

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

}  // namespace quipu
