// Included right after HWY_BEFORE_NAMESPACE(), which saves the compiler's options until
// HWY_AFTER_NAMESPACE(): a multiply-add is fused exactly where MulAdd is written. GCC would fuse
// a * b + c of separate operations, Clang within one expression, and results would differ between
// compilers and targets. No guard on purpose: it holds for the file that includes it.
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC optimize("fp-contract=off")
#elif HWY_COMPILER_CLANG
#pragma clang fp contract(off)
#endif
