// Products with float32 activations: the register tiles, and decoding of a slab to floats.
//
// A tile is R rows of x by one panel (two, where a vector holds a whole panel): outputs in the
// lanes, one broadcast of x per row and input. x stands as [k][R]. For one row, tiles read the
// packed weights themselves; for more, a slab of a panel of 512 inputs is decoded once to floats
// and serves all rows. Both walk the canonical order of product.hpp, so they give the same bits.
// Siblings: product_weights-inl.hpp, product_bytes-inl.hpp, product-inl.hpp (the driver).

#if defined(QUIPU_SIMD_PRODUCT_FLOATS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_FLOATS_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_FLOATS_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_FLOATS_INL_HPP_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "quipu/simd/product_weights-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a tile: with 16 registers, 6 rows x 2 vectors leave room for two weights and a broadcast;
// with 32 registers of a whole panel, 12 rows x 2 panels.
inline constexpr std::size_t kFloatTileRows = kVectors == 1   ? 12
                                              : kVectors == 2 ? 6
                                              : kVectors == 4 ? 3
                                                              : 1;
inline constexpr std::size_t kTilePanels = kVectors == 1 ? 2 : 1;

// Chains of dependent additions that keep two FMA units of latency 4 busy.
inline constexpr std::size_t kChains = 8;

// ---- Plain weights --------------------------------------------------------------------------

// sums[R][P * 16] = the sums of one panel of `inputs` (<= 512) inputs, for P panels that are
// panel_bytes apart.
template <class Reader, std::size_t R, std::size_t P>
HWY_INLINE void PlainTile(const std::uint8_t* w, std::size_t panel_bytes,
                          const float* HWY_RESTRICT x, std::size_t inputs,
                          float* HWY_RESTRICT sums) {
  const FloatTag d;
  FloatVec acc[R][P * kVectors];
  HWY_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < P * kVectors; ++i) acc[r][i] = hn::Zero(d);
  }
  const std::size_t whole = inputs / Reader::kGroup * Reader::kGroup;
  for (std::size_t k = 0; k < whole; k += Reader::kGroup) {
    FloatVec weights[P * kVectors][Reader::kGroup];
    HWY_UNROLL(16)
    for (std::size_t p = 0; p < P; ++p) {
      if constexpr (R == 1) PrefetchAhead(w + p * panel_bytes, Reader::kGroupBytes);
      HWY_UNROLL(16)
      for (std::size_t v = 0; v < kVectors; ++v) {
        Reader::Floats(w + p * panel_bytes, v, weights[p * kVectors + v]);
      }
    }
    HWY_UNROLL(16)
    for (std::size_t j = 0; j < Reader::kGroup; ++j) {
      HWY_UNROLL(16)
      for (std::size_t r = 0; r < R; ++r) {
        const FloatVec broadcast = hn::Set(d, x[(k + j) * R + r]);
        HWY_UNROLL(16)
        for (std::size_t i = 0; i < P * kVectors; ++i) {
          acc[r][i] = hn::MulAdd(weights[i][j], broadcast, acc[r][i]);
        }
      }
    }
    w += Reader::kGroupBytes;
  }
  // The last odd input of bf16 has zeros beside it: they must not meet x, which may be infinite
  // there.
  if (Reader::kGroup == 2 && whole < inputs) {
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < P * kVectors; ++i) {
      FloatVec weights[Reader::kGroup];
      Reader::Floats(w + i / kVectors * panel_bytes, i % kVectors, weights);
      HWY_UNROLL(16)
      for (std::size_t r = 0; r < R; ++r) {
        acc[r][i] = hn::MulAdd(weights[0], hn::Set(d, x[whole * R + r]), acc[r][i]);
      }
    }
  }
  HWY_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < P * kVectors; ++i) {
      hn::StoreU(acc[r][i], d, sums + (r * P * kVectors + i) * kLanes);
    }
  }
}

// Decodes `inputs` inputs of a panel to floats [k][16].
template <class Reader>
HWY_INLINE void DecodePlain(const std::uint8_t* w, std::size_t inputs, float* HWY_RESTRICT slab) {
  for (std::size_t k = 0; k < inputs; k += Reader::kGroup, w += Reader::kGroupBytes) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      FloatVec weights[Reader::kGroup];
      Reader::Floats(w, v, weights);
      for (std::size_t j = 0; j < Reader::kGroup; ++j) {
        hn::StoreU(weights[j], FloatTag(), slab + (k + j) * panel_outputs + v * kLanes);
      }
    }
  }
}

// ---- Block weights --------------------------------------------------------------------------

// A decoded block: levels [32][16], scales [2][16], minimum [16], as floats.
inline constexpr std::size_t kFloatBlock = (32 + 2 + 1) * panel_outputs;

// Packed weights, decoded in registers.
template <class Reader>
struct FromPacked : Reader {
  using At_ = BlockAt;
  static constexpr bool kStream = true;
  static HWY_INLINE void Floats(BlockAt at, std::size_t g, std::size_t v, FloatVec* out) {
    FloatsOfGroup<Reader>(at, g, v, out);
  }
};

// A slab of decoded blocks with the same members.
template <bool kHasMinimum, std::size_t kHalfCount>
struct FromFloatSlab {
  using At_ = const float*;
  static constexpr bool kStream = false;
  static constexpr bool kMinimum = kHasMinimum;
  static constexpr std::size_t kHalves = kHalfCount;
  static HWY_INLINE const float* At(const std::uint8_t* slab, std::size_t block) {
    return reinterpret_cast<const float*>(slab) + block * kFloatBlock;
  }
  static HWY_INLINE void Floats(const float* at, std::size_t g, std::size_t v, FloatVec* out) {
    for (std::size_t j = 0; j < 4; ++j) {
      out[j] = hn::LoadU(FloatTag(), at + (4 * g + j) * panel_outputs + v * kLanes);
    }
  }
  static HWY_INLINE FloatVec Scale(const float* at, std::size_t h, std::size_t v) {
    return hn::LoadU(FloatTag(), at + (32 + h) * panel_outputs + v * kLanes);
  }
  static HWY_INLINE FloatVec Minimum(const float* at, std::size_t v) {
    return hn::LoadU(FloatTag(), at + 34 * panel_outputs + v * kLanes);
  }
};

// Adds B consecutive blocks to acc. Their own sums are independent chains: B of them are worked on
// at once where one block's R x kVectors chains are too few.
template <class Weights, std::size_t R, std::size_t B>
HWY_INLINE void AddFloatBlocks(const std::uint8_t* panel, std::size_t block,
                               const float* HWY_RESTRICT x, const float* HWY_RESTRICT x_sums,
                               FloatVec (&acc)[R][kVectors]) {
  const FloatTag d;
  typename Weights::At_ at[B];
  HWY_UNROLL(16)
  for (std::size_t b = 0; b < B; ++b) {
    at[b] = Weights::At(panel, block + b);
    if constexpr (Weights::kStream) PrefetchAhead(at[b].sub, Weights::kBlockBytes);
  }
  constexpr std::size_t kGroups = 8 / Weights::kHalves;
  FloatVec sum[Weights::kHalves][B][R][kVectors];
  for (std::size_t h = 0; h < Weights::kHalves; ++h) {
    HWY_UNROLL(16)
    for (std::size_t b = 0; b < B; ++b) {
      HWY_UNROLL(16)
      for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(16)
        for (std::size_t v = 0; v < kVectors; ++v) sum[h][b][r][v] = hn::Zero(d);
      }
    }
    for (std::size_t g = h * kGroups; g < (h + 1) * kGroups; ++g) {
      HWY_UNROLL(16)
      for (std::size_t b = 0; b < B; ++b) {
        FloatVec weights[kVectors][4];
        HWY_UNROLL(16)
        for (std::size_t v = 0; v < kVectors; ++v) Weights::Floats(at[b], g, v, weights[v]);
        HWY_UNROLL(16)
        for (std::size_t j = 0; j < 4; ++j) {
          HWY_UNROLL(16)
          for (std::size_t r = 0; r < R; ++r) {
            const FloatVec broadcast = hn::Set(d, x[(32 * b + 4 * g + j) * R + r]);
            HWY_UNROLL(16)
            for (std::size_t v = 0; v < kVectors; ++v) {
              sum[h][b][r][v] = hn::MulAdd(weights[v][j], broadcast, sum[h][b][r][v]);
            }
          }
        }
      }
    }
  }
  HWY_UNROLL(16)
  for (std::size_t b = 0; b < B; ++b) {
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < kVectors; ++v) {
      HWY_UNROLL(16)
      for (std::size_t h = 0; h < Weights::kHalves; ++h) {
        const FloatVec scale = Weights::Scale(at[b], h, v);
        HWY_UNROLL(16)
        for (std::size_t r = 0; r < R; ++r)
          acc[r][v] = hn::MulAdd(scale, sum[h][b][r][v], acc[r][v]);
      }
      if constexpr (Weights::kMinimum) {
        const FloatVec minimum = Weights::Minimum(at[b], v);
        HWY_UNROLL(16)
        for (std::size_t r = 0; r < R; ++r) {
          acc[r][v] = hn::MulAdd(minimum, hn::Set(d, x_sums[b * R + r]), acc[r][v]);
        }
      }
    }
  }
}

// sums[R][16] = the sums of blocks [first, first + blocks) of a panel, at most 16 of them. x and
// x_sums start at block `first`.
template <class Weights, std::size_t R>
HWY_INLINE void FloatBlockTile(const std::uint8_t* panel, std::size_t first, std::size_t blocks,
                               const float* HWY_RESTRICT x, const float* HWY_RESTRICT x_sums,
                               float* HWY_RESTRICT sums) {
  const FloatTag d;
  constexpr std::size_t kTogether = R * kVectors >= kChains ? 1 : kChains / (R * kVectors);
  FloatVec acc[R][kVectors];
  HWY_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  }
  std::size_t b = 0;
  for (; b + kTogether <= blocks; b += kTogether) {
    AddFloatBlocks<Weights, R, kTogether>(panel, first + b, x + 32 * b * R, x_sums + b * R, acc);
  }
  if constexpr (kTogether > 1) {
    for (; b < blocks; ++b) {
      AddFloatBlocks<Weights, R, 1>(panel, first + b, x + 32 * b * R, x_sums + b * R, acc);
    }
  }
  HWY_UNROLL(16)
  for (std::size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(acc[r][v], d, sums + (r * kVectors + v) * kLanes);
    }
  }
}

// Decodes blocks [first, first + blocks) of a panel.
template <class Reader>
HWY_INLINE void DecodeFloatBlocks(const std::uint8_t* panel, std::size_t first, std::size_t blocks,
                                  float* HWY_RESTRICT slab) {
  const FloatTag d;
  for (std::size_t b = 0; b < blocks; ++b, slab += kFloatBlock) {
    const BlockAt at = Reader::At(panel, first + b);
    PrefetchAhead(at.sub, Reader::kBlockBytes);
    for (std::size_t g = 0; g < 8; ++g) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        FloatVec levels[4];
        FloatsOfGroup<Reader>(at, g, v, levels);
        for (std::size_t j = 0; j < 4; ++j) {
          hn::StoreU(levels[j], d, slab + (4 * g + j) * panel_outputs + v * kLanes);
        }
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      for (std::size_t h = 0; h < Reader::kHalves; ++h) {
        hn::StoreU(Reader::Scale(at, h, v), d, slab + (32 + h) * panel_outputs + v * kLanes);
      }
      if constexpr (Reader::kMinimum) {
        hn::StoreU(Reader::Minimum(at, v), d, slab + 34 * panel_outputs + v * kLanes);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
HWY_AFTER_NAMESPACE();

#endif  // toggle
