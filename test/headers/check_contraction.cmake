# Compiles contraction.cpp and runs it. Scalar kernels for a processor with fused multiply-add: there
# GCC's options too would stay changed if nothing restored them.
if(NOT COMPILER)
  message("skipped: no such compiler on this machine")
  return()
endif()
include("${CMAKE_CURRENT_LIST_DIR}/../system_includes.cmake")
quipu_system_includes(folders ${INCLUDES})
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -O2 -march=native -DHWY_COMPILE_ONLY_SCALAR "-I${ROOT}" ${folders} "${FILE}" -o
          "${OUT}" -lhwy -lpcre2-8 -lminizip
  RESULT_VARIABLE code ERROR_VARIABLE printed)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "it does not compile:\n${printed}")
endif()
execute_process(COMMAND "${OUT}" RESULT_VARIABLE code)
if(code EQUAL 2)
  message("skipped: this compiler and processor do not fuse a * b + c")
elseif(NOT code EQUAL 0)
  message(FATAL_ERROR "a * b + c is another number after the include (exit ${code})")
endif()
