// What the driver of products does for each kind of weights and activations: a worker's share of a
// product, and per kind the kernels for few rows and for slabs. Siblings: product-inl.hpp (the
// driver), product_activations-inl.hpp, product_floats-inl.hpp, product_bytes-inl.hpp (the tiles).

#if defined(QUIPU_SIMD_PRODUCT_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_KERNELS_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_KERNELS_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_KERNELS_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "quipu/simd/product_activations-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Packed units of panels that are worked on together.
struct Units {
  const std::uint8_t* at;
  std::size_t panel_bytes;  // from one to the next
};

// A range of panels of one product, with the worker's scratch.
struct Share {
  const MatrixView* w;
  float* y;
  std::size_t y_stride;
  std::size_t first_panel, last_panel;
  const Prepared* x;
  float* slab;            // a decoded slab
  float* room;            // packed units of weights that are not packed
  float* totals;          // [rows][panels of a tile * 16] for each tile of a group of panels
  std::size_t apart = 1;  // from a panel to the next of those worked on together

  HWY_INLINE bool Packed() const { return w->layout == Layout::panels; }
  HWY_INLINE const std::uint8_t* PackedAt(std::size_t panel, std::size_t k) const {
    const PackedUnit unit = packed_unit(w->type);
    return reinterpret_cast<const std::uint8_t*>(w->data) + panel * w->row_stride +
           k / unit.inputs * unit.bytes;
  }
  // The packed units of n inputs at k of at most four panels: where they are, or packed now.
  HWY_INLINE Units UnitsOf(std::size_t panel, std::size_t panels, std::size_t k,
                           std::size_t n) const {
    if (Packed()) return {PackedAt(panel, k), apart * w->row_stride};
    constexpr std::size_t most = sum_panel * panel_outputs * sizeof(float);
    auto* to = reinterpret_cast<std::uint8_t*>(room);
    for (std::size_t p = 0; p < panels; ++p) {
      detail::pack_panel_slice(*w, panel + p * apart, k, k + n, to + p * most,
                               detail::PackTo::caches);
    }
    return {to, most};
  }
};

// Writes totals[rows][panels * 16] to y from row `begin` on, as far as there are rows of w: once,
// since rows of y are far apart in memory and meet in few sets of a cache.
HWY_INLINE void WriteTotals(const Share& share, const float* totals, std::size_t panel,
                            std::size_t panels, std::size_t begin, std::size_t rows) {
  const std::size_t output = panel * panel_outputs;
  const std::size_t width = panels * panel_outputs;
  const std::size_t count = (std::min)(width, share.w->rows - output);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* from = totals + r * width;
    std::copy(from, from + count, share.y + (begin + r) * share.y_stride + output);
  }
}

// The kernels of one kind of weights and activations, all static:
//   kRowPanels    panels at a time for one row: streams of weights
//   kTileRows, kTilePanels   rows and panels of a tile of a slab
//   Direct<R>(share, panel, panels, begin, k, n, add, totals)   totals[panels][R][16] = the sums of
//                 n inputs at k, or += them, for one panel, or kRowPanels of them if R is 1,
//                 and the tile of R rows at `begin`, from the packed units themselves
//   Decode(share, panel, panels, k, n)   a Slab of that many panels
//   Tile(slab, panels, rows, x, begin, k, n, add, totals)   totals[rows][panels * 16] = the sums of
//                 n inputs at k, or += them

template <class Reader>
struct PlainKernels {
  static constexpr std::size_t kRowPanels = kStreams;
  static constexpr std::size_t kTileRows = kFloatTileRows;
  static constexpr std::size_t kTilePanels = kPlainTilePanels;

  template <std::size_t R>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t panels,
                                std::size_t begin, std::size_t k, std::size_t n, bool add,
                                float* totals) {
    const Units units = share.UnitsOf(panel, panels, k, n);
    const float* x = share.x->floats + share.x->Offset(k, begin, n);
    if constexpr (R == 1) {
      if (panels == kStreams) {
        PlainTile<Reader, 1, kStreams, kPrefetchStreams>(units.at, units.panel_bytes, x, n, add,
                                                         totals);
        return;
      }
    }
    for (std::size_t p = 0; p < panels; ++p) {
      PlainTile<Reader, R, 1, true>(units.at + p * units.panel_bytes, 0, x, n, add,
                                    totals + p * R * panel_outputs);
    }
  }

  using Slab = Units;
  static HWY_INLINE Slab Decode(const Share& share, std::size_t panel, std::size_t panels,
                                std::size_t k, std::size_t n) {
    const Units units = share.UnitsOf(panel, panels, k, n);
    if constexpr (std::is_same_v<Reader, F32Reader>) return units;
    for (std::size_t p = 0; p < panels; ++p) {
      DecodePlain<Reader>(units.at + p * units.panel_bytes, n,
                          share.slab + p * sum_panel * panel_outputs);
    }
    return {reinterpret_cast<const std::uint8_t*>(share.slab),
            sum_panel * panel_outputs * sizeof(float)};
  }

  static HWY_INLINE void Tile(Slab slab, std::size_t panels, std::size_t rows, const Prepared& x,
                              std::size_t begin, std::size_t k, std::size_t n, bool add,
                              float* totals) {
    const std::make_index_sequence<kTileRows> counts;
    const Kernel kernel =
        panels == kTilePanels ? KernelFor<kTilePanels>(rows, counts) : KernelFor<1>(rows, counts);
    kernel(slab.at, slab.panel_bytes, x.floats + x.Offset(k, begin, n), n, add, totals);
  }

 private:
  using Kernel = void (*)(const std::uint8_t*, std::size_t, const float*, std::size_t, bool,
                          float*);
  template <std::size_t P, std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&PlainSlabTile<R + 1, P>...};
    return table[rows - 1];
  }
};

template <class Reader>
struct FloatBlockKernels {
  // Bound by arithmetic; the sums of two panels fill the registers.
  static constexpr std::size_t kRowPanels = kVectors <= 2 ? 2 : 1;
  static constexpr std::size_t kTileRows = kFloatTileRows;
  static constexpr std::size_t kTilePanels = 1;

  template <std::size_t R>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t panels,
                                std::size_t begin, std::size_t k, std::size_t n, bool add,
                                float* totals) {
    const Units units = share.UnitsOf(panel, panels, k, n);
    const float* x = share.x->floats + share.x->Offset(k, begin, n);
    const float* x_sums = share.x->sums + share.x->BlockOffset(k, begin, n);
    if constexpr (R == 1 && kRowPanels > 1) {
      if (panels == kRowPanels) {
        PackedBlocksTile<Reader, 1, kRowPanels>(units.at, units.panel_bytes, n / 32, x, x_sums, add,
                                                totals);
        return;
      }
    }
    for (std::size_t p = 0; p < panels; ++p) {
      PackedBlocksTile<Reader, R, 1>(units.at + p * units.panel_bytes, 0, n / 32, x, x_sums, add,
                                     totals + p * R * panel_outputs);
    }
  }

  using Slab = const float*;
  static HWY_INLINE Slab Decode(const Share& share, std::size_t panel, std::size_t, std::size_t k,
                                std::size_t n) {
    DecodeFloatBlocks<Reader>(share.UnitsOf(panel, 1, k, n).at, n / 32, share.slab);
    return share.slab;
  }

  static HWY_INLINE void Tile(Slab slab, std::size_t, std::size_t rows, const Prepared& x,
                              std::size_t begin, std::size_t k, std::size_t n, bool add,
                              float* totals) {
    KernelFor(rows, std::make_index_sequence<kTileRows>())(
        slab, n / 32, x.floats + x.Offset(k, begin, n), x.sums + x.BlockOffset(k, begin, n), add,
        totals);
  }

 private:
  using Kernel = void (*)(const float*, std::size_t, const float*, const float*, bool, float*);
  template <std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&FloatSlabTile<Reader::kMinimum, Reader::kHalves, R + 1>...};
    return table[rows - 1];
  }
};

template <class Reader>
struct ByteBlockKernels {
  // VNNI takes all alike: kinds with the same offset then share their tiles.
  static constexpr Levels kSlabLevels = kDotsAreUnsigned ? Levels::small : Reader::kLevels;
  using Decoded = FromByteSlab<kSlabLevels, Reader::kMinimum, Reader::kHalves,
                               BytesFromPacked<Reader>::kOffset>;
  static constexpr std::size_t kRowPanels = kStreams;
  static constexpr std::size_t kTileRows = kByteTileRows;
  static constexpr std::size_t kTilePanels = 1;

  template <std::size_t R>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t panels,
                                std::size_t begin, std::size_t k, std::size_t n, bool add,
                                float* totals) {
    const Units units = share.UnitsOf(panel, panels, k, n);
    PackedBytesTile<Reader, R>(units.at, units.panel_bytes, panels, n / 32,
                               share.x->Bytes(k, begin, n), add, totals);
  }

  using Slab = const std::uint8_t*;
  static HWY_INLINE Slab Decode(const Share& share, std::size_t panel, std::size_t, std::size_t k,
                                std::size_t n) {
    auto* slab = reinterpret_cast<std::uint8_t*>(share.slab);
    DecodeByteBlocks<Reader>(share.UnitsOf(panel, 1, k, n).at, n / 32, slab);
    return slab;
  }

  static HWY_INLINE void Tile(Slab slab, std::size_t, std::size_t rows, const Prepared& x,
                              std::size_t begin, std::size_t k, std::size_t n, bool add,
                              float* totals) {
    KernelFor(rows, std::make_index_sequence<kTileRows>())(slab, n / 32, x.Bytes(k, begin, n), add,
                                                           totals);
  }

 private:
  using Kernel = void (*)(const std::uint8_t*, std::size_t, const ByteActivations&, bool, float*);
  template <std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&ByteSlabTile<Decoded, R + 1>...};
    return table[rows - 1];
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
