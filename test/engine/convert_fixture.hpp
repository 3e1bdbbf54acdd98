// What the tests of conversions share: a folder, writing a checkpoint in another layout, and the
// logits by which two checkpoints are compared.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "quipu/checkpoint/open_checkpoint.hpp"
#include "quipu/engine/convert.hpp"
#include "quipu/engine/session.hpp"
#include "support/folder.hpp"
#include "test_engine.hpp"

namespace quipu_test {

class ConvertFixture : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  static quipu::ConvertReport convert(const std::string& from, const std::string& to,
                                      quipu::WriteLayout layout,
                                      std::optional<quipu::ElementType> type = std::nullopt,
                                      std::optional<quipu::ElementType> output_type = std::nullopt,
                                      bool overwrite = false, std::size_t parts = 1) {
    const quipu::Checkpoint file = quipu::open_checkpoint(from);
    const quipu::ModelEntry& entry =
        quipu::choose_model(test_engine::engine().models(), file.facts, from);
    quipu::ConvertOptions options;
    options.layout = layout;
    options.type = type;
    options.output_type = output_type;
    options.overwrite = overwrite;
    options.parts = parts;
    quipu::ThreadPool pool(2);
    return quipu::convert(file, entry, to, options, quipu::ExecutorRef(pool));
  }

  static quipu::Model load(const std::string& checkpoint) {
    quipu::LoadOptions options;
    options.threads = 2;
    return test_engine::engine().load(checkpoint, options);
  }
  static std::vector<float> logits(const quipu::Model& model) {
    quipu::Session session(model, {.capacity = 8});
    return session.forward(std::vector<quipu::TokenId>{1, 5, 9, 2, 100, 7});
  }
  static std::vector<float> logits(const std::string& checkpoint) {
    return logits(load(checkpoint));
  }

  Folder folder_;
};

}  // namespace quipu_test
