// Inverse frequencies, bit for bit those of the reference.
#include "quipu/config/rope.hpp"

#include <bit>
#include <cstdint>

#include "quipu/config/catalogue.hpp"
#include "rope_golden.hpp"

using namespace quipu;

template <class Table, std::size_t N>
constexpr bool same_bits(const Table& table, const std::uint32_t (&golden)[N]) {
  if (table.size() != N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    if (std::bit_cast<std::uint32_t>(table[i]) != golden[i]) return false;
  }
  return true;
}

// Head width 128: Llama 3, 3.1 and 3.2 3B (factor 32).
static_assert(same_bits(inverse_frequencies<models::llama3_8b>, quipu_test::unscaled_128));
static_assert(same_bits(inverse_frequencies<models::llama3_70b>, quipu_test::unscaled_128));
static_assert(same_bits(inverse_frequencies<models::llama3_1_8b>, quipu_test::scaled_128));
static_assert(same_bits(inverse_frequencies<models::llama3_1_405b>, quipu_test::scaled_128));
static_assert(same_bits(inverse_frequencies<models::llama3_3_70b>, quipu_test::scaled_128));
static_assert(same_bits(inverse_frequencies<models::llama3_2_3b>, quipu_test::scaled32_128));
// Head width 64: Llama 3.2 1B, and user's models with the other two scalings.
static_assert(same_bits(inverse_frequencies<models::llama3_2_1b>, quipu_test::scaled32_64));
struct unscaled_64 : models::llama3_2_1b {
  static constexpr none rope_scaling{};
};
struct scaled_64 : models::llama3_2_1b {
  static constexpr llama3_scaling rope_scaling{
      .factor = 8, .low = 1, .high = 4, .original_positions = 8192};
};
static_assert(same_bits(inverse_frequencies<unscaled_64>, quipu_test::unscaled_64));
static_assert(same_bits(inverse_frequencies<scaled_64>, quipu_test::scaled_64));
// The comparison can fail.
static_assert(!same_bits(inverse_frequencies<models::llama3_8b>, quipu_test::scaled_128));

// Llama 3.1's bands by wavelength: pairs 0 to 28 are kept, 29 to 34 blended, 35 to 63 divided by 8.
constexpr bool bands() {
  const auto& plain = inverse_frequencies<models::llama3_8b>;
  const auto& scaled = inverse_frequencies<models::llama3_1_8b>;
  for (std::size_t i = 0; i < 64; ++i) {
    const bool kept = scaled[i] == plain[i];
    const bool divided = scaled[i] == plain[i] / 8;
    if (kept != (i <= 28) || divided != (i >= 35)) return false;
  }
  return true;
}
static_assert(bands());
