// Files of torch.save (`.pth`, `.pt`): a zip archive of a pickle and of storages, used in place.
//
// NAME/data.pkl describes the tensors (pickle.hpp), NAME/data/KEY are the bytes of the storages.
// Tensors must be contiguous and lie in their storage; several may share one. Legacy files (before
// torch 1.6: pickles one after the other, no zip) are recognised and refused.
// Siblings: zip_archive.hpp, pickle.hpp, open_checkpoint.hpp (consolidated.NN.pth of several
// ranks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quipu/checkpoint/pickle.hpp"
#include "quipu/checkpoint/tensor_record.hpp"
#include "quipu/checkpoint/zip_archive.hpp"

namespace quipu {

/// True if the bytes begin as torch's legacy format does: a pickled magic number.
inline bool is_legacy_torch_file(std::span<const std::byte> bytes) {
  constexpr unsigned char magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                     0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  return bytes.size() >= sizeof(magic) && std::memcmp(bytes.data(), magic, sizeof(magic)) == 0;
}

/// The tensors of one file of torch.save, as views into `bytes`, in the order of the state dict.
/// `path` is the file's name in messages. FormatError names what is wrong.
inline std::vector<TensorRecord> read_torch_file(std::span<const std::byte> bytes,
                                                 const std::string& path) {
  if (is_legacy_torch_file(bytes)) {
    detail::bad_format(path,
                       "the legacy format of torch.save (no zip archive), which cannot be "
                       "mapped; re-save it with a recent torch: torch.save(torch.load(f, "
                       "weights_only=True), g)");
  }
  const ZipArchive archive(bytes, path);

  // The folder's name is free; data.pkl tells it.
  const ZipEntry* pickle = nullptr;
  constexpr std::string_view pickle_name = "/data.pkl";
  for (const ZipEntry& entry : archive.entries()) {
    const std::string_view entry_name = entry.name;
    if (entry_name.size() <= pickle_name.size() || !entry_name.ends_with(pickle_name)) continue;
    if (entry_name.find('/') != entry_name.size() - pickle_name.size()) continue;
    if (pickle != nullptr) {
      detail::bad_format(path, "two pickles: " + detail::in_quotes(pickle->name) + " and " +
                                   detail::in_quotes(entry.name));
    }
    pickle = &entry;
  }
  if (pickle == nullptr) {
    detail::bad_format(path, "a zip archive without NAME/data.pkl: not a file of torch.save");
  }
  const std::string root = pickle->name.substr(0, pickle->name.size() - pickle_name.size() + 1);
  if (archive.find(root + "constants.pkl") != nullptr) {
    detail::bad_format(path, "a TorchScript archive (a program), not a state dict");
  }
  if (const ZipEntry* order = archive.find(root + "byteorder")) {
    const std::string text = archive.unpack(*order, 64);
    if (text != "little")
      detail::bad_field(path, "byteorder", "\"little\"", detail::in_quotes(text));
  }

  const std::string text = archive.unpack(*pickle, most_pickle_bytes);
  std::vector<TensorRecord> out;
  for (const PickledTensor& pickled : read_state_dict_pickle(text, path)) {
    const detail::Words what = "tensor " + detail::in_quotes(pickled.name);
    const TorchStorageType& type = *pickled.storage_type;
    const ZipEntry* entry = archive.find(root + "data/" + pickled.storage_key);
    if (entry == nullptr) {
      detail::bad_format(path, what + ": its storage " +
                                   detail::in_quotes(root + "data/" + pickled.storage_key) +
                                   " is not in the archive");
    }
    const std::span<const std::byte> storage = archive.stored(*entry);
    if (pickled.storage_elements != storage.size() / type.element_bytes ||
        storage.size() % type.element_bytes != 0) {
      detail::bad_field(
          path, what + ", bytes of its storage " + detail::in_quotes(entry->name),
          detail::decimal(pickled.storage_elements) + " elements of " + type.type_name,
          detail::decimal(storage.size()) + " bytes");
    }
    TensorRecord tensor;
    tensor.name = pickled.name;
    tensor.type = type.type;
    tensor.type_name = type.type_name;
    // Elements and strides from the innermost extent outwards; a stride matters only where there
    // is a second element.
    std::uint64_t elements = 1;
    for (std::size_t i = pickled.extents.size(); i-- > 0;) {
      const std::uint64_t extent = pickled.extents[i];
      if (extent == 0) detail::bad_format(path, what + ": an extent is 0");
      if (extent > 1 && pickled.strides[i] != elements) {
        detail::bad_field(path, what + ", stride of extent " + detail::decimal(i),
                          detail::decimal(elements) + " (contiguous)",
                          detail::decimal(pickled.strides[i]));
      }
      if (extent > pickled.storage_elements / elements) {
        detail::bad_format(path, what + ": more elements than its storage of " +
                                     detail::decimal(pickled.storage_elements));
      }
      elements *= extent;
    }
    if (elements > pickled.storage_elements ||
        pickled.offset > pickled.storage_elements - elements) {
      detail::bad_format(path, what + ": " + detail::decimal(elements) + " elements from offset " +
                                   detail::decimal(pickled.offset) +
                                   " run past the end of its storage of " +
                                   detail::decimal(pickled.storage_elements));
    }
    tensor.extents.assign(pickled.extents.begin(), pickled.extents.end());
    tensor.data = storage.data() + pickled.offset * type.element_bytes;
    tensor.bytes = static_cast<std::size_t>(elements) * type.element_bytes;
    out.push_back(std::move(tensor));
  }
  return out;
}

}  // namespace quipu
