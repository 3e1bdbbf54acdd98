// Scratch memory of a forward pass, computed before anything is allocated.
//
// The plan is arithmetic over the architecture, the rows of a pass, the capacity of the cache and
// the number of workers, usable in constant expressions. What a session allocates is what the plan
// says. Siblings: runtime/arena.hpp, simd/transformer-inl.hpp, test/runtime/forward_plan_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "quipu/runtime/arena.hpp"
#include "quipu/runtime/rotary_table.hpp"
#include "quipu/simd/attention.hpp"
#include "quipu/simd/product.hpp"

namespace quipu {

/// Where each activation of a pass stands in scratch memory; [rows, ...] row-major float32.
struct ForwardPlan {
  std::size_t rows = 0;      ///< tokens of a pass, at most
  std::size_t capacity = 0;  ///< positions of the cache
  std::size_t workers = 0;
  ArenaSlot<float> stream;    ///< the residual stream [rows, dim]
  ArenaSlot<float> normed;    ///< what a norm gives [rows, dim]
  ArenaSlot<float> update;    ///< what attention or feed-forward adds [rows, dim]
  ArenaSlot<float> q, k, v;   ///< [rows, q_width], [rows, kv_width] twice
  ArenaSlot<float> merged;    ///< weighted values with heads merged [rows, q_width]
  ArenaSlot<float> gate, up;  ///< [rows, ffn]
  ArenaSlot<float> rotary;    ///< cosines and sines of each row's position
  ArenaSlot<float> product;   ///< of the matrix products
  ArenaSlot<float> attention;
  ArenaPlan arena;
};

/// The plan of passes of at most `rows` tokens with a cache of `capacity` positions. A is an
/// architecture type's facts: anything with dim, q_width and so on as members works. SizeError if a
/// size does not fit.
template <class Facts>
constexpr ForwardPlan forward_plan(const Facts& a, std::size_t rows, std::size_t capacity,
                                   std::size_t workers) {
  const std::size_t q_width = checked_mul(a.n_heads, a.head_dim, "scratch plan");
  const std::size_t kv_width = checked_mul(a.n_kv_heads, a.head_dim, "scratch plan");
  ForwardPlan plan;
  plan.rows = rows;
  plan.capacity = capacity;
  plan.workers = workers;
  const auto activation = [&](std::size_t width) {
    return plan.arena.add_array<float>(checked_mul(rows, width, "scratch plan"));
  };
  plan.stream = activation(a.dim);
  plan.normed = activation(a.dim);
  plan.update = activation(a.dim);
  plan.rotary = activation(rotary_row_floats(a.head_dim));
  plan.product = plan.arena.add_array<float>(
      product_scratch_floats((std::max)({a.dim, q_width, a.ffn}), rows, workers));
  // Attention and feed-forward are never alive together.
  const std::size_t shared = plan.arena.mark();
  plan.q = activation(q_width);
  plan.k = activation(kv_width);
  plan.v = activation(kv_width);
  plan.merged = activation(q_width);
  plan.attention =
      plan.arena.add_array<float>(attention_scratch_floats(a.head_dim, capacity, workers));
  plan.arena.rewind(shared);
  plan.gate = activation(a.ffn);
  plan.up = activation(a.ffn);
  return plan;
}

}  // namespace quipu
