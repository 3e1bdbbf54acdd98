// Matrix products y = x W^T for every element type and both layouts, threaded: the driver.
//
// Few rows of x: the packed weights stream past once, decoded in registers. More rows: x is
// prepared (packed by tiles, or rounded to int8) in blocks of rows; a slab of a panel of 512 inputs
// is decoded once and serves all rows of the block. Weights that are not packed have each slab
// packed first, so that both layouts give the same bits. Order of sums: product.hpp. Siblings:
// product.hpp (types, scratch), product_kernels-inl.hpp (per kind of weights),
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
#include <utility>

#include "hwy/highway.h"
#include "quipu/simd/product_kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
#include "quipu/simd/contraction_off-inl.hpp"
namespace quipu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Tiles of up to so many rows have kernels that decode the weights in registers, and at most so
// many tiles use them: a slab would be written and read for too little.
inline constexpr std::size_t kDirectRows = kByteTileRows < 4 ? kByteTileRows : 4;
inline constexpr std::size_t kDirectTiles = 2;

template <class Kernels, std::size_t R>
HWY_NOINLINE void RunDirect(const Share& share, std::size_t panel, std::size_t panels,
                            std::size_t begin) {
  constexpr std::size_t kOfPanel = R * panel_outputs;
  for (std::size_t k = 0; k < share.w->cols; k += sum_panel) {
    const std::size_t n = (std::min)(sum_panel, share.w->cols - k);
    Kernels::template Direct<R>(share, panel, panels, begin, k, n, k > 0, share.totals);
  }
  for (std::size_t p = 0; p < panels; ++p)
    WriteTotals(share, share.totals + p * kOfPanel, panel + p * share.apart, 1, begin, R);
}

// Rows few enough for tiles that decode in registers. One row reads its share as streams, each
// a part of its own from end to end, as prefetchers follow best: neighbouring panels, where each
// stream leaps over the others at every end of a panel, read at 0.80 (q4_0, one thread) to 0.98
// times that speed (AVX2, Zen 3; prefetching those starts made no difference).
template <class Kernels, std::size_t... R>
HWY_INLINE void RunFewRows(const Share& share, const RowTiles& tiles, std::index_sequence<R...>) {
  static constexpr void (*table[])(const Share&, std::size_t, std::size_t,
                                   std::size_t) = {&RunDirect<Kernels, R + 1>...};
  std::size_t panel = share.first_panel;
  if (share.x->rows == 1 && Kernels::kRowPanels > 1) {
    Share streams = share;
    streams.apart = (share.last_panel - panel) / Kernels::kRowPanels;
    for (std::size_t i = 0; i < streams.apart; ++i)
      RunDirect<Kernels, 1>(streams, panel + i, Kernels::kRowPanels, 0);
    panel += Kernels::kRowPanels * streams.apart;
  }
  for (; panel < share.last_panel; ++panel) {
    for (std::size_t tile = 0; tile < tiles.count; ++tile) {
      const std::size_t begin = tiles.Begin(tile);
      table[tiles.Begin(tile + 1) - begin - 1](share, panel, 1, begin);
    }
  }
}

// Fetches the packed units of the next slab while tiles work on this one, a part at each.
class NextSlab {
 public:
  HWY_INLINE NextSlab(const Share& share, std::size_t panel, std::size_t panels, std::size_t k,
                      std::size_t steps) {
    if (!share.Packed() || panel >= share.last_panel || k >= share.w->cols) return;
    const PackedUnit unit = packed_unit(share.w->type);
    const std::size_t n = (std::min)(sum_panel, share.w->cols - k);
    at_ = share.PackedAt(panel, k);
    panels_ = (std::min)(panels, share.last_panel - panel);
    panel_bytes_ = share.w->row_stride;
    left_ = ceil_div(n, unit.inputs) * unit.bytes;
    step_ = ceil_div(ceil_div(left_, steps), 64) * 64;
  }
  HWY_INLINE void Fetch() {
    const std::size_t bytes = (std::min)(step_, left_);
    for (std::size_t p = 0; p < panels_; ++p) {
      for (std::size_t i = 0; i < bytes; i += 64) PrefetchNear(at_ + p * panel_bytes_ + i);
    }
    at_ += bytes;
    left_ -= bytes;
  }

 private:
  const std::uint8_t* at_ = nullptr;
  std::size_t panels_ = 0, panel_bytes_ = 0, left_ = 0, step_ = 0;
};

template <class Kernels>
HWY_NOINLINE void RunPanels(const Share& share) {
  constexpr std::size_t kPanels = Kernels::kTilePanels;
  const Prepared& x = *share.x;
  const RowTiles tiles(x.rows, Kernels::kTileRows);
  if (tiles.count <= kDirectTiles && tiles.Begin(1) <= kDirectRows) {
    return RunFewRows<Kernels>(share, tiles, std::make_index_sequence<kDirectRows>());
  }
  const std::size_t cols = share.w->cols;
  const std::size_t tile_totals = kPanels * panel_outputs * x.rows;
  for (std::size_t group = share.first_panel; group < share.last_panel;
       group += detail::product_group_panels) {
    const std::size_t end = (std::min)(group + detail::product_group_panels, share.last_panel);
    for (std::size_t k = 0; k < cols; k += sum_panel) {
      const std::size_t n = (std::min)(sum_panel, cols - k);
      float* totals = share.totals;
      for (std::size_t panel = group; panel < end; panel += kPanels, totals += tile_totals) {
        const std::size_t panels = (std::min)(kPanels, end - panel);
        const std::size_t width = panels * panel_outputs;
        const bool last = panel + kPanels >= end;
        NextSlab next(share, last ? (k + n < cols ? group : end) : panel + kPanels, kPanels,
                      last ? (k + n < cols ? k + n : 0) : k, tiles.count);
        const auto slab = Kernels::Decode(share, panel, panels, k, n);
        for (std::size_t tile = 0; tile < tiles.count; ++tile) {
          const std::size_t begin = tiles.Begin(tile);
          Kernels::Tile(slab, panels, tiles.Begin(tile + 1) - begin, x, begin, k, n, k > 0,
                        totals + begin * width);
          next.Fetch();
        }
      }
    }
    const float* totals = share.totals;
    for (std::size_t panel = group; panel < end; panel += kPanels, totals += tile_totals) {
      WriteTotals(share, totals, panel, (std::min)(kPanels, end - panel), 0, x.rows);
    }
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
// at `base`: the boundary between two workers. Even, so that pairs of panels stay together; by
// fours, the shares of small matrices would differ more.
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
      float* slab = slabs + worker * detail::product_worker_floats;
      float* room = slab + detail::product_slab_floats;
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
                          slab,
                          room,
                          room + detail::product_room_floats};
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
