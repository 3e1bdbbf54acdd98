// Readers of packed weights (packing.hpp): the only code that knows the bytes of a unit on the
// vector side. A reader of block weights gives, for block b of 32 inputs of a panel:
//   Quads(at, g, v)     inputs 4g..4g+3 of the outputs of vector v, one byte each, in 32-bit lanes
//   Scale(at, h, v)     the float scale (of half h where kHalves is 2)
//   Minimum(at, v)      the float minimum, if kMinimum
// and says what the bytes are (kLevels); the value is byte - kOffset.
// Siblings: product_floats-inl.hpp and product_bytes-inl.hpp use the readers.

#if defined(QUIPU_SIMD_PRODUCT_WEIGHTS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_WEIGHTS_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_WEIGHTS_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_WEIGHTS_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "quipu/simd/compat-inl.hpp"
#include "quipu/simd/product.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kLanes = LanesOfPanelVector();
inline constexpr std::size_t kVectors = panel_outputs / kLanes;

// Panels at a time for one row: memory gives four streams side by side a third more than one (Zen
// 3, one thread: 8 to 10 GB/s with one panel, 10 to 13 with two, 11 to 15 with four). Fewer where
// one vector is a quarter of a panel or less, whose chains fill the registers. For two rows and
// more, which are bound by arithmetic, one after the other is as fast or faster.
inline constexpr std::size_t kStreams = kVectors <= 2 ? 4 : kVectors == 4 ? 2 : 1;

// Bytes ahead of the reader that are fetched: hardware prefetchers stop at page borders and start
// late on a new stream. With several streams Zen 3 is faster without (q4_k alone is not); elsewhere
// that was not measured.
inline constexpr std::size_t kPrefetchAhead = 4096;
inline constexpr bool kPrefetchStreams = HWY_TARGET != HWY_AVX2;

HWY_INLINE void PrefetchAhead(const std::uint8_t* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) hwy::Prefetch(p + kPrefetchAhead + i);
}

// ---- Plain elements -------------------------------------------------------------------------

// kGroup inputs are read together: Floats(p, v, out) of `out[kGroup]`.
struct F32Reader {
  static constexpr std::size_t kGroup = 1;
  static constexpr std::size_t kGroupBytes = 64;
  static HWY_INLINE void Floats(const std::uint8_t* p, std::size_t v, FloatVec* out) {
    out[0] = hn::LoadU(FloatTag(), reinterpret_cast<const float*>(p) + v * kLanes);
  }
};

struct F16Reader {
  static constexpr std::size_t kGroup = 1;
  static constexpr std::size_t kGroupBytes = 32;
  static HWY_INLINE void Floats(const std::uint8_t* p, std::size_t v, FloatVec* out) {
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(p);
    out[0] = hn::PromoteTo(FloatTag(), hn::LoadU(d16, halves + v * kLanes));
  }
};

struct Bf16Reader {
  static constexpr std::size_t kGroup = 2;
  static constexpr std::size_t kGroupBytes = 64;
  static HWY_INLINE void Floats(const std::uint8_t* p, std::size_t v, FloatVec* out) {
    const WordVec pair =
        hn::LoadU(WordTag(), reinterpret_cast<const std::uint32_t*>(p) + v * kLanes);
    out[0] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pair));
    out[1] = hn::BitCast(FloatTag(), hn::And(pair, hn::Set(WordTag(), 0xffff0000u)));
  }
};

// ---- Blocks ---------------------------------------------------------------------------------

// Where block b of a panel is: `sub` its own bytes; `super` the start of its unit.
struct BlockAt {
  const std::uint8_t* sub;
  const std::uint8_t* super;
};

HWY_INLINE FloatVec LoadHalves(const std::uint8_t* p, std::size_t v) {
  FloatVec out[1];
  F16Reader::Floats(p, v, out);
  return out[0];
}
HWY_INLINE WordVec LoadWords(const std::uint8_t* p, std::size_t v) {
  return hn::LoadU(WordTag(), reinterpret_cast<const std::uint32_t*>(p) + v * kLanes);
}
template <class Byte>
HWY_INLINE FloatVec LoadBytesAsFloats(const std::uint8_t* p, std::size_t v) {
  const hn::Rebind<Byte, FloatTag> d8;
  const auto bytes = hn::LoadU(d8, reinterpret_cast<const Byte*>(p) + v * kLanes);
  return hn::ConvertTo(FloatTag(), hn::PromoteTo(IntTag(), bytes));
}
// Group g of the nibbles of 32 inputs.
HWY_INLINE WordVec Nibbles(const std::uint8_t* p, std::size_t g, std::size_t v) {
  const WordVec low = hn::Set(WordTag(), 0x0f0f0f0fu);
  const WordVec chunk = LoadWords(p + g % 4 * 64, v);
  return hn::And(g < 4 ? chunk : hn::ShiftRight<4>(chunk), low);
}
HWY_INLINE WordVec FifthBits(const std::uint8_t* p, std::size_t g, std::size_t v) {
  const WordVec bits = hn::ShiftRightSame(LoadWords(p, v), static_cast<int>(g));
  return hn::ShiftLeft<4>(hn::And(bits, hn::Set(WordTag(), 0x01010101u)));
}
HWY_INLINE WordVec HighPairs(const std::uint8_t* p, std::size_t g, std::size_t v) {
  const WordVec bits =
      hn::ShiftRightSame(LoadWords(p + g / 4 * 64, v), static_cast<int>(g % 4 * 2));
  return hn::ShiftLeft<4>(hn::And(bits, hn::Set(WordTag(), 0x03030303u)));
}

// Kinds whose unit is one block of 32: scale, minimum if any, then the bytes of the quants.
template <ElementType kType, bool kHasMinimum>
struct UnitOf32 {
  static constexpr bool kMinimum = kHasMinimum;
  static constexpr std::size_t kHalves = 1;
  static constexpr std::size_t kBlockBytes = packed_unit(kType).bytes;
  static constexpr std::size_t kQuants = kHasMinimum ? 64 : 32;
  static HWY_INLINE BlockAt At(const std::uint8_t* panel, std::size_t block) {
    const std::uint8_t* sub = panel + block * kBlockBytes;
    return {sub, sub};
  }
  static HWY_INLINE FloatVec Scale(BlockAt at, std::size_t, std::size_t v) {
    return LoadHalves(at.sub, v);
  }
  static HWY_INLINE FloatVec Minimum(BlockAt at, std::size_t v) {
    return LoadHalves(at.sub + 32, v);
  }
};

struct Q80Reader : UnitOf32<ElementType::q8_0, false> {
  static constexpr Levels kLevels = Levels::bytes;
  static constexpr int kOffset = 0;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    return LoadWords(at.sub + kQuants + 64 * g, v);
  }
};
template <ElementType kType, bool kHasMinimum, int kZero>
struct NibbleReader : UnitOf32<kType, kHasMinimum> {
  static constexpr Levels kLevels = Levels::nibbles;
  static constexpr int kOffset = kZero;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    return Nibbles(at.sub + UnitOf32<kType, kHasMinimum>::kQuants, g, v);
  }
};
using Q40Reader = NibbleReader<ElementType::q4_0, false, 8>;
using Q41Reader = NibbleReader<ElementType::q4_1, true, 0>;
template <ElementType kType, bool kHasMinimum, int kZero>
struct FiveBitReader : UnitOf32<kType, kHasMinimum> {
  static constexpr Levels kLevels = Levels::small;
  static constexpr int kOffset = kZero;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    const std::uint8_t* quants = at.sub + UnitOf32<kType, kHasMinimum>::kQuants;
    return hn::Or(Nibbles(quants, g, v), FifthBits(quants + 256, g, v));
  }
};
using Q50Reader = FiveBitReader<ElementType::q5_0, false, 16>;
using Q51Reader = FiveBitReader<ElementType::q5_1, true, 0>;

// Kinds whose unit is 8 blocks of 32 behind common halves.
template <ElementType kType, std::size_t kHeader>
struct UnitOf256 {
  static constexpr std::size_t kUnitBytes = packed_unit(kType).bytes;
  static constexpr std::size_t kBlockBytes = (kUnitBytes - kHeader) / 8;
  static HWY_INLINE BlockAt At(const std::uint8_t* panel, std::size_t block) {
    const std::uint8_t* super = panel + block / 8 * kUnitBytes;
    return {super + kHeader + block % 8 * kBlockBytes, super};
  }
};
template <ElementType kType>
struct ScaledUnitOf256 : UnitOf256<kType, 64> {
  static constexpr bool kMinimum = true;
  static constexpr std::size_t kHalves = 1;
  static constexpr int kOffset = 0;
  static HWY_INLINE FloatVec Scale(BlockAt at, std::size_t, std::size_t v) {
    return hn::Mul(LoadHalves(at.super, v), LoadBytesAsFloats<std::uint8_t>(at.sub, v));
  }
  // The format subtracts its minimum.
  static HWY_INLINE FloatVec Minimum(BlockAt at, std::size_t v) {
    return hn::Neg(
        hn::Mul(LoadHalves(at.super + 32, v), LoadBytesAsFloats<std::uint8_t>(at.sub + 16, v)));
  }
};
struct Q4KReader : ScaledUnitOf256<ElementType::q4_k> {
  static constexpr Levels kLevels = Levels::nibbles;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    return Nibbles(at.sub + 32, g, v);
  }
};
struct Q5KReader : ScaledUnitOf256<ElementType::q5_k> {
  static constexpr Levels kLevels = Levels::small;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    return hn::Or(Nibbles(at.sub + 32, g, v), FifthBits(at.sub + 288, g, v));
  }
};
struct Q6KReader : UnitOf256<ElementType::q6_k, 32> {
  static constexpr Levels kLevels = Levels::small;
  static constexpr bool kMinimum = false;
  static constexpr std::size_t kHalves = 2;
  static constexpr int kOffset = 32;
  static HWY_INLINE WordVec Quads(BlockAt at, std::size_t g, std::size_t v) {
    return hn::Or(Nibbles(at.sub + 32, g, v), HighPairs(at.sub + 288, g, v));
  }
  static HWY_INLINE FloatVec Scale(BlockAt at, std::size_t h, std::size_t v) {
    return hn::Mul(LoadHalves(at.super, v), LoadBytesAsFloats<std::int8_t>(at.sub + 16 * h, v));
  }
};

// ---- Decoding -------------------------------------------------------------------------------

// Signed bytes become floats at the top of their word, 2^24 times too large, which saves the shift
// that would extend the sign. A power of two changes no rounding; it comes off with the scale.
template <class Reader>
inline constexpr float kLevelUnit = Reader::kLevels == Levels::bytes ? 0x1p-24f : 1.0f;

// Byte kByte of each word alone: at the bottom of the word, or at its top with zeros below.
template <int kByte, bool kAtTop>
HWY_INLINE WordVec IsolateByte(WordVec quads) {
  if constexpr (kAtTop && kByte == 0) {
    return hn::ShiftLeft<24>(quads);
  } else if constexpr (kAtTop && kByte == 3) {
    return hn::And(quads, hn::Set(WordTag(), 0xff000000u));
  } else if constexpr (!kAtTop && kByte == 0) {
    return hn::And(quads, hn::Set(WordTag(), 0xffu));
  } else if constexpr (!kAtTop && kByte == 3) {
    return hn::ShiftRight<24>(quads);
  } else {
#if HWY_TARGET == HWY_SCALAR
    if constexpr (kAtTop) {
      return hn::And(hn::ShiftLeft<24 - 8 * kByte>(quads), hn::Set(WordTag(), 0xff000000u));
    } else {
      return hn::And(hn::ShiftRight<8 * kByte>(quads), hn::Set(WordTag(), 0xffu));
    }
#else
    // One shuffle instead of a shift and a mask; an index with its top bit set gives zero.
    constexpr std::uint8_t b = kByte, z = 0x80;
    constexpr int at = kAtTop ? 3 : 0;
    HWY_ALIGN static constexpr std::uint8_t index[16] = {
        at == 0 ? b : z,      z, z, at == 3 ? b : z,
        at == 0 ? b + 4 : z,  z, z, at == 3 ? b + 4 : z,
        at == 0 ? b + 8 : z,  z, z, at == 3 ? b + 8 : z,
        at == 0 ? b + 12 : z, z, z, at == 3 ? b + 12 : z};
    const hn::Repartition<std::uint8_t, WordTag> d8;
    return hn::BitCast(WordTag(),
                       hn::TableLookupBytesOr0(hn::BitCast(d8, quads), hn::LoadDup128(d8, index)));
#endif
  }
}

// Byte kByte of each word as a level, in units of kLevelUnit.
template <class Reader, int kByte>
HWY_INLINE FloatVec FloatOfByte(WordVec quads) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // A permutation takes the low four bits of a lane as its index into the 16 levels: half the
  // cycles of mask, conversion and subtraction (q4_0 on AVX-512 by llvm-mca).
  if constexpr (Reader::kLevels == Levels::nibbles) {
    HWY_ALIGN static constexpr float levels[16] = {
        0 - Reader::kOffset,  1 - Reader::kOffset,  2 - Reader::kOffset,  3 - Reader::kOffset,
        4 - Reader::kOffset,  5 - Reader::kOffset,  6 - Reader::kOffset,  7 - Reader::kOffset,
        8 - Reader::kOffset,  9 - Reader::kOffset,  10 - Reader::kOffset, 11 - Reader::kOffset,
        12 - Reader::kOffset, 13 - Reader::kOffset, 14 - Reader::kOffset, 15 - Reader::kOffset};
    return FloatVec{_mm512_permutexvar_ps(hn::ShiftRight<8 * kByte>(quads).raw,
                                          hn::Load(FloatTag(), levels).raw)};
  }
#endif
  const FloatVec value = hn::ConvertTo(
      FloatTag(),
      hn::BitCast(IntTag(), IsolateByte<kByte, Reader::kLevels == Levels::bytes>(quads)));
  if constexpr (Reader::kOffset == 0) return value;
  return hn::Sub(value, hn::Set(FloatTag(), static_cast<float>(Reader::kOffset)));
}

// The levels of inputs 4g..4g+3 as floats, exactly, in units of kLevelUnit.
template <class Reader>
HWY_INLINE void FloatsOfGroup(BlockAt at, std::size_t g, std::size_t v, FloatVec* out) {
  const WordVec quads = Reader::Quads(at, g, v);
  out[0] = FloatOfByte<Reader, 0>(quads);
  out[1] = FloatOfByte<Reader, 1>(quads);
  out[2] = FloatOfByte<Reader, 2>(quads);
  out[3] = FloatOfByte<Reader, 3>(quads);
}

// The scale of such levels.
template <class Reader>
HWY_INLINE FloatVec ScaleOfLevels(BlockAt at, std::size_t h, std::size_t v) {
  const FloatVec scale = Reader::Scale(at, h, v);
  if constexpr (kLevelUnit<Reader> == 1.0f) return scale;
  return hn::Mul(scale, hn::Set(FloatTag(), kLevelUnit<Reader>));
}

// The bytes as ByteDot takes them, kDotOffset above the levels.
template <class Reader>
inline constexpr int kDotOffset = Reader::kOffset +
                                  (kDotsAreUnsigned && Reader::kLevels == Levels::bytes ? 128 : 0);
template <class Reader>
HWY_INLINE WordVec BytesOfGroup(BlockAt at, std::size_t g, std::size_t v) {
  const WordVec quads = Reader::Quads(at, g, v);
  if constexpr (kDotOffset<Reader> == Reader::kOffset) return quads;
  return hn::Xor(quads, hn::Set(WordTag(), 0x80808080u));
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
