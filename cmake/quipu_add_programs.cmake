# quipu_add_programs(NAME mine HEADER my_model.hpp MODELS my::model [...] [RANKS 2 ...]
#                    [INCLUDE_DIRECTORIES dir ...])
#
# Builds the programs NAME-generate, NAME-inspect, ... for the models named: the programs of the
# catalogue (quipu-generate, ...) are built with this very function. Also adds the engine library
# NAME_engine (see quipu_add_engine), which an application can link beside them. Source files of the
# programs stand in examples/; they need CLI11 and fmt.
function(quipu_add_programs)
  cmake_parse_arguments(arg "" "NAME;HEADER" "MODELS;RANKS;INCLUDE_DIRECTORIES" ${ARGN})
  if(NOT arg_NAME OR NOT arg_HEADER OR NOT arg_MODELS)
    message(FATAL_ERROR "quipu_add_programs: NAME, HEADER and MODELS are needed")
  endif()
  # Functions run in the caller's scope: everything is found from here, not from a variable that a
  # subproject's folder would keep to itself.
  set(source_dir "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../examples")
  if(NOT EXISTS "${source_dir}/quipu_generate.cpp")
    set(source_dir "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/programs")  # installed
  endif()
  if(NOT TARGET CLI11::CLI11)
    find_package(CLI11 CONFIG QUIET)
  endif()
  if(NOT TARGET fmt::fmt)
    find_package(fmt CONFIG QUIET)
  endif()
  foreach(need IN ITEMS CLI11::CLI11 fmt::fmt)
    if(NOT TARGET ${need})
      message(FATAL_ERROR "quipu_add_programs(${arg_NAME}): ${need} was not found")
    endif()
  endforeach()
  string(MAKE_C_IDENTIFIER "${arg_NAME}_engine" engine)
  quipu_add_engine(${engine} HEADER "${arg_HEADER}" MODELS ${arg_MODELS} RANKS ${arg_RANKS}
                   INCLUDE_DIRECTORIES ${arg_INCLUDE_DIRECTORIES})
  foreach(program IN ITEMS generate inspect atlas trace convert bench)
    set(name "${arg_NAME}-${program}")
    add_executable(${name} "${source_dir}/quipu_${program}.cpp")
    target_link_libraries(${name} PRIVATE CLI11::CLI11 fmt::fmt)
    if(program STREQUAL "atlas")
      # Knows the types and runs nothing: it is there before the kernels are compiled.
      target_link_libraries(${name} PRIVATE quipu::run)
      target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:${engine},INTERFACE_INCLUDE_DIRECTORIES>
                                 "${CMAKE_CURRENT_SOURCE_DIR}")  # for HEADER, as the engine has it
    else()
      target_link_libraries(${name} PRIVATE ${engine})
    endif()
    target_include_directories(${name} PRIVATE "${source_dir}")
    # The program's source is the same for every NAME; these say which engine it runs.
    target_compile_definitions(${name} PRIVATE QUIPU_ENGINE=${engine} QUIPU_ENGINE_HEADER="${engine}.hpp"
                               QUIPU_ENGINE_MODELS_HEADER="${engine}_models.hpp" QUIPU_PROGRAM_NAME="${name}")
    if(TARGET quipu_warnings)
      target_link_libraries(${name} PRIVATE quipu_warnings)
    endif()
  endforeach()
endfunction()
