// Running a session on given tokens and keeping what its trace shows: tensors put together over
// chunks, their statistics, and a safetensors file of them.
//
// The file's names are the ids of runtime/trace.hpp, with "PHASE/" before them where a run has
// several phases; each phase also has its `tokens` [batch, positions] and `start_pos` [1], so that
// test/reference/pytorch_parity.py can repeat the run. Siblings: runtime/trace.hpp,
// simd/trace-inl.hpp, test/engine/trace_test.cpp, examples/quipu_trace.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quipu/checkpoint/safetensors_writer.hpp"
#include "quipu/engine/session.hpp"
#include "quipu/simd/dequantize.hpp"

namespace quipu {

/// The atlas's name of a tensor where it has one of its own: "layers.0.attention.update" for
/// "layers.0.attention.wo", "layers.0.feed_forward.update" for "layers.0.feed_forward.w2"; else
/// empty.
inline std::string trace_alias(std::string_view id) {
  for (const std::string_view end : {".attention.wo", ".feed_forward.w2"}) {
    if (id.ends_with(end)) return std::string(id.substr(0, id.size() - 2)) + "update";
  }
  return {};
}

/// Which tensors are wanted: those that a pattern of id_matches() fits, by their id or by the
/// atlas's name. No patterns: all.
class TraceSelection {
 public:
  explicit TraceSelection(std::vector<std::string> patterns = {})
      : patterns_(std::move(patterns)), used_(patterns_.size(), false) {}

  bool wants(std::string_view id) {
    bool wanted = patterns_.empty();
    const std::string alias = patterns_.empty() ? std::string() : trace_alias(id);
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (!id_matches(patterns_[i], id) && (alias.empty() || !id_matches(patterns_[i], alias)))
        continue;
      used_[i] = true;
      wanted = true;
    }
    return wanted;
  }

  /// ArgumentError naming the first pattern that has fitted nothing so far.
  void check_used() const {
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (used_[i]) continue;
      raise<ArgumentError>("no tensor has an id like \"" + patterns_[i] +
                           "\"; ids are layers.N.attention.xq_rope, layers.N.h, norm, logits, ...");
    }
  }

 private:
  std::vector<std::string> patterns_;
  std::vector<bool> used_;
};

/// Every id that a pass of a model with so many layers reports.
inline std::vector<std::string> trace_ids(std::size_t layers) {
  constexpr std::string_view of_layer[] = {"attention_norm",    "attention.xq",
                                           "attention.xk",      "attention.xv",
                                           "attention.xq_rope", "attention.xk_rope",
                                           "attention.probs",   "attention.merged",
                                           "attention.wo",      "h",
                                           "ffn_norm",          "feed_forward.w1",
                                           "feed_forward.w3",   "feed_forward.act",
                                           "feed_forward.w2",   "out"};
  std::vector<std::string> ids = {"tok_embeddings"};
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (const std::string_view name : of_layer) ids.push_back(trace_id(layer, name));
  }
  ids.push_back(trace_id(no_layer, "norm"));
  ids.push_back(trace_id(no_layer, "logits"));
  return ids;
}

/// What one tensor's elements were like.
struct TensorStatistics {
  std::string name;  ///< "PHASE/ID", or the id alone
  ElementType element = ElementType::f32;
  std::size_t elements = 0, nan = 0, infinite = 0;
  /// Of the finite elements.
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;

  std::size_t finite() const { return elements - nan - infinite; }
  double mean() const { return finite() == 0 ? 0 : sum / static_cast<double>(finite()); }

  void add(const float* data, std::size_t count) {
    elements += count;
    for (std::size_t i = 0; i < count; ++i) {
      const double x = data[i];
      if (std::isnan(x)) {
        ++nan;
      } else if (std::isinf(x)) {
        ++infinite;
      } else {
        least = (std::min)(least, x);
        largest = (std::max)(largest, x);
        sum += x;
      }
    }
  }
};

/// Tokens to run, one row a sequence, all equally long.
struct TracePhase {
  std::string name;  ///< empty: names get no prefix
  std::vector<std::vector<TokenId>> rows;
  std::optional<std::size_t> start;  ///< first position; the end of the sequences if not given

  std::size_t positions() const { return rows.empty() ? 0 : rows.front().size(); }
};

/// Records phases that run one after the other through one session and its cache.
class TraceRecorder {
 public:
  /// `keep`: the tensors too (in memory until they are written), not only their statistics.
  TraceRecorder(TraceSelection selection, bool keep)
      : selection_(std::move(selection)), keep_(keep) {}

  /// The start of each phase and the positions that a session needs for all of them. ArgumentError
  /// if a phase has no rows, other rows than the first, rows of unequal length, or a taken name.
  static std::size_t check(std::vector<TracePhase>& phases) {
    std::size_t end = 0, capacity = 0;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      TracePhase& phase = phases[p];
      const std::string what = "phase " + (phase.name.empty() ? std::to_string(p) : phase.name);
      if (phase.rows.empty() || phase.rows.size() != phases[0].rows.size()) {
        raise<ArgumentError>(what + ": " + std::to_string(phase.rows.size()) +
                             " sequences; all phases have the same number of them, at least 1");
      }
      for (const auto& row : phase.rows) {
        if (row.empty() || row.size() != phase.positions()) {
          raise<ArgumentError>(what + ": sequences of " + std::to_string(phase.positions()) +
                               " and " + std::to_string(row.size()) +
                               " tokens; those of a phase are equally long, at least 1");
        }
      }
      for (std::size_t q = 0; q < p; ++q) {
        if (phases[q].name == phase.name) raise<ArgumentError>(what + ": the name is given twice");
      }
      if (!phase.start) phase.start = end;
      end = checked_add(*phase.start, phase.positions(), "positions");
      capacity = (std::max)(capacity, end);
    }
    return capacity;
  }

  /// Runs a phase, `chunk` positions of each sequence in one pass. What chunks give is put
  /// together: the same tensors as without chunks. ArgumentError if chunk is 0, or if the session
  /// was made for fewer tokens in one pass than the phase's sequences have in a chunk.
  void run(Session& session, const TracePhase& phase, std::size_t chunk) {
    const std::size_t batch = phase.rows.size();
    check_pass(session.options(), batch, (std::min)(chunk, phase.positions()));
    const Recording recording(*this, session, phase);
    first_ = phase.start.value_or(session.length(0));
    std::vector<std::int64_t> tokens;
    for (const auto& row : phase.rows) tokens.insert(tokens.end(), row.begin(), row.end());
    if (keep_) {
      keep_integers("tokens", {batch, phase.positions()}, tokens);
      keep_integers("start_pos", {1}, {static_cast<std::int64_t>(first_)});
    }
    std::vector<float> logits;
    for (done_ = 0; done_ < phase.positions(); done_ += now_) {
      now_ = (std::min)(chunk, phase.positions() - done_);
      std::vector<Feed> feeds;
      for (std::size_t row = 0; row < batch; ++row) {
        feeds.push_back({row, std::span(phase.rows[row]).subspan(done_, now_), first_ + done_});
      }
      // All positions' logits cost a vocabulary each: computed only if somebody looks at them.
      const LogitsWanted logits_wanted =
          selection_.wants("logits") ? LogitsWanted::all : LogitsWanted::none;
      logits.resize(Session::logit_rows(feeds, logits_wanted) *
                    session.model().architecture().vocab_size);
      session.forward(feeds, logits_wanted, logits);
    }
    selection_.check_used();
  }

  /// Of all tensors so far, in the order in which they were computed first.
  const std::vector<TensorStatistics>& statistics() const { return statistics_; }
  /// The first tensor with an element that is not finite, or null.
  const TensorStatistics* first_not_finite() const {
    return first_not_finite_ ? &statistics_[*first_not_finite_] : nullptr;
  }

  /// Writes what was kept. FileError if the file cannot be written.
  void write(const std::string& path, const SafetensorsWriter::Metadata& metadata,
             WriteProgress progress = {}) const {
    std::vector<SafetensorsPlan> plan;
    for (const Kept& tensor : kept_) plan.push_back({tensor.name, tensor.dtype, tensor.extents});
    SafetensorsWriter writer(path, plan, metadata, std::move(progress));
    for (const Kept& tensor : kept_) writer.append(tensor.name, tensor.bytes);
    writer.finish();
  }

 private:
  struct Kept {
    std::string name;
    std::string_view dtype;
    std::vector<std::size_t> extents;
    std::vector<std::byte> bytes;
  };

  // While it lives, the session's tensors come to the recorder; an error in the pass ends it too,
  // so that a session never keeps the address of a recorder that is gone.
  class Recording {
   public:
    Recording(TraceRecorder& recorder, Session& session, const TracePhase& phase)
        : recorder_(recorder), session_(session) {
      recorder_.phase_ = &phase;
      session_.set_trace({&TraceRecorder::seen, &recorder_, &TraceRecorder::wanted});
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording() {
      session_.set_trace({});
      recorder_.phase_ = nullptr;
    }

   private:
    TraceRecorder& recorder_;
    Session& session_;
  };

  // A session computes more tokens than it was made for in several passes, and a pass is what
  // keep() takes for a chunk.
  static void check_pass(const SessionOptions& options, std::size_t batch, std::size_t positions) {
    const std::size_t tokens = checked_mul(positions, batch, "tokens of a pass");
    const std::size_t most = (std::max)(options.chunk, options.batch);
    if (tokens == 0 || tokens > most) {
      raise<ArgumentError>("chunk: " + std::to_string(positions) + " positions of " +
                           std::to_string(batch) + " sequences are " + std::to_string(tokens) +
                           " tokens in one pass; expected 1 to " + std::to_string(most) +
                           ", for which the session was made");
    }
  }

  static bool wanted(void* self, std::string_view id) {
    return static_cast<TraceRecorder*>(self)->selection_.wants(id);
  }
  static void seen(void* self, const TracedTensor& tensor) {
    static_cast<TraceRecorder*>(self)->see(tensor);
  }

  std::string full_name(std::string_view id) const {
    return (phase_->name.empty() ? "" : phase_->name + "/") + std::string(id);
  }

  void see(const TracedTensor& tensor) {
    const std::string name = full_name(tensor.id);
    const auto [place, fresh] = by_name_.try_emplace(name, statistics_.size());
    if (fresh) statistics_.push_back({.name = name, .element = tensor.element});
    TensorStatistics& statistics = statistics_[place->second];
    statistics.add(tensor.data, tensor.elements());
    if (!first_not_finite_ && statistics.finite() < statistics.elements)
      first_not_finite_ = place->second;
    if (keep_) keep(name, tensor);
  }

  // Copies a chunk's part to its place in the whole tensor. Positions are the axis before the last
  // one or two: [batch, positions, ...]; probabilities are [batch, heads, positions, keys], where a
  // chunk has the keys up to its own end and the others have no weight.
  void keep(const std::string& name, const TracedTensor& tensor) {
    const bool keys_last = tensor.id.find(".probs") != std::string_view::npos;
    const std::size_t axis = keys_last ? 2 : 1;
    std::vector<std::size_t> whole(
        tensor.extents.begin(), tensor.extents.begin() + static_cast<std::ptrdiff_t>(tensor.rank));
    whole[axis] = phase_->positions();
    if (keys_last) whole[3] = first_ + phase_->positions();
    const std::size_t element_bytes = info(tensor.element).block_bytes;
    if (done_ == 0) {
      std::size_t bytes = element_bytes;
      for (const std::size_t extent : whole) bytes = checked_mul(bytes, extent, "bytes of a trace");
      kept_place_[name] = kept_.size();
      kept_.push_back(
          {name, safetensors_name(tensor.element), whole, std::vector<std::byte>(bytes)});
    }
    std::byte* out = kept_[kept_place_.at(name)].bytes.data();
    // Rows of `width` elements that become rows of `whole_width`; `now_` of them for each of
    // `outer` sequences (and heads).
    const std::size_t outer = tensor.extents[0] * (keys_last ? tensor.extents[1] : 1);
    const std::size_t width = keys_last ? tensor.extents[3] : tensor.extents[2] * tensor.extents[3];
    const std::size_t whole_width = keys_last ? whole[3] : width;
    const float* in = tensor.data;
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t t = 0; t < now_; ++t, in += width) {
        const std::size_t row = o * phase_->positions() + done_ + t;
        std::byte* to = out + row * whole_width * element_bytes;
        if (tensor.element == ElementType::f32) {
          std::memcpy(to, in, width * sizeof(float));
        } else {
          for (std::size_t i = 0; i < width; ++i) {
            const bf16 value = to_bf16(in[i]);
            std::memcpy(to + 2 * i, &value.bits, 2);
          }
        }
      }
    }
  }

  void keep_integers(std::string_view id, std::vector<std::size_t> extents,
                     const std::vector<std::int64_t>& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    kept_.push_back({full_name(id), "I64", std::move(extents), {bytes.begin(), bytes.end()}});
  }

  TraceSelection selection_;
  bool keep_;
  std::vector<TensorStatistics> statistics_;
  std::map<std::string, std::size_t> by_name_, kept_place_;
  std::optional<std::size_t> first_not_finite_;
  std::vector<Kept> kept_;
  const TracePhase* phase_ = nullptr;
  std::size_t first_ = 0;  // position of the phase
  std::size_t done_ = 0;   // positions of it that are done
  std::size_t now_ = 0;    // positions of the current pass
};

}  // namespace quipu
