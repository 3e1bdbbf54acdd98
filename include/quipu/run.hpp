// What loads and runs a model, for a program built for one processor (-march=native or the like,
// the same for every translation unit). Programs that must run on any processor link an engine made
// by CMake's quipu_add_engine instead and include its header.
//
//   const quipu::Model model =
//   quipu::static_engine<quipu::models::smollm2_135m>().load("model.gguf");
// quipu.hpp is the typed side alone.
#pragma once

#include "quipu/engine/make_engine.hpp"
#include "quipu/generate/generator.hpp"
#include "quipu/quipu.hpp"
#include "quipu/simd/probes-inl.hpp"
#include "quipu/simd/transformer-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu {
namespace HWY_NAMESPACE {
template <class List, class Ranks>
void StaticForward(std::size_t model, const void* weights, const ForwardCall& call) {
  ForwardOneOf<List, Ranks>(model, weights, call);
}
inline const char* StaticTarget() { return hwy::TargetName(HWY_TARGET); }
}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();

namespace quipu {

/// The engine of these models for the processor that the program is compiled for, for one rank and
/// the numbers of model-parallel ranks in the list.
template <class Models, class Ranks>
const Engine& static_engine_of() {
  static const Engine engine =
      make_engine<Models, Ranks>(&HWY_NAMESPACE::StaticForward<Models, Ranks>,
                                 &HWY_NAMESPACE::StaticTarget, &HWY_NAMESPACE::Probes);
  return engine;
}
template <class... Models>
const Engine& static_engine() {
  return static_engine_of<ModelList<Models...>, RankList<>>();
}

}  // namespace quipu
