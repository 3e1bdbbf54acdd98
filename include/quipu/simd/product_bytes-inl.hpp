// Products with int8 activations: rounding x, the register tiles, and decoding of a slab to bytes.
//
// Four inputs of an output are one 32-bit lane; four bytes of x are broadcast against them. The
// sums of a block are exact integers, so their order is free; floats are added in the canonical
// order of product.hpp. Siblings: product_weights-inl.hpp, product_floats-inl.hpp, compat-inl.hpp
// (ByteDot).

#if defined(QUIPU_SIMD_PRODUCT_BYTES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_BYTES_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_BYTES_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_BYTES_INL_HPP_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "quipu/simd/product_floats-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"

namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a tile: the integer sums of R x kVectors are in registers, the float sums beside them
// where there are 32 registers.
inline constexpr std::size_t kByteTileRows = kVectors == 1   ? 12
                                             : kVectors == 2 ? 4
                                             : kVectors == 4 ? 2
                                                             : 1;

// Where the rounded activations of a tile of R rows begin, at the first block of a panel of 512.
struct ByteActivations {
  const std::int8_t* q;     // [block][R][32]
  const float* scale;       // [block][R]
  const float* scaled_sum;  // [block][R] scale * sum
  // [block][3][R]: minus the sum of all 32, of the first and of the last 16; negative and in the
  // order of the rows, so that corrections of offsets are one broadcast and a shift.
  const std::int32_t* minus_sum;
};

// Rounds 32 floats: q, scale, and sums, those of 3 that are `rows` apart. A NaN or an infinity
// makes the scale NaN, so that it reaches every output.
HWY_INLINE void QuantizeBlock(const float* HWY_RESTRICT x, std::int8_t* HWY_RESTRICT q,
                              float* scale, float* scaled_sum, std::int32_t* minus_sum,
                              std::size_t rows) {
  const FloatTag d;
  const IntTag di;
  FloatVec most = hn::Zero(d);
  FloatVec poison = hn::Zero(d);
  for (std::size_t i = 0; i < 32; i += kLanes) {
    const FloatVec v = hn::LoadU(d, x + i);
    most = hn::Max(most, hn::Abs(v));
    poison = hn::MulAdd(v, hn::Zero(d), poison);
  }
  const float largest =
      hn::GetLane(hn::MaxOfLanes(d, most)) + hn::GetLane(hn::SumOfLanes(d, poison));
  const float xs = largest / 127.0f;
  const FloatVec inverse = hn::Set(d, largest > 0.0f ? 127.0f / largest : 0.0f);
  // 1.5 * 2^23: the sum's low mantissa bits are the product rounded to nearest, ties to even.
  const FloatVec magic = hn::Set(d, 12582912.0f);
  std::int32_t sums[2];
  for (std::size_t half = 0; half < 2; ++half) {
    IntVec total = hn::Zero(di);
    for (std::size_t i = 16 * half; i < 16 * half + 16; i += kLanes) {
      const FloatVec shifted = hn::MulAdd(hn::LoadU(d, x + i), inverse, magic);
      // Clamped for the sake of x that is not finite: its levels are any integers.
      const IntVec any = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, 0x4b400000));
      const IntVec level = hn::Max(hn::Min(any, hn::Set(di, 127)), hn::Set(di, -127));
      total = hn::Add(total, level);
      const hn::Rebind<std::int8_t, FloatTag> d8;
      hn::StoreU(hn::DemoteTo(d8, level), d8, q + i);
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(di, total));
  }
  *scale = xs;
  *scaled_sum = xs * static_cast<float>(sums[0] + sums[1]);
  minus_sum[0] = -(sums[0] + sums[1]);
  minus_sum[rows] = -sums[0];
  minus_sum[2 * rows] = -sums[1];
}

HWY_INLINE WordVec BroadcastQuad(const std::int8_t* q) {
  std::uint32_t word;
  std::memcpy(&word, q, sizeof word);
  return hn::Set(WordTag(), word);
}

// Packed weights, decoded in registers.
template <class Reader>
struct BytesFromPacked : Reader {
  using At_ = BlockAt;
  static constexpr bool kStream = true;
  static constexpr int kOffset = kDotOffset<Reader>;
  static HWY_INLINE WordVec Bytes(BlockAt at, std::size_t g, std::size_t v) {
    return BytesOfGroup<Reader>(at, g, v);
  }
};

// A decoded block: bytes [8][16][4], float scales [2][16], minimum [16].
inline constexpr std::size_t kByteBlock = (32 + 4 * (2 + 1)) * panel_outputs;

template <Levels kOfLevels, bool kHasMinimum, std::size_t kHalfCount, int kZero>
struct FromByteSlab {
  using At_ = const std::uint8_t*;
  static constexpr bool kStream = false;
  static constexpr Levels kLevels = kOfLevels;
  static constexpr bool kMinimum = kHasMinimum;
  static constexpr std::size_t kHalves = kHalfCount;
  static constexpr int kOffset = kZero;
  static HWY_INLINE const std::uint8_t* At(const std::uint8_t* slab, std::size_t block) {
    return slab + block * kByteBlock;
  }
  static HWY_INLINE WordVec Bytes(const std::uint8_t* at, std::size_t g, std::size_t v) {
    return LoadWords(at + 64 * g, v);
  }
  static HWY_INLINE FloatVec Scale(const std::uint8_t* at, std::size_t h, std::size_t v) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(at + 512 + 64 * h) + v * kLanes);
  }
  static HWY_INLINE FloatVec Minimum(const std::uint8_t* at, std::size_t v) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(at + 640) + v * kLanes);
  }
};

template <class Weights, std::size_t R>
using Dots = ByteDot<Weights::kLevels>[R][kVectors];

// The correction of the sums of (half h of) block b and row r: minus the offset times x's sum.
template <class Weights, std::size_t R>
HWY_INLINE IntVec Correction(const ByteActivations& x, std::size_t b, std::size_t h,
                             std::size_t r) {
  constexpr int kShift = std::countr_zero(static_cast<unsigned>(Weights::kOffset));
  static_assert(Weights::kOffset == 0 || Weights::kOffset == 1 << kShift);
  if constexpr (Weights::kOffset == 0) return hn::Zero(IntTag());
  const std::size_t which = Weights::kHalves == 2 ? 1 + h : 0;
  return hn::ShiftLeft<kShift % 32>(hn::Set(IntTag(), x.minus_sum[(3 * b + which) * R + r]));
}

// Adds inputs 4g..4g+3 of block b, or begins (half h) with them.
template <class Weights, std::size_t R, bool kBegin = false>
HWY_INLINE void AddGroup(typename Weights::At_ at, const ByteActivations& x, std::size_t b,
                         std::size_t g, Dots<Weights, R>& dot, std::size_t h = 0) {
  WordVec weights[kVectors];
  QUIPU_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    weights[v] = Weights::Bytes(at, g, v);
    PinRegister(weights[v]);  // GCC otherwise loads them again for every row
  }
  QUIPU_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    const WordVec broadcast = BroadcastQuad(x.q + 32 * (b * R + r) + 4 * g);
    QUIPU_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      if constexpr (kBegin) {
        dot[r][v].Begin(weights[v], broadcast, Correction<Weights, R>(x, b, h, r));
      } else {
        dot[r][v].Add(weights[v], broadcast);
        PinRegister(dot[r][v].sum);
      }
    }
  }
}

// acc += scale * x scale * integer sums of (half h of) block b.
template <class Weights, std::size_t R>
HWY_INLINE void AddScaled(typename Weights::At_ at, std::size_t h, const ByteActivations& x,
                          std::size_t b, const Dots<Weights, R>& dot,
                          FloatVec (&acc)[R][kVectors]) {
  const FloatTag d;
  QUIPU_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) {
    const FloatVec scale = Weights::Scale(at, h, v);
    QUIPU_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const FloatVec level = hn::ConvertTo(d, dot[r][v].Finish(Correction<Weights, R>(x, b, h, r)));
      const FloatVec both = hn::Mul(scale, hn::Set(d, x.scale[b * R + r]));
      acc[r][v] = hn::MulAdd(both, level, acc[r][v]);
    }
  }
}

// acc += block b. Unrolled with weights and sums pinned to registers (GCC 12, AVX2: a slab's block
// of 4 rows takes 265 instead of 350 instructions; a packed block of one row 35 instead of 41
// cycles from the caches for q4_0); unrolled and not pinned, products went through memory.
template <class Weights, std::size_t R>
HWY_INLINE void AddByteBlock(typename Weights::At_ at, const ByteActivations& x, std::size_t b,
                             FloatVec (&acc)[R][kVectors]) {
  if constexpr (Weights::kStream) {
    // Groups c and 4 + c share the bytes of their nibbles.
    Dots<Weights, R> dot[Weights::kHalves];
    AddGroup<Weights, R, true>(at, x, b, 0, dot[0]);
    AddGroup<Weights, R, Weights::kHalves == 2>(at, x, b, 4, dot[Weights::kHalves - 1], 1);
    HWY_UNROLL(4)
    for (std::size_t c = 1; c < 4; ++c) {
      AddGroup<Weights, R>(at, x, b, c, dot[0]);
      AddGroup<Weights, R>(at, x, b, c + 4, dot[Weights::kHalves - 1]);
    }
    for (std::size_t h = 0; h < Weights::kHalves; ++h)
      AddScaled<Weights, R>(at, h, x, b, dot[h], acc);
  } else {
    constexpr std::size_t kGroups = 8 / Weights::kHalves;
    HWY_UNROLL(2)
    for (std::size_t h = 0; h < Weights::kHalves; ++h) {
      Dots<Weights, R> dot;
      AddGroup<Weights, R, true>(at, x, b, h * kGroups, dot, h);
      HWY_UNROLL(8)
      for (std::size_t g = h * kGroups + 1; g < (h + 1) * kGroups; ++g)
        AddGroup<Weights, R>(at, x, b, g, dot);
      AddScaled<Weights, R>(at, h, x, b, dot, acc);
    }
  }
  if constexpr (Weights::kMinimum) {
    QUIPU_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const FloatVec minimum = Weights::Minimum(at, v);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        acc[r][v] = hn::MulAdd(minimum, hn::Set(FloatTag(), x.scaled_sum[b * R + r]), acc[r][v]);
      }
    }
  }
}

// totals[panels][R][16] = or += the sums of `blocks` (<= 16) packed blocks of panels (up to
// kStreams for one row, else one) that are panel_bytes apart, block by block. The float sums of
// several wait in memory meanwhile.
template <class Reader, std::size_t R>
HWY_INLINE void PackedBytesTile(const std::uint8_t* panel, std::size_t panel_bytes,
                                std::size_t panels, std::size_t blocks, const ByteActivations& x,
                                bool add, float* HWY_RESTRICT totals) {
  using Weights = BytesFromPacked<Reader>;
  constexpr std::size_t kMost = R == 1 ? kStreams : 1;
  if (kMost == 1) panels = 1;
  const bool fetch = kPrefetchStreams || panels == 1;
  FloatVec acc[kMost][R][kVectors];
  for (std::size_t p = 0; p < panels; ++p) BeginSums(acc[p]);
  for (std::size_t b = 0; b < blocks; ++b) {
    HWY_UNROLL(1)
    for (std::size_t p = 0; p < panels; ++p) {
      const BlockAt at = Weights::At(panel + p * panel_bytes, b);
      if (fetch) PrefetchAhead(at.sub, Weights::kBlockBytes);
      AddByteBlock<Weights, R>(at, x, b, acc[p]);
    }
  }
  for (std::size_t p = 0; p < panels; ++p) StoreSums(acc[p], add, totals + p * R * panel_outputs);
}

// totals[R][16] = the sums of `blocks` (<= 16) blocks of a decoded slab, or += them.
template <class Slab, std::size_t R>
HWY_NOINLINE void ByteSlabTile(const std::uint8_t* slab, std::size_t blocks,
                               const ByteActivations& x, bool add, float* HWY_RESTRICT totals) {
  FloatVec acc[R][kVectors];
  BeginSums(acc);
  for (std::size_t b = 0; b < blocks; ++b) AddByteBlock<Slab, R>(Slab::At(slab, b), x, b, acc);
  StoreSums(acc, add, totals);
}

// Decodes `blocks` blocks of a panel to bytes.
template <class Reader>
HWY_INLINE void DecodeByteBlocks(const std::uint8_t* panel, std::size_t blocks,
                                 std::uint8_t* HWY_RESTRICT slab) {
  for (std::size_t b = 0; b < blocks; ++b, slab += kByteBlock) {
    const BlockAt at = Reader::At(panel, b);
    PrefetchAhead(at.sub, Reader::kBlockBytes);
    for (std::size_t g = 0; g < 8; ++g) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(BytesOfGroup<Reader>(at, g, v), WordTag(),
                   reinterpret_cast<std::uint32_t*>(slab + 64 * g) + v * kLanes);
      }
    }
    auto* floats = reinterpret_cast<float*>(slab + 512);
    for (std::size_t v = 0; v < kVectors; ++v) {
      for (std::size_t h = 0; h < Reader::kHalves; ++h) {
        hn::StoreU(Reader::Scale(at, h, v), FloatTag(), floats + h * panel_outputs + v * kLanes);
      }
      if constexpr (Reader::kMinimum) {
        hn::StoreU(Reader::Minimum(at, v), FloatTag(), floats + 2 * panel_outputs + v * kLanes);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu

#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
