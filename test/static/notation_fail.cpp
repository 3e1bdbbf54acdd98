// What must not compile, one case at a time; QUIPU_CASE 0 must. The message of each is matched for
// GCC and Clang by test/static/CMakeLists.txt.
#include "quipu/atlas/card.hpp"
#include "quipu/notation/description.hpp"
#include "quipu/quipu.hpp"

namespace {

using namespace quipu;
namespace n = quipu::notation;
using C = VocabularyProjection<models::llama3_1_8b>;

struct Description {
  using of = C;
  static constexpr n::Kind kind = n::Kind::learned;
#if QUIPU_CASE == 5
  using symbols = n::Symbols<n::in<symbol::z, C::In>, n::weight<symbol::W_out, C::Weight>,
                             n::out<symbol::L, C::In>>;
#else
  using symbols = n::Symbols<n::in<symbol::z, C::In>, n::weight<symbol::W_out, C::Weight>,
                             n::out<symbol::L, C::Out>>;
#endif
#if QUIPU_CASE == 1
  static constexpr auto equations = n::equations(symbol::L == symbol::x * symbol::W_out);
#elif QUIPU_CASE == 2
  static constexpr auto equations = n::equations(symbol::L == symbol::z);
#elif QUIPU_CASE == 3
  static constexpr auto equations = n::equations(symbol::L == symbol::L * symbol::W_out);
#elif QUIPU_CASE == 4
  static constexpr auto equations =
      n::equations(symbol::L == (symbol::z + symbol::L) * symbol::W_out);
#elif QUIPU_CASE == 5
  static constexpr auto equations = n::equations(symbol::L == symbol::z);
#else
  static constexpr auto equations = n::equations(symbol::L == symbol::z * symbol::W_out);
#endif
};
static_assert(n::checked<Description>);

constexpr n::SourceFile file =
#if QUIPU_CASE == 6
    {"meta-llama/llama3", "llama/model.py", "main", 302};
#else
    n::files::llama3_model;
#endif
constexpr n::Source record = n::source("id", n::Evidence::direct, "claim", file,
#if QUIPU_CASE == 7
                                       {{302, 303}},
#elif QUIPU_CASE == 8
                                       {{20, 30}, {25, 40}},
#else
                                       {{266, 269}, {298, 302}},
#endif
#if QUIPU_CASE == 9
                                       {});
#else
                                       {"self.norm"});
#endif

// A component whose count is not what its weights add up to.
struct Miscounted : C {
#if QUIPU_CASE == 10
  static constexpr std::size_t parameters = C::parameters + 1;
#endif
};
static_assert(quipu::atlas::detail::account_adds_up<Miscounted>);

}  // namespace

int main() { return static_cast<int>(record.lines.size()) - 2; }
