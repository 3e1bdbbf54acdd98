// The names of all tensors of a block and of the top level, under the three schemes.
#include "quipu/model/naming.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "quipu/config/catalogue.hpp"
#include "quipu/model/transformer.hpp"

namespace {

using namespace quipu;

struct Names {
  std::string meta, hugging_face, gguf;
  bool operator==(const Names&) const = default;
};
void PrintTo(const Names& n, std::ostream* out) {
  *out << n.meta << " | " << n.hugging_face << " | " << n.gguf;
}

// Two layers are enough to see the index.
struct two_layers : models::llama3_8b {
  static constexpr int n_layers = 2;
};

std::vector<Names> block(const std::string& n) {
  return {
      {"layers." + n + ".attention.wq.weight", "model.layers." + n + ".self_attn.q_proj.weight",
       "blk." + n + ".attn_q.weight"},
      {"layers." + n + ".attention.wk.weight", "model.layers." + n + ".self_attn.k_proj.weight",
       "blk." + n + ".attn_k.weight"},
      {"layers." + n + ".attention.wv.weight", "model.layers." + n + ".self_attn.v_proj.weight",
       "blk." + n + ".attn_v.weight"},
      {"layers." + n + ".attention.wo.weight", "model.layers." + n + ".self_attn.o_proj.weight",
       "blk." + n + ".attn_output.weight"},
      {"layers." + n + ".feed_forward.w1.weight", "model.layers." + n + ".mlp.gate_proj.weight",
       "blk." + n + ".ffn_gate.weight"},
      {"layers." + n + ".feed_forward.w2.weight", "model.layers." + n + ".mlp.down_proj.weight",
       "blk." + n + ".ffn_down.weight"},
      {"layers." + n + ".feed_forward.w3.weight", "model.layers." + n + ".mlp.up_proj.weight",
       "blk." + n + ".ffn_up.weight"},
      {"layers." + n + ".attention_norm.weight", "model.layers." + n + ".input_layernorm.weight",
       "blk." + n + ".attn_norm.weight"},
      {"layers." + n + ".ffn_norm.weight", "model.layers." + n + ".post_attention_layernorm.weight",
       "blk." + n + ".ffn_norm.weight"},
  };
}

TEST(Naming, EveryTensorInTheOrderOfTheStateDict) {
  std::vector<Names> expected{
      {"tok_embeddings.weight", "model.embed_tokens.weight", "token_embd.weight"}};
  for (const char* n : {"0", "1"}) {
    for (Names& names : block(n)) expected.push_back(std::move(names));
  }
  expected.push_back({"norm.weight", "model.norm.weight", "output_norm.weight"});
  expected.push_back({"output.weight", "lm_head.weight", "output.weight"});

  Transformer<two_layers>::Weights weights;
  std::vector<Names> found;
  for_each_weight(weights, [&](const WeightPlace& place, auto& weight) {
    using Id = typename std::remove_cvref_t<decltype(weight)>::id;
    found.push_back({tensor_name<Id>(NamingScheme::meta, place),
                     tensor_name<Id>(NamingScheme::hugging_face, place),
                     tensor_name<Id>(NamingScheme::gguf, place)});
  });
  EXPECT_EQ(found, expected);
}

TEST(Reflection, MembersAreReachedByReferenceAndInOrder) {
  Transformer<two_layers>::Weights weights;
  std::vector<std::string> names;
  for_each_member(weights, [&](const char* name, auto& member) {
    names.push_back(name);
    if constexpr (requires { member.view; }) member.view.rows = names.size();
  });
  EXPECT_EQ(names, (std::vector<std::string>{"tok_embeddings", "layers", "norm", "output"}));
  EXPECT_EQ(weights.tok_embeddings.view.rows, 1u);
  EXPECT_EQ(weights.norm.view.rows, 3u);
  EXPECT_EQ(weights.output.view.rows, 4u);

  const auto& constant = weights;
  std::size_t visited = 0;
  for_each_weight(constant, [&](const WeightPlace&, const auto&) { ++visited; });
  EXPECT_EQ(visited, 1 + 2 * 9 + 2u);
}

}  // namespace
