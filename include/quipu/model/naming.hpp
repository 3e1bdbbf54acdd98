// The names of a weight in Meta, Hugging Face and GGUF files, made from its place in the struct of
// weights and the stems of its identity. No list of names is written anywhere.
// Sibling: reflect/weight.hpp. Test: test/model/naming_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "quipu/model/naming_scheme.hpp"
#include "quipu/reflect/reflect.hpp"

namespace quipu {

/// The tensor's name under a scheme, from the stems that its identity has.
inline std::string tensor_name(NamingScheme scheme, const WeightPlace& place,
                               std::string_view hugging_face, std::string_view gguf) {
  if (scheme == NamingScheme::meta) return place.path + ".weight";
  const bool is_gguf = scheme == NamingScheme::gguf;
  std::string text;
  if (place.layer != WeightPlace::no_layer) {
    text = (is_gguf ? "blk." : "model.layers.") + std::to_string(place.layer) + ".";
  }
  text += is_gguf ? gguf : hugging_face;
  return text + ".weight";
}

/// The same for a weight's identity.
template <class Id>
std::string tensor_name(NamingScheme scheme, const WeightPlace& place) {
  return tensor_name(scheme, place, Id::hugging_face, Id::gguf);
}

}  // namespace quipu
