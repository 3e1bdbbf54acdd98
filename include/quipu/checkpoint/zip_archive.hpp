// A zip archive in memory, through minizip: the places of stored entries, and the bytes of few.
//
// torch.save stores its entries uncompressed, so a tensor's bytes can be used where they stand in
// the map; an entry that is compressed has no such place. This is the only header that includes
// minizip. Sibling: torch_pth.hpp.
#pragma once

#include <unzip.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "quipu/checkpoint/messages.hpp"

namespace quipu {

struct ZipEntry {
  std::string name;
  std::size_t offset = 0;  ///< of the entry's bytes in the archive
  std::size_t stored_bytes = 0;
  std::size_t bytes = 0;   ///< when unpacked
  bool stored = true;      ///< false: compressed
  unz64_file_pos place{};  ///< of its line in the central directory
};

/// The directory of an archive, checked against the archive's size.
class ZipArchive {
 public:
  ZipArchive(std::span<const std::byte> bytes, std::string path)
      : bytes_(bytes), path_(std::move(path)) {
    read_directory();
  }

  const std::string& path() const { return path_; }
  std::span<const ZipEntry> entries() const { return entries_; }

  const ZipEntry* find(std::string_view name) const {
    const auto at = std::lower_bound(
        entries_.begin(), entries_.end(), name,
        [](const ZipEntry& entry, std::string_view wanted) { return entry.name < wanted; });
    return at != entries_.end() && at->name == name ? &*at : nullptr;
  }

  /// The bytes of a stored entry, in place. FormatError if it is compressed.
  std::span<const std::byte> stored(const ZipEntry& entry) const {
    if (!entry.stored) {
      detail::bad_format(path_, "entry " + detail::in_quotes(entry.name) +
                                    " is compressed; torch.save stores entries as they are, and "
                                    "only so can they be mapped: unzip and zip it again with -0");
    }
    return bytes_.subspan(entry.offset, entry.bytes);
  }

  /// The bytes of an entry copied out, unpacked if need be, with the CRC-32 checked. For entries of
  /// moderate size: FormatError beyond `most` bytes.
  std::string unpack(const ZipEntry& entry, std::size_t most) const {
    const detail::Words what = "zip entry " + detail::in_quotes(entry.name);
    if (entry.bytes > most) {
      detail::bad_field(path_, what + ", size", "at most " + detail::decimal(most),
                        detail::decimal(entry.bytes));
    }
    Source source{bytes_};
    const Handle archive = open_archive(source);
    if (unzGoToFilePos64(archive.get(), &entry.place) != UNZ_OK ||
        unzOpenCurrentFile(archive.get()) != UNZ_OK) {
      detail::bad_format(path_, what + " cannot be opened (a compression other than deflate?)");
    }
    std::string out(entry.bytes, '\0');
    std::size_t done = 0;
    while (done < out.size()) {
      constexpr std::size_t piece = std::size_t{1} << 20;
      const auto wanted = static_cast<unsigned>((std::min)(piece, out.size() - done));
      const int got = unzReadCurrentFile(archive.get(), out.data() + done, wanted);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    const int code = unzCloseCurrentFile(archive.get());
    if (done != out.size() || code != UNZ_OK) {
      detail::bad_format(path_, what + (code == UNZ_CRCERROR ? ": its checksum (CRC-32) is wrong"
                                                             : ": its bytes cannot be unpacked"));
    }
    return out;
  }

 private:
  // minizip reads through these; the position is all the state there is.
  struct Source {
    std::span<const std::byte> bytes;
    std::uint64_t position = 0;
  };
  static voidpf open(voidpf opaque, const void*, int) {
    static_cast<Source*>(opaque)->position = 0;
    return opaque;
  }
  static uLong read(voidpf, voidpf stream, void* out, uLong wanted) {
    Source& source = *static_cast<Source*>(stream);
    if (source.position >= source.bytes.size()) return 0;
    const std::size_t left = source.bytes.size() - static_cast<std::size_t>(source.position);
    const std::size_t n = (std::min)(left, static_cast<std::size_t>(wanted));
    std::memcpy(out, source.bytes.data() + source.position, n);
    source.position += n;
    return static_cast<uLong>(n);
  }
  static ZPOS64_T tell(voidpf, voidpf stream) { return static_cast<Source*>(stream)->position; }
  static long seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    Source& source = *static_cast<Source*>(stream);
    const std::uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? source.position
                               : origin == ZLIB_FILEFUNC_SEEK_END ? source.bytes.size()
                                                                  : 0;
    if (offset > source.bytes.size() || base > source.bytes.size() - offset) return -1;
    source.position = base + offset;
    return 0;
  }
  static int close(voidpf, voidpf) { return 0; }
  static int status(voidpf, voidpf) { return 0; }

  struct Closer {
    void operator()(void* file) const { unzClose(file); }
  };

  using Handle = std::unique_ptr<void, Closer>;

  Handle open_archive(Source& source) const {
    zlib_filefunc64_def functions{};
    functions.zopen64_file = open;
    functions.zread_file = read;
    functions.ztell64_file = tell;
    functions.zseek64_file = seek;
    functions.zclose_file = close;
    functions.zerror_file = status;
    functions.opaque = &source;
    Handle archive(unzOpen2_64(path_.c_str(), &functions));
    if (!archive) {
      detail::bad_format(path_,
                         "not a whole zip archive: its central directory, which stands at "
                         "the end, cannot be read (is the file cut short?)");
    }
    return archive;
  }
  void read_directory();

  std::span<const std::byte> bytes_;
  std::string path_;
  std::vector<ZipEntry> entries_;  // sorted by name
};

inline void ZipArchive::read_directory() {
  // minizip looks for the end record anywhere in the last 64 KB and so accepts a file that was
  // padded, or cut inside that record. Archives of torch.save end with it, without a comment.
  constexpr std::size_t end_record = 22;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (text.size() < end_record ||
      !text.substr(text.size() - end_record).starts_with("PK\x05\x06") ||
      !text.ends_with(std::string_view("\0\0", 2))) {
    detail::bad_format(path_,
                       "does not end with the end record of a zip archive (is the file cut "
                       "short or padded?)");
  }
  Source source{bytes_};
  const Handle archive = open_archive(source);
  unz_global_info64 info{};
  if (unzGetGlobalInfo64(archive.get(), &info) != UNZ_OK) {
    detail::bad_format(path_, "the zip archive's directory cannot be read");
  }
  constexpr std::size_t least_entry = 46;  // bytes of an entry of the central directory
  if (info.number_entry > bytes_.size() / least_entry) {
    detail::bad_format(path_, "the zip archive claims " + detail::decimal(info.number_entry) +
                                  " entries, more than fit in it");
  }
  int code = info.number_entry == 0 ? UNZ_END_OF_LIST_OF_FILE : unzGoToFirstFile(archive.get());
  while (code == UNZ_OK) {
    const detail::Words ordinal = "zip entry " + detail::decimal(entries_.size());
    unz_file_info64 file{};
    char name[512];
    if (unzGetCurrentFileInfo64(archive.get(), &file, name, sizeof(name), nullptr, 0, nullptr, 0) !=
        UNZ_OK) {
      detail::bad_format(path_, ordinal + " of the central directory cannot be read");
    }
    if (file.size_filename == 0 || file.size_filename >= sizeof(name)) {
      detail::bad_format(path_,
                         ordinal + ": a name of " + detail::decimal(file.size_filename) + " bytes");
    }
    ZipEntry entry;
    entry.name.assign(name, file.size_filename);
    const detail::Words what = "zip entry " + detail::in_quotes(entry.name);
    constexpr uLong encrypted = 1;
    if ((file.flag & encrypted) != 0) detail::bad_format(path_, what + " is encrypted");
    entry.stored = file.compression_method == 0;
    unzGetFilePos64(archive.get(), &entry.place);
    int method = 0;
    int level = 0;
    if (unzOpenCurrentFile2(archive.get(), &method, &level, /*raw=*/1) != UNZ_OK) {
      detail::bad_format(path_, what + ": its local header does not agree with the directory");
    }
    const std::uint64_t offset = unzGetCurrentFileZStreamPos64(archive.get());
    unzCloseCurrentFile(archive.get());
    if (offset > bytes_.size() || file.compressed_size > bytes_.size() - offset) {
      detail::bad_format(path_, what + ": its " + detail::decimal(file.compressed_size) +
                                    " bytes at offset " + detail::decimal(offset) +
                                    " run past the end of the file (is it cut short?)");
    }
    if (entry.stored && file.compressed_size != file.uncompressed_size) {
      detail::bad_field(path_, what + ", stored size", detail::decimal(file.uncompressed_size),
                        detail::decimal(file.compressed_size));
    }
    entry.offset = static_cast<std::size_t>(offset);
    entry.stored_bytes = static_cast<std::size_t>(file.compressed_size);
    entry.bytes = static_cast<std::size_t>(file.uncompressed_size);
    entries_.push_back(std::move(entry));
    code = unzGoToNextFile(archive.get());
  }
  if (code != UNZ_END_OF_LIST_OF_FILE || entries_.size() != info.number_entry) {
    detail::bad_format(path_, "the zip archive claims " + detail::decimal(info.number_entry) +
                                  " entries, but only " + detail::decimal(entries_.size()) +
                                  " can be read");
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].name == entries_[i - 1].name) {
      detail::bad_format(path_,
                         "zip entry " + detail::in_quotes(entries_[i].name) + " stands twice");
    }
  }
}

}  // namespace quipu
