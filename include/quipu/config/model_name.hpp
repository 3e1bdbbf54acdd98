// The name of a model: the last component of its type, so that a name cannot disagree with its
// type.
#pragma once

#include <string_view>

namespace quipu {

namespace detail {
template <class M>
constexpr std::string_view type_text() {
  return __PRETTY_FUNCTION__;  // GCC: "... [with M = a::b; std::string_view = ...]"; Clang: "... [M
                               // = a::b]"
}
}  // namespace detail

/// "llama3_1_8b" for quipu::models::llama3_1_8b.
template <class M>
constexpr std::string_view model_name() {
  std::string_view text = detail::type_text<M>();
  text.remove_prefix(text.find("M = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t colon = text.rfind(':');
  return colon == std::string_view::npos ? text : text.substr(colon + 1);
}

}  // namespace quipu
