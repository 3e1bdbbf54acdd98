// What kind of file some bytes are, judged by their beginning: the three formats that quipu reads,
// and by name those that people hand to a loader by mistake.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quipu/checkpoint/messages.hpp"
#include "quipu/checkpoint/tensor_record.hpp"
#include "quipu/checkpoint/torch_pth.hpp"

namespace quipu {

/// The format of a checkpoint file by its first bytes; for bytes that show none, by the ending of
/// its name (so that the format's reader can say what is wrong with them). FormatError that names
/// the kind of any other file.
inline FileFormat detect_format(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("GGUF")) return FileFormat::gguf;
  if (text.starts_with("PK\x03\x04") || is_legacy_torch_file(bytes)) return FileFormat::torch_pth;
  // safetensors has no magic number: a length, then the brace of the header.
  if (text.size() > 8 && text[8] == '{') return FileFormat::safetensors;

  struct Kind {
    std::string_view begin;
    std::string_view what;
  };
  static constexpr Kind kinds[] = {
      {"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras .h5)"},
      {"\x93NUMPY", "a NumPy array"},
      {"lmgg", "a GGML file, older than GGUF"},
      {"fmgg", "a GGMF file, older than GGUF"},
      {"tjgg", "a GGJT file, older than GGUF"},
      {"\x1f\x8b", "a gzip archive"},
      {"BZh", "a bzip2 archive"},
      {"\xfd"
       "7zXZ",
       "an xz archive"},
      {"\x28\xb5\x2f\xfd", "a Zstandard archive"},
      {"\x7f"
       "ELF",
       "a program (ELF)"},
      {"%PDF", "a PDF document"},
      {"version https://git-lfs", "a pointer of Git LFS, not the file itself: run git lfs pull"},
      {"<!DOCTYPE", "an HTML page (a download that failed?)"},
      {"<!doctype", "an HTML page (a download that failed?)"},
      {"<html", "an HTML page (a download that failed?)"},
      {"{", "a JSON file; give the folder or the file of weights"},
      {"PK\x05\x06", "an empty zip archive"},
  };
  constexpr std::string_view readable =
      "; quipu reads GGUF, safetensors and archives of torch.save (.pth)";
  for (const Kind& kind : kinds) {
    if (text.starts_with(kind.begin)) {
      detail::bad_format(path, detail::Words(kind.what) + readable);
    }
  }
  if (text.size() > 262 && text.substr(257, 5) == "ustar") {
    detail::bad_format(path, detail::Words("a tar archive") + readable);
  }
  if (path.ends_with(".gguf")) return FileFormat::gguf;
  if (path.ends_with(".safetensors")) return FileFormat::safetensors;
  if (path.ends_with(".pth") || path.ends_with(".pt")) return FileFormat::torch_pth;
  detail::bad_format(
      path, "not a checkpoint: it begins with " + detail::in_quotes(text.substr(0, 16)) + readable);
}

}  // namespace quipu
