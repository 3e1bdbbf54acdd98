// Where golden files are: in test/data/golden of the clone, else in the folder that the
// environment variable QUIPU_GOLDEN_DIR names, else in shared/golden beside the checkout.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace quipu_test {

/// The path of a golden file or folder, "" if it is not on this machine.
inline std::string find_golden(const std::string& relative) {
  const std::filesystem::path data = QUIPU_TEST_DATA;
  std::filesystem::path places[] = {data / "golden", {}, data / "../../../shared/golden"};
  if (const char* named = std::getenv("QUIPU_GOLDEN_DIR")) places[1] = named;
  for (const std::filesystem::path& place : places) {
    std::error_code none;
    if (!place.empty() && std::filesystem::exists(place / relative, none)) {
      return (place / relative).string();
    }
  }
  return {};
}

}  // namespace quipu_test

/// Declares `path`, or skips the test by the name of the file that is missing.
#define QUIPU_GOLDEN_OR_SKIP(path, relative)                                          \
  const std::string path = quipu_test::find_golden(relative);                         \
  if (path.empty())                                                                   \
  GTEST_SKIP() << "golden file " << (relative) << " is not in test/data/golden; set " \
               << "QUIPU_GOLDEN_DIR to the folder that has it"
