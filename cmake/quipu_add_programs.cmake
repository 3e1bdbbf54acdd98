# quipu_add_programs(NAME mine HEADER my_model.hpp MODELS my::model [...] [INCLUDE_DIRECTORIES dir ...])
#
# Builds the programs NAME-generate, NAME-inspect, ... for the models named: the programs of the
# catalogue (quipu-generate, ...) are built with this very function. Also adds the engine library
# NAME_engine (see quipu_add_engine), which an application can link beside them. Source files of the
# programs stand in examples/; they need CLI11 and fmt.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../examples/quipu_generate.cpp")
  set(QUIPU_PROGRAM_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/../examples")
else()
  set(QUIPU_PROGRAM_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/programs")
endif()
set(QUIPU_PROGRAMS generate inspect trace convert)

function(quipu_add_programs)
  cmake_parse_arguments(arg "" "NAME;HEADER" "MODELS;INCLUDE_DIRECTORIES" ${ARGN})
  if(NOT arg_NAME OR NOT arg_HEADER OR NOT arg_MODELS)
    message(FATAL_ERROR "quipu_add_programs: NAME, HEADER and MODELS are needed")
  endif()
  foreach(need IN ITEMS CLI11::CLI11 fmt::fmt)
    if(NOT TARGET ${need})
      message(FATAL_ERROR "quipu_add_programs(${arg_NAME}): ${need} was not found")
    endif()
  endforeach()
  string(MAKE_C_IDENTIFIER "${arg_NAME}_engine" engine)
  quipu_add_engine(${engine} HEADER "${arg_HEADER}" MODELS ${arg_MODELS}
                   INCLUDE_DIRECTORIES ${arg_INCLUDE_DIRECTORIES})
  foreach(program IN LISTS QUIPU_PROGRAMS)
    set(name "${arg_NAME}-${program}")
    add_executable(${name} "${QUIPU_PROGRAM_SOURCE_DIR}/quipu_${program}.cpp")
    target_link_libraries(${name} PRIVATE ${engine} CLI11::CLI11 fmt::fmt)
    target_include_directories(${name} PRIVATE "${QUIPU_PROGRAM_SOURCE_DIR}")
    # The program's source is the same for every NAME; these say which engine it runs.
    target_compile_definitions(${name} PRIVATE QUIPU_ENGINE=${engine} QUIPU_ENGINE_HEADER="${engine}.hpp"
                               QUIPU_PROGRAM_NAME="${name}")
    if(TARGET quipu_warnings)
      target_link_libraries(${name} PRIVATE quipu_warnings)
    endif()
  endforeach()
endfunction()
