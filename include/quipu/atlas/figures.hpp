// Numbers for people: thousands, bytes, shapes, calculations; and what a card costs for given work.
// Siblings: atlas/card_text.hpp, atlas/card_json.hpp, atlas/page.hpp.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "quipu/atlas/cards.hpp"

namespace quipu::atlas {

/// 128,256.
inline std::string grouped(unsigned long long n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3; i -= 3) s.insert(i - 3, 1, ',');
  return s;
}
inline std::string grouped(long long n) {
  return n < 0 ? "-" + grouped(static_cast<unsigned long long>(-n))
               : grouped(static_cast<unsigned long long>(n));
}
inline std::string grouped(std::size_t n) { return grouped(static_cast<unsigned long long>(n)); }

/// Three significant digits with a unit: 1.05 GB (powers of 1000), 1.00 GiB where binary.
inline std::string scaled(double value, double base, const char* const (&units)[6]) {
  int unit = 0;
  while (value >= base && unit < 5) {
    value /= base;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}
/// 1.00 GiB (powers of 1024).
inline std::string bytes_text(std::size_t n) {
  static constexpr const char* units[6] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(static_cast<double>(n), 1024, units);
}
/// 15.01 GFLOP (powers of 1000).
inline std::string flops_text(std::size_t n) {
  static constexpr const char* units[6] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  return scaled(static_cast<double>(n), 1000, units);
}

/// A number below 1000 in three digits, and what follows it: 1.23, 45.6, 789.
inline std::string three_digits(double value, const std::string& unit) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f ", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  return text + unit;
}

/// 1.23 GB/s, 456 MFLOP/s (powers of 1000).
inline std::string rate_text(double per_second, const std::string& unit) {
  static constexpr const char* prefixes[6] = {"", "k", "M", "G", "T", "P"};
  int step = 0;
  while (per_second >= 999.5 && step < 5) {
    per_second /= 1000;
    ++step;
  }
  return three_digits(per_second, prefixes[step] + unit);
}

/// 1.23 ms, 45.6 µs.
inline std::string seconds_text(double seconds) {
  const bool whole = seconds >= 0.9995, milli = seconds >= 0.9995e-3;
  return three_digits(seconds * (whole ? 1 : milli ? 1e3 : 1e6), whole ? "s" : milli ? "ms" : "µs");
}

/// 12.3 % of a share of 1.
inline std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

/// A number without trailing zeros: 1e-05 is 1e-05, 500000 is 500000.
inline std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", x);
  return text;
}

/// Which shape is meant: T positions at once, or one.
enum class Phase : unsigned char { prefill, decode };

/// [B batch, T positions, 4096 d].
inline std::string shape_text(const ShapeFacts& shape, Phase phase) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const DimFacts& d = shape[i];
    if (i > 0) out += ", ";
    const bool one = d.extent == dynamic && phase == Phase::decode && d.symbol == "T";
    const std::string extent = one                   ? "1"
                               : d.extent == dynamic ? std::string(d.symbol)
                                                     : std::to_string(d.extent);
    out += extent + " " + std::string(one || d.extent == 1 ? d.singular : d.name);
  }
  return out + "]";
}

/// The elements of a shape for a call of the forward pass.
inline std::size_t elements(const ShapeFacts& shape, const Work& work) {
  std::size_t n = 1;
  for (const DimFacts& d : shape) {
    const std::size_t extent = d.extent != dynamic ? d.extent
                               : d.symbol == "B"   ? work.batch
                               : d.symbol == "S"
                                   ? checked_add(work.start, work.positions, "positions")
                                   : work.positions;
    n = checked_mul(n, extent, "elements of a tensor");
  }
  return n;
}

/// The type in which a tensor's elements pass, as cards name it.
inline std::string_view carrier_name(notation::Carrier carrier) {
  constexpr std::string_view names[] = {"activation type", "float32", "token id", "complex64"};
  return names[static_cast<unsigned char>(carrier)];
}

/// 4,096 × 128,256, or 4,096 for a vector; × 32 where a line stands for several instances.
inline std::string calculation(const notation::AccountLine& line) {
  std::string out = line.times > 1 ? grouped(line.times) + " × " : "";
  out += line.out == 1 ? grouped(line.in) : grouped(line.in) + " × " + grouped(line.out);
  return line.counted ? out : out + " (the embedding table, counted above)";
}

/// "attention.wq" for a line inside a group.
inline std::string line_label(const notation::AccountLine& line) {
  return line.group.empty() ? std::string(line.label)
                            : std::string(line.group) + "." + std::string(line.label);
}

/// What one of `ranks` ranks holds of a card's parameters.
inline std::size_t parameters_of_rank(const Card& card, std::size_t ranks) {
  std::size_t n = 0;
  for (const notation::AccountLine& line : card.account) n += line.parameters_of_rank(ranks);
  return n;
}

/// FLOPs per byte moved; 0 where nothing is moved.
inline double intensity(const Cost& cost) {
  return cost.bytes() == 0 ? 0
                           : static_cast<double>(cost.flops) / static_cast<double>(cost.bytes());
}

/// The operand of a role, or null.
inline const Operand* operand_of(const Card& card, notation::Role role) {
  for (const Operand& o : card.operands) {
    if (o.role == role) return &o;
  }
  return nullptr;
}

/// "270–271, 305–308".
inline std::string lines_text(const notation::Lines& lines) {
  std::string out;
  for (const notation::LineRange& r : lines) {
    out += out.empty() ? "" : ", ";
    out += std::to_string(r.first);
    if (r.last != r.first) out += "–" + std::to_string(r.last);
  }
  return out;
}

/// "model.py" of a path.
inline std::string_view file_name(const notation::SourceFile& file) {
  const std::size_t slash = file.path.rfind('/');
  return slash == std::string_view::npos ? file.path : file.path.substr(slash + 1);
}

/// The lines on the web, at the pinned revision.
inline std::string url(const notation::Source& s) {
  return "https://github.com/" + std::string(s.file.repository) + "/blob/" +
         std::string(s.file.revision) + "/" + std::string(s.file.path) + "#L" +
         std::to_string(s.lines[0].first) + "-L" + std::to_string(s.lines[s.lines.size() - 1].last);
}

/// Where a card stands: the blocks and the component around it.
inline std::vector<std::string> breadcrumb(const ModelFacts& facts, const Card& card) {
  std::vector<std::string> out;
  if (card.id.substr(0, 8) == "layers.N") {
    out.push_back(std::to_string(facts.n_layers) + " independent transformer blocks");
  }
  if (!card.inside.empty()) out.emplace_back(card.inside);
  return out;
}

/// The names of a card's weight in the files of others; empty where the tied output has none.
struct FileNames {
  std::string meta, hugging_face, gguf;
};
inline FileNames file_names(const Card& card) {
  if (!card.has_weight) return {};
  const bool in_block = card.id.substr(0, 7) == "layers.";
  FileNames names;
  names.meta = std::string(card.id) + ".weight";
  if (card.shares_embedding) return names;
  names.hugging_face =
      (in_block ? "model.layers.N." : "") + std::string(card.weight.hugging_face) + ".weight";
  names.gguf = (in_block ? "blk.N." : "") + std::string(card.weight.gguf) + ".weight";
  return names;
}

/// A card's parameters as counted from the tensors of a checkpoint, all instances together.
struct Counted {
  std::string file;
  std::size_t parameters = 0;
};

/// True if a count is what the type says.
inline bool agrees(const Card& card, const Counted& counted) {
  return counted.parameters == card.parameters * card.instances;
}

/// On what a card's count rests: the configuration alone, or (file not empty) a checkpoint too.
inline std::string basis(const Card& card, const Counted& counted) {
  if (card.parameters == 0) return "";
  if (counted.file.empty()) {
    return "Derived from the configured dimensions; no checkpoint was counted for this card.";
  }
  return "Checked against " + counted.file + ": " + grouped(counted.parameters) +
         " parameters counted from its tensors, " +
         (agrees(card, counted)
              ? "as the type says."
              : "but the type says " + grouped(card.parameters * card.instances) + ".");
}

/// How the weight lies in files.
inline std::string layout(const Card& card) {
  if (!card.has_weight) return {};
  if (card.weight.is_vector) return "A vector: [" + grouped(card.weight.in) + "].";
  std::string out = "Held output by input, [out, in] = [" + grouped(card.weight.out) + ", " +
                    grouped(card.weight.in) + "]";
  if (card.id == "tok_embeddings") return out + ": one row a token.";
  return out + "; the equation applies its transpose, " + grouped(card.weight.in) + " × " +
         grouped(card.weight.out) + ".";
}

/// How the card's weights split over model-parallel ranks, one sentence; empty without weights.
inline std::string sharding_text(const ModelFacts& facts, const Card& card) {
  if (card.parameters == 0) return {};
  std::string sizes;
  for (std::size_t i = 0; i < facts.parallel_size_count; ++i) {
    sizes += (i == 0 ? "" : ", ") + std::to_string(facts.parallel_sizes[i]);
  }
  const std::size_t most = facts.parallel_sizes[facts.parallel_size_count - 1];
  std::string how = "its tensors are split as each says";
  if (card.has_weight) {
    const auto& w = card.weight;
    switch (w.shard) {
      case ShardAxis::none:
        return "Whole on every rank (sizes: " + sizes + ").";
      case ShardAxis::rows:
        how = "split by output rows, [" + grouped(w.out / most) + ", " + grouped(w.in) + "] a rank";
        break;
      case ShardAxis::columns:
        how = "split by input columns, [" + grouped(w.out) + ", " + grouped(w.in / most) +
              "] a rank, partial results added";
        break;
    }
  }
  return "Over " + std::to_string(most) + (most == 1 ? " rank: " : " ranks: ") + how + "; " +
         grouped(parameters_of_rank(card, most)) + " parameters a rank (sizes: " + sizes + ").";
}

}  // namespace quipu::atlas
