// What the reader and the writer of zip archives share: sizes of the format's records, and the
// functions through which minizip reads or writes bytes of ours.
// Siblings: zip_archive.hpp, zip_writer.hpp.
#pragma once

#include <ioapi.h>

#include <cstddef>
#include <cstdint>

namespace quipu::detail {

/// Bytes of a record without its names and extra fields.
inline constexpr std::size_t zip_local_header = 30, zip_directory_entry = 46, zip_end_record = 22;

/// A zlib_filefunc64_def over a Stream, which has `std::uint64_t position`, `size()`, `read(out,
/// wanted)` and `write(data, bytes)` at that position, which they leave alone and of which each
/// returns how many bytes it did, and `error()`, 0 or not. None may throw: minizip is C.
template <class Stream>
struct ZipStream {
  static zlib_filefunc64_def functions(Stream& stream) {
    zlib_filefunc64_def table{};
    table.zopen64_file = open;
    table.zread_file = read;
    table.zwrite_file = write;
    table.ztell64_file = tell;
    table.zseek64_file = seek;
    table.zclose_file = close;
    table.zerror_file = error;
    table.opaque = &stream;
    return table;
  }

 private:
  static Stream& of(voidpf stream) { return *static_cast<Stream*>(stream); }
  static voidpf open(voidpf opaque, const void*, int) {
    of(opaque).position = 0;
    return opaque;
  }
  static uLong read(voidpf, voidpf stream, void* out, uLong wanted) {
    const std::size_t done = of(stream).read(out, static_cast<std::size_t>(wanted));
    of(stream).position += done;
    return static_cast<uLong>(done);
  }
  static uLong write(voidpf, voidpf stream, const void* data, uLong bytes) {
    const std::size_t done = of(stream).write(data, static_cast<std::size_t>(bytes));
    of(stream).position += done;
    return static_cast<uLong>(done);
  }
  static ZPOS64_T tell(voidpf, voidpf stream) { return of(stream).position; }
  // Not past the end: offsets come from the archive, which nobody has checked yet.
  static long seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    const std::uint64_t size = of(stream).size();
    const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? of(stream).position
                               : origin == ZLIB_FILEFUNC_SEEK_END ? size
                                                                  : 0;
    if (offset > size || base > size - offset) return -1;
    of(stream).position = base + offset;
    return 0;
  }
  static int close(voidpf, voidpf) { return 0; }
  static int error(voidpf, voidpf stream) { return of(stream).error(); }
};

}  // namespace quipu::detail
