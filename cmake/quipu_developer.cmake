# What only quipu's own build uses: warnings, sanitizers, the functions that add tests and benches.
option(QUIPU_WERROR "Warnings are errors in quipu's own build" OFF)
set(QUIPU_SANITIZE "" CACHE STRING "Sanitizers for quipu's own build, such as address,undefined or thread")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(quipu_warnings INTERFACE)
target_compile_options(quipu_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                       $<$<BOOL:${QUIPU_WERROR}>:-Werror>)
# GCC 12's -Wrestrict, on at -Wall, is wrong about sums of std::string from -O2 on (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(quipu_warnings INTERFACE -Wno-restrict)
endif()
if(QUIPU_SANITIZE)
  target_compile_options(quipu_warnings INTERFACE -fsanitize=${QUIPU_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(quipu_warnings INTERFACE -fsanitize=${QUIPU_SANITIZE})
  # The kernels' unrolled tiles are thousands of accesses in one function. With every check written out in
  # place GCC 12 does not get through them in ten minutes; it does in 100 s of processor time with
  # AddressSanitizer's checks as calls, without its marking of scopes (half as much again), and without
  # those checks of UBSan that only foretell an access which AddressSanitizer then judges.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND QUIPU_SANITIZE MATCHES "address")
    target_compile_options(quipu_warnings INTERFACE --param=asan-instrumentation-with-call-threshold=0
                           -fno-sanitize-address-use-after-scope)
    if(QUIPU_SANITIZE MATCHES "undefined")
      target_compile_options(quipu_warnings INTERFACE -fno-sanitize=null,pointer-overflow,object-size,vptr)
    endif()
  endif()
endif()

# Tests judge results, not speed: -O1 compiles them in half the time of -O3. (The same flags as the
# library's users have are tried by the programs and benchmarks.)
set(QUIPU_TEST_OPTIONS -O1 CACHE STRING "Compiler options of the tests, after those of the build type")
set(QUIPU_TESTS_LEFT_OUT "" CACHE STRING "Regular expression: tests that are neither built nor run")

# How the output of a GoogleTest executable ends when every one of its tests was skipped: ctest then reports
# it as skipped. A failure, or anything said after the list (by a sanitizer), is no such end.
set(quipu_every_test_skipped
    "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+$")

# quipu_add_test(NAME SOURCES a.cpp ... [LINK target ...] [LABELS label ...])
# A GoogleTest executable, which is one test of ctest's. QUIPU_TEST_DATA is the folder test/data. Tests that
# are skipped among others are listed by test/list_skipped.py.
function(quipu_add_test name)
  if(QUIPU_TESTS_LEFT_OUT AND name MATCHES "${QUIPU_TESTS_LEFT_OUT}")
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE quipu_warnings GTest::gtest_main ${arg_LINK})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/test" "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE QUIPU_TEST_DATA="${PROJECT_SOURCE_DIR}/test/data")
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${QUIPU_TEST_OPTIONS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600
                       SKIP_REGULAR_EXPRESSION "${quipu_every_test_skipped}")
endfunction()

# Benchmarks are measured where they are built: one target, the processor's own, which costs a third of
# the compilation that three take.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-march=native QUIPU_HAS_MARCH_NATIVE)

# quipu_add_bench(NAME SOURCES a.cpp ... [LINK target ...])
function(quipu_add_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE quipu_warnings benchmark::benchmark_main ${arg_LINK})
  target_compile_definitions(${name} PRIVATE HWY_COMPILE_ONLY_STATIC)
  if(QUIPU_HAS_MARCH_NATIVE)
    target_compile_options(${name} PRIVATE -march=native)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench" "${CMAKE_CURRENT_SOURCE_DIR}")
endfunction()
