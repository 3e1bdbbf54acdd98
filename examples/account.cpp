// What Llama 3.1 8B is made of, counted by the compiler. The whole program an application developer
// needs to copy: include, assert, print.
#include <cstdio>
#include <quipu/quipu.hpp>
#include <string_view>

using Model = quipu::models::llama3_1_8b;
static_assert(quipu::parameter_count<Model> == 8'030'261'248);
static_assert(quipu::parameter_count<quipu::VocabularyProjection<Model>> == 525'336'576);

template <class Component>
void line(std::string_view component, std::string_view calculation) {
  std::printf("%-22.*s %-22.*s %13zu %4zu %15zu\n", static_cast<int>(component.size()),
              component.data(), static_cast<int>(calculation.size()), calculation.data(),
              Component::parameters, Component::instances,
              Component::parameters * Component::instances);
}

template <class Component>
void matrix(std::string_view component) {
  using W = typename Component::Weight;
  char calculation[32];
  const int n = std::snprintf(calculation, sizeof calculation, "%zu x %zu", W::in, W::out);
  line<Component>(component, {calculation, static_cast<std::size_t>(n)});
}

int main() {
  using namespace quipu;
  std::printf("%-22s %-22s %13s %4s %15s\n", "component", "calculation", "per instance", "x",
              "total");
  matrix<TokenEmbedding<Model>>("tok_embeddings");
  matrix<QueryProjection<Model>>("attention.wq");
  matrix<KeyProjection<Model>>("attention.wk");
  matrix<ValueProjection<Model>>("attention.wv");
  matrix<OutputProjection<Model>>("attention.wo");
  matrix<GateProjection<Model>>("feed_forward.w1");
  matrix<DownProjection<Model>>("feed_forward.w2");
  matrix<UpProjection<Model>>("feed_forward.w3");
  matrix<RmsNorm<Model, weight_id::attention_norm>>("attention_norm");
  matrix<RmsNorm<Model, weight_id::ffn_norm>>("ffn_norm");
  matrix<RmsNorm<Model>>("norm");
  matrix<VocabularyProjection<Model>>("output");
  line<Transformer<Model>>("model", "sum");
}
