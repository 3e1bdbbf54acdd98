// The ceilings of a processor and single products as plain functions: what a benchmark runs on the
// very target, and in the very translation unit, that the forward pass runs on.
// Siblings: simd/probes-inl.hpp (the functions), engine/ceilings.hpp (times them).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quipu/runtime/executor.hpp"
#include "quipu/simd/product.hpp"

namespace quipu {

/// Functions of one SIMD target. What they return depends on all that they do, so that a compiler
/// keeps it.
struct KernelProbes {
  /// Reads `floats` floats, a multiple of 128, in 1, 4 or 8 streams side by side, prefetching
  /// `ahead` bytes before them (0: not at all).
  float (*read)(const float* from, std::size_t floats, std::size_t ahead,
                std::size_t streams) = nullptr;
  /// Rounds of float32 multiply-adds in registers, in independent chains.
  float (*multiply_adds)(std::size_t rounds) = nullptr;
  /// Rounds of dot products of four bytes each, summed in 32 bits, by the target's own instructions
  /// (ByteDot in simd/compat-inl.hpp), in independent chains: of levels 0..15, and of any signed
  /// bytes, which take twice the instructions where no instruction multiplies them.
  std::int32_t (*nibble_dots)(std::size_t rounds) = nullptr;
  std::int32_t (*byte_dots)(std::size_t rounds) = nullptr;
  std::size_t multiply_add_flops = 0;  ///< of one round: two a lane
  std::size_t byte_dot_ops = 0;        ///< of one round: two a byte
  /// MatMul of simd/product-inl.hpp.
  void (*mat_mul)(const Product* products, std::size_t count, const float* x, std::size_t x_stride,
                  std::size_t m, ActivationMode mode, ExecutorRef executor,
                  float* scratch) = nullptr;
};

}  // namespace quipu
