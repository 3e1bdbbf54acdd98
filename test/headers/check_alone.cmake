# Each header of FOLDER by itself, included twice: no header leans on what another one included.
# "." is the folder of the umbrella headers. *-inl.hpp are included once for each SIMD target, by
# translation units that set that up, and are compiled in test/simd.
if(FOLDER STREQUAL ".")
  file(GLOB headers RELATIVE "${ROOT}" "${ROOT}/quipu/*.hpp")
else()
  file(GLOB headers RELATIVE "${ROOT}" "${ROOT}/quipu/${FOLDER}/*.hpp")
endif()
list(FILTER headers EXCLUDE REGEX "-inl\\.hpp$|parallel/mpi\\.hpp$")
if(NOT headers)
  message(FATAL_ERROR "no header in ${ROOT}/quipu/${FOLDER}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/../system_includes.cmake")
list(REMOVE_ITEM INCLUDES "${ROOT}")
quipu_system_includes(folders ${INCLUDES})
set(failed "")
foreach(header IN LISTS headers)
  execute_process(
    COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
            ${FLAGS} "-I${ROOT}" ${folders} -include "${header}" -include "${header}" -x c++ /dev/null
    RESULT_VARIABLE code ERROR_VARIABLE printed)
  if(NOT code EQUAL 0)
    string(APPEND failed "\n--- ${header}\n${printed}")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "not self-contained:${failed}")
endif()
