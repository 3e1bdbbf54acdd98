// A plain scalar forward pass of the Llama 3 architecture: the independent judge of every kernel.
//
// It is written from the equations, one loop at a time, and shares no code with the library. It
// computes in float32, or rounds to bfloat16 at the points where Meta's reference does when it runs
// in bfloat16. `Sum` is the type in which sums of products are accumulated: float, or double, which
// takes the rounding of sums away and leaves that of the stored values.
// Siblings: scalar_model.hpp (configuration, weights, loading), scalar_forward_test.cpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/scalar_model.hpp"
#include "support/float_bits.hpp"

namespace quipu_test {

/// Where values are rounded: nowhere beyond float32, or at the reference's own bfloat16 points.
enum class Rounding { float32, bf16 };

/// Called with each named tensor: its id (`layers.0.attention.xq_rope`), extents and values.
using Trace = std::function<void(const std::string& id, const std::vector<std::size_t>& extents,
                                 std::span<const float> values)>;

/// Inverse frequencies of the rotary embedding, one for each pair of a head, in the reference's
/// order of float32 operations. (A power in double, rounded, is the correctly rounded float32 one.)
inline std::vector<float> inverse_frequencies(const ScalarConfig& config) {
  std::vector<float> frequencies(config.head_dim / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    float f = 1.0f / static_cast<float>(std::pow(double{config.rope_theta}, double{exponent}));
    if (config.rope_factor != 1) {
      // Llama 3.1: wavelengths past 8192 are stretched, those under 2048 kept, smooth between.
      const float wavelength = 2 * std::numbers::pi_v<float> / f;
      const float stretched = f / config.rope_factor;
      if (wavelength > 8192.0f) {
        f = stretched;
      } else if (wavelength >= 2048.0f) {
        const float smooth = (8192.0f / wavelength - 1) / 3;
        const float kept = smooth * f;
        f = (1 - smooth) * f / config.rope_factor + kept;
      }
    }
    frequencies[i] = f;
  }
  return frequencies;
}

/// One model on one batch: it owns the key and value cache, zero at first.
template <class Sum = float>
class ScalarLlama {
 public:
  using Vector = std::vector<float>;

  /// `ranks` > 1 computes wo and w2 as that many model-parallel ranks do: each rank's partial
  /// product over its share of the inputs is rounded by itself, then the parts are summed.
  ScalarLlama(ScalarConfig config, const ScalarWeights& weights, Rounding rounding,
              std::size_t batch, std::size_t capacity, std::size_t ranks = 1)
      : config_(config),
        weights_(weights),
        rounding_(rounding),
        batch_(batch),
        capacity_(capacity),
        ranks_(ranks),
        frequencies_(inverse_frequencies(config)),
        keys_(config.n_layers, Vector(batch * capacity * config.n_kv_heads * config.head_dim)),
        values_(keys_) {}

  /// tokens is [batch, count]; they stand at positions start .. start + count - 1, and everything
  /// before start is what earlier calls left in the cache. Returns logits [batch, count, vocab].
  Vector forward(std::span<const std::int64_t> tokens, std::size_t start, const Trace& trace = {}) {
    const std::size_t count = tokens.size() / batch_;
    Vector x = embed(tokens);
    tell(trace, "tok_embeddings", count, config_.dim, x);
    for (std::size_t layer = 0; layer < config_.n_layers; ++layer)
      x = block(layer, x, start, trace);
    const Vector normed = rms_norm(x, weights_.norm);
    tell(trace, "norm", count, config_.dim, normed);
    Vector logits = product(
        normed, weights_.output.empty() ? weights_.tok_embeddings : weights_.output, config_.dim);
    tell(trace, "logits", count, config_.vocab_size, logits);
    return logits;
  }

  /// One block on the residual stream x [batch, count, dim]; returns the stream after it.
  Vector block(std::size_t layer, Vector x, std::size_t start, const Trace& trace = {}) {
    const std::size_t count = x.size() / (batch_ * config_.dim);
    const ScalarLayer& w = weights_.layers.at(layer);
    const std::string id = "layers." + std::to_string(layer) + ".";
    if (start + count > capacity_) throw std::out_of_range("positions past the capacity");

    const Vector attention_input = rms_norm(x, w.attention_norm);
    tell(trace, id + "attention_norm", count, config_.dim, attention_input);
    const Vector update = attention(layer, attention_input, start, trace);
    tell(trace, id + "attention.wo", count, config_.dim, update);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = round(x[i] + update[i]);
    tell(trace, id + "h", count, config_.dim, x);

    const Vector ffn_input = rms_norm(x, w.ffn_norm);
    tell(trace, id + "ffn_norm", count, config_.dim, ffn_input);
    const Vector ffn_update = feed_forward(layer, ffn_input, trace);
    tell(trace, id + "feed_forward.w2", count, config_.dim, ffn_update);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = round(x[i] + ffn_update[i]);
    tell(trace, id + "out", count, config_.dim, x);
    return x;
  }

  /// RMSNorm over the last extent: x / sqrt(mean(x^2) + eps) is rounded before the weight too.
  Vector rms_norm(Vector x, std::span<const float> weight) const {
    const std::size_t n = weight.size();
    for (std::size_t row = 0; row < x.size(); row += n) {
      Sum squares = 0;
      for (std::size_t i = 0; i < n; ++i) squares += static_cast<Sum>(x[row + i]) * x[row + i];
      const float mean = static_cast<float>(squares / static_cast<Sum>(n));
      const float scale = 1.0f / std::sqrt(mean + config_.norm_eps);
      for (std::size_t i = 0; i < n; ++i) x[row + i] = round(round(x[row + i] * scale) * weight[i]);
    }
    return x;
  }

  /// y = x W^T for each row of x [rows, inputs]; W is [outputs, inputs]. With `parts` > 1 the
  /// inputs are cut into so many equal shares, whose sums are rounded each and then together.
  Vector product(std::span<const float> x, std::span<const float> w, std::size_t inputs,
                 std::size_t parts = 1) const {
    const std::size_t outputs = w.size() / inputs, rows = x.size() / inputs;
    const std::size_t share = inputs / parts;
    Vector y(rows * outputs);
    for (std::size_t out = 0; out < outputs; ++out) {
      for (std::size_t row = 0; row < rows; ++row) {
        float total = 0;
        for (std::size_t part = 0; part < inputs; part += share) {
          Sum sum = 0;
          for (std::size_t k = part; k < part + share; ++k) {
            sum += static_cast<Sum>(x[row * inputs + k]) * w[out * inputs + k];
          }
          total += round(static_cast<float>(sum));
        }
        y[row * outputs + out] = round(total);
      }
    }
    return y;
  }

  /// The cache of a layer, [batch, capacity, kv_heads, head_dim]: keys after rotation, and values.
  Vector& keys(std::size_t layer) { return keys_.at(layer); }
  Vector& values(std::size_t layer) { return values_.at(layer); }

 private:
  float round(float x) const { return rounding_ == Rounding::bf16 ? round_bf16(x) : x; }

  void tell(const Trace& trace, const std::string& id, std::size_t count, std::size_t width,
            const Vector& x) const {
    if (trace) trace(id, {batch_, count, width}, x);
  }

  Vector embed(std::span<const std::int64_t> tokens) const {
    Vector x;
    for (const std::int64_t token : tokens) {
      const auto row = weights_.tok_embeddings.begin() + static_cast<std::ptrdiff_t>(config_.dim) *
                                                             static_cast<std::ptrdiff_t>(token);
      x.insert(x.end(), row, row + static_cast<std::ptrdiff_t>(config_.dim));
    }
    return x;
  }

  /// Turns the neighbouring pairs (2i, 2i + 1) of each head by position * frequency[i]. The angle
  /// is a float32 product; its cosine and sine are rounded once.
  Vector rotate(Vector x, std::size_t heads, std::size_t count, std::size_t start) const {
    const std::size_t half = config_.head_dim / 2;
    for (std::size_t row = 0; row < batch_ * count; ++row) {
      const auto position = static_cast<float>(start + row % count);
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = position * frequencies_[i];
        const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
        for (std::size_t head = 0; head < heads; ++head) {
          float* pair = &x[((row * heads + head) * half + i) * 2];
          const float a = pair[0], b = pair[1];
          pair[0] = round(a * c - b * s);
          pair[1] = round(a * s + b * c);
        }
      }
    }
    return x;
  }

  /// softmax(q k^T / sqrt(head_dim)) v for each query head; query head h reads the key and value
  /// head h / (heads / kv_heads). A token sees all positions up to its own.
  Vector attention(std::size_t layer, const Vector& input, std::size_t start, const Trace& trace) {
    const ScalarLayer& w = weights_.layers.at(layer);
    const std::size_t heads = config_.n_heads, kv_heads = config_.n_kv_heads, d = config_.head_dim;
    const std::size_t count = input.size() / (batch_ * config_.dim), length = start + count;
    const std::string id = "layers." + std::to_string(layer) + ".attention.";

    const Vector xq = product(input, w.wq, config_.dim), xk = product(input, w.wk, config_.dim),
                 xv = product(input, w.wv, config_.dim);
    tell(trace, id + "xq", count, heads * d, xq);
    tell(trace, id + "xk", count, kv_heads * d, xk);
    tell(trace, id + "xv", count, kv_heads * d, xv);
    const Vector q = rotate(xq, heads, count, start), k = rotate(xk, kv_heads, count, start);
    if (trace) trace(id + "xq_rope", {batch_, count, heads, d}, q);
    if (trace) trace(id + "xk_rope", {batch_, count, kv_heads, d}, k);

    const std::size_t kv_row = kv_heads * d;
    for (std::size_t b = 0; b < batch_; ++b) {
      for (std::size_t i = 0; i < count * kv_row; ++i) {
        keys_[layer][(b * capacity_ + start) * kv_row + i] = k[b * count * kv_row + i];
        values_[layer][(b * capacity_ + start) * kv_row + i] = xv[b * count * kv_row + i];
      }
    }

    Vector exact(batch_ * heads * count * length), merged(batch_ * count * heads * d);
    for (std::size_t b = 0; b < batch_; ++b) {
      for (std::size_t head = 0; head < heads; ++head) {
        for (std::size_t t = 0; t < count; ++t) {
          const std::size_t kv_head = head / (heads / kv_heads), visible = start + t + 1;
          const auto cached = [&](const Vector& cache, std::size_t position) {
            return &cache[((b * capacity_ + position) * kv_heads + kv_head) * d];
          };
          const float* query = &q[((b * count + t) * heads + head) * d];
          float* probs = &exact[((b * heads + head) * count + t) * length];
          for (std::size_t j = 0; j < visible; ++j) {
            const float* key = cached(keys_[layer], j);
            Sum score = 0;
            for (std::size_t i = 0; i < d; ++i) score += static_cast<Sum>(query[i]) * key[i];
            probs[j] = round(round(static_cast<float>(score)) / std::sqrt(static_cast<float>(d)));
          }
          softmax({probs, visible});
          for (std::size_t i = 0; i < d; ++i) {
            Sum sum = 0;
            for (std::size_t j = 0; j < visible; ++j) {
              sum += static_cast<Sum>(round(probs[j])) * cached(values_[layer], j)[i];
            }
            merged[((b * count + t) * heads + head) * d + i] = round(static_cast<float>(sum));
          }
        }
      }
    }
    if (trace) {
      const std::vector<std::size_t> extents = {batch_, heads, count, length};
      if (rounding_ == Rounding::bf16) trace(id + "probs_f32", extents, exact);
      for (float& p : exact) p = round(p);
      trace(id + "probs", extents, exact);
      trace(id + "merged", {batch_, count, heads * d}, merged);
    }
    return product(merged, w.wo, heads * d, ranks_);
  }

  static void softmax(std::span<float> x) {
    float largest = x[0];
    for (const float v : x) largest = v > largest ? v : largest;
    Sum sum = 0;
    for (float& v : x) sum += v = std::exp(v - largest);
    for (float& v : x) v /= static_cast<float>(sum);
  }

  /// w2(silu(w1 x) * w3 x), silu(z) = z / (1 + exp(-z)).
  Vector feed_forward(std::size_t layer, const Vector& input, const Trace& trace) const {
    const ScalarLayer& w = weights_.layers.at(layer);
    const std::size_t count = input.size() / (batch_ * config_.dim);
    const std::string id = "layers." + std::to_string(layer) + ".feed_forward.";
    const Vector gate = product(input, w.w1, config_.dim), up = product(input, w.w3, config_.dim);
    tell(trace, id + "w1", count, config_.ffn, gate);
    tell(trace, id + "w3", count, config_.ffn, up);
    Vector act(gate.size());
    for (std::size_t i = 0; i < act.size(); ++i) {
      act[i] = round(round(gate[i] / (1 + std::exp(-gate[i]))) * up[i]);
    }
    tell(trace, id + "act", count, config_.ffn, act);
    return product(act, w.w2, config_.ffn, ranks_);
  }

  ScalarConfig config_;
  const ScalarWeights& weights_;
  Rounding rounding_;
  std::size_t batch_, capacity_, ranks_;
  std::vector<float> frequencies_;
  std::vector<Vector> keys_, values_;
};

}  // namespace quipu_test
