// The steps of packing: so many bytes of each of 16 rows become bytes of a packed panel.
//
// Every step only moves bits: rows are transposed as words of four bytes, then fields of a few bits
// change places between or within words. The vectors are the compiler's own of 16 bytes, which
// every processor here has, so that loading needs no dispatch: beside memory, wider ones would gain
// nothing. Siblings: packing.hpp (the layout, and who runs the steps), test/simd/packing_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "quipu/shape/element_type.hpp"
#include "quipu/shape/matrix.hpp"

namespace quipu::detail {

using WordVector = std::uint32_t __attribute__((vector_size(16)));
using HalfVector = std::uint16_t __attribute__((vector_size(16)));
using ByteVector = std::uint8_t __attribute__((vector_size(16)));

template <class V = WordVector>
V load_vector(const std::uint8_t* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
void store_vector(V v, std::uint8_t* p) {
  std::memcpy(p, &v, sizeof v);
}

// The first halves of two vectors by turns, and the second halves.
inline WordVector first_by_turns(WordVector a, WordVector b) {
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
inline WordVector second_by_turns(WordVector a, WordVector b) {
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
inline HalfVector first_by_turns(HalfVector a, HalfVector b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
inline HalfVector second_by_turns(HalfVector a, HalfVector b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline ByteVector first_by_turns(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline ByteVector second_by_turns(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

template <std::size_t I, class V, std::size_t Count>
[[gnu::always_inline]] inline V by_turns(const V (&x)[Count]) {
  if constexpr (I % 2 == 0) return first_by_turns(x[I / 2], x[I / 2 + Count / 2]);
  return second_by_turns(x[I / 2], x[I / 2 + Count / 2]);
}
template <int Rounds, class V, std::size_t... I>
[[gnu::always_inline]] inline void transpose(V (&x)[sizeof...(I)], std::index_sequence<I...> all) {
  V y[] = {by_turns<I>(x)...};
  if constexpr (Rounds > 1) transpose<Rounds - 1>(y, all);
  ((x[I] = y[I]), ...);
}
/// Takes the elements of Count vectors as a matrix of 2^Rounds rows and transposes it. Each round
/// puts the elements of the first half of the vectors between those of the second: it rotates the
/// bits of an element's index by one, and rotating them by the bits of the row is transposing.
template <int Rounds, class V, std::size_t Count>
[[gnu::always_inline]] inline void transpose(V (&x)[Count]) {
  transpose<Rounds>(x, std::make_index_sequence<Count>());
}

/// The fields of b that `mask` selects change places with those of a that are Shift bits higher.
template <int Shift>
void exchange(WordVector& a, WordVector& b, std::uint32_t mask) {
  const WordVector t = ((a >> Shift) ^ b) & mask;
  b ^= t;
  a ^= t << Shift;
}
/// The same within a word.
template <int Shift>
WordVector exchanged(WordVector a, std::uint32_t mask) {
  const WordVector t = ((a >> Shift) ^ a) & mask;
  return a ^ t ^ (t << Shift);
}

/// Words 0 to 3 of four rows: w[i] has word i of each.
inline void load_words(const std::uint8_t* rows, std::size_t stride, WordVector (&w)[4]) {
  w[0] = load_vector(rows);
  w[1] = load_vector(rows + stride);
  w[2] = load_vector(rows + 2 * stride);
  w[3] = load_vector(rows + 3 * stride);
  transpose<2>(w);
}

/// Words of 16 rows side by side, Columns times four of each.
template <std::size_t Columns>
void pack_words(const std::uint8_t* in, std::size_t stride, std::uint8_t* out) {
  for (std::size_t lane = 0; lane < panel_outputs; lane += 4) {
    for (std::size_t c = 0; c < Columns; ++c) {
      WordVector w[4];
      load_words(in + lane * stride + 16 * c, stride, w);
      for (std::size_t i = 0; i < 4; ++i) store_vector(w[i], out + 64 * (4 * c + i) + 4 * lane);
    }
  }
}

/// 32 halves of 16 rows side by side.
inline void pack_halves(const std::uint8_t* in, std::size_t stride, std::uint8_t* out) {
  for (std::size_t lane = 0; lane < panel_outputs; lane += 8) {
    for (std::size_t c = 0; c < 4; ++c) {
      HalfVector h[8];
      for (std::size_t i = 0; i < 8; ++i)
        h[i] = load_vector<HalfVector>(in + (lane + i) * stride + 16 * c);
      transpose<3>(h);
      for (std::size_t i = 0; i < 8; ++i) store_vector(h[i], out + 32 * (8 * c + i) + 2 * lane);
    }
  }
}

/// One half of each of 16 rows.
inline void pack_half(const std::uint8_t* in, std::size_t stride, std::uint8_t* out) {
  for (std::size_t lane = 0; lane < panel_outputs; ++lane)
    std::memcpy(out + 2 * lane, in + lane * stride, 2);
}

/// A block of 32 inputs. In the file: halves first, then the 32 fifth bits, then the levels.
template <ElementType Type>
void pack_block_of_32(const std::uint8_t* in, std::size_t stride, std::uint8_t* unit) {
  constexpr bool has_minimum = Type == ElementType::q4_1 || Type == ElementType::q5_1;
  constexpr bool has_fifth = Type == ElementType::q5_0 || Type == ElementType::q5_1;
  pack_half(in, stride, unit);
  if (has_minimum) pack_half(in + 2, stride, unit + 32);
  std::uint8_t* quants = unit + (has_minimum ? 64 : 32);
  in += has_minimum ? 4 : 2;
  if (has_fifth) {
    for (std::size_t lane = 0; lane < panel_outputs; lane += 4) {
      std::uint32_t bits[4];
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(&bits[i], in + (lane + i) * stride, 4);
      WordVector w = load_vector(reinterpret_cast<const std::uint8_t*>(bits));
      // Bit 4g + j goes to bit g of byte j: the five bits of its index rotate by two places, which
      // is four exchanges of two of them.
      w = exchanged<14>(w, 0x0000ccccu);
      w = exchanged<7>(w, 0x00aa00aau);
      w = exchanged<2>(w, 0x0c0c0c0cu);
      w = exchanged<1>(w, 0x22222222u);
      store_vector(w, quants + 256 + 4 * lane);
    }
    in += 4;
  }
  pack_words<Type == ElementType::q8_0 ? 2 : 1>(in, stride, quants);
}

/// 32 bytes hold the nibbles of two runs of 32 inputs, one low, one high; the unit has each run's
/// own nibbles together, the later 16 inputs' in the high ones.
inline void pack_nibbles(const std::uint8_t* in, std::size_t stride, std::uint8_t* low_run,
                         std::uint8_t* high_run) {
  for (std::size_t lane = 0; lane < panel_outputs; lane += 4) {
    WordVector a[4], b[4];
    load_words(in + lane * stride, stride, a);
    load_words(in + lane * stride + 16, stride, b);
    for (std::size_t i = 0; i < 4; ++i) {
      exchange<4>(a[i], b[i], 0x0f0f0f0fu);
      store_vector(a[i], low_run + 64 * i + 4 * lane);
      store_vector(b[i], high_run + 64 * i + 4 * lane);
    }
  }
}

/// Four bytes of each of 16 lanes, in four vectors, to 16 lanes of byte 0, 1, 2, 3, which stand
/// `stride` bytes apart.
inline void store_bytes(const WordVector (&words)[4], std::uint8_t* out, std::size_t stride) {
  ByteVector b[4];
  for (std::size_t i = 0; i < 4; ++i) b[i] = reinterpret_cast<ByteVector>(words[i]);
  transpose<4>(b);
  for (std::size_t i = 0; i < 4; ++i) store_vector(b[i], out + i * stride);
}

/// q4_k and q5_k: two halves, 12 bytes of six-bit scales and minima, fifth bits, nibbles.
template <bool HasFifth>
void pack_block_k45(const std::uint8_t* in, std::size_t stride, std::uint8_t* unit) {
  constexpr std::size_t run = 32 + 256 + (HasFifth ? 64 : 0);  // bytes of 32 inputs
  HalfVector halves[4];
  WordVector low_scales[4], low_minima[4], high_scales[4], high_minima[4];
  for (std::size_t i = 0; i < 4; ++i) {
    WordVector w[4];
    load_words(in + 4 * i * stride, stride, w);
    halves[i] = reinterpret_cast<HalfVector>(w[0]);
    // As unpack_six_bits of dequantize.hpp, four runs at a time.
    low_scales[i] = w[1] & 0x3f3f3f3fu;
    low_minima[i] = w[2] & 0x3f3f3f3fu;
    high_scales[i] = (w[3] & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u);
    high_minima[i] = (w[3] >> 4 & 0x0f0f0f0fu) | (w[2] >> 2 & 0x30303030u);
  }
  transpose<4>(halves);
  for (std::size_t i = 0; i < 4; ++i) store_vector(halves[i], unit + 16 * i);
  std::uint8_t* runs = unit + 64;
  store_bytes(low_scales, runs, run);
  store_bytes(low_minima, runs + 16, run);
  store_bytes(high_scales, runs + 4 * run, run);
  store_bytes(high_minima, runs + 4 * run + 16, run);
  for (std::size_t pair = 0; pair < 4; ++pair) {
    std::uint8_t* low = runs + 2 * pair * run + 32;
    pack_nibbles(in + (HasFifth ? 48 : 16) + 32 * pair, stride, low, low + run);
  }
  for (std::size_t lane = 0; HasFifth && lane < panel_outputs; lane += 4) {
    // Bit s of byte j of word g goes to bit g of byte j of word s.
    WordVector first[4], second[4];
    load_words(in + 16 + lane * stride, stride, first);
    load_words(in + 32 + lane * stride, stride, second);
    for (std::size_t i = 0; i < 4; ++i) exchange<4>(first[i], second[i], 0x0f0f0f0fu);
    for (WordVector* w : {first, second}) {
      exchange<2>(w[0], w[2], 0x33333333u);
      exchange<2>(w[1], w[3], 0x33333333u);
      exchange<1>(w[0], w[1], 0x55555555u);
      exchange<1>(w[2], w[3], 0x55555555u);
    }
    for (std::size_t s = 0; s < 4; ++s) {
      store_vector(first[s], runs + s * run + 288 + 4 * lane);
      store_vector(second[s], runs + (4 + s) * run + 288 + 4 * lane);
    }
  }
}

/// q6_k: 128 bytes of nibbles, 64 of high pairs, 16 scales, a half.
inline void pack_block_k6(const std::uint8_t* in, std::size_t stride, std::uint8_t* unit) {
  constexpr std::size_t run = 32 + 256 + 128;  // bytes of 32 inputs
  std::uint8_t* runs = unit + 32;
  pack_half(in + 208, stride, unit);
  ByteVector scales[16];
  for (std::size_t lane = 0; lane < panel_outputs; ++lane)
    scales[lane] = load_vector<ByteVector>(in + 192 + lane * stride);
  transpose<4>(scales);
  for (std::size_t i = 0; i < 16; ++i) store_vector(scales[i], runs + i / 2 * run + i % 2 * 16);
  for (std::size_t half = 0; half < 2; ++half, in += 64, runs += 4 * run) {
    pack_nibbles(in, stride, runs + 32, runs + 2 * run + 32);
    pack_nibbles(in + 32, stride, runs + run + 32, runs + 3 * run + 32);
    // Pair q of byte j of word g goes to pair g of byte j of word q. `in` goes by the 64 bytes of
    // nibbles of a half, of which the pairs take 32.
    const std::uint8_t* pairs = in + 128 - 32 * half;
    for (std::size_t plane = 0; plane < 2; ++plane) {
      for (std::size_t lane = 0; lane < panel_outputs; lane += 4) {
        WordVector w[4];
        load_words(pairs + 16 * plane + lane * stride, stride, w);
        exchange<4>(w[0], w[2], 0x0f0f0f0fu);
        exchange<4>(w[1], w[3], 0x0f0f0f0fu);
        exchange<2>(w[0], w[1], 0x33333333u);
        exchange<2>(w[2], w[3], 0x33333333u);
        for (std::size_t q = 0; q < 4; ++q)
          store_vector(w[q], runs + q * run + 288 + 64 * plane + 4 * lane);
      }
    }
  }
}

/// One block of 16 rows to one unit.
template <ElementType Type>
void pack_block(const std::uint8_t* in, std::size_t stride, std::uint8_t* unit) {
  if constexpr (Type == ElementType::q4_k || Type == ElementType::q5_k) {
    pack_block_k45<Type == ElementType::q5_k>(in, stride, unit);
  } else if constexpr (Type == ElementType::q6_k) {
    pack_block_k6(in, stride, unit);
  } else {
    pack_block_of_32<Type>(in, stride, unit);
  }
}

}  // namespace quipu::detail
