// From any checkpoint of a compiled-in model, or from nothing (generate_checkpoint), to a GGUF
// file, a packed file or a folder with safetensors, tensor by tensor: the file read is mapped, a
// few megabytes of rows are held at a time.
//
// The result appears under its name only when it is whole. Where element types stay as they are,
// bytes are copied (rows of q and k in the order of the layout), so the result computes the same
// bits. Siblings: engine/written_tensor.hpp (one tensor), engine/generated_rows.hpp,
// engine/convert_configuration.hpp, engine/convert_vocabulary.hpp, engine/weight_loader.hpp
// (verifies). Tests: test/engine/convert_test.cpp, packed_test.cpp.
#pragma once

#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quipu/checkpoint/atomic_folder.hpp"
#include "quipu/checkpoint/gguf_writer.hpp"
#include "quipu/checkpoint/packed_file.hpp"
#include "quipu/checkpoint/safetensors_writer.hpp"
#include "quipu/checkpoint/torch_pth_writer.hpp"
#include "quipu/engine/convert_configuration.hpp"
#include "quipu/engine/convert_vocabulary.hpp"
#include "quipu/engine/generated_rows.hpp"
#include "quipu/engine/vocabulary_loader.hpp"
#include "quipu/engine/weight_loader.hpp"
#include "quipu/engine/written_tensor.hpp"

namespace quipu {

/// What is written:
///   gguf          one file with configuration and tokenizer
///   packed        the same with the matrices in the kernels' layout (checkpoint/packed_file.hpp)
///   hugging_face  a folder: model.safetensors with Hugging Face's names, config.json
///   meta          a folder: consolidated.NN.pth, one for each model-parallel part, params.json
enum class WriteLayout : unsigned char { gguf, packed, hugging_face, meta };

struct ConvertOptions {
  WriteLayout layout = WriteLayout::gguf;
  std::optional<ElementType> type;         ///< of matrices; not given: as they are stored
  std::optional<ElementType> output_type;  ///< of the output matrix (tied: the embedding) instead
  std::size_t parts = 1;   ///< of Meta's layout: files that the weights are cut into
  bool overwrite = false;  ///< an existing file (never a folder) is replaced
  Progress progress;
};

/// What was written.
struct ConvertReport {
  std::size_t tensors = 0, bytes = 0;
  bool exact = true;  ///< no element changed its value
  std::vector<std::string> notes;
};

namespace detail {

/// One conversion: plans every tensor, then writes.
class Conversion {
 public:
  /// From a checkpoint, or with a seed from nothing: then `file` is an empty one with a name.
  Conversion(const Checkpoint& file, const ModelEntry& entry, const ConvertOptions& options,
             ExecutorRef executor, std::optional<std::uint64_t> seed = std::nullopt)
      : file_(file), entry_(entry), options_(options), executor_(executor), seed_(seed) {
    check_parts();
    holder_ = entry.make_weights();
    if (seed) {
      for (const TensorSlot& slot : holder_.slots) {
        if (!slot.shares_embedding || repeats_shared()) plan_generated(slot);
      }
    } else {
      plan_read();
    }
    if (one_file()) plan_rope_factors();
  }

  ConvertReport write(const std::string& out) {
    for (const Fallback& fallback : fallbacks_) {
      report_.notes.push_back(fallback.tensor + " and " + std::to_string(fallback.others) +
                              " more " + fallback.why);
    }
    one_file() ? write_file(out) : write_folder(out);
    return std::move(report_);
  }

 private:
  bool one_file() const {
    return options_.layout == WriteLayout::gguf || options_.layout == WriteLayout::packed;
  }
  /// Meta's own files of a tied model hold the shared matrix twice.
  bool repeats_shared() const { return options_.layout == WriteLayout::meta; }
  NamingScheme scheme() const {
    return one_file()                                     ? NamingScheme::gguf
           : options_.layout == WriteLayout::hugging_face ? NamingScheme::hugging_face
                                                          : NamingScheme::meta;
  }

  void check_parts() const {
    if (options_.parts == 1) return;
    const std::string what = "parts: " + std::to_string(options_.parts);
    if (options_.layout != WriteLayout::meta) {
      raise<ArgumentError>(what + ": only Meta's layout is cut into parts");
    }
    std::string legal;
    for (const std::size_t n : entry_.legal_ranks) {
      if (n == options_.parts) return;
      legal += (legal.empty() ? "" : ", ") + std::to_string(n);
    }
    raise<ArgumentError>(what + ": " + std::string(entry_.name) +
                         " cannot be cut so; it can into: " + legal);
  }

  void plan_read() {
    const TensorSource* embedding = nullptr;
    std::vector<PlannedTensor> planned = verify_tensors(file_, entry_, holder_.slots);
    for (const PlannedTensor& tensor : planned) {
      plan(*tensor.slot, tensor.source);
      if (tensor.slot->embedding) embedding = &tensor.source;
    }
    for (const TensorSlot& slot : holder_.slots) {
      if (slot.shares_embedding && repeats_shared()) plan(slot, *embedding);
    }
  }

  void plan_generated(const TensorSlot& slot) {
    const ElementType type = written_type(slot, ElementType::bf16);
    // The shared matrix is the embedding under another name.
    const std::string& path = slot.shares_embedding ? holder_.slots.front().path : slot.path;
    add(slot, type).make_row = GeneratedRows(*seed_, path, type, slot.in, slot.vector);
  }

  /// The element type that a tensor gets, `stored` if nothing else is asked for.
  ElementType written_type(const TensorSlot& slot, ElementType stored) {
    const bool last = slot.path == "output" || (slot.embedding && entry_.architecture.tied_output);
    const std::string& out_name = slot.name_in(scheme());
    ElementType type = options_.type.value_or(stored);
    if (last && options_.output_type) type = *options_.output_type;
    if (one_file() && slot.vector) {
      type = ElementType::f32;  // as llama.cpp wants norms
    } else if (one_file() && !row_is_whole_blocks(type, slot.in)) {
      const ElementType fits = fitting_type(type, slot.in);
      note_fallback(out_name, slot.in, type, fits);
      type = fits;
    }
    if (!one_file() && info(type).block_elements > 1) {
      const bool meta = options_.layout == WriteLayout::meta;
      raise<ArgumentError>(file_.path + ": tensor " + out_name + ": " +
                           (meta ? "torch.save" : "safetensors") + " cannot hold the type " +
                           std::string(name(type)) + "; choose bf16, f16 or f32");
    }
    return type;
  }

  WrittenTensor& add(const TensorSlot& slot, ElementType type) {
    WrittenTensor tensor;
    tensor.name = slot.name_in(scheme());
    tensor.type = type;
    tensor.rows = slot.out;
    tensor.cols = slot.in;
    tensor.vector = slot.vector;
    tensor.shard = slot.shard;
    if (options_.layout == WriteLayout::packed && !slot.vector &&
        !is_looked_up_only(slot, entry_)) {
      tensor.layout = Layout::panels;
    }
    if (!slot.vector) matrix_type_ = matrix_type_.value_or(type);
    if (slot.path.ends_with("attention.wq")) matrix_type_ = type;
    tensors_.push_back(std::move(tensor));
    return tensors_.back();
  }

  void plan(const TensorSlot& slot, TensorSource source) {
    const ElementType type = written_type(slot, source.type());
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
    add(slot, type).source = std::move(source);
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
    WrittenTensor tensor;
    tensor.name = "rope_freqs.weight";
    tensor.rows = 1;
    tensor.cols = factors.size();
    tensor.vector = true;
    tensor.make_row = [values = std::move(factors)](std::size_t, std::byte* to) {
      std::memcpy(to, values.data(), values.size() * sizeof(float));
    };
    tensors_.push_back(std::move(tensor));
  }

  template <class Writer>
  void write_tensors(Writer& writer, std::span<const WrittenTensor> tensors) {
    for (const WrittenTensor& tensor : tensors) {
      write_rows(file_, tensor, executor_, [&](std::span<const std::byte> bytes) {
        writer.append(tensor.name, bytes);
        report_.bytes += bytes.size();
      });
    }
    writer.finish();
    report_.tensors = tensors.size();
  }

  /// Progress of one file, the files before it included.
  WriteProgress progress() const {
    if (!options_.progress) return {};
    return [this, before = report_.bytes](std::size_t done, std::size_t total) {
      options_.progress("writing", before + done, total * options_.parts);
    };
  }

  void write_file(const std::string& out) {
    std::error_code ignored;
    if (!options_.overwrite && std::filesystem::exists(out, ignored)) {
      raise<ArgumentError>(out + ": there is a file of this name already");
    }
    GgufMetadata metadata;
    const bool packed = options_.layout == WriteLayout::packed;
    metadata.set("general.architecture", packed ? packed_architecture : std::string_view("llama"));
    if (file_.gguf) {
      for (const GgufEntry& entry : file_.gguf->metadata()) {
        // What depends on the element types or on the file is written anew.
        if (entry.key != "general.architecture" && entry.key != "general.alignment" &&
            entry.key != "general.file_type" && entry.key != "general.quantization_version" &&
            !entry.key.starts_with("split.") && !entry.key.starts_with("quipu."))
          metadata.copy(entry);
      }
    }
    set_configuration(metadata, file_, entry_, *matrix_type_);
    if (!file_.gguf) add_vocabulary(metadata);
    std::vector<GgufPlan> plan;
    for (const WrittenTensor& tensor : tensors_) {
      plan.push_back({tensor.name, tensor.type, tensor.extents(),
                      tensor.layout == Layout::panels ? tensor.bytes() : 0});
    }
    if (packed) set_packed(metadata, plan);
    GgufWriter writer(out, metadata, plan, progress(),
                      packed ? packed_alignment : GgufWriter::default_alignment);
    write_tensors(writer, tensors_);
  }

  void add_vocabulary(GgufMetadata& metadata) {
    const std::size_t size = entry_.architecture.vocab_size;
    const std::optional<VocabularyData> vocabulary =
        seed_ ? placeholder_vocabulary(size) : vocabulary_of(file_);
    if (vocabulary && vocabulary->tokens.size() == size) {
      set_vocabulary(metadata, with_merges(*vocabulary));
      return;
    }
    metadata.set("tokenizer.ggml.model", std::string_view("no_vocab"));
    report_.notes.push_back(
        vocabulary
            ? vocabulary->source + " has " + std::to_string(vocabulary->tokens.size()) +
                  " tokens, the model " + std::to_string(size) + ": written without a tokenizer"
        : seed_ ? std::string("written without a tokenizer: the vocabulary has no room for bytes")
                : std::string("written without a tokenizer: there is neither "
                              "tokenizer.model nor tokenizer.json beside the weights"));
  }

  void write_folder(const std::string& out) {
    AtomicFolder folder(out);
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
    meta ? write_parts(folder) : write_safetensors(folder);
    folder.commit();
  }

  void write_safetensors(const AtomicFolder& folder) {
    std::vector<SafetensorsPlan> plan;
    for (const WrittenTensor& tensor : tensors_) {
      plan.push_back({tensor.name, safetensors_name(tensor.type), tensor.extents()});
    }
    SafetensorsWriter writer(folder.file("model.safetensors"), plan, {{"format", "pt"}},
                             progress());
    write_tensors(writer, tensors_);
  }

  void write_parts(const AtomicFolder& folder) {
    for (std::size_t part = 0; part < options_.parts; ++part) {
      std::vector<WrittenTensor> tensors;
      std::vector<TorchPlan> plan;
      for (const WrittenTensor& whole : tensors_) {
        tensors.push_back(part_of(whole, part, options_.parts));
        plan.push_back({whole.name, whole.type, tensors.back().extents()});
      }
      const std::string number = std::to_string(part);
      TorchWriter writer(
          folder.file("consolidated." + std::string(part < 10 ? "0" : "") + number + ".pth"), plan,
          progress());
      write_tensors(writer, tensors);
    }
  }

  // The files of a tokenizer that stand beside the weights go with them.
  void copy_tokenizer(const AtomicFolder& folder) {
    if (seed_) {
      report_.notes.push_back("written without a tokenizer: the weights are made up");
      return;
    }
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
  std::optional<std::uint64_t> seed_;
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

/// Converts a checkpoint of the model `entry` to `out`, a file (gguf, packed) or a new folder.
/// MismatchError or FormatError if the checkpoint does not hold this model, or a value does not fit
/// the new type; ArgumentError if the layout cannot hold the type or `out` is taken; FileError if
/// it cannot be written. Nothing is left behind after an error.
inline ConvertReport convert(const Checkpoint& file, const ModelEntry& entry,
                             const std::string& out, const ConvertOptions& options,
                             ExecutorRef executor) {
  return detail::Conversion(file, entry, options, executor).write(out);
}

/// Writes a checkpoint of the model `entry` with made-up weights of the type options.type (bf16 if
/// none is given), the same for the same seed; a GGUF or packed file gets a tokenizer of bytes and
/// placeholder words where the vocabulary has room for it. Errors as convert().
inline ConvertReport generate_checkpoint(const ModelEntry& entry, std::uint64_t seed,
                                         const std::string& out, const ConvertOptions& options,
                                         ExecutorRef executor) {
  Checkpoint none;
  none.path = std::string(entry.name);
  none.facts.name =
      std::string(entry.name) + ", weights generated with seed " + std::to_string(seed);
  return detail::Conversion(none, entry, options, executor, seed).write(out);
}

}  // namespace quipu
