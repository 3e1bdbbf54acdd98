// Including quipu/run.hpp leaves the program's floating point as it was: the same expression before
// and after the include gives the same bits, fused or not as the compiler's options have it.
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

APART float before(float a, float b, float c) { return a * b + c; }

#include "quipu/run.hpp"

APART float after(float a, float b, float c) { return a * b + c; }

// 0: equal, 1: not equal, 2: neither was fused, so that nothing was seen.
int main() {
  const float x = 1 + 0x1p-12f;  // x * x has a bit more than a float keeps
  const float rounded = 1 + 0x1p-11f;
  const float first = before(x, x, -rounded), second = after(x, x, -rounded);
  return first != second ? 1 : first == 0 ? 2 : 0;
}
