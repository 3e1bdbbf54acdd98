// The weights of any model as a list: every tensor's names, extents and where its view is kept.
//
// The list is made by visiting the struct of weights; loading, verifying, inspecting and converting
// work on it and are compiled once, whatever the number of models.
// Siblings: reflect/reflect.hpp, engine/weight_loader.hpp.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "quipu/model/naming.hpp"
#include "quipu/model/transformer.hpp"

namespace quipu {

/// One tensor of a model.
struct TensorSlot {
  std::string path;                  ///< Meta's path, "layers.0.attention.wq"; ids are made of it
  std::array<std::string, 3> names;  ///< by NamingScheme, with ".weight"
  std::size_t layer = 0;             ///< WeightPlace::no_layer outside the blocks
  std::size_t out = 0, in = 0;       ///< logical extents; a vector has out 1
  bool vector = false;
  ShardAxis shard = ShardAxis::none;
  std::size_t rotary_head_dim = 0;  ///< wq, wk: rows of a head that Hugging Face permutes; else 0
  bool shares_embedding = false;    ///< the output matrix of a tied model
  bool embedding = false;           ///< the embedding table
  MatrixView* view = nullptr;       ///< the member of the struct of weights; null in a mere list

  const std::string& name_in(NamingScheme scheme) const {
    return names[static_cast<std::size_t>(scheme)];
  }
  std::size_t elements() const { return out * in; }
};

namespace detail {
/// What the type says of one weight, as values.
struct WeightFacts {
  std::string_view gguf, hugging_face;
  std::size_t out, in, rotary_head_dim;
  ShardAxis shard;
  bool vector, shares_embedding, embedding;
};

inline void add_slot(std::vector<TensorSlot>& slots, const WeightPlace& place, const WeightFacts& w,
                     MatrixView* view) {
  slots.push_back({place.path,
                   {tensor_name(NamingScheme::meta, place, w.hugging_face, w.gguf),
                    tensor_name(NamingScheme::hugging_face, place, w.hugging_face, w.gguf),
                    tensor_name(NamingScheme::gguf, place, w.hugging_face, w.gguf)},
                   place.layer,
                   w.out,
                   w.in,
                   w.vector,
                   w.shard,
                   w.rotary_head_dim,
                   w.shares_embedding,
                   w.embedding,
                   view});
}
}  // namespace detail

/// The slots of a struct of weights, in the order of Meta's state dict. They point into `weights`.
template <class A>
std::vector<TensorSlot> tensor_slots(TransformerWeights<A>& weights) {
  std::vector<TensorSlot> slots;
  for_each_weight(weights, [&](const WeightPlace& place, auto& weight) {
    using W = std::remove_cvref_t<decltype(weight)>;
    using Id = typename W::id;
    constexpr bool is_output = std::is_same_v<Id, weight_id::output>;
    constexpr bool rotary = requires { Id::rotary_rows; };
    detail::add_slot(
        slots, place,
        {Id::gguf, Id::hugging_face, W::out, W::in, rotary ? A::head_dim : 0, Id::shard,
         W::is_vector, is_output && A::tied_output, std::is_same_v<Id, weight_id::tok_embeddings>},
        &weight.view);
  });
  return slots;
}

/// A struct of weights without its type, kept alive with its slots.
struct WeightsHolder {
  std::shared_ptr<void> weights;
  std::vector<TensorSlot> slots;
};

template <class A>
WeightsHolder make_weights() {
  auto weights = std::make_shared<TransformerWeights<A>>();
  WeightsHolder holder{weights, tensor_slots(*weights)};
  return holder;
}

}  // namespace quipu
