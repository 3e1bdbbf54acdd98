// From a path to a Checkpoint: a .gguf, .safetensors or .pth file, a shard index, or a folder in
// Meta's layout (params.json, consolidated.NN.pth) or Hugging Face's (config.json,
// model.safetensors or shards with model.safetensors.index.json).
//
// Of several shards, the index is believed: a tensor that a shard holds though the index assigns it
// elsewhere is a stale copy and is left aside, with a note; a tensor that the index promises and
// its shard does not hold is an error. Files that no index names are left aside with a note too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "quipu/checkpoint/checkpoint.hpp"
#include "quipu/checkpoint/file_kind.hpp"
#include "quipu/checkpoint/gguf_facts.hpp"
#include "quipu/checkpoint/json_facts.hpp"
#include "quipu/checkpoint/packed_file.hpp"
#include "quipu/checkpoint/safetensors.hpp"
#include "quipu/checkpoint/torch_pth.hpp"

namespace quipu {

struct OpenOptions {
  SafetensorsLimits safetensors;
};

namespace detail {

inline constexpr std::string_view index_ending = ".safetensors.index.json";

inline std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The scheme that the names show; a torch file may hold Hugging Face's names and so on.
inline NamingScheme naming_of(std::span<const TensorRecord> tensors, FileFormat format) {
  for (const TensorRecord& tensor : tensors) {
    const std::string_view tensor_name = tensor.name;
    if (tensor_name.starts_with("model.layers.") || tensor_name == "model.embed_tokens.weight") {
      return NamingScheme::hugging_face;
    }
    if (tensor_name.starts_with("blk.") || tensor_name == "token_embd.weight") {
      return NamingScheme::gguf;
    }
    if (tensor_name.starts_with("layers.") || tensor_name == "tok_embeddings.weight") {
      return NamingScheme::meta;
    }
  }
  return format == FileFormat::gguf          ? NamingScheme::gguf
         : format == FileFormat::safetensors ? NamingScheme::hugging_face
                                             : NamingScheme::meta;
}

// Reads the head of one mapped file of the checkpoint; records get the file's index.
inline std::vector<TensorRecord> read_tensors(Checkpoint& checkpoint, std::size_t file,
                                              FileFormat format, const OpenOptions& options) {
  const MappedFile& map = checkpoint.files[file];
  std::vector<TensorRecord> tensors;
  if (format == FileFormat::gguf) {
    checkpoint.gguf.emplace(map.bytes(), map.path());
    tensors.assign(checkpoint.gguf->tensors().begin(), checkpoint.gguf->tensors().end());
    if (is_packed(*checkpoint.gguf)) {
      checkpoint.format = FileFormat::packed;
      read_packed(*checkpoint.gguf, tensors);
    }
  } else if (format == FileFormat::safetensors) {
    const SafetensorsFile parsed(map.bytes(), map.path(), options.safetensors);
    tensors.assign(parsed.tensors().begin(), parsed.tensors().end());
  } else {
    tensors = read_torch_file(map.bytes(), map.path());
  }
  for (TensorRecord& tensor : tensors) tensor.file = file;
  return tensors;
}

inline ModelFacts facts_from_json(NamingScheme naming, std::string_view text,
                                  std::string_view file) {
  const JsonValue root = parse_json(text, file);
  return naming == NamingScheme::meta ? facts_from_params_json(root, file)
                                      : facts_from_config_json(root, file);
}

inline std::string facts_file(NamingScheme naming) {
  return naming == NamingScheme::meta ? "params.json" : "config.json";
}

// Reads the configuration that belongs to the naming scheme from the folder of the weights.
inline void read_facts_beside(Checkpoint& checkpoint, const std::filesystem::path& folder,
                              bool required) {
  const std::filesystem::path path = folder / facts_file(checkpoint.naming);
  if (!required && !is_file(path)) {
    checkpoint.notes.push_back("no " + path.string() + ": the file says nothing of its model");
    return;
  }
  const MappedFile file(path.string());
  checkpoint.facts = facts_from_json(checkpoint.naming, text_of(file), file.path());
}

// "consolidated.07.pth" -> 7.
inline std::optional<std::size_t> meta_part_number(std::string_view file_name) {
  constexpr std::string_view begin = "consolidated.";
  constexpr std::string_view end = ".pth";
  if (file_name.size() <= begin.size() + end.size() || !file_name.starts_with(begin) ||
      !file_name.ends_with(end)) {
    return std::nullopt;
  }
  const std::string_view digits =
      file_name.substr(begin.size(), file_name.size() - begin.size() - end.size());
  if (digits.size() < 2 || digits.size() > 4) return std::nullopt;
  std::size_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return number;
}

// The names of the regular files of a folder, sorted.
inline std::vector<std::string> file_names(const std::filesystem::path& folder) {
  std::error_code code;
  std::vector<std::string> names;
  std::filesystem::directory_iterator at(folder, code);
  for (; !code && at != std::filesystem::directory_iterator(); at.increment(code)) {
    if (is_file(at->path())) names.push_back(at->path().filename().string());
  }
  if (code) raise<FileError>(folder.string() + ": cannot list the folder: " + code.message());
  std::sort(names.begin(), names.end());
  return names;
}

inline Checkpoint open_meta(const std::filesystem::path& folder, const OpenOptions& options) {
  std::vector<std::string> parts;
  for (const std::string& file_name : file_names(folder)) {
    const std::optional<std::size_t> number = meta_part_number(file_name);
    if (!number) continue;
    if (*number < parts.size()) {
      bad_format(folder.string(),
                 "both " + parts[*number] + " and " + file_name + " are part " + decimal(*number));
    }
    if (*number > parts.size()) {
      bad_format(folder.string(), "part " + decimal(parts.size()) +
                                      " of consolidated.NN.pth is missing, but there is " +
                                      file_name + " (a stray shard?)");
    }
    parts.push_back(file_name);
  }
  Checkpoint checkpoint;
  checkpoint.path = folder.string();
  checkpoint.format = FileFormat::torch_pth;
  checkpoint.parts = parts.size();
  std::vector<TensorRecord> tensors;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    checkpoint.files.emplace_back((folder / parts[part]).string());
    const MappedFile& map = checkpoint.files.back();
    const FileFormat found = detect_format(map.bytes(), map.path());
    if (found != FileFormat::torch_pth) {
      bad_field(map.path(), "format", "an archive of torch.save", name(found));
    }
    for (TensorRecord& tensor : read_tensors(checkpoint, part, found, options)) {
      tensors.push_back(std::move(tensor));
    }
  }
  checkpoint.set_tensors(std::move(tensors));
  // All parts hold the same names; a shard of another model shows here or in its extents.
  for (const TensorRecord& tensor : checkpoint.tensors()) {
    for (std::size_t part = 0; part < checkpoint.parts; ++part) {
      if (checkpoint.find(tensor.name, part) == nullptr) {
        bad_format(checkpoint.files[part].path(),
                   "tensor " + in_quotes(tensor.name) + " is missing, but " +
                       checkpoint.files[tensor.file].path() + " has it");
      }
    }
  }
  checkpoint.naming = naming_of(checkpoint.tensors(), checkpoint.format);
  read_facts_beside(checkpoint, folder, /*required=*/true);
  return checkpoint;
}

inline Checkpoint open_sharded(const std::filesystem::path& index_path, bool facts_required,
                               const OpenOptions& options) {
  const std::filesystem::path folder = index_path.parent_path();
  const MappedFile index_file(index_path.string());
  const std::string& index_name = index_file.path();
  const JsonValue index = parse_json(text_of(index_file), index_name);
  const JsonValue* weight_map = index.find("weight_map");
  if (weight_map == nullptr || weight_map->object() == nullptr) {
    bad_field(index_name, "weight_map", "an object of file names",
              weight_map == nullptr ? "nothing" : weight_map->describe());
  }
  std::map<std::string, std::string, std::less<>> shard_of;  // tensor -> file
  std::map<std::string, std::size_t, std::less<>> shards;    // file -> index into files
  for (const JsonMember& member : *weight_map->object()) {
    const Words what = "weight_map, " + in_quotes(member.key);
    const std::string* file = member.value.text();
    if (file == nullptr) bad_field(index_name, what, "a file name", member.value.describe());
    if (file->empty() || file->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos ||
        !file->ends_with(".safetensors")) {
      bad_field(index_name, what, "the name of a .safetensors file in the same folder",
                in_quotes(*file));
    }
    shard_of.emplace(member.key, *file);
    shards.emplace(*file, 0);
  }
  if (shards.empty()) bad_format(index_name, "weight_map is empty");

  Checkpoint checkpoint;
  checkpoint.path = index_name;
  checkpoint.format = FileFormat::safetensors;
  std::vector<TensorRecord> tensors;
  for (auto& [file, number] : shards) {
    const std::filesystem::path shard_path = folder / file;
    if (!is_file(shard_path)) {
      raise<FileError>(shard_path.string() + ": the shard is missing (" + index_name +
                       " names it)");
    }
    number = checkpoint.files.size();
    checkpoint.files.emplace_back(shard_path.string());
    for (TensorRecord& tensor :
         read_tensors(checkpoint, number, FileFormat::safetensors, options)) {
      const auto assigned = shard_of.find(tensor.name);
      if (assigned != shard_of.end() && assigned->second == file) {
        tensors.push_back(std::move(tensor));
      } else {
        checkpoint.notes.push_back(shard_path.string() + ": tensor " + in_quotes(tensor.name) +
                                   " is left aside: the index " +
                                   (assigned == shard_of.end()
                                        ? std::string("does not name it")
                                        : "assigns it to " + assigned->second));
      }
    }
  }
  checkpoint.set_tensors(std::move(tensors));
  for (const auto& [tensor, file] : shard_of) {
    if (checkpoint.find(tensor) == nullptr) {
      bad_format((folder / file).string(), "tensor " + in_quotes(tensor) + " is missing, though " +
                                               index_name + " assigns it here");
    }
  }
  for (const std::string& file_name : file_names(folder.empty() ? "." : folder)) {
    if (file_name.ends_with(".safetensors") && !shards.contains(file_name)) {
      checkpoint.notes.push_back((folder / file_name).string() +
                                 " is left aside: the index does not name it");
    }
  }
  checkpoint.naming = naming_of(checkpoint.tensors(), checkpoint.format);
  read_facts_beside(checkpoint, folder, facts_required);
  return checkpoint;
}

inline Checkpoint open_single(MappedFile file, FileFormat format, const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.path = file.path();
  checkpoint.format = format;
  checkpoint.files.push_back(std::move(file));
  checkpoint.set_tensors(read_tensors(checkpoint, 0, format, options));
  checkpoint.naming = naming_of(checkpoint.tensors(), format);
  if (checkpoint.gguf) checkpoint.facts = facts_from_gguf(*checkpoint.gguf);
  return checkpoint;
}

inline Checkpoint open_file(const std::filesystem::path& path, const OpenOptions& options) {
  const std::string file_name = path.filename().string();
  const std::filesystem::path folder = path.parent_path();
  if (file_name.ends_with(index_ending)) return open_sharded(path, false, options);
  MappedFile file(path.string());
  const FileFormat format = detect_format(file.bytes(), file.path());
  if (format == FileFormat::torch_pth && meta_part_number(file_name) &&
      is_file(folder / "params.json")) {
    return open_meta(folder.empty() ? "." : folder, options);
  }
  // One of several shards stands for the whole: "model-00001-of-00004.safetensors".
  const std::filesystem::path index = folder / ("model" + std::string(index_ending));
  if (format == FileFormat::safetensors && file_name.starts_with("model-") &&
      file_name.find("-of-") != std::string::npos && is_file(index)) {
    return open_sharded(index, false, options);
  }
  Checkpoint checkpoint = open_single(std::move(file), format, options);
  if (format != FileFormat::gguf) read_facts_beside(checkpoint, folder, /*required=*/false);
  return checkpoint;
}

inline Checkpoint open_folder(const std::filesystem::path& folder, const OpenOptions& options) {
  std::vector<std::string> safetensors;
  std::string torch_bin;
  std::string gguf;
  bool meta = false;
  for (const std::string& file_name : file_names(folder)) {
    if (file_name.ends_with(".safetensors")) safetensors.push_back(file_name);
    if (file_name.ends_with(".gguf")) gguf = file_name;
    if (file_name.starts_with("pytorch_model") && file_name.ends_with(".bin"))
      torch_bin = file_name;
    meta = meta || meta_part_number(file_name).has_value();
  }
  const std::filesystem::path index = folder / ("model" + std::string(index_ending));
  const bool sharded = is_file(index);
  if (meta && (sharded || !safetensors.empty())) {
    bad_format(folder.string(), "holds both consolidated.NN.pth and " +
                                    (sharded ? index.filename().string() : safetensors.front()) +
                                    "; give the path of the file to load");
  }
  if (meta) return open_meta(folder, options);
  if (sharded) return open_sharded(index, true, options);
  const bool has_model =
      std::find(safetensors.begin(), safetensors.end(), "model.safetensors") != safetensors.end();
  if (!has_model && safetensors.size() > 1) {
    bad_format(folder.string(), "holds " + decimal(safetensors.size()) +
                                    " .safetensors files, but no model.safetensors.index.json that "
                                    "says which tensor stands where");
  }
  if (!safetensors.empty()) {
    const std::string chosen = has_model ? "model.safetensors" : safetensors.front();
    Checkpoint checkpoint =
        open_single(MappedFile((folder / chosen).string()), FileFormat::safetensors, options);
    for (const std::string& other : safetensors) {
      if (other != chosen) {
        checkpoint.notes.push_back((folder / other).string() + " is left aside: no index names it");
      }
    }
    read_facts_beside(checkpoint, folder, /*required=*/true);
    return checkpoint;
  }
  std::string hint;
  if (!gguf.empty()) hint = "; it holds " + gguf + ": give that file's path";
  if (!torch_bin.empty()) hint = "; it holds " + torch_bin + ": save the model as safetensors";
  bad_format(folder.string(),
             "no checkpoint in this folder: neither consolidated.00.pth with params.json, nor "
             "model.safetensors or model.safetensors.index.json with config.json" +
                 hint);
}

}  // namespace detail

/// Opens a checkpoint file or folder; nothing but headers is read. FileError and FormatError name
/// the file and the field, tensor or shard that is wrong.
inline Checkpoint open_checkpoint(const std::string& path, const OpenOptions& options = {}) {
  std::error_code ignored;
  Checkpoint checkpoint = std::filesystem::is_directory(path, ignored)
                              ? detail::open_folder(path, options)
                              : detail::open_file(path, options);
  checkpoint.path = path;
  return checkpoint;
}

/// A checkpoint of one file whose bytes the caller holds and keeps alive; no file system is
/// touched. `configuration` is the text of the config.json or params.json that belongs to a
/// safetensors or torch file; empty if there is none. `label` stands for the path in messages.
inline Checkpoint checkpoint_from_bytes(std::span<const std::byte> bytes, const std::string& label,
                                        std::string_view configuration = {},
                                        const OpenOptions& options = {}) {
  const FileFormat format = detect_format(bytes, label);
  Checkpoint checkpoint =
      detail::open_single(MappedFile::from_bytes(bytes, label), format, options);
  if (!configuration.empty()) {
    checkpoint.facts = detail::facts_from_json(
        checkpoint.naming, configuration, label + ", " + detail::facts_file(checkpoint.naming));
  }
  return checkpoint;
}

}  // namespace quipu
