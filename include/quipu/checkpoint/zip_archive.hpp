// A zip archive in memory, through minizip: the places of stored entries, and the bytes of few.
//
// torch.save stores its entries uncompressed, so a tensor's bytes can be used where they stand in
// the map; an entry that is compressed has no such place.
// Siblings: zip_stream.hpp, zip_writer.hpp, torch_pth.hpp. Test:
// test/checkpoint/torch_pth_test.cpp.
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
#include "quipu/checkpoint/zip_stream.hpp"

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
  // What minizip reads through ZipStream; the position is all the state there is.
  struct Source {
    std::span<const std::byte> bytes;
    std::uint64_t position = 0;

    std::uint64_t size() const { return bytes.size(); }
    std::size_t read(void* out, std::size_t wanted) const {
      if (position >= bytes.size()) return 0;
      const auto at = static_cast<std::size_t>(position);
      const std::size_t n = (std::min)(bytes.size() - at, wanted);
      std::memcpy(out, bytes.data() + at, n);
      return n;
    }
    static std::size_t write(const void*, std::size_t) { return 0; }
    static int error() { return 0; }
  };

  struct Closer {
    void operator()(void* file) const { unzClose(file); }
  };

  using Handle = std::unique_ptr<void, Closer>;

  Handle open_archive(Source& source) const {
    zlib_filefunc64_def functions = detail::ZipStream<Source>::functions(source);
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
  using detail::zip_end_record;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (text.size() < zip_end_record ||
      !text.substr(text.size() - zip_end_record).starts_with("PK\x05\x06") ||
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
  if (info.number_entry > bytes_.size() / detail::zip_directory_entry) {
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
