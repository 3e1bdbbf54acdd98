// What a user writes first (the design's own example), for the compile budget.
#include <quipu/quipu.hpp>

using Model = quipu::models::llama3_1_8b;
static_assert(quipu::parameter_count<Model> == 8'030'261'248);
static_assert(quipu::parameter_count<quipu::VocabularyProjection<Model>> == 525'336'576);
static_assert(quipu::extent_of<quipu::axis::vocabulary, quipu::VocabularyProjection<Model>::Out> ==
              128'256);
static_assert(quipu::extent_of<quipu::axis::d, quipu::VocabularyProjection<Model>::In> == 4'096);
static_assert(quipu::kv_cache_bytes<Model, quipu::bf16>(/*batch=*/1, /*positions=*/1) == 131'072);

struct narrow : quipu::models::llama3_8b {
  static constexpr int dim = 2048;
};
static_assert(quipu::dims<narrow>::head_dim == 64 && quipu::dims<narrow>::ffn == 7'168);
