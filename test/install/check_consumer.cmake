# Builds and runs consumer/ with quipu reached by WAY, from an empty folder.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${code}):\n${printed}")
  endif()
  set(printed "${printed}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
set(arguments "-DWAY=${WAY}" "-DCAN_RUN=${CAN_RUN}" "-DVERSION=${VERSION}")
if(WAY STREQUAL "find_package")
  run("installing" "${CMAKE_COMMAND}" --install "${QUIPU_BUILD}" --component development
      --config "${BUILD_TYPE}" --prefix "${WORK}/prefix")
  list(APPEND arguments "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
else()
  list(APPEND arguments "-DQUIPU_SOURCE=${QUIPU_SOURCE}")
endif()

run("configuring" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${WORK}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" ${arguments})
run("building" "${CMAKE_COMMAND}" --build "${WORK}/build" --config "${BUILD_TYPE}")
run("running" "${WORK}/build/consumer")

# Nothing of quipu's own is in the consumer's build: no tests, and nothing that its installation
# would carry along.
run("listing tests" "${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}/build" -N)
if(NOT printed MATCHES "Total Tests: 0")
  message(FATAL_ERROR "quipu adds tests to another project:\n${printed}")
endif()
run("installing the consumer" "${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${WORK}/other_prefix")
file(GLOB_RECURSE installed RELATIVE "${WORK}/other_prefix" "${WORK}/other_prefix/*")
if(NOT installed STREQUAL "bin/consumer")
  message(FATAL_ERROR "the consumer installs one program, but found: ${installed}")
endif()
