// Products with float32 activations: the register tiles, and decoding of a slab to floats.
//
// A tile is R rows of x by one panel (two, where a vector holds a whole panel; up to four for one
// row): outputs in the
// lanes, one broadcast of x per row and input. x stands as [k][R]. For few rows, tiles read the
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
inline constexpr std::size_t kPlainTilePanels = kVectors == 1 ? 2 : 1;

// Chains of dependent additions that keep two FMA units of latency 4 busy.
inline constexpr std::size_t kChains = 8;

// ---- Plain weights --------------------------------------------------------------------------

// The registers of R x N sums.
template <std::size_t R, std::size_t N>
HWY_INLINE void BeginSums(FloatVec (&acc)[R][N]) {
  QUIPU_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < N; ++i) acc[r][i] = hn::Zero(FloatTag());
  }
}
// totals = the sums of a panel of inputs, or += them.
template <std::size_t R, std::size_t N>
HWY_INLINE void StoreSums(const FloatVec (&acc)[R][N], bool add, float* HWY_RESTRICT totals) {
  const FloatTag d;
  QUIPU_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < N; ++i) {
      float* to = totals + (r * N + i) * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), acc[r][i]) : acc[r][i], d, to);
    }
  }
}

// totals[R][P * 16] = the sums of `inputs` inputs for P panels that are panel_bytes apart, or +=
// them.
template <class Reader, std::size_t R, std::size_t P, bool kFetchAhead>
HWY_INLINE void PlainTile(const std::uint8_t* w, std::size_t panel_bytes,
                          const float* HWY_RESTRICT x, std::size_t inputs, bool add,
                          float* HWY_RESTRICT totals) {
  const FloatTag d;
  FloatVec acc[R][P * kVectors];
  BeginSums(acc);
  const std::size_t whole = inputs / Reader::kGroup * Reader::kGroup;
  for (std::size_t k = 0; k < whole; k += Reader::kGroup) {
    FloatVec weights[P * kVectors][Reader::kGroup];
    QUIPU_UNROLL
    for (std::size_t p = 0; p < P; ++p) {
      if constexpr (kFetchAhead) PrefetchAhead(w + p * panel_bytes, Reader::kGroupBytes);
      QUIPU_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) {
        Reader::Floats(w + p * panel_bytes, v, weights[p * kVectors + v]);
      }
    }
    QUIPU_UNROLL
    for (std::size_t j = 0; j < Reader::kGroup; ++j) {
      QUIPU_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const FloatVec broadcast = hn::Set(d, x[(k + j) * R + r]);
        QUIPU_UNROLL
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
    QUIPU_UNROLL
    for (std::size_t i = 0; i < P * kVectors; ++i) {
      FloatVec weights[Reader::kGroup];
      Reader::Floats(w + i / kVectors * panel_bytes, i % kVectors, weights);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        acc[r][i] = hn::MulAdd(weights[0], hn::Set(d, x[whole * R + r]), acc[r][i]);
      }
    }
  }
  StoreSums(acc, add, totals);
}

// Adds kInputs inputs of decoded weights, which start at w[0..N) and are panel_outputs floats
// apart, times x [k][R]. Inputs are added one after the other: pins keep GCC from gathering them,
// for which registers do not suffice.
template <std::size_t kInputs, std::size_t R, std::size_t N>
HWY_INLINE void AddDecodedInputs(const float* const (&w)[N], std::size_t k,
                                 const float* HWY_RESTRICT x, FloatVec (&acc)[R][N]) {
  const FloatTag d;
  QUIPU_UNROLL
  for (std::size_t j = 0; j < kInputs; ++j) {
    FloatVec weights[N];
    QUIPU_UNROLL
    for (std::size_t i = 0; i < N; ++i) {
      weights[i] = hn::LoadU(d, w[i] + (k + j) * panel_outputs);
      PinRegister(weights[i]);
    }
    QUIPU_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const FloatVec broadcast = hn::Set(d, x[(k + j) * R + r]);
      QUIPU_UNROLL
      for (std::size_t i = 0; i < N; ++i) {
        AddProduct(acc[r][i], weights[i], broadcast);
      }
    }
  }
}

// The tile of decoded weights: one function for all kinds of plain elements.
template <std::size_t R, std::size_t P>
HWY_NOINLINE void PlainSlabTile(const std::uint8_t* w, std::size_t panel_bytes, const float* x,
                                std::size_t inputs, bool add, float* totals) {
  constexpr std::size_t N = P * kVectors;
  FloatVec acc[R][N];
  BeginSums(acc);
  const float* from[N];
  QUIPU_UNROLL
  for (std::size_t i = 0; i < N; ++i) {
    from[i] =
        reinterpret_cast<const float*>(w + i / kVectors * panel_bytes) + i % kVectors * kLanes;
  }
  const std::size_t whole = inputs / kTileUnroll * kTileUnroll;
  std::size_t k = 0;
  for (; k < whole; k += kTileUnroll) AddDecodedInputs<kTileUnroll>(from, k, x, acc);
  for (; k < inputs; ++k) AddDecodedInputs<1>(from, k, x, acc);
  StoreSums(acc, add, totals);
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

// sum += input kInput of an open group (Reader::Quads) times x of R rows, for N vectors of outputs.
template <class Reader, int kInput, std::size_t R, std::size_t N>
HWY_INLINE void AddInput(const WordVec (&quads)[N], const float* HWY_RESTRICT x,
                         FloatVec (&sum)[R][N]) {
  FloatVec levels[N];
  QUIPU_UNROLL
  for (std::size_t i = 0; i < N; ++i) levels[i] = FloatOfByte<Reader, kInput>(quads[i]);
  QUIPU_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    const FloatVec broadcast = hn::Set(FloatTag(), x[kInput * R + r]);
    QUIPU_UNROLL
    for (std::size_t i = 0; i < N; ++i) sum[r][i] = hn::MulAdd(levels[i], broadcast, sum[r][i]);
  }
}

// Adds B consecutive blocks of P panels, decoded in registers, to acc of R rows. Their own sums are
// independent chains of additions, which are worked on at once; a broadcast of x serves P panels.
template <class Reader, std::size_t R, std::size_t P, std::size_t B>
HWY_INLINE void AddPackedBlocks(const std::uint8_t* panel, std::size_t panel_bytes,
                                std::size_t block, const float* HWY_RESTRICT x,
                                const float* HWY_RESTRICT x_sums,
                                FloatVec (&acc)[R][P * kVectors]) {
  const FloatTag d;
  BlockAt at[B][P];
  FloatVec sum[Reader::kHalves][B][R][P * kVectors];
  QUIPU_UNROLL
  for (std::size_t b = 0; b < B; ++b) {
    QUIPU_UNROLL
    for (std::size_t p = 0; p < P; ++p) {
      at[b][p] = Reader::At(panel + p * panel_bytes, block + b);
      PrefetchAhead(at[b][p].sub, Reader::kBlockBytes);
    }
  }
  // Inputs 0..15, then 16..31: low and high nibbles.
  HWY_UNROLL(2)
  for (std::size_t half = 0; half < 2; ++half) {
    const std::size_t h = Reader::kHalves == 2 ? half : 0;
    if (half == 0 || Reader::kHalves == 2) {
      QUIPU_UNROLL
      for (std::size_t b = 0; b < B; ++b) {
        QUIPU_UNROLL
        for (std::size_t r = 0; r < R; ++r) {
          QUIPU_UNROLL
          for (std::size_t i = 0; i < P * kVectors; ++i) sum[h][b][r][i] = hn::Zero(d);
        }
      }
    }
    HWY_UNROLL(1)
    for (std::size_t c = 0; c < 4; ++c) {
      const std::size_t g = 4 * half + c;
      QUIPU_UNROLL
      for (std::size_t b = 0; b < B; ++b) {
        WordVec quads[P * kVectors];
        QUIPU_UNROLL
        for (std::size_t i = 0; i < P * kVectors; ++i) {
          quads[i] = Reader::Quads(at[b][i / kVectors], g, i % kVectors);
        }
        const float* xg = x + (32 * b + 4 * g) * R;
        AddInput<Reader, 0>(quads, xg, sum[h][b]);
        AddInput<Reader, 1>(quads, xg, sum[h][b]);
        AddInput<Reader, 2>(quads, xg, sum[h][b]);
        AddInput<Reader, 3>(quads, xg, sum[h][b]);
      }
    }
  }
  QUIPU_UNROLL
  for (std::size_t b = 0; b < B; ++b) {
    QUIPU_UNROLL
    for (std::size_t i = 0; i < P * kVectors; ++i) {
      const BlockAt from = at[b][i / kVectors];
      HWY_UNROLL(2)
      for (std::size_t h = 0; h < Reader::kHalves; ++h) {
        const FloatVec scale = ScaleOfLevels<Reader>(from, h, i % kVectors);
        QUIPU_UNROLL
        for (std::size_t r = 0; r < R; ++r)
          acc[r][i] = hn::MulAdd(scale, sum[h][b][r][i], acc[r][i]);
      }
      if constexpr (Reader::kMinimum) {
        const FloatVec minimum = Reader::Minimum(from, i % kVectors);
        QUIPU_UNROLL
        for (std::size_t r = 0; r < R; ++r)
          acc[r][i] = hn::MulAdd(minimum, hn::Set(d, x_sums[b * R + r]), acc[r][i]);
      }
    }
  }
}

// totals[R][P * 16] = the sums of `blocks` (<= 16) packed blocks of P panels for R rows, or +=
// them.
template <class Reader, std::size_t R, std::size_t P>
HWY_INLINE void PackedBlocksTile(const std::uint8_t* panel, std::size_t panel_bytes,
                                 std::size_t blocks, const float* HWY_RESTRICT x,
                                 const float* HWY_RESTRICT x_sums, bool add,
                                 float* HWY_RESTRICT totals) {
  constexpr std::size_t kOfBlock = R * P * kVectors;
  constexpr std::size_t kTogether = kOfBlock >= kChains ? 1 : kChains / kOfBlock;
  FloatVec acc[R][P * kVectors];
  BeginSums(acc);
  std::size_t b = 0;
  for (; b + kTogether <= blocks; b += kTogether) {
    AddPackedBlocks<Reader, R, P, kTogether>(panel, panel_bytes, b, x + 32 * b * R, x_sums + b * R,
                                             acc);
  }
  if constexpr (kTogether > 1) {
    for (; b < blocks; ++b) {
      AddPackedBlocks<Reader, R, P, 1>(panel, panel_bytes, b, x + 32 * b * R, x_sums + b * R, acc);
    }
  }
  StoreSums(acc, add, totals);
}

// Adds a decoded block to acc.
template <bool kMinimum, std::size_t kHalves, std::size_t R>
HWY_INLINE void AddDecodedBlock(const float* HWY_RESTRICT block, const float* HWY_RESTRICT x,
                                const float* HWY_RESTRICT x_sum, FloatVec (&acc)[R][kVectors]) {
  const FloatTag d;
  const float* levels[kVectors];
  QUIPU_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) levels[v] = block + v * kLanes;
  HWY_UNROLL(2)
  for (std::size_t h = 0; h < kHalves; ++h) {
    FloatVec sum[R][kVectors];
    QUIPU_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      QUIPU_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    constexpr std::size_t kInputs = 32 / kHalves;
    HWY_UNROLL(1)
    for (std::size_t k = h * kInputs; k < (h + 1) * kInputs; k += kTileUnroll) {
      AddDecodedInputs<kTileUnroll>(levels, k, x, sum);
    }
    QUIPU_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const FloatVec scale = hn::LoadU(d, block + (32 + h) * panel_outputs + v * kLanes);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < R; ++r) acc[r][v] = hn::MulAdd(scale, sum[r][v], acc[r][v]);
    }
  }
  if constexpr (kMinimum) {
    QUIPU_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const FloatVec minimum = hn::LoadU(d, block + 34 * panel_outputs + v * kLanes);
      QUIPU_UNROLL
      for (std::size_t r = 0; r < R; ++r)
        acc[r][v] = hn::MulAdd(minimum, hn::Set(d, x_sum[r]), acc[r][v]);
    }
  }
}

// totals[R][16] = the sums of `blocks` decoded blocks, or += them.
template <bool kMinimum, std::size_t kHalves, std::size_t R>
HWY_NOINLINE void FloatSlabTile(const float* HWY_RESTRICT slab, std::size_t blocks,
                                const float* HWY_RESTRICT x, const float* HWY_RESTRICT x_sums,
                                bool add, float* HWY_RESTRICT totals) {
  FloatVec acc[R][kVectors];
  BeginSums(acc);
  for (std::size_t b = 0; b < blocks; ++b) {
    AddDecodedBlock<kMinimum, kHalves, R>(slab + b * kFloatBlock, x + 32 * b * R, x_sums + b * R,
                                          acc);
  }
  StoreSums(acc, add, totals);
}

// Decodes `blocks` blocks of a panel.
template <class Reader>
HWY_INLINE void DecodeFloatBlocks(const std::uint8_t* panel, std::size_t blocks,
                                  float* HWY_RESTRICT slab) {
  const FloatTag d;
  for (std::size_t b = 0; b < blocks; ++b, slab += kFloatBlock) {
    const BlockAt at = Reader::At(panel, b);
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
        hn::StoreU(ScaleOfLevels<Reader>(at, h, v), d,
                   slab + (32 + h) * panel_outputs + v * kLanes);
      }
      if constexpr (Reader::kMinimum) {
        hn::StoreU(Reader::Minimum(at, v), d, slab + 34 * panel_outputs + v * kLanes);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
