// Bytes in which a state is saved: a kind, a version, a checksum, and what the state belongs to as
// named values, so that a restore under other circumstances is refused by name.
//
//   8 bytes kind, u32 version, u32 0, u64 size and u64 checksum of all that follows (the payload)
//
// Little-endian, as all that quipu reads. Siblings: session.hpp (a sequence),
// generate/generator.hpp (a generation). Tests: test/generate/saved_test.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "quipu/checkpoint/atomic_file.hpp"
#include "quipu/checkpoint/byte_reader.hpp"
#include "quipu/engine/model.hpp"
#include "quipu/runtime/kv_cache.hpp"

namespace quipu {

/// One circumstance that a saved state depends on: "n_layers", "32".
struct StateFact {
  std::string name;
  std::string value;
};

namespace detail {

/// A hash of 64 bits that sees every bit: each word goes through a bijection of the state.
class Hash64 {
 public:
  void add(std::span<const std::byte> bytes) {
    word(bytes.size());
    while (bytes.size() >= sizeof(std::uint64_t)) {
      std::uint64_t value;
      std::memcpy(&value, bytes.data(), sizeof value);
      word(value);
      bytes = bytes.subspan(sizeof value);
    }
    std::uint64_t rest = 0;
    if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
    word(rest);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void word(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9E3779B97F4A7C15u;
    state_ = (state_ ^ (state_ >> 32)) * 0xBF58476D1CE4E5B9u;
    state_ ^= state_ >> 29;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x71756970755F6861u;
};

inline constexpr std::uint32_t saved_version = 2;
inline constexpr std::size_t saved_header_bytes = 8 + 4 + 4 + 8 + 8;

class StateWriter {
 public:
  /// `kind` has eight characters.
  explicit StateWriter(std::string_view kind) {
    bytes_.resize(saved_header_bytes);
    std::memcpy(bytes_.data(), kind.data(), 8);
    std::memcpy(bytes_.data() + 8, &saved_version, sizeof saved_version);
  }

  void bytes(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  template <class T>
  void value(T v) {
    static_assert(std::is_arithmetic_v<T>);
    bytes(&v, sizeof v);
  }
  void text(std::string_view s) {
    value(std::uint64_t{s.size()});
    bytes(s.data(), s.size());
  }
  void facts(const std::vector<StateFact>& list) {
    value(std::uint64_t{list.size()});
    for (const StateFact& fact : list) {
      text(fact.name);
      text(fact.value);
    }
  }
  void reserve(std::size_t more) { bytes_.reserve(bytes_.size() + more); }

  std::vector<std::byte> finish() {
    const std::uint64_t size = bytes_.size() - saved_header_bytes;
    Hash64 hash;
    hash.add(std::span(bytes_).subspan(saved_header_bytes));
    const std::uint64_t sum = hash.value();
    std::memcpy(bytes_.data() + 16, &size, sizeof size);
    std::memcpy(bytes_.data() + 24, &sum, sizeof sum);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

/// The payload of a saved state. FormatError if the bytes are not whole, not of this kind or not of
/// this version.
inline ByteReader open_state(std::span<const std::byte> bytes, std::string_view kind,
                             std::string_view file) {
  ByteReader reader(bytes, file);
  const std::string_view found = reader.text(8, "kind");
  if (found != kind) bad_field(file, "kind", in_quotes(kind), in_quotes(found));
  const auto version = reader.read<std::uint32_t>("version");
  if (version != saved_version)
    bad_field(file, "version", decimal(saved_version), decimal(version));
  if (const auto zero = reader.read<std::uint32_t>("flags"); zero != 0) {
    bad_field(file, "flags", "0", decimal(zero));
  }
  const auto size = reader.read<std::uint64_t>("size");
  const auto sum = reader.read<std::uint64_t>("checksum");
  if (size != reader.left()) bad_field(file, "size", decimal(size), decimal(reader.left()));
  const std::span<const std::byte> payload = reader.take(size, "payload");
  Hash64 hash;
  hash.add(payload);
  if (hash.value() != sum) bad_format(file, "the checksum does not fit: the bytes were changed");
  return ByteReader(payload, file);
}

/// The facts of a saved state.
inline std::vector<StateFact> read_facts(ByteReader& reader) {
  const auto text = [&reader] {
    return std::string(reader.text(reader.read<std::uint64_t>("length"), "fact"));
  };
  std::vector<StateFact> facts;
  for (auto left = reader.read<std::uint64_t>("number of facts"); left > 0; --left) {
    std::string name = text();
    facts.push_back({std::move(name), text()});
  }
  return facts;
}

/// Reads the facts of a saved state and compares them with those of whoever restores it.
/// MismatchError names the first that differs and both values.
inline void check_facts(ByteReader& reader, const std::vector<StateFact>& here) {
  const auto text = [&reader] { return reader.text(reader.read<std::uint64_t>("length"), "fact"); };
  const auto count = reader.read<std::uint64_t>("number of facts");
  if (count != here.size()) {
    bad_field(reader.file(), "number of facts", decimal(here.size()), decimal(count));
  }
  for (const StateFact& fact : here) {
    const std::string_view name = text(), value = text();
    if (name != fact.name) bad_field(reader.file(), "fact", in_quotes(fact.name), in_quotes(name));
    if (value == fact.value) continue;
    raise<MismatchError>(std::string(reader.file()) + ": " + fact.name + ": it was saved with " +
                         std::string(value) + ", here is " + fact.value);
  }
}

inline void check_end(const ByteReader& reader) {
  if (reader.left() != 0) {
    bad_format(reader.file(), decimal(reader.left()) + " bytes are left over at the end");
  }
}

/// "1f2e3d4c5b6a7988"
inline std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Adds a small tensor whole, of a large one four places of 64 bytes: whoever trains or quantises
/// anew changes every place, and a file of many GB need not be read.
inline void add_sample(Hash64& hash, const MatrixView& m) {
  constexpr std::size_t whole = 1024, place = 64, places = 4;
  const std::size_t size = m.layout == Layout::panels
                               ? (m.rows + panel_outputs - 1) / panel_outputs * m.row_stride
                               : (m.rows - 1) * m.row_stride + row_bytes(m.type, m.cols);
  if (size <= whole) return hash.add(std::span(m.data, size));
  for (std::size_t i = 0; i < places; ++i) {
    hash.add(std::span(m.data + (size - place) / (places - 1) * i, place));
  }
}

/// "2", or "rank 1 of 2" where ranks are processes and each saves its own part.
inline std::string ranks_text(const Model& model) {
  const std::string all = std::to_string(model.ranks());
  if (model.local_ranks() == model.ranks()) return all;
  return "rank " + std::to_string(model.communicator().rank()) + " of " + all;
}

}  // namespace detail

/// What makes a model's results its own: architecture, numerics, the number of ranks (which changes
/// the order of sums), and a hash over names, types and
/// samples of all weights. Two files of equal weights in another element type are different models.
/// Samples are taken of the bytes in memory, so weights packed and in place count as different too,
/// although they give the same results. A change of single weights may go unseen.
inline std::vector<StateFact> fingerprint(const Model& model) {
  const ArchitectureFacts& a = model.architecture();
  detail::Hash64 weights, frequencies;
  bool packed = true;
  for (const WeightsHolder& rank : model.weights().ranks) {
    for (const TensorSlot& slot : rank.slots) {
      weights.add(slot.path);
      weights.add(name(slot.view->type));
      detail::add_sample(weights, *slot.view);
      // An embedding is looked up, not multiplied: it may be in place beside packed matrices.
      const bool factor = !slot.vector && !slot.embedding && !slot.shares_embedding;
      packed = packed && !(factor && slot.view->layout == Layout::row_major);
    }
  }
  frequencies.add(std::as_bytes(model.inverse_frequencies()));
  return {{"dim", std::to_string(a.dim)},
          {"n_layers", std::to_string(a.n_layers)},
          {"n_heads", std::to_string(a.n_heads)},
          {"n_kv_heads", std::to_string(a.n_kv_heads)},
          {"head_dim", std::to_string(a.head_dim)},
          {"ffn", std::to_string(a.ffn)},
          {"vocab_size", std::to_string(a.vocab_size)},
          {"output", a.tied_output ? "tied" : "separate"},
          {"norm_eps", detail::hex(std::bit_cast<std::uint64_t>(model.entry().numerics.norm_eps))},
          {"rotary frequencies", detail::hex(frequencies.value())},
          {"ranks", detail::ranks_text(model)},
          {"layout of the weights", packed ? "packed" : "in place"},
          {"weights", detail::hex(weights.value())}};
}

namespace detail {

/// Bytes of the keys and values of so many positions of one batch row, in the caches of `ranks`
/// ranks of this shape.
inline std::size_t kv_state_bytes(const KvCacheShape& s, std::size_t ranks, std::size_t positions) {
  const std::size_t per_head =
      checked_mul(checked_mul(positions, s.head_dim, "state"), 2 * s.element_bytes(), "state");
  return checked_mul(per_head, s.layers * s.kv_heads * ranks, "state");
}

/// Visits the filled parts of a row as runs of contiguous bytes, in an order that does not depend
/// on batch or capacity: run(pointer, bytes). Layer by layer, the heads of the ranks one after the
/// other, as they stand in the whole model.
template <class Caches, class Run>
void for_each_kv_run(const Caches& caches, std::size_t row, std::size_t positions, Run&& run) {
  const std::size_t blocks = positions / kv_block, rest = positions % kv_block;
  const std::size_t layers = caches.front().shape().layers;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (const KvCache& cache : caches) {
      const KvCacheShape& s = cache.shape();
      const std::size_t element = s.element_bytes();
      for (std::size_t h = 0; h < s.kv_heads; ++h) {
        const KvHeadView view = cache.head(row, layer, h);
        run(view.keys, blocks * kv_block * s.head_dim * element);
        for (std::size_t f = 0; rest > 0 && f < s.head_dim; ++f) {
          run(view.keys + view.key_index(blocks * kv_block, f) * element, rest * element);
        }
        run(view.values, positions * s.head_dim * element);
      }
    }
  }
}

}  // namespace detail

/// Writes a saved state as a file; the name never shows half of it. FileError.
inline void write_state(const std::string& path, std::span<const std::byte> state) {
  AtomicFile file(path);
  file.write(state);
  file.commit();
}

/// Reads a file that write_state wrote. FileError; what the bytes are is checked by the restore.
inline std::vector<std::byte> read_state(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

}  // namespace quipu
