// Where each catalogue model's constants are published: the record `config` of every card.
// Siblings: config/catalogue.hpp, notation/reference.hpp.
#pragma once

#include "quipu/config/catalogue.hpp"
#include "quipu/notation/reference.hpp"

namespace quipu::notation {

/// The records of a model's configuration; none for a user's own model. E: what they are worth for
/// the card at hand.
template <class M>
struct catalogue_sources {
  static consteval SourceList records(Evidence) { return {}; }
};

namespace detail {
consteval SourceList catalogue_entry(Evidence e, std::string_view claim, const SourceFile& file,
                                     LineRange vocabulary, LineRange entry, Tokens tokens) {
  return {source("config", e, claim, file, {vocabulary, entry}, tokens)};
}
inline constexpr std::string_view full_entry =
    "Meta's catalogue entry of the base model supplies dimensions, head counts, the vocabulary "
    "(LLAMA3_VOCAB_SIZE), the rounding of the hidden width, epsilon, rope_theta and "
    "use_scaled_rope.";
inline constexpr std::string_view tied_entry =
    "Meta's catalogue entry of the base model supplies dimensions, head counts, the vocabulary "
    "(LLAMA3_VOCAB_SIZE), the rounding of the hidden width, epsilon, rope_theta and "
    "use_scaled_rope. That the output matrix is the embedding table, and the scaling factor 32, "
    "are "
    "taken from the released configuration.";
inline constexpr std::string_view wrong_entry =
    "Meta's catalogue lists this model too, but with values that differ from the released "
    "checkpoint's params.json (kv heads or rope_theta); the released values are used here.";
}  // namespace detail

#define QUIPU_CATALOGUE_SOURCE(model, file, claim, vocabulary, entry, ...)                \
  template <>                                                                             \
  struct catalogue_sources<models::model> {                                               \
    static consteval SourceList records(Evidence e) {                                     \
      return detail::catalogue_entry(e, detail::claim, files::file, LineRange vocabulary, \
                                     LineRange entry, {__VA_ARGS__});                     \
    }                                                                                     \
  }
#define QUIPU_LINES(first, last) \
  { first, last }

template <>
struct catalogue_sources<models::llama3_8b> {
  static consteval SourceList records(Evidence e) {
    return {source("config", e,
                   "Meta's catalogue entry of the original Llama 3 8B base model supplies "
                   "dimensions, head counts, the vocabulary (LLAMA3_VOCAB_SIZE, line 19), the "
                   "rounding of the hidden width, epsilon and unscaled rotary frequencies "
                   "(use_scaled_rope: False).",
                   files::catalogue, {{19, 19}, {188, 207}},
                   {"LLAMA3_VOCAB_SIZE", "llama3_8b", "\"use_scaled_rope\": False"})};
  }
};
template <>
struct catalogue_sources<models::llama3_1_8b> {
  static consteval SourceList records(Evidence e) {
    return {
        source("config", e,
               "Meta's catalogue entry of the Llama 3.1 8B base model supplies dimensions, head "
               "counts, the vocabulary (LLAMA3_VOCAB_SIZE, line 19), the rounding of the hidden "
               "width, epsilon, rope_theta and use_scaled_rope: True.",
               files::catalogue, {{19, 19}, {231, 248}},
               {"LLAMA3_VOCAB_SIZE", "llama3_1_8b", "\"use_scaled_rope\": True"})};
  }
};
QUIPU_CATALOGUE_SOURCE(llama2_7b, earlier_catalogue, wrong_entry, QUIPU_LINES(20, 20),
                       QUIPU_LINES(82, 100), "LLAMA2_VOCAB_SIZE", "CoreModelId.llama2_7b");
QUIPU_CATALOGUE_SOURCE(llama2_13b, earlier_catalogue, wrong_entry, QUIPU_LINES(20, 20),
                       QUIPU_LINES(101, 119), "LLAMA2_VOCAB_SIZE", "CoreModelId.llama2_13b");
QUIPU_CATALOGUE_SOURCE(llama2_70b, earlier_catalogue, wrong_entry, QUIPU_LINES(20, 20),
                       QUIPU_LINES(120, 138), "LLAMA2_VOCAB_SIZE", "CoreModelId.llama2_70b");
QUIPU_CATALOGUE_SOURCE(llama3_70b, earlier_catalogue, full_entry, QUIPU_LINES(21, 21),
                       QUIPU_LINES(162, 180), "LLAMA3_VOCAB_SIZE", "CoreModelId.llama3_70b");
QUIPU_CATALOGUE_SOURCE(llama3_1_70b, earlier_catalogue, full_entry, QUIPU_LINES(21, 21),
                       QUIPU_LINES(205, 223), "LLAMA3_VOCAB_SIZE", "CoreModelId.llama3_1_70b");
QUIPU_CATALOGUE_SOURCE(llama3_2_1b, earlier_catalogue, tied_entry, QUIPU_LINES(21, 21),
                       QUIPU_LINES(289, 307), "LLAMA3_VOCAB_SIZE", "CoreModelId.llama3_2_1b");
QUIPU_CATALOGUE_SOURCE(llama3_2_3b, earlier_catalogue, tied_entry, QUIPU_LINES(21, 21),
                       QUIPU_LINES(308, 326), "LLAMA3_VOCAB_SIZE", "CoreModelId.llama3_2_3b");
QUIPU_CATALOGUE_SOURCE(llama3_3_70b, earlier_catalogue, full_entry, QUIPU_LINES(21, 21),
                       QUIPU_LINES(753, 771), "LLAMA3_VOCAB_SIZE",
                       "CoreModelId.llama3_3_70b_instruct");
template <>
struct catalogue_sources<models::llama3_1_405b> {
  static consteval SourceList records(Evidence e) {
    return {
        source("config", e,
               "Meta's catalogue lists 405B twice: with 8 kv heads in 8 files (224-243, the one "
               "taken here) and with 16 kv heads for 16 ranks (264-283). Dimensions, "
               "vocabulary, rounding of the hidden width, epsilon, rope_theta and "
               "use_scaled_rope are in both.",
               files::earlier_catalogue, {{21, 21}, {224, 243}, {264, 283}},
               {"LLAMA3_VOCAB_SIZE", "CoreModelId.llama3_1_405b"})};
  }
};

#undef QUIPU_LINES
#undef QUIPU_CATALOGUE_SOURCE

}  // namespace quipu::notation
