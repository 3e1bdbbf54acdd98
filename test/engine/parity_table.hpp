// What the golden tests have seen, by kind of tensor: printed at the end of the run as the rows of
// the parity table of README.md.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "support/compare.hpp"

namespace quipu_test {

/// `layers.0.attention.xq` to `attention.xq`.
inline std::string tensor_kind(const std::string& id) {
  return id.starts_with("layers.") ? id.substr(id.find('.', 7) + 1) : id;
}

class ParityTable : public ::testing::Environment {
 public:
  /// A tensor of a run of the group ("float32, T1 T3 T4"), with the limit that it was held to.
  void add(const std::string& group, const std::string& id, const Difference& difference,
           std::size_t elements, double limit) {
    Row& row = groups_[group][tensor_kind(id)];
    row.rel_rms = (std::max)(row.rel_rms, difference.rel_rms);
    row.limit = (std::max)(row.limit, limit);
    row.equal += difference.equal_share * static_cast<double>(elements);
    row.elements += elements;
  }

  void TearDown() override {
    for (const auto& [group, rows] : groups_) {
      std::printf("\n%-28s %10s %10s %11s %10s\n", group.c_str(), "rel. rms", "tolerance",
                  "bit-equal", "elements");
      for (const auto& [kind, row] : rows) {
        std::printf("  %-26s %10.1e %10.1e %9.3f %% %10zu\n", kind.c_str(), row.rel_rms, row.limit,
                    100 * row.equal / static_cast<double>(row.elements), row.elements);
      }
    }
  }

  /// The table of this program; GoogleTest owns it.
  static ParityTable& instance() {
    static auto* table =
        static_cast<ParityTable*>(::testing::AddGlobalTestEnvironment(new ParityTable));
    return *table;
  }

 private:
  struct Row {
    double rel_rms = 0, limit = 0, equal = 0;
    std::size_t elements = 0;
  };
  std::map<std::string, std::map<std::string, Row>> groups_;
};

}  // namespace quipu_test
