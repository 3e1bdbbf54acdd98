// Included right before HWY_AFTER_NAMESPACE(): ends what contraction_off-inl.hpp began.
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC pop_options
#elif HWY_COMPILER_CLANG
#pragma float_control(pop)
#endif
