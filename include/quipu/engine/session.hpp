// A session: the KV cache and scratch memory of some sequences of one model, and the call that
// extends them. Where ranks are processes, each has a session of its part, and all must be made and
// called alike.
// Siblings: engine/model.hpp, simd/forward_call.hpp, engine/saved_state.hpp (the bytes of a saved
// sequence), generate/generator.hpp (chooses tokens).
// Tests: test/engine/session_test.cpp, test/engine/contract_test.cpp, test/generate/saved_test.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quipu/engine/model.hpp"
#include "quipu/engine/saved_state.hpp"
#include "quipu/runtime/stoppable_executor.hpp"

namespace quipu {

/// Tokens to append to one sequence (batch row) of a session.
struct Feed {
  std::size_t row = 0;
  std::span<const TokenId> tokens;
  /// Absolute position of the first token; the end of the sequence if not given. An earlier one
  /// forgets what stood from there on.
  std::optional<std::size_t> start;
};

class Session {
 public:
  /// ArgumentError for a batch, capacity or chunk of 0 or a cache type other than f32 and bf16;
  /// SizeError if the memory cannot be had.
  Session(Model model, const SessionOptions& options)
      : model_(std::move(model)), options_(checked(options)), lengths_() {
    const ArchitectureFacts& a = model_.part();
    plan_ = forward_plan(a, (std::max)(options.chunk, options.batch), options.capacity,
                         model_.executor().concurrency());
    for (std::size_t r = 0; r < model_.local_ranks(); ++r) {
      caches_.push_back(KvCache(cache_shape(a, options)));
      scratch_.push_back(Arena(plan_.arena));
    }
    lengths_.assign(options.batch, 0);  // after the plan, which refuses a batch that cannot be
  }

  /// The cache that such a session allocates for an architecture, known before it is made; of
  /// several ranks each has that of its part, all together as much as one.
  static KvCacheShape cache_shape(const ArchitectureFacts& a, const SessionOptions& options) {
    return {options.batch, a.n_layers, a.n_kv_heads, a.head_dim, options.capacity, options.cache};
  }

  const Model& model() const { return model_; }
  const SessionOptions& options() const { return options_; }
  std::size_t capacity() const { return options_.capacity; }
  std::size_t cache_bytes() const { return caches_.size() * caches_.front().bytes(); }
  std::size_t scratch_bytes() const { return scratch_.size() * plan_.arena.total(); }
  /// Positions filled in a sequence.
  /// ArgumentError for a row that the session does not have.
  std::size_t length(std::size_t row = 0) const {
    check_row(row);
    return lengths_[row];
  }

  /// Forgets the positions from `length` on. ArgumentError if the sequence is shorter.
  void truncate(std::size_t row, std::size_t length) {
    check_row(row);
    if (length > lengths_[row]) {
      raise<ArgumentError>("truncate: row " + std::to_string(row) + " has " +
                           std::to_string(lengths_[row]) + " positions, asked to keep " +
                           std::to_string(length));
    }
    lengths_[row] = length;
  }

  /// The state of one sequence: its length and the keys and values of its positions, with what they
  /// belong to. restore() of these bytes continues bit-equal.
  std::vector<std::byte> save(std::size_t row = 0) const {
    check_row(row);
    detail::StateWriter state(sequence_kind);
    state.facts(state_facts());
    state.value(std::uint64_t{lengths_[row]});
    state.reserve(kv_bytes(lengths_[row]));
    detail::for_each_kv_run(caches_, row, lengths_[row],
                            [&](const std::byte* at, std::size_t n) { state.bytes(at, n); });
    return state.finish();
  }

  /// Puts a saved sequence in the place of a row's, in this or in another session: batch, capacity
  /// and row may be others. Refused, with nothing changed: FormatError if the bytes are damaged,
  /// MismatchError for another model or another cache type, mode or activations, ArgumentError if
  /// the sequence is longer than the capacity; each names the field and both values. `file` is the
  /// name of the bytes in messages.
  void restore(std::span<const std::byte> bytes, std::size_t row = 0,
               std::string_view file = "saved session") {
    check_row(row);
    detail::ByteReader reader = open_saved(bytes, file);
    const auto length = static_cast<std::size_t>(reader.read<std::uint64_t>("positions"));
    detail::for_each_kv_run(caches_, row, length, [&](std::byte* at, std::size_t n) {
      if (n > 0) std::memcpy(at, reader.take(n, "keys and values").data(), n);
    });
    lengths_[row] = length;
  }

  /// Positions of a saved sequence. Refuses what restore() does.
  std::size_t saved_length(std::span<const std::byte> bytes,
                           std::string_view file = "saved session") const {
    return static_cast<std::size_t>(open_saved(bytes, file).read<std::uint64_t>("positions"));
  }

  /// The hook sees the tensors of every pass from now on. It must not run a session of the same
  /// model: their passes take turns.
  void set_trace(const TraceHook& hook) { trace_ = hook; }

  /// The hook is told the end of each component of every pass from now on; a default-made one turns
  /// that off. Results keep their bits.
  void set_profile(const ProfileHook& hook) { profile_ = hook; }

  /// Rows of logits that forward() will write for these feeds.
  static std::size_t logit_rows(std::span<const Feed> feeds, LogitsWanted wanted) {
    if (wanted == LogitsWanted::none) return 0;
    if (wanted == LogitsWanted::last) return feeds.size();
    std::size_t n = 0;
    for (const Feed& feed : feeds) n += feed.tokens.size();
    return n;
  }

  /// Appends tokens to sequences and computes logits: [logit_rows(), vocabulary] float32, in the
  /// order of the feeds. Longer input is cut into chunks, with bit-equal results. All arguments are
  /// checked before any work: ArgumentError names the row, position or token.
  void forward(std::span<const Feed> feeds, LogitsWanted wanted, std::span<float> logits,
               const Progress& progress = {}) {
    compute(feeds, wanted, logits, progress, nullptr);
  }

  /// The same, until `stop` is true, which another thread or a signal handler may make it: then it
  /// ends within the tasks at hand, a small part of a layer, and returns false; the sequences are
  /// as long as they were at their start positions, `logits` hold nothing of use. Where ranks are
  /// processes, all of them have to be stopped.
  bool forward_until(const std::atomic<bool>& stop, std::span<const Feed> feeds,
                     LogitsWanted wanted, std::span<float> logits, const Progress& progress = {}) {
    return compute(feeds, wanted, logits, progress, &stop);
  }

  /// One sequence: logits of the last token, [vocabulary].
  std::vector<float> forward(std::span<const TokenId> tokens, std::size_t row = 0) {
    std::vector<float> logits(model_.architecture().vocab_size);
    const Feed feed{row, tokens, std::nullopt};
    forward({&feed, 1}, LogitsWanted::last, logits);
    return logits;
  }

 private:
  struct Rewind {
    std::vector<std::size_t>& lengths;
    std::vector<std::size_t> before;
    bool armed = true;
    ~Rewind() {
      if (armed) lengths.swap(before);
    }
  };

  struct Pass {
    std::vector<TokenId> tokens;
    std::vector<SequenceChunk> chunks;
    std::vector<std::size_t> logit_rows;
  };

  bool compute(std::span<const Feed> feeds, LogitsWanted wanted, std::span<float> logits,
               const Progress& progress, const std::atomic<bool>* stop) {
    check(feeds, wanted, logits);
    const auto stopped = [stop] {
      return stop != nullptr && stop->load(std::memory_order_relaxed);
    };
    std::size_t total = 0, done = 0;
    for (const Feed& feed : feeds) {
      const std::size_t start = feed.start.value_or(lengths_[feed.row]);
      for (KvCache& cache : caches_) {
        if (start > lengths_[feed.row]) cache.clear(feed.row, lengths_[feed.row], start);
      }
      lengths_[feed.row] = start;
      total += feed.tokens.size();
    }
    // If a hook or `progress` throws, memory runs out or it is stopped, positions that were not
    // computed must not count as filled: the sequences are then as long as they were at their start
    // positions.
    Rewind rewind{lengths_, lengths_};
    const std::size_t vocabulary = model_.architecture().vocab_size;
    float* out = logits.data();
    std::size_t feed = 0, offset = 0;  // the next token to compute
    while (feed < feeds.size()) {
      if (stopped()) return false;
      Pass pass;
      const std::size_t room = plan_.rows;
      while (feed < feeds.size() && pass.tokens.size() < room) {
        const auto& tokens = feeds[feed].tokens;
        const std::size_t n = (std::min)(tokens.size() - offset, room - pass.tokens.size());
        const std::size_t row = feeds[feed].row;
        const std::size_t first = pass.tokens.size();
        pass.chunks.push_back({row, lengths_[row], n, first});
        pass.tokens.insert(pass.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(offset),
                           tokens.begin() + static_cast<std::ptrdiff_t>(offset + n));
        lengths_[row] += n;
        offset += n;
        const bool ended = offset == tokens.size();
        for (std::size_t i = 0; wanted == LogitsWanted::all && i < n; ++i)
          pass.logit_rows.push_back(first + i);
        if (wanted == LogitsWanted::last && ended) pass.logit_rows.push_back(first + n - 1);
        if (ended) {
          ++feed;
          offset = 0;
        }
      }
      run(pass, out, stop);
      if (stopped()) return false;  // before its end or after: the pass cannot tell
      out += pass.logit_rows.size() * vocabulary;
      done += pass.tokens.size();
      if (progress) progress("prompt", done, total);
    }
    rewind.armed = false;
    return true;
  }

  static const SessionOptions& checked(const SessionOptions& o) {
    const auto positive = [](const char* name, std::size_t value) {
      if (value == 0)
        raise<ArgumentError>(std::string("session: ") + name + " must be at least 1, found 0");
    };
    positive("batch", o.batch);
    positive("capacity", o.capacity);
    positive("chunk", o.chunk);
    return o;
  }

  static constexpr std::string_view sequence_kind = "quipuseq";

  /// What keys and values depend on: the model and the options that change them.
  std::vector<StateFact> state_facts() const {
    std::vector<StateFact> facts = fingerprint(model_);
    facts.push_back({"cache", std::string(name(options_.cache))});
    facts.push_back({"mode", options_.mode == NumericMode::bf16 ? "bf16" : "f32"});
    facts.push_back({"activations", options_.activations == ActivationMode::int8 ? "int8" : "f32"});
    return facts;
  }

  std::size_t kv_bytes(std::size_t positions) const {
    return detail::kv_state_bytes(caches_.front().shape(), caches_.size(), positions);
  }

  /// Checks all of a saved sequence; the reader stands before the number of positions.
  detail::ByteReader open_saved(std::span<const std::byte> bytes, std::string_view file) const {
    detail::ByteReader reader = detail::open_state(bytes, sequence_kind, file);
    detail::check_facts(reader, state_facts());
    detail::ByteReader rest = reader;
    const auto length = rest.read<std::uint64_t>("positions");
    if (length > options_.capacity) {
      raise<ArgumentError>(std::string(file) + ": " + std::to_string(length) +
                           " positions do not fit the capacity of " +
                           std::to_string(options_.capacity));
    }
    rest.take(kv_bytes(static_cast<std::size_t>(length)), "keys and values");
    detail::check_end(rest);
    return reader;
  }

  void check_row(std::size_t row) const {
    if (row >= options_.batch) {
      raise<ArgumentError>("row " + std::to_string(row) + ": the session has " +
                           std::to_string(options_.batch) + " sequences");
    }
  }

  void check(std::span<const Feed> feeds, LogitsWanted wanted,
             std::span<const float> logits) const {
    const std::size_t vocabulary = model_.architecture().vocab_size;
    std::vector<bool> fed(options_.batch, false);
    for (const Feed& feed : feeds) {
      check_row(feed.row);
      const std::string row = "row " + std::to_string(feed.row) + ": ";
      if (fed[feed.row]) raise<ArgumentError>(row + "fed twice in one call");
      fed[feed.row] = true;
      if (feed.tokens.empty()) raise<ArgumentError>(row + "no tokens were given");
      const std::size_t filled = lengths_[feed.row];
      const std::size_t start = feed.start.value_or(filled);
      if (start > filled && !options_.allow_gaps) {
        raise<ArgumentError>(row + "start position " + std::to_string(start) + " is past the " +
                             std::to_string(filled) + " positions filled");
      }
      if (start > options_.capacity || feed.tokens.size() > options_.capacity - start) {
        raise<ArgumentError>(row + std::to_string(feed.tokens.size()) + " tokens from position " +
                             std::to_string(start) + " on do not fit the capacity of " +
                             std::to_string(options_.capacity) + " positions");
      }
      for (std::size_t i = 0; i < feed.tokens.size(); ++i) {
        const TokenId token = feed.tokens[i];
        if (token < 0 || static_cast<std::size_t>(token) >= vocabulary) {
          raise<ArgumentError>(row + "token " + std::to_string(i) + " has the id " +
                               std::to_string(token) + ", the vocabulary has " +
                               std::to_string(vocabulary));
        }
      }
    }
    const std::size_t needed = checked_mul(logit_rows(feeds, wanted), vocabulary, "logits");
    if (logits.size() < needed) {
      raise<ArgumentError>("logits: room for " + std::to_string(logits.size()) +
                           " values, needed " + std::to_string(needed));
    }
  }

  void run(const Pass& pass, float* logits, const std::atomic<bool>* stop) {
    std::vector<ForwardCall> calls;
    std::vector<StoppableExecutor> stoppable;  // the calls refer to them
    stoppable.reserve(caches_.size());
    for (std::size_t r = 0; r < caches_.size(); ++r) {
      if (stop != nullptr) stoppable.emplace_back(model_.executor(r), *stop);
      calls.push_back({.tokens = pass.tokens,
                       .chunks = pass.chunks,
                       .logit_rows = pass.logit_rows,
                       .logits = logits,
                       .cache = &caches_[r],
                       .inverse_frequencies = model_.inverse_frequencies().data(),
                       .norm_eps = static_cast<float>(model_.entry().numerics.norm_eps),
                       .mode = options_.mode,
                       .activations = options_.activations,
                       .trace = trace_,
                       .profile = r == 0 ? profile_ : ProfileHook{},
                       .executor = stop == nullptr ? model_.executor(r) : stoppable[r],
                       .communicator = model_.communicator(r),
                       .scratch = &scratch_[r],
                       .plan = &plan_});
    }
    profile_.start();
    model_.forward(calls);
    profile_.finish();
  }

  Model model_;
  SessionOptions options_;
  std::vector<std::size_t> lengths_;
  ForwardPlan plan_;
  std::vector<KvCache> caches_;  // of each rank that this process runs
  std::vector<Arena> scratch_;
  TraceHook trace_;
  ProfileHook profile_;
};

}  // namespace quipu
