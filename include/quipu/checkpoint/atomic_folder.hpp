// Writing a folder so that its name never shows half of it. Sibling: atomic_file.hpp.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "quipu/shape/error.hpp"

namespace quipu {

/// A folder under construction beside its final name. Destroyed without commit(), it leaves
/// nothing behind.
class AtomicFolder {
 public:
  /// ArgumentError if `path` is there and not an empty folder; FileError if its parent cannot take
  /// a new folder.
  explicit AtomicFolder(std::filesystem::path path) : path_(std::move(path)) {
    if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
    std::error_code code;
    if (std::filesystem::exists(path_, code) && !std::filesystem::is_empty(path_, code)) {
      raise<ArgumentError>(path_.string() + ": expected the name of a new or empty folder");
    }
    temporary_ = path_;
    temporary_ += ".partial-" + std::to_string(::getpid());
    if (!std::filesystem::create_directory(temporary_, code)) {
      raise<FileError>(temporary_.string() + ": cannot create the folder: " +
                       (code ? code.message() : "it is there already"));
    }
  }
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder() {
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  }

  /// The path of a file in the folder as long as it is under construction.
  std::string file(std::string_view file_name) const { return (temporary_ / file_name).string(); }

  /// Gives the folder its name.
  void commit() {
    std::error_code code;
    std::filesystem::rename(temporary_, path_, code);
    if (code) raise<FileError>(path_.string() + ": cannot take this name: " + code.message());
    temporary_.clear();
  }

 private:
  std::filesystem::path path_, temporary_;
};

}  // namespace quipu
