// What a trace sees of a pass: the tensors of transformer-inl.hpp under their ids, with the extents
// [batch, positions, ...] if all sequences have equally many tokens, else [1, tokens, ...].
// Siblings: runtime/trace.hpp, simd/transformer-inl.hpp, test/engine/trace_test.cpp.
#if defined(QUIPU_SIMD_TRACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_TRACE_INL_HPP_
#undef QUIPU_SIMD_TRACE_INL_HPP_
#else
#define QUIPU_SIMD_TRACE_INL_HPP_
#endif

#include <cstddef>
#include <string_view>
#include <vector>

#include "quipu/simd/attention-inl.hpp"
#include "quipu/simd/forward_call.hpp"

HWY_BEFORE_NAMESPACE();
namespace quipu {
namespace HWY_NAMESPACE {

class Tracer {
 public:
  Tracer(const ForwardCall& call, std::size_t layer) : call_(call), layer_(layer) {}

  bool On() const { return static_cast<bool>(call_.trace); }

  // [batch, positions, width]
  void Rows(std::string_view name, const float* data, std::size_t width) const {
    if (!On()) return;
    call_.trace(layer_, name, data, {Batch(), call_.tokens.size() / Batch(), width, 1}, 3,
                Element());
  }
  // [batch, positions, heads, head_dim]
  void Heads(std::string_view name, const float* data, std::size_t heads,
             std::size_t head_dim) const {
    if (!On()) return;
    call_.trace(layer_, name, data, {Batch(), call_.tokens.size() / Batch(), heads, head_dim}, 4,
                Element());
  }
  // Float32 in either mode (in the bf16 mode its values are bf16 values).
  void Logits(const float* data, std::size_t vocabulary) const {
    if (!On()) return;
    call_.trace(layer_, "logits", data, {Batch(), call_.tokens.size() / Batch(), vocabulary, 1}, 3);
  }

  // Attention, with its probabilities [batch, heads, positions, keys] if the trace wants them.
  void Attend(AttentionCall attention) const {
    const bool probs = call_.trace.wanted(layer_, "attention.probs");
    const bool before =
        call_.mode == NumericMode::bf16 && call_.trace.wanted(layer_, "attention.probs_f32");
    std::vector<float> after_rounding, before_rounding;
    if (probs || before) {
      std::size_t n = 0;
      for (const SequenceChunk& c : call_.chunks)
        n += attention.heads * c.tokens * (c.start + c.tokens);
      after_rounding.resize(n);
      attention.probs = after_rounding.data();
      if (before) {
        before_rounding.resize(n);
        attention.probs_before_rounding = before_rounding.data();
      }
    }
    quipu::HWY_NAMESPACE::Attend(attention, call_.executor);
    if (!probs && !before) return;
    // One tensor if all sequences have the same extents, else one a sequence.
    const SequenceChunk& first = call_.chunks.front();
    bool uniform = true;
    for (const SequenceChunk& c : call_.chunks) {
      uniform = uniform && c.tokens == first.tokens && c.start == first.start;
    }
    std::size_t at = 0;
    for (const SequenceChunk& c : call_.chunks) {
      const std::size_t batch = uniform ? call_.chunks.size() : 1;
      const std::array<std::size_t, 4> extents{batch, attention.heads, c.tokens,
                                               c.start + c.tokens};
      if (before) {
        call_.trace(layer_, "attention.probs_f32", before_rounding.data() + at, extents, 4);
      }
      if (probs)
        call_.trace(layer_, "attention.probs", after_rounding.data() + at, extents, 4, Element());
      if (uniform) break;
      at += extents[1] * extents[2] * extents[3];
    }
  }

 private:
  std::size_t Batch() const {
    for (const SequenceChunk& c : call_.chunks) {
      if (c.tokens != call_.chunks.front().tokens) return 1;
    }
    return call_.chunks.size();
  }
  ElementType Element() const {
    return call_.mode == NumericMode::bf16 ? ElementType::bf16 : ElementType::f32;
  }

  const ForwardCall& call_;
  std::size_t layer_;
};

}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();

#endif  // toggle
