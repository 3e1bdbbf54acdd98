// Model-parallel sizes that do not divide; the message lists those that do.
// FAIL three: model_parallel_size_must_divide<axis::kv_heads, extent_is<8>, ranks_are<3>, legal_sizes_are<1, 2, 4, 8>>
// FAIL five: model_parallel_size_must_divide<axis::kv_heads, extent_is<8>, ranks_are<5>, legal_sizes_are<1, 2, 4, 8>>
// FAIL sixteen: model_parallel_size_must_divide<axis::kv_heads, extent_is<8>, ranks_are<16>, legal_sizes_are<1, 2, 4, 8>>
// FAIL zero: model_parallel_size_must_divide<axis::kv_heads, extent_is<8>, ranks_are<0>, legal_sizes_are<1, 2, 4, 8>>
// FAIL vocabulary: model_parallel_size_must_divide<axis::vocabulary, extent_is<32001>, ranks_are<8>, legal_sizes_are<1>>
#include "quipu/quipu.hpp"

using namespace quipu;
using M = models::llama3_8b;
struct odd_vocabulary : models::llama3_8b {
  static constexpr int vocab_size = 32001;
};

#if defined(QUIPU_FAIL_three)
using Part = sharded<M, 3>::weight<GateProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_five)
using Part = sharded<M, 5>::weight<GateProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_sixteen)
using Part = sharded<M, 16>::weight<GateProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_zero)
using Part = sharded<M, 0>::weight<GateProjection<M>::Weight>;
#elif defined(QUIPU_FAIL_vocabulary)
using Part = sharded<odd_vocabulary, 8>::weight<GateProjection<M>::Weight>;
#else
using Part = sharded<M, 8>::weight<GateProjection<M>::Weight>;
static_assert(Part::out == 1792 && Part::in == 4096);
#endif
static_assert(Part::size > 0);
