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
#include "quipu/shape/checked.hpp"

namespace quipu {

/// An archive under construction. Destroyed without finish(), it leaves nothing behind.
class ZipWriter {
 public:
  static constexpr std::size_t alignment = 64;  ///< of the entries' bytes in the file

  /// FileError if `path` cannot be written.
  explicit ZipWriter(std::string path) : sink_(std::make_unique<Sink>(std::move(path))) {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = open;
    functions.zread_file = read;
    functions.zwrite_file = write;
    functions.ztell64_file = tell;
    functions.zseek64_file = seek;
    functions.zclose_file = close;
    functions.zerror_file = status;
    functions.opaque = sink_.get();
    archive_.reset(
        zipOpen2_64(sink_->file.path().c_str(), APPEND_STATUS_CREATE, nullptr, &functions));
    check(archive_ ? ZIP_OK : ZIP_INTERNALERROR);
  }

  /// Begins an entry of exactly `bytes` bytes.
  void begin(const std::string& name, std::size_t bytes) {
    // Local header, name, zip64 sizes, and a field "FB" of the bytes that are missing: torch's own.
    constexpr std::size_t header = 30, field = 4, large_sizes = 20;
    const bool large = bytes >= 0xffffffffu;
    const std::size_t start = sink_->end + header + name.size() + field + (large ? large_sizes : 0);
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
  // minizip writes through these; none may throw, so an error is kept until it returns.
  struct Sink {
    explicit Sink(std::string path) : file(std::move(path)) {}
    AtomicFile file;
    std::size_t position = 0, end = 0;
    int error = 0;
  };
  static voidpf open(voidpf opaque, const void*, int) { return opaque; }
  static uLong read(voidpf, voidpf, void*, uLong) { return 0; }
  static uLong write(voidpf, voidpf stream, const void* data, uLong bytes) {
    Sink& sink = *static_cast<Sink*>(stream);
    const int error =
        sink.file.write_at(sink.position, {static_cast<const std::byte*>(data), bytes});
    if (error != 0) {
      sink.error = error;
      return 0;
    }
    sink.position += bytes;
    sink.end = (std::max)(sink.end, sink.position);
    return bytes;
  }
  static ZPOS64_T tell(voidpf, voidpf stream) { return static_cast<Sink*>(stream)->position; }
  static long seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    Sink& sink = *static_cast<Sink*>(stream);
    const std::size_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? sink.position
                             : origin == ZLIB_FILEFUNC_SEEK_END ? sink.end
                                                                : 0;
    sink.position = base + offset;
    return 0;
  }
  static int close(voidpf, voidpf) { return 0; }
  static int status(voidpf, voidpf stream) { return static_cast<Sink*>(stream)->error; }

  void check(int code) const {
    if (sink_->error != 0) detail::file_failed(sink_->file.path(), "cannot write", sink_->error);
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
