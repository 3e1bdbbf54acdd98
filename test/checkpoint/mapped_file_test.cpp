#include "quipu/checkpoint/mapped_file.hpp"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "damage.hpp"

namespace quipu {
namespace {

using test::expect_error;

TEST(MappedFile, NamesPathAndReason) {
  const test::Folder folder;
  expect_error<FileError>([&] { MappedFile(folder / "none.gguf"); },
                          {folder / "none.gguf", "No such file or directory"});
  expect_error<FileError>([&] { MappedFile(folder.path().string()); },
                          {folder.path().string(), "Is a directory"});
  expect_error<FileError>([&] { MappedFile(folder.write("empty.gguf", "")); },
                          {"empty.gguf", "empty (0 bytes)"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  // A pipe without a writer would block a plain open; the reader end is enough to look at it.
  const int writer = ::open((folder / "pipe").c_str(), O_RDWR);
  expect_error<FileError>([&] { MappedFile(folder / "pipe"); }, {"pipe", "not a regular file"});
  ::close(writer);
}

TEST(MappedFile, NamesAFileWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const test::Folder folder;
  const std::string path = folder.write("secret.gguf", "x");
  ::chmod(path.c_str(), 0);
  expect_error<FileError>([&] { MappedFile{path}; }, {path, "Permission denied"});
}

TEST(MappedFile, ReleasedBytesCanBeReadAgain) {
  const test::Folder folder;
  std::string bytes(3 * 4096 + 100, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  const MappedFile file(folder.write("a", bytes));
  file.advise(Access::sequential);
  file.release(10, 2 * 4096);
  file.release(4096, bytes.size());
  file.release(bytes.size() + 1, 1);
  ASSERT_EQ(file.size(), bytes.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), bytes.data(), bytes.size()), 0);
}

TEST(MappedFile, MovesWithoutMovingBytes) {
  const test::Folder folder;
  MappedFile first(folder.write("a", "abc"));
  const std::byte* data = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), data);
  MappedFile third(folder.write("b", "defg"));
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(third.size(), 3U);
  EXPECT_EQ(third.path(), folder / "a");
}

TEST(MappedFile, RefersToBytesOfTheCaller) {
  const std::string bytes = "abc";
  const MappedFile file = MappedFile::from_bytes(test::as_bytes(bytes), "memory");
  EXPECT_EQ(static_cast<const void*>(file.bytes().data()), bytes.data());
  file.release(0, 3);
  EXPECT_EQ(file.path(), "memory");
}

}  // namespace
}  // namespace quipu
