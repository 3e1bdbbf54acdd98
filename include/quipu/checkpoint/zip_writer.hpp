// Writes a zip archive of stored entries through minizip, each entry's bytes at a multiple of 64,
// as torch.save does, so that a reader can map them. Siblings: zip_archive.hpp reads,
// torch_pth_writer.hpp. Test: test/checkpoint/torch_pth_writer_test.cpp.
#pragma once

#include <zip.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "quipu/checkpoint/atomic_file.hpp"
#include "quipu/checkpoint/messages.hpp"
#include "quipu/checkpoint/zip_stream.hpp"
#include "quipu/shape/checked.hpp"

namespace quipu {

/// An archive under construction. Destroyed without finish(), it leaves nothing behind.
class ZipWriter {
 public:
  static constexpr std::size_t alignment = 64;  ///< of the entries' bytes in the file

  /// FileError if `path` cannot be written.
  explicit ZipWriter(std::string path) : sink_(std::make_unique<Sink>(std::move(path))) {
    zlib_filefunc64_def functions = detail::ZipStream<Sink>::functions(*sink_);
    archive_.reset(
        zipOpen2_64(sink_->file.path().c_str(), APPEND_STATUS_CREATE, nullptr, &functions));
    check(archive_ ? ZIP_OK : ZIP_INTERNALERROR);
  }

  /// Begins an entry of exactly `bytes` bytes.
  void begin(const std::string& name, std::size_t bytes) {
    // Local header, name, zip64 sizes, and a field "FB" of the bytes that are missing: torch's own.
    constexpr std::size_t field = 4, large_sizes = 20;
    const bool large = bytes >= 0xffffffffu;
    const std::size_t start =
        sink_->end + detail::zip_local_header + name.size() + field + (large ? large_sizes : 0);
    const std::size_t padding = round_up(start, alignment) - start;
    std::string extra(field + padding, 'Z');
    extra[0] = 'F';
    extra[1] = 'B';
    extra[2] = static_cast<char>(padding);
    extra[3] = 0;
    zip_fileinfo info{};
    check(zipOpenNewFileInZip64(archive_.get(), name.c_str(), &info, extra.data(),
                                static_cast<uInt>(extra.size()), nullptr, 0, nullptr,
                                /*method: stored*/ 0, 0, large ? 1 : 0));
  }
  /// Appends bytes of the entry.
  void append(std::span<const std::byte> bytes) {
    constexpr std::size_t most = std::size_t{1} << 30;  // minizip counts in 32 bits
    while (!bytes.empty()) {
      const std::size_t n = (std::min)(most, bytes.size());
      check(zipWriteInFileInZip(archive_.get(), bytes.data(), static_cast<unsigned>(n)));
      bytes = bytes.subspan(n);
    }
  }
  void end() { check(zipCloseFileInZip(archive_.get())); }

  /// A whole entry.
  void entry(const std::string& name, std::string_view text) {
    begin(name, text.size());
    append(std::as_bytes(std::span(text)));
    end();
  }

  /// Writes the directory and gives the file its name.
  void finish() {
    check(zipClose(archive_.release(), nullptr));
    sink_->file.commit();
  }

 private:
  // What minizip writes through ZipStream; an error is kept until it returns.
  struct Sink {
    explicit Sink(std::string path) : file(std::move(path)) {}
    AtomicFile file;
    std::uint64_t position = 0;
    std::size_t end = 0;
    int failed = 0;

    std::uint64_t size() const { return end; }
    static std::size_t read(void*, std::size_t) { return 0; }
    std::size_t write(const void* data, std::size_t bytes) {
      const auto at = static_cast<std::size_t>(position);
      const int code = file.write_at(at, {static_cast<const std::byte*>(data), bytes});
      if (code != 0) {
        failed = code;
        return 0;
      }
      end = (std::max)(end, at + bytes);
      return bytes;
    }
    int error() const { return failed; }
  };

  void check(int code) const {
    if (sink_->failed != 0) detail::file_failed(sink_->file.path(), "cannot write", sink_->failed);
    if (code != ZIP_OK) {
      raise<FileError>(sink_->file.path() + ": cannot write a zip archive (minizip's error " +
                       detail::decimal(code) + ")");
    }
  }

  struct Closer {
    void operator()(void* archive) const { zipClose(archive, nullptr); }
  };

  std::unique_ptr<Sink> sink_;  // before the archive: closing that writes here
  std::unique_ptr<void, Closer> archive_;
};

}  // namespace quipu
