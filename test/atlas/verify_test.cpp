// Source records against a stand-in tree: files of the cited names and lengths in which nothing
// stands but the expected symbols, at the cited lines.
#include "quipu/atlas/verify.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "quipu/atlas/cards.hpp"

namespace {

using namespace quipu;
using State = atlas::Verdict::State;

constexpr const atlas::ModelEntry& entry = atlas::model_entry<models::llama3_1_8b>;

class StandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) / "quipu_atlas_tree";
    std::filesystem::remove_all(root_);
    for (const atlas::Card& card : entry.cards) {
      for (const notation::Source& s : card.sources) {
        std::vector<std::string>& lines =
            files_[std::string(s.file.repository) + "/" + std::string(s.file.path)];
        const auto length = static_cast<std::size_t>(s.file.lines > 0 ? s.file.lines : 900);
        if (lines.size() < length) lines.resize(length);
        for (std::string_view token : s.tokens) {
          std::string& line = lines[static_cast<std::size_t>(s.lines[0].first - 1)];
          line += ' ';
          line += token;
        }
      }
    }
    write();
    for (const char* repository :
         {"meta-llama/llama3", "meta-llama/llama-models", "facebookresearch/fairscale"}) {
      atlas::add_source_tree(trees_, std::string(repository) + "=" + (root_ / repository).string());
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write() {
    for (const auto& [path, lines] : files_) {
      std::filesystem::create_directories((root_ / path).parent_path());
      std::ofstream file(root_ / path);
      for (const std::string& line : lines) file << line << "\n";
    }
  }

  std::filesystem::path root_;
  std::map<std::string, std::vector<std::string>> files_;
  atlas::SourceTrees trees_;
};

TEST_F(StandIn, EveryRecordIsConfirmed) {
  for (const atlas::Card& card : entry.cards) {
    for (const notation::Source& s : card.sources) {
      const atlas::Verdict verdict = atlas::verify(s, trees_);
      EXPECT_EQ(verdict.state, State::confirmed) << card.id << ": " << verdict.reason;
      EXPECT_EQ(verdict.excerpts.size(), s.lines.size());
    }
  }
}

TEST_F(StandIn, ASymbolMovedAwayIsRefutedByName) {
  const notation::Source& s = atlas::find_card(entry, "output").sources[0];
  files_["meta-llama/llama-models/models/llama3/model.py"][269].clear();  // line 270
  write();
  const atlas::Verdict verdict = atlas::verify(s, trees_);
  EXPECT_EQ(verdict.state, State::refuted);
  EXPECT_NE(verdict.reason.find("270–271, 305–308"), std::string::npos) << verdict.reason;
  EXPECT_NE(verdict.reason.find("does not stand there"), std::string::npos) << verdict.reason;
}

TEST_F(StandIn, AnotherRevisionIsNoticedByItsLength) {
  files_["meta-llama/llama3/llama/model.py"].emplace_back();
  write();
  const atlas::Verdict verdict =
      atlas::verify(atlas::find_card(entry, "output").sources[1], trees_);
  EXPECT_EQ(verdict.state, State::refuted);
  EXPECT_NE(verdict.reason.find("has 303 lines, expected 302"), std::string::npos)
      << verdict.reason;
}

TEST_F(StandIn, AMissingFileAndAMissingCheckoutAreToldApart) {
  const notation::Source& s = atlas::find_card(entry, "output").sources[1];
  std::filesystem::remove(root_ / "meta-llama/llama3/llama/model.py");
  EXPECT_EQ(atlas::verify(s, trees_).state, State::refuted);
  EXPECT_EQ(atlas::verify(s, {}).state, State::no_checkout);
}

TEST_F(StandIn, ExcerptsMarkWhatIsLeftOut) {
  const std::string text =
      atlas::excerpt_text(atlas::verify(atlas::find_card(entry, "output").sources[1], trees_));
  EXPECT_NE(text.find("   266 "), text.npos);
  EXPECT_NE(text.find("… lines 270–297 left out …"), text.npos) << text;
  EXPECT_NE(text.find("   302 "), text.npos);
}

TEST(SourceTree, NeedsARepositoryAndAFolder) {
  atlas::SourceTrees trees;
  for (const char* text : {"llama3=x", "meta-llama/llama3", "meta-llama/llama3=", "=x"}) {
    EXPECT_THROW(atlas::add_source_tree(trees, text), ArgumentError) << text;
  }
}

}  // namespace
