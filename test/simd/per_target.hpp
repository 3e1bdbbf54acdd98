// Runs a check on every SIMD target that this program has and this processor can run.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "hwy/highway.h"

namespace quipu_test {

/// True if the target's MulAdd rounds once: there results equal the canonical order bit for bit.
inline bool fuses_multiply_add(std::int64_t target) {
#if HWY_ARCH_X86
  return target == HWY_AVX2 || target == HWY_AVX3 || target == HWY_AVX3_DL;
#else
  return target != HWY_SCALAR && target != HWY_EMU128;
#endif
}

/// check(target) for every target, with HWY_DYNAMIC_DISPATCH sent to it.
template <class Check>
void for_each_target(Check check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace quipu_test
