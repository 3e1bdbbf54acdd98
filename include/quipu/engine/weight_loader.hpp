// From the tensors of a checkpoint to the weights of a model type: every tensor is verified by
// name, extents and element type before the first byte is used, then packed or viewed in place.
//
// Siblings: engine/tensor_slots.hpp (what the type wants), checkpoint/tensor_source.hpp (what the
// files have), simd/packing.hpp. Tests: test/engine/weight_loader_test.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/engine/loaded_weights.hpp"
#include "quipu/engine/model_choice.hpp"
#include "quipu/engine/model_entry.hpp"
#include "quipu/engine/options.hpp"
#include "quipu/runtime/huge_pages.hpp"
#include "quipu/runtime/run_catching.hpp"
#include "quipu/simd/packing.hpp"

namespace quipu {

namespace detail {

/// Tensors that files have beside the weights: constants that the type computes itself.
inline bool is_auxiliary(std::string_view tensor) {
  return tensor == "rope_freqs.weight" || tensor == "rope.freqs" ||
         tensor.ends_with("rotary_emb.inv_freq");
}

/// "[128256, 4096]"
inline std::string shape_text(std::size_t out, std::size_t in, bool vector) {
  return vector ? "[" + std::to_string(in) + "]"
                : "[" + std::to_string(out) + ", " + std::to_string(in) + "]";
}

/// The dimension of the type that an extent comes from, for messages about wrong shapes.
inline std::string extent_origin(const TensorSlot& slot, const ArchitectureFacts& a) {
  const std::string_view p = slot.path;
  if (p.ends_with(".wk") || p.ends_with(".wv"))
    return "n_kv_heads " + std::to_string(a.n_kv_heads) + " * head_dim " +
           std::to_string(a.head_dim);
  if (p.ends_with(".wq") || p.ends_with(".wo"))
    return "n_heads " + std::to_string(a.n_heads) + " * head_dim " + std::to_string(a.head_dim);
  if (p.find("feed_forward.w") != p.npos) return "ffn " + std::to_string(a.ffn);
  if (slot.vector) return "dim " + std::to_string(a.dim);
  return "vocab_size " + std::to_string(a.vocab_size);
}

/// Judges the kind of cut of a sharded tensor; the embedding's by its extents (older checkpoints
/// cut its columns).
inline ShardAxis shard_of(const Checkpoint& file, const TensorSlot& slot,
                          const std::string& tensor) {
  if (file.parts == 1) return ShardAxis::none;
  if (slot.embedding) {
    if (const TensorRecord* shard = file.find(tensor, 0)) {
      if (const auto axis = shard_axis_of(*shard, slot.out, slot.in, file.parts)) return *axis;
    }
  }
  return slot.shard;
}

/// GGUF's factors that divide the frequencies are constants of the type: compared, not used.
inline void verify_rope_factors(const Checkpoint& file, const NumericFacts& numerics) {
  const TensorRecord* record = file.find("rope_freqs.weight");
  if (record == nullptr) return;
  const std::string what = file.path + ": tensor rope_freqs.weight";
  const std::size_t n = numerics.inverse_frequencies.size();
  if (record->type != ElementType::f32 || record->elements() != n) {
    raise<MismatchError>(what + ": expected " + std::to_string(n) + " values f32, found " +
                         std::to_string(record->elements()) + " " + record->type_name);
  }
  for (std::size_t i = 0; i < n; ++i) {
    float factor;
    std::memcpy(&factor, record->data + 4 * i, 4);
    const float expected = numerics.unscaled_frequencies[i] / numerics.inverse_frequencies[i];
    // Both are quotients of float32 values computed in two ways: a few units in the last place.
    if (!(std::fabs(factor - expected) <= 1e-5f * expected)) {
      raise<MismatchError>(what + ": rope_scaling: factor " + std::to_string(i) +
                           ": the file has " + number_text(static_cast<double>(factor)) +
                           ", the type has " + number_text(static_cast<double>(expected)));
    }
  }
}

/// MismatchError if the embedding shows that Meta's folder lacks its last parts: a shard is cut for
/// more of them than there are. (Parts missing between others show when the folder is opened.)
inline void verify_part_count(const Checkpoint& file, const TensorSlot& embedding) {
  const TensorRecord* shard = file.find(embedding.name_in(file.naming));
  if (file.format != FileFormat::torch_pth || shard == nullptr || shard->extents.size() != 2)
    return;
  const std::size_t rows = shard->extents[0], cols = shard->extents[1];
  std::size_t cut = 1;  // Llama 3 cuts the embedding's rows, older checkpoints its columns
  if (cols == embedding.in && rows > 0 && embedding.out % rows == 0) cut = embedding.out / rows;
  if (rows == embedding.out && cols > 0 && embedding.in % cols == 0) cut = embedding.in / cols;
  if (cut <= file.parts) return;
  const auto part_name = [](std::size_t part) {
    const std::string digits = std::to_string(part);
    return "consolidated." + (digits.size() < 2 ? "0" + digits : digits) + ".pth";
  };
  const std::string last = cut - file.parts > 1 ? " to " + part_name(cut - 1) : "";
  raise<MismatchError>(file.path + ": " + part_name(file.parts) + last + " missing: tensor " +
                       shard->name + " is cut into " + std::to_string(cut) + " parts (" +
                       shape_text(rows, cols, false) + " of " +
                       shape_text(embedding.out, embedding.in, false) + "), the folder has " +
                       std::to_string(file.parts));
}

/// One verified tensor, ready to be read.
struct PlannedTensor {
  TensorSlot* slot = nullptr;
  TensorSource source;
};

inline PlannedTensor verified(const Checkpoint& file, const ModelEntry& entry, TensorSlot& slot) {
  const std::string& tensor = slot.name_in(file.naming);
  const std::string what = file.path + ": tensor " + tensor;
  if (file.find(tensor) == nullptr) {
    raise<MismatchError>(what + " is missing; " + std::string(entry.name) +
                         " needs it with the shape " + shape_text(slot.out, slot.in, slot.vector));
  }
  const TensorRecord& record = *file.find(tensor);
  if (!record.type) {
    raise<MismatchError>(what + ": the element type \"" + record.type_name +
                         "\" is none that quipu computes with");
  }
  TensorSource source = file.source(tensor, shard_of(file, slot, tensor));
  if ((record.extents.size() == 1) != slot.vector || source.rows() != slot.out ||
      source.cols() != slot.in) {
    raise<MismatchError>(what + ": the file has the shape " +
                         shape_text(source.rows(), source.cols(), record.extents.size() == 1) +
                         ", " + std::string(entry.name) + " has " +
                         shape_text(slot.out, slot.in, slot.vector) + " (" +
                         extent_origin(slot, entry.architecture) + ")");
  }
  if (file.naming == NamingScheme::hugging_face && slot.rotary_head_dim != 0) {
    source = source.reordered(RowOrder::meta_from_hugging_face, slot.rotary_head_dim);
  }
  return {&slot, std::move(source)};
}

/// Whether two matrices have the same type, extents and bytes, put together from however many
/// parts.
inline bool same_matrix(const TensorSource& a, const TensorSource& b) {
  if (a.type() != b.type() || a.rows() != b.rows() || a.cols() != b.cols()) return false;
  std::vector<std::byte> row_a(a.row_bytes()), row_b(a.row_bytes());
  for (std::size_t row = 0; row < a.rows(); ++row) {
    a.read_rows(row, 1, row_a.data());
    b.read_rows(row, 1, row_b.data());
    if (row_a != row_b) return false;
  }
  return true;
}

}  // namespace detail

/// Every tensor of the model found and verified; nothing is read yet. MismatchError or FormatError
/// name the tensor, what the file has and what the type has; a tensor that the type does not know
/// is an error too, for a file that is accepted holds exactly this model.
inline std::vector<detail::PlannedTensor> verify_tensors(const Checkpoint& file,
                                                         const ModelEntry& entry,
                                                         std::vector<TensorSlot>& slots) {
  std::vector<detail::PlannedTensor> plan;
  std::unordered_set<std::string_view> known;
  for (TensorSlot& slot : slots) {
    const std::string& tensor = slot.name_in(file.naming);
    known.insert(tensor);
    if (slot.shares_embedding) {
      // Meta's files of a tied model may repeat the matrix; it must then be the same one.
      bool repeated = false;
      for (std::size_t part = 0; part < file.parts; ++part) {
        repeated = repeated || file.find(tensor, part) != nullptr;
      }
      // The embedding stands first in the plan.
      if (repeated &&
          !detail::same_matrix(file.source(tensor, detail::shard_of(file, slot, tensor)),
                               plan.front().source)) {
        raise<MismatchError>(
            file.path + ": tensor " + tensor + ": " + std::string(entry.name) +
            " shares this matrix with the embedding, but the file has another one");
      }
      continue;
    }
    if (slot.embedding) detail::verify_part_count(file, slot);
    plan.push_back(detail::verified(file, entry, slot));
  }
  for (const TensorRecord& record : file.tensors()) {
    if (!known.contains(record.name) && !detail::is_auxiliary(record.name)) {
      raise<MismatchError>(file.path + ": tensor " + record.name + ": " + std::string(entry.name) +
                           " has no such tensor");
    }
  }
  detail::verify_rope_factors(file, entry.numerics);
  return plan;
}

namespace detail {

/// A table that is only looked up stays in rows, packed files included: its rows are read one at a
/// time.
inline bool is_looked_up_only(const TensorSlot& slot, const ModelEntry& entry) {
  return slot.embedding && !entry.architecture.tied_output;
}

/// Bytes of a matrix that one task packs: enough to hide the cost of handing a task out and of
/// giving its pages back, few enough to share and to keep what is resident twice small.
inline constexpr std::size_t packed_per_task = std::size_t{1} << 20;

inline void pack_source(const Checkpoint& file, const TensorSource& source, std::byte* out,
                        ExecutorRef executor) {
  const std::size_t panels = packed_panels(source.rows());
  const std::size_t panel_bytes = packed_panel_bytes(source.type(), source.cols());
  const std::size_t fitting = (std::max)(std::size_t{1}, packed_per_task / panel_bytes);
  const std::size_t per_task = (std::min)(fitting, ceil_div(panels, 8));
  auto in_place = source.view();
  if (in_place && in_place->layout == Layout::panels) in_place.reset();  // at an odd address
  const auto release = [&](const std::byte* begin, std::size_t bytes) {
    file.release(begin, bytes);
  };
  // Rows that do not stand in one piece are put together first, in memory that may be lacking.
  run_catching(executor, ceil_div(panels, per_task), [&](std::size_t task, std::size_t) {
    const std::size_t first = task * per_task;
    const std::size_t last = (std::min)(panels, first + per_task);
    const std::size_t first_row = first * panel_outputs;
    const std::size_t rows = (std::min)(source.rows(), last * panel_outputs) - first_row;
    if (in_place) {
      pack(*in_place, out, first, last);
    } else {
      std::vector<std::byte> copy(rows * source.row_bytes());
      source.read_rows(first_row, rows, copy.data());
      pack(row_major_view(copy.data(), source.type(), rows, source.cols()),
           out + first * panel_bytes, 0, last - first);
    }
    source.for_each_range(first_row, rows, release);
  });
  // Pages that two tasks share, or (rows in another order) that a task read beyond its own.
  source.for_each_range(0, source.rows(), release);
}

}  // namespace detail

/// The ranks whose parts are loaded: `count` of them from `first` on, of as many as `part` says.
struct RankParts {
  RankEntry part;
  std::size_t first = 0;
  std::size_t count = 1;
};

namespace detail {

inline bool is_aligned(const MatrixView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % memory_alignment == 0;
}

/// Bytes that a matrix, or a rank's part of it, takes when it is packed at load: none if it is used
/// where it stands.
inline std::size_t bytes_to_pack(const TensorSource& source, const TensorSlot& slot,
                                 bool in_place_wanted) {
  const auto in_place = source.view();
  if (slot.vector) return 0;
  if (in_place && (in_place->layout == Layout::panels ? is_aligned(*in_place) : in_place_wanted))
    return 0;
  return round_up(packed_bytes(source.type(), slot.out, slot.in), memory_alignment,
                  "packed weights");
}

/// Loads one matrix or vector, or a rank's part of it, into `loaded`. What is packed goes to
/// `packed`, which is moved on.
inline void load_tensor(LoadedWeights& loaded, const Checkpoint& file, const TensorSource& source,
                        const TensorSlot& slot, bool in_place_wanted, std::byte*& packed,
                        ExecutorRef executor) {
  const std::size_t stored = source.rows() * source.row_bytes();
  const auto in_place = source.view();
  if (slot.vector && in_place && is_aligned(*in_place) && source.type() == ElementType::f32) {
    *slot.view = *in_place;
    loaded.mapped_bytes += stored;
  } else if (slot.vector) {
    AlignedBuffer values(checked_mul(slot.in, sizeof(float), "bytes of a norm"), "norm weights");
    std::vector<std::byte> raw(source.row_bytes());
    source.read_rows(0, 1, raw.data());
    dequantize_row(source.type(), raw.data(), reinterpret_cast<float*>(values.data()), slot.in);
    *slot.view = row_major_view(values.data(), ElementType::f32, 1, slot.in);
    loaded.owned.push_back(std::move(values));
  } else if (const std::size_t bytes = bytes_to_pack(source, slot, in_place_wanted); bytes > 0) {
    pack_source(file, source, packed, executor);
    *slot.view = packed_view(packed, source.type(), slot.out, slot.in);
    packed += bytes;
  } else {
    *slot.view = *in_place;
    loaded.mapped_bytes += in_place->layout == Layout::panels
                               ? packed_bytes(source.type(), slot.out, slot.in)
                               : stored;
  }
}

}  // namespace detail

/// Loads the weights of `entry` from a checkpoint, for each of `parts` what that rank has of them.
/// Matrices are packed in parallel (and the pages of the map released as it goes), or used in place
/// where options.pack is false and their bytes stand in one piece in the right order; norms are
/// widened to float32. ArgumentError if a row of quantised blocks cannot be cut for so many ranks.
inline LoadedWeights load_weights(const Checkpoint& file, const ModelEntry& entry,
                                  const RankParts& parts, const LoadOptions& options,
                                  ExecutorRef executor) {
  LoadedWeights loaded;
  WeightsHolder whole = entry.make_weights();
  std::vector<detail::PlannedTensor> plan = verify_tensors(file, entry, whole.slots);
  for (std::size_t r = 0; r < parts.count; ++r) loaded.ranks.push_back(parts.part.make_weights());
  const std::size_t ranks = parts.part.ranks;
  // Of a matrix that is cut a rank has its share; a vector is the same one for all.
  const auto stored = [&](const detail::PlannedTensor& tensor) {
    const std::size_t bytes = tensor.source.rows() * tensor.source.row_bytes();
    return tensor.slot->shard == ShardAxis::none ? bytes : bytes / ranks * parts.count;
  };
  // f(the part of a rank, its slot, whether it may stay where it stands) for each part of a tensor.
  const auto for_each_part = [&](const detail::PlannedTensor& tensor, auto&& f) {
    const TensorSlot& slot = *tensor.slot;
    const bool in_place = !options.pack || detail::is_looked_up_only(slot, entry);
    const auto place = static_cast<std::size_t>(tensor.slot - whole.slots.data());
    for (std::size_t r = 0; r < parts.count; ++r) {
      f(tensor.source.slice(slot.shard, parts.first + r, ranks), loaded.ranks[r].slots[place],
        in_place);
    }
  };
  // One piece of memory for all that is packed: the large pages of a piece for each matrix would
  // leave a megabyte of small ones at its ends, which took a quarter of the time to load Q4_0.
  std::size_t to_pack = 0;
  for (const auto& tensor : plan) {
    loaded.weight_bytes += stored(tensor);
    for_each_part(tensor, [&](const TensorSource& source, const TensorSlot& slot, bool in_place) {
      to_pack = checked_add(to_pack, detail::bytes_to_pack(source, slot, in_place));
    });
  }
  AlignedBuffer packed(to_pack, "packed weights");
  advise_huge_pages(packed);
  std::byte* next = packed.data();
  std::size_t done = 0;
  for (const auto& tensor : plan) {
    const ElementType type = tensor.source.type();
    if (std::find(loaded.types.begin(), loaded.types.end(), type) == loaded.types.end()) {
      loaded.types.push_back(type);
    }
    for_each_part(tensor, [&](const TensorSource& source, const TensorSlot& slot, bool in_place) {
      detail::load_tensor(loaded, file, source, slot, in_place, next, executor);
    });
    done += stored(tensor);
    if (options.progress) options.progress("loading weights", done, loaded.weight_bytes);
  }
  if (to_pack > 0) loaded.owned.push_back(std::move(packed));
  for (WeightsHolder& rank : loaded.ranks) {
    const MatrixView* embedding = nullptr;
    for (TensorSlot& slot : rank.slots) {
      if (slot.embedding) embedding = slot.view;
      if (slot.shares_embedding) *slot.view = *embedding;
    }
  }
  for (const AlignedBuffer& buffer : loaded.owned) loaded.owned_bytes += buffer.size();
  return loaded;
}

}  // namespace quipu
