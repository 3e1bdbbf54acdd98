// Rows in a block format that are not whole blocks.
// FAIL row_31: quantised_row_must_be_whole_blocks<axis::d, extent_is<31>, block_is<32>>
// FAIL row_33: quantised_row_must_be_whole_blocks<axis::d, extent_is<33>, block_is<32>>
// FAIL row_255: quantised_row_must_be_whole_blocks<axis::d, extent_is<255>, block_is<256>>
// FAIL row_257: quantised_row_must_be_whole_blocks<axis::d, extent_is<257>, block_is<256>>
// FAIL row_255_q4_1: quantised_row_must_be_whole_blocks<axis::d, extent_is<255>, block_is<32>>
// FAIL smollm2_as_q4_k: quantised_row_must_be_whole_blocks<axis::d, extent_is<576>, block_is<256>>
#include "quipu/quipu.hpp"

using namespace quipu;
template <std::size_t In>
using Row = Weight<weight_id::w1, dim<axis::ffn, 4>, dim<axis::d, In>>;

#if defined(QUIPU_FAIL_row_31)
constexpr std::size_t bytes = stored_bytes<Row<31>, ElementType::q8_0>;
#elif defined(QUIPU_FAIL_row_33)
constexpr std::size_t bytes = stored_bytes<Row<33>, ElementType::q4_0>;
#elif defined(QUIPU_FAIL_row_255)
constexpr std::size_t bytes = stored_bytes<Row<255>, ElementType::q6_k>;
#elif defined(QUIPU_FAIL_row_257)
constexpr std::size_t bytes = stored_bytes<Row<257>, ElementType::q4_k>;
#elif defined(QUIPU_FAIL_row_255_q4_1)
constexpr std::size_t bytes = stored_bytes<Row<255>, ElementType::q4_1>;
#elif defined(QUIPU_FAIL_smollm2_as_q4_k)
constexpr std::size_t bytes =
    stored_bytes<QueryProjection<models::smollm2_135m>::Weight, ElementType::q4_k>;
#else
constexpr std::size_t bytes = stored_bytes<Row<32>, ElementType::q8_0> +
                              stored_bytes<Row<256>, ElementType::q4_k> +
                              stored_bytes<Row<31>, ElementType::f32>;
static_assert(bytes == 4 * 34 + 4 * 144 + 4 * 124);
#endif
static_assert(bytes + 1 > 0);
