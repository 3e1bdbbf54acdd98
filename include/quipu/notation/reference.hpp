// The files that cards cite, at their pinned revisions, and records shared by several components.
//
// Models without rotary scaling are defined by meta-llama/llama3; those with it by
// meta-llama/llama-models, whose model.py is cited first and llama3's beside it. Models of other
// publishers share the architecture: for them the same lines are context, not evidence.
// Siblings: notation/source.hpp, notation/catalogue_sources.hpp.
#pragma once

#include "quipu/config/dims.hpp"
#include "quipu/config/model_name.hpp"
#include "quipu/notation/source.hpp"

namespace quipu::notation {

namespace files {
inline constexpr SourceFile llama3_model{"meta-llama/llama3", "llama/model.py", "a0940f9cf706",
                                         302};
inline constexpr SourceFile llama3_generation{"meta-llama/llama3", "llama/generation.py",
                                              "a0940f9cf706"};
inline constexpr SourceFile llama_models_model{"meta-llama/llama-models", "models/llama3/model.py",
                                               "a9c89c471f79"};
inline constexpr SourceFile catalogue{"meta-llama/llama-models", "models/sku_list.py",
                                      "0e0b8c519242"};
inline constexpr SourceFile earlier_catalogue{"meta-llama/llama-models", "models/sku_list.py",
                                              "8c88b8c0d75d"};
inline constexpr SourceFile fairscale_layers{"facebookresearch/fairscale",
                                             "fairscale/nn/model_parallel/layers.py",
                                             "50b06d251730", 0, "0.4.13"};
}  // namespace files

/// True if the reference that defines the model is the one with scaled rotary frequencies.
template <class M>
inline constexpr bool has_scaled_rope =
    std::is_same_v<quipu::detail::bare<decltype(quipu::detail::scaling_of<M>())>, llama3_scaling>;

/// True for the catalogue's own types. A model that a user derives from one inherits its names, and
/// is not the model that they name.
template <class M>
inline constexpr bool is_catalogue_model =
    quipu::detail::type_text<M>().find("quipu::models::") != std::string_view::npos;

namespace detail {
template <class M>
constexpr bool is_metas_llama3() {
  if constexpr (is_catalogue_model<M> && requires { M::core_model_id; }) {
    return std::string_view(M::core_model_id).substr(0, 6) == "llama3";
  } else {
    return false;
  }
}
}  // namespace detail

/// Direct evidence, where the model is one of those that the cited file defines; else context.
template <class M>
inline constexpr Evidence direct_for = detail::is_metas_llama3<M>() ? Evidence::direct
                                                                    : Evidence::contextual;

/// A statement of the reference in both of its files: lines in llama3's model.py and in
/// llama-models'.
struct Passage {
  std::string_view id;
  Evidence evidence;
  std::string_view claim;
  Lines llama3;
  Lines llama_models;
  Tokens tokens;
};

/// The records of some passages for model M: see the head of the file.
template <class M>
consteval SourceList cite(std::initializer_list<Passage> passages) {
  SourceList list;
  for (const Passage& p : passages) {
    const Evidence e = detail::is_metas_llama3<M>() ? p.evidence : Evidence::contextual;
    if constexpr (has_scaled_rope<M>) {
      list.push(source(p.id, e, p.claim, files::llama_models_model, p.llama_models, p.tokens));
    }
    list.push(source(p.id, e, p.claim, files::llama3_model, p.llama3, p.tokens));
  }
  return list;
}

/// One list after another.
constexpr SourceList operator+(SourceList a, const SourceList& b) {
  for (const Source& s : b) a.push(s);
  return a;
}

/// What queries, keys and values as tensors have in common: three projections of one input.
template <class M>
consteval SourceList query_key_value() {
  return cite<M>({{"attn-qkv",
                   Evidence::contextual,
                   "Three bias-free projections of the same normalised input are read as heads.",
                   {{100, 120}, {154, 154}, {156, 158}},
                   {{118, 138}, {172, 176}},
                   {"ColumnParallelLinear", "self.wq(x)"}}});
}

// How FairScale stores and applies the three kinds of layers. The reference's requirements.txt
// names fairscale without a version; 0.4.13 is what was read.

/// Of wq, wk, wv, w1, w3 and output.
consteval SourceList column_parallel_storage() {
  return {
      source("linear-storage", Evidence::dependency_context,
             "FairScale 0.4.13 keeps a column-parallel weight output features first and hands it "
             "to F.linear. The reference does not pin FairScale's version.",
             files::fairscale_layers, {{258, 262}, {286, 290}},
             {"output_size_per_partition", "copy_to_model_parallel_region"})};
}
/// Of wo and w2.
consteval SourceList row_parallel_storage() {
  return {source("linear-storage", Evidence::dependency_context,
                 "FairScale 0.4.13 keeps a row-parallel weight output features first, hands it to "
                 "F.linear, and then adds the ranks' partial results (382). The reference does not "
                 "pin FairScale's version.",
                 files::fairscale_layers, {{342, 349}, {373, 387}},
                 {"input_size_per_partition", "reduce_from_model_parallel_region"})};
}
/// Of tok_embeddings.
consteval SourceList vocabulary_parallel_storage() {
  return {source("embedding-storage", Evidence::dependency_context,
                 "FairScale 0.4.13 gives each rank a range of the vocabulary's rows, masks tokens "
                 "outside it and adds the ranks' results. The reference does not pin FairScale's "
                 "version.",
                 files::fairscale_layers, {{116, 123}, {129, 149}},
                 {"vocab_start_index", "input_mask", "reduce_from_model_parallel_region"})};
}

}  // namespace quipu::notation
