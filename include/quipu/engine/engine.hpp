// An engine: the models compiled into a program, and the choice among them by a checkpoint.
//
//   const quipu::Model model = catalogue::engine().load("model.gguf");
//   quipu::Session session(model, {.capacity = 4096});
//   std::vector<float> logits = session.forward(tokens);
//
// Engines are made by quipu_add_engine (CMake; one translation unit for every SIMD target) or, in a
// program built for one processor, by static_engine<Models...>() of quipu/run.hpp.
// Siblings: engine/make_engine.hpp, engine/model.hpp, engine/session.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quipu/engine/model.hpp"
#include "quipu/engine/session.hpp"

namespace quipu {

class Engine {
 public:
  Engine(std::vector<ModelEntry> models, EngineFunctions functions)
      : models_(std::move(models)), functions_(functions) {}

  /// The models compiled in.
  std::span<const ModelEntry> models() const { return models_; }
  /// The SIMD target that this processor gets: "AVX2".
  std::string_view target() const { return functions_.target(); }
  /// What that target can do at most, and its product, for measurements.
  const KernelProbes& probes() const { return functions_.probes(); }

  /// Opens, verifies and loads a checkpoint: a .gguf, .safetensors or .pth file or a directory in
  /// Meta's or Hugging Face's layout. FileError, FormatError or MismatchError name the file and
  /// what is wrong with it.
  Model load(const std::string& path, const LoadOptions& options = {}) const {
    return load(functions_.open(path), options);
  }
  Model load(Checkpoint checkpoint, const LoadOptions& options = {}) const {
    return functions_.load(models_, functions_, std::move(checkpoint), options);
  }

 private:
  std::vector<ModelEntry> models_;
  EngineFunctions functions_;
};

}  // namespace quipu
