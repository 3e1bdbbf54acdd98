// Which compiled-in model a checkpoint belongs to, by its own configuration: architecture and
// numerics decide, names are hints (3.1 and 3.3 70B have one architecture and equal numerics). And
// whether it can be run by the number of model-parallel ranks that is asked for.
// Siblings: checkpoint/model_facts.hpp, engine/model_entry.hpp, test/engine/model_choice_test.cpp.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "quipu/checkpoint/model_facts.hpp"
#include "quipu/engine/model_entry.hpp"
#include "quipu/shape/error.hpp"

namespace quipu {

/// One field in which a checkpoint differs from a type.
struct FieldMismatch {
  std::string field;  ///< Meta's name
  std::string in_file;
  std::string in_type;
};

namespace detail {

inline std::string number_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

inline void compare_count(std::vector<FieldMismatch>& out, const char* field,
                          const std::optional<std::size_t>& file, std::size_t type) {
  if (file && *file != type) out.push_back({field, std::to_string(*file), std::to_string(type)});
}

/// Files keep these as float32 or decimal text: equal as float32 is equal.
inline void compare_number(std::vector<FieldMismatch>& out, const char* field,
                           const std::optional<double>& file, double type) {
  if (file && static_cast<float>(*file) != static_cast<float>(type)) {
    out.push_back({field, number_text(*file), number_text(type)});
  }
}

inline std::string scaling_text(bool scaled) { return scaled ? "scaled (llama3)" : "unscaled"; }

/// "Llama-3.1-8B-Instruct" and "llama3_1_8b" without what people write differently.
inline std::string squeezed(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

}  // namespace detail

/// Every field in which the file's configuration differs from the entry's type; fields that the
/// file does not state are not compared.
inline std::vector<FieldMismatch> compare(const ModelFacts& file, const ModelEntry& entry) {
  std::vector<FieldMismatch> out;
  const ArchitectureFacts& a = entry.architecture;
  if (!file.architecture.empty() && file.architecture != "llama") {
    out.push_back({"architecture", file.architecture, "llama"});
  }
  detail::compare_count(out, "dim", file.dim, a.dim);
  detail::compare_count(out, "n_layers", file.n_layers, a.n_layers);
  detail::compare_count(out, "n_heads", file.n_heads, a.n_heads);
  detail::compare_count(out, "n_kv_heads", file.n_kv_heads, a.n_kv_heads);
  detail::compare_count(out, "head_dim", file.head_dim, a.head_dim);
  detail::compare_count(out, "ffn", file.ffn, a.ffn);
  detail::compare_count(out, "vocab_size", file.vocab_size, a.vocab_size);
  if (file.tied && *file.tied != a.tied_output) {
    out.push_back(
        {"output", *file.tied ? "tied" : "separate", a.tied_output ? "tied" : "separate"});
  }
  detail::compare_number(out, "norm_eps", file.norm_eps, entry.numerics.norm_eps);
  detail::compare_number(out, "rope_theta", file.rope_theta, entry.numerics.rope_theta);
  const auto& scaling = entry.numerics.rope_scaling;
  if (file.rope_scaled && *file.rope_scaled != scaling.has_value()) {
    out.push_back({"rope_scaling", detail::scaling_text(*file.rope_scaled),
                   detail::scaling_text(scaling.has_value())});
  } else if (file.rope_scaling && scaling) {
    detail::compare_number(out, "rope_scaling.factor", file.rope_scaling->factor, scaling->factor);
    detail::compare_number(out, "rope_scaling.low", file.rope_scaling->low, scaling->low);
    detail::compare_number(out, "rope_scaling.high", file.rope_scaling->high, scaling->high);
    detail::compare_number(out, "rope_scaling.original_positions",
                           static_cast<double>(file.rope_scaling->original_positions),
                           scaling->original_positions);
  }
  return out;
}

/// "n_layers: the file has 31, the type has 30; ..."
inline std::string describe(const std::vector<FieldMismatch>& mismatches) {
  std::string text;
  for (const FieldMismatch& m : mismatches) {
    text += (text.empty() ? "" : "; ") + m.field + ": the file has " + m.in_file +
            ", the type has " + m.in_type;
  }
  return text;
}

namespace detail {
/// How far a type is from a file: a model of another kind is farther than one with another number.
inline std::size_t distance(const std::vector<FieldMismatch>& mismatches) {
  std::size_t sum = 0;
  for (const FieldMismatch& m : mismatches) sum += m.field == "rope_scaling" ? 2 : 1;
  return sum;
}
}  // namespace detail

/// The entry whose type the file's configuration agrees with. Several (equal numerics): the one
/// that the file's name hints at, else the first. MismatchError if none agrees: it names the
/// nearest type and every field in which it differs. `wanted` (may be empty) restricts the choice
/// to one name; ArgumentError if there is no such entry.
inline const ModelEntry& choose_model(std::span<const ModelEntry> entries, const ModelFacts& file,
                                      const std::string& path, std::string_view wanted = {}) {
  const ModelEntry* nearest = nullptr;
  const ModelEntry* chosen = nullptr;
  std::vector<FieldMismatch> fewest;
  std::string known;
  for (const ModelEntry& entry : entries) {
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
    if (!wanted.empty() && entry.name != wanted) continue;
    std::vector<FieldMismatch> mismatches = compare(file, entry);
    if (mismatches.empty()) {
      const bool hinted =
          detail::squeezed(file.name).find(detail::squeezed(entry.name)) != std::string::npos;
      if (chosen == nullptr || hinted) chosen = &entry;
      if (hinted) break;
    } else if (nearest == nullptr || detail::distance(mismatches) < detail::distance(fewest)) {
      nearest = &entry;
      fewest = std::move(mismatches);
    }
  }
  if (chosen != nullptr) return *chosen;
  if (nearest == nullptr) {
    raise<ArgumentError>("model '" + std::string(wanted) +
                         "' is not compiled in; there are: " + known);
  }
  if (!wanted.empty()) {
    raise<MismatchError>(path + ": the file does not hold " + std::string(wanted) + ": " +
                         describe(fewest));
  }
  raise<MismatchError>(path + ": no compiled-in model fits (" + known + "). Nearest is " +
                       std::string(nearest->name) + ": " + describe(fewest));
}

/// What a rank has when the model is run by so many. ArgumentError, with the numbers that would do,
/// if the model cannot be cut so or the engine was built without.
inline RankEntry choose_ranks(const ModelEntry& entry, std::size_t ranks) {
  if (ranks == 1) return {1, entry.architecture, entry.make_weights};
  const std::string what = "ranks: " + std::string(entry.name);
  std::string legal, compiled = "1";
  bool possible = false;
  for (const std::size_t n : entry.legal_ranks) {
    legal += (legal.empty() ? "" : ", ") + std::to_string(n);
    possible = possible || n == ranks;
  }
  if (!possible) {
    raise<ArgumentError>(what + " cannot be cut for " + std::to_string(ranks) +
                         " ranks; it can for: " + legal);
  }
  for (const RankEntry& part : entry.rank_entries) {
    if (part.ranks == ranks) return part;
    compiled += ", " + std::to_string(part.ranks);
  }
  raise<ArgumentError>(what + " is not compiled in for " + std::to_string(ranks) +
                       " ranks, but for: " + compiled + "; RANKS " + std::to_string(ranks) +
                       " in quipu_add_engine adds it");
}

}  // namespace quipu
