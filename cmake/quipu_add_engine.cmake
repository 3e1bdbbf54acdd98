# quipu_add_engine(TARGET HEADER my_model.hpp MODELS my::model [...] [RANKS 2 ...]
#                  [INCLUDE_DIRECTORIES dir ...])
#
# Adds the static library TARGET: the forward passes of the named models for every SIMD target that
# the processor may turn out to have, in a translation unit that this function writes. Applications
# link TARGET, include <TARGET.hpp> and call TARGET::engine(); they never see Highway and compile
# fast. HEADER declares the models (types that satisfy quipu::ModelConfig) and is included as written;
# TARGET must be a C++ identifier. RANKS: numbers of model-parallel ranks that the engine can run a
# model with besides one (LoadOptions::ranks, LoadOptions::communicator), where the model can be cut so.
function(quipu_add_engine target)
  cmake_parse_arguments(arg "" "HEADER" "MODELS;RANKS;INCLUDE_DIRECTORIES" ${ARGN})
  if(NOT target MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "quipu_add_engine: '${target}' is not a C++ identifier")
  endif()
  if(NOT arg_HEADER OR NOT arg_MODELS)
    message(FATAL_ERROR "quipu_add_engine(${target}): HEADER and MODELS are needed")
  endif()
  list(REMOVE_ITEM arg_RANKS 1)
  list(REMOVE_DUPLICATES arg_RANKS)
  list(SORT arg_RANKS COMPARE NATURAL)
  foreach(ranks IN LISTS arg_RANKS)
    if(NOT ranks MATCHES "^[1-9][0-9]*$")
      message(FATAL_ERROR "quipu_add_engine(${target}): RANKS: '${ranks}' is no number of ranks")
    endif()
  endforeach()
  if(NOT TARGET quipu::run)
    message(FATAL_ERROR "quipu_add_engine(${target}): quipu::run is not available (see the messages above)")
  endif()
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/quipu_engines/${target}")
  set(QUIPU_ENGINE_NAME "${target}")
  set(QUIPU_ENGINE_MODEL_HEADER "${arg_HEADER}")
  string(REPLACE ";" ",\n    " QUIPU_ENGINE_MODELS "${arg_MODELS}")
  string(REPLACE ";" ", " QUIPU_ENGINE_RANKS "${arg_RANKS}")
  string(REPLACE ";" ", " QUIPU_ENGINE_MODEL_LIST "${arg_MODELS}")
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/engine.hpp.in" "${dir}/${target}.hpp" @ONLY)
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/engine_models.hpp.in" "${dir}/${target}_models.hpp" @ONLY)
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/engine.cpp.in" "${dir}/${target}.cpp" @ONLY)
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/engine_simd.cpp.in" "${dir}/${target}_simd.cpp" @ONLY)
  add_library(${target} STATIC "${dir}/${target}.cpp" "${dir}/${target}_simd.cpp")
  target_link_libraries(${target} PUBLIC quipu::run)
  # Clang at -ffp-contract=fast (or -ffast-math) fuses what the kernels do not write fused.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -ffp-contract=on)
  endif()
  # foreach_target.h includes the translation unit again by name: its folder has to be on the path.
  target_include_directories(${target} PUBLIC "${dir}" ${arg_INCLUDE_DIRECTORIES}
                             PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  if(TARGET quipu_warnings)
    target_link_libraries(${target} PRIVATE quipu_warnings)
  endif()
endfunction()
