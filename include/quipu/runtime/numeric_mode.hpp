// The two numeric modes of a forward pass.
#pragma once

namespace quipu {

/// f32: activations and sums in float32. bf16: the same buffers, rounded to bf16 (ties to even) at
/// the points where Meta's bf16 run holds a bf16 tensor.
enum class NumericMode : unsigned char { f32, bf16 };

}  // namespace quipu
