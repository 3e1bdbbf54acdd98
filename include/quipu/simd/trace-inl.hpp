// What a trace sees of a pass: the tensors of transformer-inl.hpp under their ids, with the extents
// [batch, positions, ...] if all sequences have equally many tokens, else [1, tokens, ...]. Tensors
// are whole for any number of ranks: what each has a part of is gathered for the trace.
// Siblings: runtime/trace.hpp, simd/transformer-inl.hpp, test/engine/trace_test.cpp.
#if defined(QUIPU_SIMD_TRACE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_TRACE_INL_HPP_
#undef QUIPU_SIMD_TRACE_INL_HPP_
#else
#define QUIPU_SIMD_TRACE_INL_HPP_
#endif

#include <algorithm>
#include <array>
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

  // [batch, positions, width] that every rank has whole.
  void Rows(std::string_view name, const float* data, std::size_t width) const {
    if (!On()) return;
    Report(name, data, {Batch(), call_.tokens.size() / Batch(), width, 1}, 3, Element());
  }
  // The same of which this rank has a part: [batch, positions, width of all ranks].
  void Parts(std::string_view name, const float* data, std::size_t width) const {
    if (!On()) return;
    const std::size_t tokens = call_.tokens.size();
    Gather(name, data, tokens, width, {Batch(), tokens / Batch(), width * Ranks(), 1}, 3,
           Element());
  }
  // [batch, positions, heads of all ranks, head_dim]
  void Heads(std::string_view name, const float* data, std::size_t heads,
             std::size_t head_dim) const {
    if (!On()) return;
    const std::size_t tokens = call_.tokens.size();
    Gather(name, data, tokens, heads * head_dim,
           {Batch(), tokens / Batch(), heads * Ranks(), head_dim}, 4, Element());
  }
  // Float32 in either mode (in the bf16 mode its values are bf16 values).
  void Logits(const float* data, std::size_t vocabulary) const {
    if (!On()) return;
    Report("logits", data, {Batch(), call_.tokens.size() / Batch(), vocabulary, 1}, 3,
           ElementType::f32);
  }

  // Attention, with its probabilities [batch, heads, positions, keys] if the trace wants them.
  void Attend(AttentionCall attention) const {
    const bool probs = Wanted("attention.probs");
    const bool before = call_.mode == NumericMode::bf16 && Wanted("attention.probs_f32");
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
      const std::size_t keys = c.start + c.tokens;
      const std::size_t each = attention.heads * c.tokens * keys;
      const std::array<std::size_t, 4> extents{batch, attention.heads * Ranks(), c.tokens, keys};
      if (before) {
        Gather("attention.probs_f32", before_rounding.data() + at, batch, each, extents, 4,
               ElementType::f32);
      }
      if (probs) {
        Gather("attention.probs", after_rounding.data() + at, batch, each, extents, 4, Element());
      }
      if (uniform) break;
      at += each;
    }
  }

 private:
  std::size_t Ranks() const { return call_.communicator.ranks(); }

  // Rank 0's hook is asked, and its answer is everybody's: all ranks have to gather, or none.
  bool Wanted(std::string_view name) const {
    if (!On()) return false;
    bool wanted = call_.communicator.rank() == 0 && call_.trace.wanted(layer_, name);
    call_.communicator.broadcast(&wanted, sizeof wanted);
    return wanted;
  }

  void Report(std::string_view name, const float* data, std::array<std::size_t, 4> extents,
              std::size_t rank, ElementType element) const {
    if (call_.communicator.rank() == 0) call_.trace(layer_, name, data, extents, rank, element);
  }

  // Reports what the ranks have side by side in each of `rows` rows.
  void Gather(std::string_view name, const float* data, std::size_t rows, std::size_t width,
              std::array<std::size_t, 4> extents, std::size_t rank, ElementType element) const {
    if (Ranks() == 1) return Report(name, data, extents, rank, element);
    if (!Wanted(name)) return;
    std::vector<float> whole(rows * width * Ranks());
    for (std::size_t row = 0; row < rows; ++row) {
      std::copy_n(data + row * width, width,
                  whole.data() + (row * Ranks() + call_.communicator.rank()) * width);
    }
    call_.communicator.all_gather_columns(whole.data(), rows, width);
    Report(name, whole.data(), extents, rank, element);
  }

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
