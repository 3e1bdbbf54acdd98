// Included right after HWY_BEFORE_NAMESPACE(): up to contraction_restored-inl.hpp a multiply-add is
// fused exactly where MulAdd is written. GCC would fuse a * b + c of separate operations, Clang
// within one expression, and results would differ between compilers and targets. No guard on
// purpose: it holds for the file that includes it.
//
// The compiler's state is saved here and not left to HWY_BEFORE_NAMESPACE(), which saves nothing of
// it in Clang, and in GCC only for targets with attributes: the program's own code after an include
// of quipu/run.hpp keeps its options (headers.contraction).
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#elif HWY_COMPILER_CLANG
#pragma float_control(push)
#pragma clang fp contract(off)
#endif
