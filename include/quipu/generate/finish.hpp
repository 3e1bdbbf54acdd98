// Why a generation has ended. Siblings: generator.hpp, batch.hpp.
#pragma once

#include <string_view>

namespace quipu {

enum class FinishReason : unsigned char {
  not_finished,
  stop_token,   ///< a token of stop_ids was chosen
  stop_string,  ///< the text has come to one of stop_strings
  max_tokens,   ///< as many were generated as were asked for
  capacity,     ///< the sequence is as long as the session allows
  cancelled     ///< cancel() was called
};

constexpr std::string_view name(FinishReason reason) {
  constexpr std::string_view names[] = {"not finished", "stop token", "stop string",
                                        "max tokens",   "capacity",   "cancelled"};
  return names[static_cast<unsigned char>(reason)];
}

}  // namespace quipu
