// Tensor by tensor against the reference: test/data/golden/params has the shapes of every
// architecture that Meta's catalogue file listed in any of its revisions.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "quipu/quipu.hpp"
#include "support/golden.hpp"

namespace {

using namespace quipu;
using nlohmann::json;
using Extents = std::vector<std::size_t>;

// Architectures of that file which the library's catalogue has otherwise or not at all.
struct llama2_7b_listed : models::llama3_8b {  // as listed: 8 kv heads, theta 500000
  static constexpr int vocab_size = 32000;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.3};
};
struct llama2_7b_first : llama2_7b_listed {
  static constexpr int vocab_size = 128256;
};
struct llama2_13b_listed : models::llama2_13b {
  static constexpr int n_kv_heads = 8;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.3};
};
struct llama2_13b_first : llama2_13b_listed {
  static constexpr int vocab_size = 128256;
};
struct llama2_70b_chat_listed : models::llama2_70b {
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.3};
};
struct llama2_70b_chat_first : llama2_70b_chat_listed {
  static constexpr int vocab_size = 128256;
};
struct llama3_1_405b_mp16 : models::llama3_1_405b {
  static constexpr int n_kv_heads = 16;
};
struct guard_3_1b : models::llama3_2_1b {  // its `hidden_dim` is a key that the reference ignores
  static constexpr int n_layers = 12;
  static constexpr ffn_rule ffn{.multiple_of = 256, .ffn_dim_multiplier = 1.0};
};

template <class M>
bool described_by(const json& args) {
  const auto number = [&](const char* key, double otherwise) {
    return args.contains(key) ? args.at(key).get<double>() : otherwise;
  };
  return args.at("dim") == M::dim && args.at("n_layers") == M::n_layers &&
         args.at("n_heads") == M::n_heads && args.at("n_kv_heads") == M::n_kv_heads &&
         args.at("vocab_size") == M::vocab_size &&
         number("multiple_of", 256) == static_cast<double>(M::ffn.multiple_of) &&
         number("ffn_dim_multiplier", 1) == M::ffn.ffn_dim_multiplier &&
         args.at("norm_eps") == M::norm_eps;
}

/// The tensor as a file has it: a vector has one extent.
template <class Weight>
Extents extents_of() {
  if constexpr (Weight::is_vector) {
    return {Weight::in};
  } else {
    return {Weight::out, Weight::in};
  }
}

template <class M>
void compare(const json& counts) {
  using Weights = typename Transformer<M>::Weights;
  const auto weights = std::make_unique<Weights>();
  std::set<std::string> expected{"tok_embeddings.weight", "norm.weight", "output.weight"};
  for (std::size_t n = 0; n < dims<M>::n_layers; ++n) {
    for (const auto& [name, shape] : counts.at("layer_shapes").items()) {
      expected.insert("layers." + std::to_string(n) + "." + name);
    }
  }
  std::size_t total = 0;
  for_each_weight(*weights, [&](const WeightPlace& place, auto& weight) {
    using W = std::remove_cvref_t<decltype(weight)>;
    const std::string name = tensor_name<typename W::id>(NamingScheme::meta, place);
    EXPECT_EQ(expected.erase(name), 1u) << name << " is not a tensor of the reference, or twice";
    total += W::size;
    Extents shape;
    if (place.layer != WeightPlace::no_layer) {
      shape =
          counts.at("layer_shapes").at(name.substr(name.find('.', 7) + 1)).template get<Extents>();
    } else if (name == "norm.weight") {
      shape = {counts.at("final_norm").template get<std::size_t>()};
    } else {
      shape = counts.at(name == "output.weight" ? "output_shape" : "embedding_shape")
                  .template get<Extents>();
    }
    EXPECT_EQ(extents_of<W>(), shape) << name;
  });
  EXPECT_TRUE(expected.empty()) << *expected.begin() << " of the reference was not visited";
  EXPECT_EQ(total, counts.at("total_untied"));
  EXPECT_EQ(parameter_count<M>, counts.at(dims<M>::tied_output ? "total_tied" : "total_untied"));
  EXPECT_EQ(parameter_count<Block<M>>, counts.at("per_layer_total"));
  EXPECT_EQ(parameter_count<TokenEmbedding<M>>, counts.at("embedding"));
  EXPECT_EQ(parameter_count<VocabularyProjection<M>>, counts.at("output"));
  EXPECT_EQ(dims<M>::ffn, counts.at("ffn_hidden"));
  EXPECT_EQ(dims<M>::head_dim, counts.at("head_dim"));
}

/// Compares with the first of the types that has the file's arguments; false if none has.
template <class... M>
bool compare_with_one_of(const json& architecture) {
  return ((described_by<M>(architecture.at("arch_args")) &&
           (compare<M>(architecture.at("counts")), true)) ||
          ...);
}

TEST(ParameterCounts, EveryListedArchitectureTensorByTensor) {
  QUIPU_GOLDEN_OR_SKIP(path, "params/parameter_counts.json");
  const json file = json::parse(std::ifstream(path));
  ASSERT_EQ(file.at("architectures").size(), 23u);
  using namespace quipu::models;
  for (const json& architecture : file.at("architectures")) {
    SCOPED_TRACE(architecture.at("names").dump());
    EXPECT_TRUE(
        (compare_with_one_of<llama3_8b, llama3_70b, llama3_1_405b, llama3_2_1b, llama3_2_3b,
                             llama2_70b, llama2_7b_listed, llama2_7b_first, llama2_13b_listed,
                             llama2_13b_first, llama2_70b_chat_listed, llama2_70b_chat_first,
                             llama3_1_405b_mp16, guard_3_1b>(architecture)))
        << "no type has the arguments " << architecture.at("arch_args");
  }
}

}  // namespace
