// Writing a file so that its name never shows half of it: the bytes go to a new file in the same
// folder, which is flushed to the disk and then takes the name. Siblings: tensor_stream.hpp and the
// writers on top of it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "quipu/checkpoint/mapped_file.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// A file under construction. Destroyed without commit(), it leaves nothing behind.
class AtomicFile {
 public:
  /// FileError if the folder of `path` cannot take a new file, or if what stands there is no
  /// regular file: a device or a pipe must not be replaced. A symbolic link stays, its target is
  /// written.
  explicit AtomicFile(std::string path) : path_(target_of(std::move(path))) {
    constexpr int tries = 1000;
    for (int i = 0; i < tries && descriptor_ < 0; ++i) {
      temporary_ = path_ + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(i);
      descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) detail::file_failed(path_, "cannot create a file beside it", errno);
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }

  const std::string& path() const { return path_; }

  /// Appends bytes. FileError with the system's reason (a full disk, a limit).
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      constexpr std::size_t most = std::size_t{1} << 30;  // Linux writes no more than 2 GiB at once
      const std::size_t wanted = bytes.size() < most ? bytes.size() : most;
      const ::ssize_t done = ::write(descriptor_, bytes.data(), wanted);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) detail::file_failed(path_, "cannot write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// Writes bytes at an offset, whatever was appended; 0, or the system's error number. For a
  /// library's callback, which must not throw.
  int write_at(std::size_t offset, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      const ::ssize_t done =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<::off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return errno;
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      offset += static_cast<std::size_t>(done);
    }
    return 0;
  }

  /// Flushes the bytes to the disk and gives the file its name, replacing a former one.
  void commit() {
    if (::fsync(descriptor_) != 0) detail::file_failed(path_, "cannot flush", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      detail::file_failed(path_, "cannot take this name", errno);
    }
    ::close(std::exchange(descriptor_, -1));
    // The folder's entry too; a file system that cannot flush a folder is not an error.
    const std::size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle >= 0) {
      (void)::fsync(handle);
      ::close(handle);
    }
  }

 private:
  static std::string target_of(std::string path) {
    struct ::stat found {};
    if (::lstat(path.c_str(), &found) != 0) return path;  // nothing there yet
    if (S_ISLNK(found.st_mode)) {
      if (char* resolved = ::realpath(path.c_str(), nullptr)) {
        path = resolved;
        std::free(resolved);
      } else {
        detail::file_failed(path, "cannot follow the link", errno);
      }
      if (::stat(path.c_str(), &found) != 0) detail::file_failed(path, "cannot look at it", errno);
    }
    if (!S_ISREG(found.st_mode))
      raise<FileError>(path + ": is not a regular file, so it is not replaced");
    return path;
  }

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace quipu
