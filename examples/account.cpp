// What Llama 3.1 8B is made of, counted by the compiler: include, assert, print.
#include <cstdio>
#include <quipu/quipu.hpp>

using namespace quipu;
using Model = models::llama3_1_8b;
static_assert(parameter_count<Model> == 8'030'261'248);
static_assert(parameter_count<VocabularyProjection<Model>> == 525'336'576);

template <class Component>
void line(const char* name) {
  using W = typename Component::Weight;
  std::printf("%-16s %6zu x %-8zu %12zu %4zu %14zu\n", name, W::in, W::out, Component::parameters,
              Component::instances, Component::parameters * Component::instances);
}

int main() {
  std::puts("component          in x out        parameters    x          total");
  line<TokenEmbedding<Model>>("tok_embeddings");
  line<QueryProjection<Model>>("attention.wq");
  line<KeyProjection<Model>>("attention.wk");
  line<ValueProjection<Model>>("attention.wv");
  line<OutputProjection<Model>>("attention.wo");
  line<GateProjection<Model>>("feed_forward.w1");
  line<DownProjection<Model>>("feed_forward.w2");
  line<UpProjection<Model>>("feed_forward.w3");
  line<RmsNorm<Model, weight_id::attention_norm>>("attention_norm");
  line<RmsNorm<Model, weight_id::ffn_norm>>("ffn_norm");
  line<RmsNorm<Model>>("norm");
  line<VocabularyProjection<Model>>("output");
  std::printf("%-48s %20zu\n", "model", parameter_count<Model>);
}
