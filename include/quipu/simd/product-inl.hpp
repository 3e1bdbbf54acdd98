// Matrix products y = x W^T for every element type and both layouts, threaded: the driver.
//
// Few rows of x: the packed weights stream past once, decoded in registers. More rows: x is
// prepared (packed by tiles, or rounded to int8) in blocks of rows; a slab of a panel of 512 inputs
// is decoded once and serves all rows of the block. Weights that are not packed have each slab
// packed first, so that both layouts give the same bits. Order of sums: product.hpp. Siblings:
// product.hpp (types, scratch), product_floats-inl.hpp, product_bytes-inl.hpp (tiles),
// test/simd/product_test.cpp, bench/product_bench.cpp.

#if defined(QUIPU_SIMD_PRODUCT_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIPU_SIMD_PRODUCT_INL_HPP_
#undef QUIPU_SIMD_PRODUCT_INL_HPP_
#else
#define QUIPU_SIMD_PRODUCT_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "quipu/simd/product_bytes-inl.hpp"
#include "quipu/simd/product_floats-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Activations ----------------------------------------------------------------------------

// Rows of x cut into tiles of at most `most` rows, as equal as can be: 8 rows are 4 + 4, not 6 + 2.
struct RowTiles {
  std::size_t rows;
  std::size_t count;

  HWY_INLINE RowTiles(std::size_t all_rows, std::size_t most)
      : rows(all_rows), count((all_rows + most - 1) / most) {}
  HWY_INLINE std::size_t Begin(std::size_t tile) const {
    return tile * (rows / count) + (std::min)(tile, rows % count);
  }
};

// A block of rows of x as the tiles read it. Offsets for a tile of R rows at row `begin` and a
// panel of `n` inputs at input k: floats at k * rows + begin * n, per-block values likewise
// over 32.
struct Prepared {
  std::size_t rows = 0;
  std::size_t cols = 0;
  const float* floats = nullptr;  // [k][R] of each tile
  const float* sums = nullptr;    // [block][R]
  const std::int8_t* q = nullptr;
  const float* scale = nullptr;
  const float* scaled_sum = nullptr;
  const std::int32_t* minus_sum = nullptr;

  HWY_INLINE std::size_t Offset(std::size_t k, std::size_t begin, std::size_t n) const {
    return k * rows + begin * n;
  }
  HWY_INLINE std::size_t BlockOffset(std::size_t k, std::size_t begin, std::size_t n) const {
    return k / 32 * rows + begin * (n / 32);
  }
  HWY_INLINE ByteActivations Bytes(std::size_t k, std::size_t begin, std::size_t n) const {
    const std::size_t block = BlockOffset(k, begin, n);
    return {q + Offset(k, begin, n), scale + block, scaled_sum + block, minus_sum + 3 * block};
  }
};

// What the products of one call need of x.
struct Needs {
  bool floats = false;
  bool sums = false;
  bool bytes = false;
};

HWY_INLINE bool IsBlockType(ElementType type) { return info(type).block_elements > 1; }
HWY_INLINE bool HasMinimum(ElementType type) {
  return type == ElementType::q4_1 || type == ElementType::q5_1 || type == ElementType::q4_k ||
         type == ElementType::q5_k;
}

// Splits a scratch area into parts that start on cache lines.
class Carver {
 public:
  HWY_INLINE explicit Carver(float* from) {
    const auto address = reinterpret_cast<std::uintptr_t>(from);
    next_ = from + (64 - address % 64) % 64 / sizeof(float);
  }
  HWY_INLINE float* Take(std::size_t floats) {
    float* part = next_;
    next_ += (floats + 15) / 16 * 16;
    return part;
  }

 private:
  float* next_;
};

// Writes what tile `tile` of the rows needs.
HWY_NOINLINE inline void PrepareFloats(const float* x, std::size_t x_stride, const Prepared& to,
                                       bool copy, bool with_sums, std::size_t tile) {
  const RowTiles tiles(to.rows, kFloatTileRows);
  const std::size_t begin = tiles.Begin(tile);
  const std::size_t r_count = tiles.Begin(tile + 1) - begin;
  auto* floats = const_cast<float*>(to.floats);
  auto* sums = const_cast<float*>(to.sums);
  for (std::size_t k = 0; k < to.cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, to.cols - k);
    for (std::size_t r = 0; r < r_count; ++r) {
      const float* HWY_RESTRICT from = x + (begin + r) * x_stride + k;
      if (copy) {
        float* HWY_RESTRICT out = floats + to.Offset(k, begin, n) + r;
        for (std::size_t i = 0; i < n; ++i) out[i * r_count] = from[i];
      }
      if (with_sums) {
        float* out = sums + to.BlockOffset(k, begin, n) + r;
        for (std::size_t b = 0; b < n / 32; ++b) {
          float sum = 0;
          for (std::size_t i = 0; i < 32; ++i) sum += from[32 * b + i];
          out[b * r_count] = sum;
        }
      }
    }
  }
}

HWY_NOINLINE inline void PrepareBytes(const float* x, std::size_t x_stride, const Prepared& to,
                                      std::size_t tile) {
  const RowTiles tiles(to.rows, kByteTileRows);
  const std::size_t begin = tiles.Begin(tile);
  const std::size_t r_count = tiles.Begin(tile + 1) - begin;
  for (std::size_t k = 0; k < to.cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, to.cols - k);
    const ByteActivations at = to.Bytes(k, begin, n);
    for (std::size_t r = 0; r < r_count; ++r) {
      const float* from = x + (begin + r) * x_stride + k;
      for (std::size_t b = 0; b < n / 32; ++b) {
        const std::size_t i = b * r_count + r;
        QuantizeBlock(from + 32 * b, const_cast<std::int8_t*>(at.q) + 32 * i,
                      const_cast<float*>(at.scale) + i, const_cast<float*>(at.scaled_sum) + i,
                      const_cast<std::int32_t*>(at.minus_sum) + 3 * b * r_count + r, r_count);
      }
    }
  }
}

// ---- One worker's share ---------------------------------------------------------------------

// Packed units of neighbouring panels.
struct Units {
  const std::uint8_t* at;
  std::size_t panel_bytes;  // from panel to panel
};

// A range of panels of one product, with the worker's scratch.
struct Share {
  const MatrixView* w;
  float* y;
  std::size_t y_stride;
  std::size_t first_panel, last_panel;
  const Prepared* x;
  float* slab;    // product_worker_floats: the decoded slab, then room to pack one
  float* totals;  // [rows][panels at a time * 16]: sums over the inputs so far

  HWY_INLINE bool Packed() const { return w->layout == Layout::panels; }
  HWY_INLINE const std::uint8_t* PackedAt(std::size_t panel, std::size_t k) const {
    const PackedUnit unit = packed_unit(w->type);
    return reinterpret_cast<const std::uint8_t*>(w->data) + panel * w->row_stride +
           k / unit.inputs * unit.bytes;
  }
  // The packed units of n inputs at k of some panels (at most 2): where they are, or packed now.
  HWY_INLINE Units UnitsOf(std::size_t panel, std::size_t panels, std::size_t k,
                           std::size_t n) const {
    if (Packed()) return {PackedAt(panel, k), w->row_stride};
    constexpr std::size_t most = sum_panel * panel_outputs * sizeof(float);
    auto* room = reinterpret_cast<std::uint8_t*>(slab + detail::product_slab_floats);
    for (std::size_t p = 0; p < panels; ++p) {
      detail::pack_panel_slice(*w, panel + p, k, k + n, room + p * most);
    }
    return {room, most};
  }
};

// totals = sums of the first panel of inputs, then += those of each further one: y is written once,
// since its rows are far apart in memory and meet in few sets of a cache.
HWY_INLINE void AddSums(const float* HWY_RESTRICT sums, std::size_t count, bool first,
                        float* HWY_RESTRICT totals) {
  const FloatTag d;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const FloatVec sum = hn::LoadU(d, sums + i);
    hn::StoreU(first ? sum : hn::Add(hn::LoadU(d, totals + i), sum), d, totals + i);
  }
}

// Writes totals[rows][panels * 16] to y from row `begin` on, as far as there are rows of w.
HWY_INLINE void WriteTotals(const Share& share, std::size_t panel, std::size_t panels,
                            std::size_t begin, std::size_t rows) {
  const std::size_t output = panel * panel_outputs;
  const std::size_t width = panels * panel_outputs;
  const std::size_t count = (std::min)(width, share.w->rows - output);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* from = share.totals + r * width;
    std::copy(from, from + count, share.y + (begin + r) * share.y_stride + output);
  }
}

// The kernels of one kind of weights and activations, all static:
//   kRowPanels, kTileRows, kTilePanels   panels at a time for one row; rows and panels of a tile
//   Direct<R, P>(share, panel, begin, k, n, sums)   sums[R][P * 16] of n inputs at k for the tile
//                                        of R rows at `begin`, from the packed units themselves
//   Decode(share, panel, panels, k, n)   a Slab of that many panels
//   Tile(slab, panels, rows, x, begin, k, n, sums)   sums[rows][panels * 16]
template <class Reader>
struct PlainKernels {
  // Two panels at a time for one row: their chains of additions overlap.
  static constexpr std::size_t kRowPanels = 2;
  static constexpr std::size_t kTileRows = kFloatTileRows;
  static constexpr std::size_t kTilePanels = kPlainTilePanels;

  template <std::size_t R, std::size_t P>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t begin,
                                std::size_t k, std::size_t n, float* sums) {
    const Units units = share.UnitsOf(panel, P, k, n);
    PlainTile<Reader, R, P, true>(units.at, units.panel_bytes,
                                  share.x->floats + share.x->Offset(k, begin, n), n, sums);
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
                              std::size_t begin, std::size_t k, std::size_t n, float* sums) {
    const std::make_index_sequence<kTileRows> counts;
    const Kernel kernel =
        panels == kTilePanels ? KernelFor<kTilePanels>(rows, counts) : KernelFor<1>(rows, counts);
    kernel(slab.at, slab.panel_bytes, x.floats + x.Offset(k, begin, n), n, sums);
  }

 private:
  using Kernel = void (*)(const std::uint8_t*, std::size_t, const float*, std::size_t, float*);
  template <std::size_t P, std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&PlainSlabTile<R + 1, P>...};
    return table[rows - 1];
  }
};

template <class Reader>
struct FloatBlockKernels {
  // Two where their chains fit in registers.
  static constexpr std::size_t kRowPanels = kVectors <= 2 ? 2 : 1;
  static constexpr std::size_t kTileRows = kFloatTileRows;
  static constexpr std::size_t kTilePanels = 1;

  template <std::size_t R, std::size_t P>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t begin,
                                std::size_t k, std::size_t n, float* sums) {
    const Units units = share.UnitsOf(panel, P, k, n);
    PackedBlocksTile<Reader, R, P>(units.at, units.panel_bytes, n / 32,
                                   share.x->floats + share.x->Offset(k, begin, n),
                                   share.x->sums + share.x->BlockOffset(k, begin, n), sums);
  }

  using Slab = const float*;
  static HWY_INLINE Slab Decode(const Share& share, std::size_t panel, std::size_t, std::size_t k,
                                std::size_t n) {
    DecodeFloatBlocks<Reader>(share.UnitsOf(panel, 1, k, n).at, n / 32, share.slab);
    return share.slab;
  }

  static HWY_INLINE void Tile(Slab slab, std::size_t, std::size_t rows, const Prepared& x,
                              std::size_t begin, std::size_t k, std::size_t n, float* sums) {
    KernelFor(rows, std::make_index_sequence<kTileRows>())(
        slab, n / 32, x.floats + x.Offset(k, begin, n), x.sums + x.BlockOffset(k, begin, n), sums);
  }

 private:
  using Kernel = void (*)(const float*, std::size_t, const float*, const float*, float*);
  template <std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&FloatSlabTile<Reader::kMinimum, Reader::kHalves, R + 1>...};
    return table[rows - 1];
  }
};

template <class Reader>
struct ByteBlockKernels {
  using Packed = BytesFromPacked<Reader>;
  // VNNI takes all alike: kinds with the same offset then share their tiles.
  static constexpr Levels kSlabLevels = kDotsAreUnsigned ? Levels::small : Reader::kLevels;
  using Decoded = FromByteSlab<kSlabLevels, Reader::kMinimum, Reader::kHalves, Packed::kOffset>;
  static constexpr std::size_t kRowPanels = 1;
  static constexpr std::size_t kTileRows = kByteTileRows;
  static constexpr std::size_t kTilePanels = 1;

  template <std::size_t R, std::size_t P>
  static HWY_INLINE void Direct(const Share& share, std::size_t panel, std::size_t begin,
                                std::size_t k, std::size_t n, float* sums) {
    ByteTile<Packed, R>(share.UnitsOf(panel, 1, k, n).at, n / 32, share.x->Bytes(k, begin, n),
                        sums);
  }

  using Slab = const std::uint8_t*;
  static HWY_INLINE Slab Decode(const Share& share, std::size_t panel, std::size_t, std::size_t k,
                                std::size_t n) {
    auto* slab = reinterpret_cast<std::uint8_t*>(share.slab);
    DecodeByteBlocks<Reader>(share.UnitsOf(panel, 1, k, n).at, n / 32, slab);
    return slab;
  }

  static HWY_INLINE void Tile(Slab slab, std::size_t, std::size_t rows, const Prepared& x,
                              std::size_t begin, std::size_t k, std::size_t n, float* sums) {
    KernelFor(rows, std::make_index_sequence<kTileRows>())(slab, n / 32, x.Bytes(k, begin, n),
                                                           sums);
  }

 private:
  using Kernel = void (*)(const std::uint8_t*, std::size_t, const ByteActivations&, float*);
  template <std::size_t... R>
  static HWY_INLINE Kernel KernelFor(std::size_t rows, std::index_sequence<R...>) {
    static constexpr Kernel table[] = {&ByteSlabTile<Decoded, R + 1>...};
    return table[rows - 1];
  }
};

// Tiles of up to so many rows have kernels that decode the weights in registers, and at most so
// many tiles use them: a slab would be written and read for too little.
inline constexpr std::size_t kDirectRows = kByteTileRows < 4 ? kByteTileRows : 4;
inline constexpr std::size_t kDirectTiles = 2;

template <class Kernels, std::size_t R, std::size_t P>
HWY_NOINLINE void RunDirect(const Share& share, std::size_t panel, std::size_t begin) {
  HWY_ALIGN float sums[R * P * panel_outputs];
  for (std::size_t k = 0; k < share.w->cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, share.w->cols - k);
    Kernels::template Direct<R, P>(share, panel, begin, k, n, sums);
    AddSums(sums, R * P * panel_outputs, k == 0, share.totals);
  }
  WriteTotals(share, panel, P, begin, R);
}
template <class Kernels, std::size_t... R>
HWY_INLINE void RunDirectTile(const Share& share, std::size_t panel, std::size_t begin,
                              std::size_t rows, std::index_sequence<R...>) {
  static constexpr void (*table[])(const Share&, std::size_t,
                                   std::size_t) = {&RunDirect<Kernels, R + 1, 1>...};
  table[rows - 1](share, panel, begin);
}

template <class Kernels>
HWY_NOINLINE void RunPanels(const Share& share) {
  const Prepared& x = *share.x;
  const RowTiles tiles(x.rows, Kernels::kTileRows);
  std::size_t panel = share.first_panel;
  if (tiles.count <= kDirectTiles && tiles.Begin(1) <= kDirectRows) {
    if (x.rows == 1) {
      constexpr std::size_t kPanels = Kernels::kRowPanels;
      for (; panel + kPanels <= share.last_panel; panel += kPanels) {
        RunDirect<Kernels, 1, kPanels>(share, panel, 0);
      }
    }
    for (; panel < share.last_panel; ++panel) {
      for (std::size_t tile = 0; tile < tiles.count; ++tile) {
        const std::size_t begin = tiles.Begin(tile);
        RunDirectTile<Kernels>(share, panel, begin, tiles.Begin(tile + 1) - begin,
                               std::make_index_sequence<kDirectRows>());
      }
    }
    return;
  }
  // All inputs of a panel before the next one: its totals stay in the first-level cache.
  HWY_ALIGN float sums[Kernels::kTileRows * Kernels::kTilePanels * panel_outputs];
  for (; panel < share.last_panel; panel += Kernels::kTilePanels) {
    const std::size_t panels = (std::min)(Kernels::kTilePanels, share.last_panel - panel);
    const std::size_t width = panels * panel_outputs;
    for (std::size_t k = 0; k < share.w->cols; k += sum_panel) {
      const std::size_t n = (std::min)(sum_panel, share.w->cols - k);
      const auto slab = Kernels::Decode(share, panel, panels, k, n);
      for (std::size_t tile = 0; tile < tiles.count; ++tile) {
        const std::size_t begin = tiles.Begin(tile);
        const std::size_t rows = tiles.Begin(tile + 1) - begin;
        Kernels::Tile(slab, panels, rows, x, begin, k, n, sums);
        AddSums(sums, rows * width, k == 0, share.totals + begin * width);
      }
    }
    WriteTotals(share, panel, panels, 0, x.rows);
  }
}

template <class Reader>
HWY_INLINE void RunBlockPanels(const Share& share, ActivationMode mode) {
  if (mode == ActivationMode::int8) {
    RunPanels<ByteBlockKernels<Reader>>(share);
  } else {
    RunPanels<FloatBlockKernels<Reader>>(share);
  }
}

HWY_INLINE void RunShare(const Share& share, ActivationMode mode) {
  switch (share.w->type) {
    case ElementType::f32:
      return RunPanels<PlainKernels<F32Reader>>(share);
    case ElementType::bf16:
      return RunPanels<PlainKernels<Bf16Reader>>(share);
    case ElementType::f16:
      return RunPanels<PlainKernels<F16Reader>>(share);
    case ElementType::q8_0:
      return RunBlockPanels<Q80Reader>(share, mode);
    case ElementType::q4_0:
      return RunBlockPanels<Q40Reader>(share, mode);
    case ElementType::q4_1:
      return RunBlockPanels<Q41Reader>(share, mode);
    case ElementType::q5_0:
      return RunBlockPanels<Q50Reader>(share, mode);
    case ElementType::q5_1:
      return RunBlockPanels<Q51Reader>(share, mode);
    case ElementType::q4_k:
      return RunBlockPanels<Q4KReader>(share, mode);
    case ElementType::q5_k:
      return RunBlockPanels<Q5KReader>(share, mode);
    case ElementType::q6_k:
      return RunBlockPanels<Q6KReader>(share, mode);
  }
}

// ---- Whole products -------------------------------------------------------------------------

// Panels of `product` before position `at` of the bytes of all products, where its own bytes begin
// at `base`: the boundary between two workers. Even, so that pairs of panels stay together.
HWY_INLINE std::size_t PanelBoundary(const MatrixView& w, std::size_t base, std::size_t panel_bytes,
                                     std::size_t at) {
  const std::size_t panels = packed_panels(w.rows);
  if (at <= base) return 0;
  if (at >= base + panels * panel_bytes) return panels;
  return (at - base) / panel_bytes / 2 * 2;
}

// Below this much work (bytes of weights times rows) another worker costs more than it saves.
inline constexpr std::size_t kBytesPerWorker = 32 * 1024;

/// y = x W^T for each of `count` products (>= 1), which share x of m rows (x_stride floats apart)
/// and have the same number of inputs. `scratch` holds product_scratch_floats(cols, m, concurrency)
/// floats and y overlaps nothing. Bits do not depend on m, on the executor, or on the layout
/// (product.hpp).
HWY_NOINLINE inline void MatMul(const Product* products, std::size_t count, const float* x,
                                std::size_t x_stride, std::size_t m, ActivationMode mode,
                                ExecutorRef executor, float* scratch) {
  const std::size_t cols = products[0].w.cols;
  Needs needs;
  std::size_t total_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ElementType type = products[i].w.type;
    const bool bytes = IsBlockType(type) && mode == ActivationMode::int8;
    needs.bytes |= bytes;
    needs.floats |= !bytes;
    needs.sums |= !bytes && HasMinimum(type);
    total_bytes += packed_panels(products[i].w.rows) * packed_panel_bytes(type, cols);
  }
  const std::size_t concurrency = executor.concurrency();

  for (std::size_t row = 0; row < m; row += detail::product_row_block) {
    Prepared to;
    to.rows = (std::min)(detail::product_row_block, m - row);
    to.cols = cols;
    const float* rows = x + row * x_stride;
    const bool copy = needs.floats && to.rows > 1;
    const std::size_t blocks = to.rows * ceil_div(cols, 32);
    Carver carver(scratch);
    float* slabs = carver.Take(detail::product_worker_floats * concurrency);
    to.floats = copy ? carver.Take(to.rows * cols) : rows;
    to.sums = carver.Take(blocks);
    if (needs.bytes) {
      to.q = reinterpret_cast<const std::int8_t*>(carver.Take(blocks * 8));
      to.scale = carver.Take(blocks);
      to.scaled_sum = carver.Take(blocks);
      to.minus_sum = reinterpret_cast<const std::int32_t*>(carver.Take(3 * blocks));
    }

    const std::size_t float_tiles =
        copy || needs.sums ? RowTiles(to.rows, kFloatTileRows).count : 0;
    const std::size_t byte_tiles = needs.bytes ? RowTiles(to.rows, kByteTileRows).count : 0;
    const auto prepare = [&](std::size_t tile) HWY_ATTR {
      if (tile < float_tiles) {
        PrepareFloats(rows, x_stride, to, copy, needs.sums, tile);
      } else {
        PrepareBytes(rows, x_stride, to, tile - float_tiles);
      }
    };
    const std::size_t prepare_tiles = float_tiles + byte_tiles;
    if (concurrency > 1 && to.rows * cols > kBytesPerWorker) {
      executor.run(prepare_tiles, [&](std::size_t tile, std::size_t) HWY_ATTR { prepare(tile); });
    } else {
      for (std::size_t tile = 0; tile < prepare_tiles; ++tile) prepare(tile);
    }

    const std::size_t workers = (std::min)(
        concurrency, (std::max)(std::size_t{1}, total_bytes / kBytesPerWorker * to.rows));
    const auto work = [&](std::size_t task, std::size_t worker) HWY_ATTR {
      // Multiplying first would overflow at 2^64 / workers bytes of weights only.
      const std::size_t begin = total_bytes * task / workers;
      const std::size_t end = total_bytes * (task + 1) / workers;
      float* scratch_of_worker = slabs + worker * detail::product_worker_floats;
      std::size_t base = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const Product& product = products[i];
        const std::size_t panel_bytes = packed_panel_bytes(product.w.type, cols);
        const Share share{&product.w,
                          product.y + row * product.y_stride,
                          product.y_stride,
                          PanelBoundary(product.w, base, panel_bytes, begin),
                          PanelBoundary(product.w, base, panel_bytes, end),
                          &to,
                          scratch_of_worker,
                          scratch_of_worker + 2 * detail::product_slab_floats};
        RunShare(share, mode);
        base += packed_panels(product.w.rows) * panel_bytes;
      }
    };
    executor.run(workers, work);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quipu
#include "quipu/simd/contraction_restored-inl.hpp"
HWY_AFTER_NAMESPACE();

#endif  // toggle
