// The probes of a target: loops that reach what its instructions and its memory can give.
//
// Ten chains cover the latency of multiply-adds (4 cycles, two a cycle) and of the byte dot
// instruction of AVX-512, and leave registers for the operands; more do not fit the 16 of AVX2.
// Where a byte dot product is several instructions, only an addition is in the chain: four are
// enough, and ten made GCC spill. Siblings: simd/probes.hpp,
// engine/ceilings.hpp, bench/product_bench.cpp.
#if defined(QUIPU_SIMD_PROBES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PROBES_INL_HPP_
#undef QUIPU_SIMD_PROBES_INL_HPP_
#else
#define QUIPU_SIMD_PROBES_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/probes.hpp"
#include "quipu/simd/product-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {

constexpr std::size_t kProbeChains = 10;
constexpr std::size_t kDotChains = HWY_TARGET <= HWY_AVX3_DL ? kProbeChains : 4;

// kSideBySide parts of the memory side by side, a cache line of each at a time.
template <std::size_t kSideBySide>
HWY_NOINLINE float ReadStreams(const float* from, std::size_t floats, std::size_t ahead) {
  const FloatTag d;
  constexpr std::size_t kLine = 16;
  const std::size_t each = floats / kSideBySide / kLine * kLine;
  FloatVec sum[kSideBySide][kVectors];
  QUIPU_UNROLL
  for (std::size_t s = 0; s < kSideBySide; ++s) {
    QUIPU_UNROLL
    for (FloatVec& v : sum[s]) v = hn::Zero(d);
  }
  for (std::size_t i = 0; i < each; i += kLine) {
    QUIPU_UNROLL
    for (std::size_t s = 0; s < kSideBySide; ++s) {
      const float* line = from + s * each + i;
      if (ahead > 0) hwy::Prefetch(line + ahead / sizeof(float));
      QUIPU_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        sum[s][v] = hn::Add(sum[s][v], hn::LoadU(d, line + v * kLanes));
      }
    }
  }
  FloatVec all = hn::Zero(d);
  QUIPU_UNROLL
  for (std::size_t s = 0; s < kSideBySide; ++s) {
    QUIPU_UNROLL
    for (const FloatVec v : sum[s]) all = hn::Add(all, v);
  }
  return hn::GetLane(hn::SumOfLanes(d, all));
}
inline float ProbeRead(const float* from, std::size_t floats, std::size_t ahead,
                       std::size_t streams) {
  return streams >= 8   ? ReadStreams<8>(from, floats, ahead)
         : streams >= 4 ? ReadStreams<4>(from, floats, ahead)
                        : ReadStreams<1>(from, floats, ahead);
}

HWY_NOINLINE inline float ProbeMultiplyAdds(std::size_t rounds) {
  const FloatTag d;
  const FloatVec factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  FloatVec sum[kProbeChains];
  // Each starts elsewhere: a compiler makes one chain of equal ones.
  QUIPU_UNROLL
  for (std::size_t c = 0; c < kProbeChains; ++c) sum[c] = hn::Set(d, static_cast<float>(c));
  for (std::size_t i = 0; i < rounds; ++i) {
    QUIPU_UNROLL
    for (FloatVec& s : sum) s = hn::MulAdd(s, factor, term);
  }
  FloatVec all = sum[0];
  QUIPU_UNROLL
  for (std::size_t c = 1; c < kProbeChains; ++c) all = hn::Add(all, sum[c]);
  return hn::GetLane(hn::SumOfLanes(d, all));
}

// Exact dot products as the kernels make them, by signed bytes: of nibbles, which are the cheapest,
// or of signed bytes of the whole range; eight vectors a block. A vector of weights from the
// first-level cache meets one of x in a register for each chain, as in a tile, and is another one
// in every step: products of constants would be computed once.
inline constexpr std::size_t kDotSteps = 8;

template <Levels kLevels>
HWY_NOINLINE std::int32_t ProbeByteDots(std::size_t rounds) {
  const IntTag d;
  constexpr std::size_t kTables = 2, kTable = kDotSteps * panel_outputs;
  alignas(64) std::uint32_t bytes[kTables * kTable];
  for (std::size_t i = 0; i < kTables * kTable; ++i)
    bytes[i] = 0x01010101u * static_cast<std::uint32_t>(i % 4);
  WordVec x[kDotChains];
  IntVec sum[kDotChains];
  QUIPU_UNROLL
  for (std::size_t c = 0; c < kDotChains; ++c) {
    x[c] = hn::Set(WordTag(), 0x01FF01FFu + static_cast<std::uint32_t>(c));
    sum[c] = hn::Zero(d);
  }
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::uint32_t* from = bytes + i % kTables * kTable;
    ByteDot<kLevels> dot[kDotChains];
    WordVec w = hn::Load(WordTag(), from);
    QUIPU_UNROLL
    for (std::size_t c = 0; c < kDotChains; ++c) dot[c].Begin(w, x[c], sum[c]);
    QUIPU_UNROLL
    for (std::size_t step = 1; step < kDotSteps; ++step) {
      w = hn::Load(WordTag(), from + step * panel_outputs);
      PinRegister(w);
      QUIPU_UNROLL
      for (std::size_t c = 0; c < kDotChains; ++c) {
        dot[c].Add(w, x[c]);
        PinRegister(dot[c].sum);
      }
    }
    QUIPU_UNROLL
    for (std::size_t c = 0; c < kDotChains; ++c) sum[c] = dot[c].Finish(sum[c]);
  }
  IntVec all = sum[0];
  QUIPU_UNROLL
  for (std::size_t c = 1; c < kDotChains; ++c) all = hn::Add(all, sum[c]);
  return hn::GetLane(hn::SumOfLanes(d, all));
}

inline const KernelProbes& Probes() {
  static const KernelProbes probes{&ProbeRead,
                                   &ProbeMultiplyAdds,
                                   &ProbeByteDots<Levels::nibbles>,
                                   &ProbeByteDots<Levels::bytes>,
                                   2 * kProbeChains * hn::Lanes(FloatTag()),
                                   2 * kDotSteps * kDotChains * 4 * hn::Lanes(IntTag()),
                                   &MatMul};
  return probes;
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
