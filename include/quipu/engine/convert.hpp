// From any checkpoint of a compiled-in model to a GGUF file or a folder with safetensors, tensor by
// tensor: the file read is mapped, a few megabytes of rows are held at a time.
//
// The result appears under its name only when it is whole. Where element types stay as they are,
// bytes are copied (rows of q and k in the order of the layout), so the result computes the same
// bits. Siblings: engine/convert_configuration.hpp, engine/convert_vocabulary.hpp,
// engine/weight_loader.hpp (verifies). Tests: test/engine/convert_test.cpp.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/checkpoint/safetensors_writer.hpp"
#include "quipu/engine/convert_configuration.hpp"
#include "quipu/engine/convert_vocabulary.hpp"
#include "quipu/engine/vocabulary_loader.hpp"
#include "quipu/engine/weight_loader.hpp"
#include "quipu/simd/quantize.hpp"

namespace quipu {

/// What is written:
///   gguf          one file with configuration and tokenizer
///   hugging_face  a folder: model.safetensors with Hugging Face's names, config.json
///   meta          a folder: model.safetensors with Meta's names and order of rows, params.json
enum class WriteLayout : unsigned char { gguf, hugging_face, meta };

struct ConvertOptions {
  WriteLayout layout = WriteLayout::gguf;
  std::optional<ElementType> type;         ///< of matrices; not given: as they are stored
  std::optional<ElementType> output_type;  ///< of the output matrix (tied: the embedding) instead
  bool overwrite = false;                  ///< an existing file (never a folder) is replaced
  Progress progress;
};

/// What was written.
struct ConvertReport {
  std::size_t tensors = 0, bytes = 0;
  bool exact = true;  ///< no element changed its value
  std::vector<std::string> notes;
};

namespace detail {

/// The largest magnitude that rounds to a finite value of the type: of f16 and bf16 the float32
/// before the tie with the infinity, which is even.
inline float largest_finite(ElementType type) {
  return type == ElementType::f16    ? 65519.996f
         : type == ElementType::bf16 ? 0x1.fefffep127f
                                     : 3.4028235e38f;
}

/// Whether the float16 scales and minimums of a row of blocks are finite: a weight that is a finite
/// float32 may need a scale past float16's range.
inline bool block_scales_finite(ElementType type, const std::byte* row, std::size_t cols) {
  const ElementTypeInfo& facts = info(type);
  const std::size_t first = type == ElementType::q6_k ? 208 : 0;
  const bool has_minimum = type == ElementType::q4_1 || type == ElementType::q5_1 ||
                           type == ElementType::q4_k || type == ElementType::q5_k;
  const auto* block = reinterpret_cast<const std::uint8_t*>(row);
  for (std::size_t i = 0; i < cols; i += facts.block_elements, block += facts.block_bytes) {
    if (!std::isfinite(load_half(block + first))) return false;
    if (has_minimum && !std::isfinite(load_half(block + 2))) return false;
  }
  return true;
}

/// A tensor to be written: where it comes from and what it becomes.
struct WrittenTensor {
  std::string name;
  TensorSource source;
  ElementType type = ElementType::f32;
  bool vector = false;
  std::vector<std::byte> values;  ///< of a tensor that is computed, not read; else empty

  std::vector<std::size_t> extents() const {
    if (!values.empty()) return {values.size() / sizeof(float)};
    return vector ? std::vector{source.cols()} : std::vector{source.rows(), source.cols()};
  }
};

/// Whether each value of `from` is one of `to`.
constexpr bool holds_all(ElementType from, ElementType to) {
  return from == to || to == ElementType::f32;
}

/// Of a matrix whose rows are no whole blocks of the type wanted: the nearest type that fits.
constexpr ElementType fitting_type(ElementType wanted, std::size_t cols) {
  if (row_is_whole_blocks(wanted, cols)) return wanted;
  const ElementType small = wanted == ElementType::q4_k   ? ElementType::q5_0
                            : wanted == ElementType::q5_k ? ElementType::q5_1
                                                          : ElementType::q8_0;
  return row_is_whole_blocks(small, cols) ? small : ElementType::f16;
}

/// Calls append(span of bytes) with the rows of a tensor in its new type, some megabytes at a time.
template <class Append>
void convert_rows(const Checkpoint& file, const WrittenTensor& tensor, ExecutorRef executor,
                  Append&& append) {
  constexpr std::size_t batch_bytes = std::size_t{4} << 20;
  constexpr std::size_t rows_per_task = 16;
  const TensorSource& source = tensor.source;
  const std::size_t cols = source.cols(), in_bytes = source.row_bytes();
  const std::size_t out_bytes = row_bytes(tensor.type, cols);
  const std::size_t batch = (std::max)(std::size_t{1}, batch_bytes / (cols * sizeof(float)));
  std::vector<std::byte> in(batch * in_bytes), out(batch * out_bytes);
  std::vector<float> widened(batch * cols);
  const float limit = largest_finite(tensor.type);
  const bool blocks = info(tensor.type).block_elements > 1;
  for (std::size_t first = 0; first < source.rows(); first += batch) {
    const std::size_t rows = (std::min)(batch, source.rows() - first);
    if (source.type() == tensor.type) {
      source.read_rows(first, rows, out.data());
      append(std::span(std::as_const(out)).first(rows * out_bytes));
      continue;
    }
    std::atomic<bool> fits{true};
    executor.run(ceil_div(rows, rows_per_task), [&](std::size_t task, std::size_t) {
      const std::size_t end = (std::min)(rows, (task + 1) * rows_per_task);
      for (std::size_t row = task * rows_per_task; row < end; ++row) {
        float* x = widened.data() + row * cols;
        source.read_rows(first + row, 1, in.data() + row * in_bytes);
        dequantize_row(source.type(), in.data() + row * in_bytes, x, cols);
        for (std::size_t i = 0; i < cols; ++i) {
          if (std::isfinite(x[i]) ? !(std::fabs(x[i]) <= limit) : blocks) fits = false;
        }
        if (!fits) continue;
        std::byte* const to = out.data() + row * out_bytes;
        quantize_row(tensor.type, x, to, cols);
        if (blocks && !block_scales_finite(tensor.type, to, cols)) fits = false;
      }
    });
    if (!fits) {
      raise<MismatchError>(file.path + ": tensor " + source.name() + ": a value in rows " +
                           std::to_string(first) + " to " + std::to_string(first + rows - 1) +
                           " is too large for " + std::string(name(tensor.type)) +
                           " or not finite");
    }
    append(std::span(std::as_const(out)).first(rows * out_bytes));
  }
  source.for_each_range(0, source.rows(), [&](const std::byte* begin, std::size_t bytes) {
    file.release(begin, bytes);
  });
}

/// A folder under construction beside its final name; nothing is left of it without commit().
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path path) : path_(std::move(path)) {
    if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
    std::error_code code;
    if (std::filesystem::exists(path_, code) && !std::filesystem::is_empty(path_, code)) {
      raise<ArgumentError>(path_.string() + ": expected the name of a new or empty folder");
    }
    temporary_ = path_;
    temporary_ += ".partial-" + std::to_string(::getpid());
    if (!std::filesystem::create_directory(temporary_, code)) {
      raise<FileError>(temporary_.string() + ": cannot create the folder: " +
                       (code ? code.message() : "it is there already"));
    }
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
  }
  std::string file(const char* file_name) const { return (temporary_ / file_name).string(); }
  void commit() {
    std::error_code code;
    std::filesystem::rename(temporary_, path_, code);
    if (code) raise<FileError>(path_.string() + ": cannot take this name: " + code.message());
    temporary_.clear();
  }

 private:
  std::filesystem::path path_, temporary_;
};

/// One conversion: plans every tensor, then writes.
class Conversion {
 public:
  Conversion(const Checkpoint& file, const ModelEntry& entry, const ConvertOptions& options,
             ExecutorRef executor)
      : file_(file), entry_(entry), options_(options), executor_(executor) {
    holder_ = entry.make_weights();
    const TensorSource* embedding = nullptr;
    std::vector<PlannedTensor> planned = verify_tensors(file, entry, holder_.slots);
    for (const PlannedTensor& tensor : planned) {
      plan(*tensor.slot, tensor.source);
      if (tensor.slot->embedding) embedding = &tensor.source;
    }
    for (const TensorSlot& slot : holder_.slots) {
      // Meta's own files of a tied model hold the shared matrix twice.
      if (slot.shares_embedding && options.layout == WriteLayout::meta) plan(slot, *embedding);
    }
    if (options.layout == WriteLayout::gguf) plan_rope_factors();
  }

  ConvertReport write(const std::string& out) {
    for (const Fallback& fallback : fallbacks_) {
      report_.notes.push_back(fallback.tensor + " and " + std::to_string(fallback.others) +
                              " more " + fallback.why);
    }
    options_.layout == WriteLayout::gguf ? write_gguf(out) : write_folder(out);
    return std::move(report_);
  }

 private:
  bool gguf() const { return options_.layout == WriteLayout::gguf; }
  NamingScheme scheme() const {
    return gguf()                                         ? NamingScheme::gguf
           : options_.layout == WriteLayout::hugging_face ? NamingScheme::hugging_face
                                                          : NamingScheme::meta;
  }

  void plan(const TensorSlot& slot, TensorSource source) {
    const bool last = slot.path == "output" || (slot.embedding && entry_.architecture.tied_output);
    const std::string& out_name = slot.name_in(scheme());
    ElementType type = options_.type.value_or(source.type());
    if (last && options_.output_type) type = *options_.output_type;
    if (gguf() && slot.vector) {
      type = ElementType::f32;  // as llama.cpp wants norms
    } else if (gguf() && !row_is_whole_blocks(type, slot.in)) {
      const ElementType fits = fitting_type(type, slot.in);
      note_fallback(out_name, slot.in, type, fits);
      type = fits;
    }
    if (!gguf() && safetensors_name(type).empty()) {
      raise<ArgumentError>(file_.path + ": tensor " + out_name +
                           ": safetensors cannot hold the type " + std::string(name(type)) +
                           "; choose bf16, f16 or f32");
    }
    // verify_tensors hands rows out in Meta's order.
    if (scheme() == NamingScheme::hugging_face && slot.rotary_head_dim != 0) {
      source = file_.naming == NamingScheme::hugging_face
                   ? source.reordered(RowOrder::stored, slot.rotary_head_dim)
                   : source.reordered(RowOrder::hugging_face_from_meta, slot.rotary_head_dim);
    }
    report_.exact = report_.exact && holds_all(source.type(), type);
    if (info(source.type()).block_elements > 1 && info(type).block_elements > 1 &&
        source.type() != type && !requantised_) {
      requantised_ = true;
      report_.notes.push_back("block-quantised weights are quantised again (" +
                              std::string(name(source.type())) + " to " + std::string(name(type)) +
                              "): a conversion from the original weights loses less");
    }
    if (!slot.vector) matrix_type_ = matrix_type_.value_or(type);
    if (slot.path.ends_with("attention.wq")) matrix_type_ = type;
    tensors_.push_back({out_name, std::move(source), type, slot.vector, {}});
  }

  // One note for all matrices of one width.
  void note_fallback(const std::string& tensor, std::size_t cols, ElementType wanted,
                     ElementType fits) {
    const std::string why = "become " + std::string(name(fits)) + ": rows of " +
                            std::to_string(cols) + " are not whole blocks of " +
                            std::string(name(wanted));
    for (Fallback& fallback : fallbacks_) {
      if (fallback.why != why) continue;
      ++fallback.others;
      return;
    }
    fallbacks_.push_back({tensor, why, 0});
  }

  // The factors that divide the frequencies: the file's own, or what the type computes.
  void plan_rope_factors() {
    if (!entry_.numerics.rope_scaling) return;
    std::vector<float> factors;
    for (std::size_t i = 0; i < entry_.numerics.inverse_frequencies.size(); ++i) {
      factors.push_back(entry_.numerics.unscaled_frequencies[i] /
                        entry_.numerics.inverse_frequencies[i]);
    }
    if (const TensorRecord* own = file_.find("rope_freqs.weight")) {
      std::memcpy(factors.data(), own->data, own->bytes);
    }
    const auto bytes = std::as_bytes(std::span(factors));
    tensors_.push_back(
        {"rope_freqs.weight", {}, ElementType::f32, true, {bytes.begin(), bytes.end()}});
  }

  template <class Writer>
  void write_tensors(Writer& writer) {
    for (const WrittenTensor& tensor : tensors_) {
      const auto append = [&](std::span<const std::byte> bytes) {
        writer.append(tensor.name, bytes);
        report_.bytes += bytes.size();
      };
      tensor.values.empty() ? convert_rows(file_, tensor, executor_, append)
                            : append(tensor.values);
      ++report_.tensors;
    }
    writer.finish();
  }

  WriteProgress progress() const {
    if (!options_.progress) return {};
    return
        [this](std::size_t done, std::size_t total) { options_.progress("writing", done, total); };
  }

  void write_gguf(const std::string& out) {
    std::error_code ignored;
    if (!options_.overwrite && std::filesystem::exists(out, ignored)) {
      raise<ArgumentError>(out + ": there is a file of this name already");
    }
    GgufMetadata metadata;
    if (file_.gguf) {
      for (const GgufEntry& entry : file_.gguf->metadata()) {
        // What depends on the element types or on the file is written anew.
        if (entry.key != "general.alignment" && entry.key != "general.file_type" &&
            entry.key != "general.quantization_version" && !entry.key.starts_with("split."))
          metadata.copy(entry);
      }
    }
    set_configuration(metadata, file_, entry_, *matrix_type_);
    if (!file_.gguf) {
      const std::optional<VocabularyData> vocabulary = vocabulary_of(file_);
      if (vocabulary && vocabulary->tokens.size() == entry_.architecture.vocab_size) {
        set_vocabulary(metadata, with_merges(*vocabulary));
      } else {
        metadata.set("tokenizer.ggml.model", std::string_view("no_vocab"));
        report_.notes.push_back(
            vocabulary
                ? vocabulary->source + " has " + std::to_string(vocabulary->tokens.size()) +
                      " tokens, the model " + std::to_string(entry_.architecture.vocab_size) +
                      ": written without a tokenizer"
                : std::string("written without a tokenizer: there is no tokenizer.model "
                              "beside the weights"));
      }
    }
    std::vector<GgufPlan> plan;
    for (const WrittenTensor& tensor : tensors_) {
      plan.push_back({tensor.name, tensor.type, tensor.extents()});
    }
    GgufWriter writer(out, metadata, plan, progress());
    write_tensors(writer);
  }

  void write_folder(const std::string& out) {
    NewFolder folder(out);
    const bool meta = options_.layout == WriteLayout::meta;
    std::string text;
    if (meta) {
      text = params_json(entry_);
    } else {
      const std::optional<VocabularyData> vocabulary = vocabulary_of(file_);
      text = config_json(file_, entry_, *matrix_type_, vocabulary ? vocabulary->bos : std::nullopt,
                         vocabulary ? vocabulary->eos : std::nullopt);
    }
    AtomicFile configuration(folder.file(meta ? "params.json" : "config.json"));
    configuration.write(text);
    configuration.commit();
    copy_tokenizer(folder);
    std::vector<SafetensorsPlan> plan;
    for (const WrittenTensor& tensor : tensors_) {
      plan.push_back({tensor.name, safetensors_name(tensor.type), tensor.extents()});
    }
    SafetensorsWriter writer(folder.file("model.safetensors"), plan, {{"format", "pt"}},
                             progress());
    write_tensors(writer);
    folder.commit();
  }

  // The files of a tokenizer that stand beside the weights go with them.
  void copy_tokenizer(const NewFolder& folder) {
    namespace fs = std::filesystem;
    std::error_code code;
    fs::path from(file_.path);
    if (!fs::is_directory(from, code)) from = from.parent_path();
    bool copied = false;
    for (const char* file_name :
         {"tokenizer.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
          "generation_config.json", "chat_template.jinja"}) {
      // Hugging Face repositories of Meta's models have tokenizer.model in a subfolder only.
      fs::path found = from / file_name;
      if (file_name == std::string_view("tokenizer.model") && !fs::is_regular_file(found, code))
        found = from / "original" / file_name;
      if (file_.gguf || !fs::is_regular_file(found, code)) continue;
      if (!fs::copy_file(found, folder.file(file_name), code)) {
        raise<FileError>(folder.file(file_name) + ": cannot copy: " + code.message());
      }
      copied = copied || std::string_view(file_name).starts_with("tokenizer");
    }
    if (!copied) {
      report_.notes.push_back(
          file_.gguf ? "written without a tokenizer: the one in a GGUF file is not written as the "
                       "files of a folder"
                     : "written without a tokenizer: there is none beside the weights");
    }
  }

  const Checkpoint& file_;
  const ModelEntry& entry_;
  const ConvertOptions& options_;
  ExecutorRef executor_;
  WeightsHolder holder_;
  std::vector<WrittenTensor> tensors_;
  std::optional<ElementType> matrix_type_;
  struct Fallback {
    std::string tensor, why;
    std::size_t others;
  };
  std::vector<Fallback> fallbacks_;
  bool requantised_ = false;
  ConvertReport report_;
};

}  // namespace detail

/// Converts a checkpoint of the model `entry` to `out`, a file (gguf) or a new folder.
/// MismatchError or FormatError if the checkpoint does not hold this model, or a value does not fit
/// the new type; ArgumentError if the layout cannot hold the type or `out` is taken; FileError if
/// it cannot be written. Nothing is left behind after an error.
inline ConvertReport convert(const Checkpoint& file, const ModelEntry& entry,
                             const std::string& out, const ConvertOptions& options,
                             ExecutorRef executor) {
  return detail::Conversion(file, entry, options, executor).write(out);
}

}  // namespace quipu
