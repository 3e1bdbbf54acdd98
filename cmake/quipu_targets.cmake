# quipu::quipu  the typed side: needs a C++20 compiler and Boost's headers
# quipu::run    adds loading, running and generating: Highway with its macros, PCRE2, JSON, minizip
add_library(quipu INTERFACE)
add_library(quipu::quipu ALIAS quipu)
target_compile_features(quipu INTERFACE cxx_std_20)
target_include_directories(quipu INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(quipu INTERFACE Boost::headers)

if(QUIPU_CAN_RUN)
  add_library(quipu_run INTERFACE)
  add_library(quipu::run ALIAS quipu_run)
  set_target_properties(quipu_run PROPERTIES EXPORT_NAME run)
  target_link_libraries(quipu_run INTERFACE quipu::quipu hwy::hwy nlohmann_json::nlohmann_json
                        PkgConfig::QUIPU_PCRE2 PkgConfig::QUIPU_MINIZIP Threads::Threads)
  # One set of Highway macros for every translation unit (a second set would be an ODR violation).
  # AVX3_DL must be asked for in Highway 1.0.3. Each target costs a compilation of the kernels, so
  # those are pruned that few processors would choose: SSSE3 and SSE4 (before AVX2, 2013; they get
  # SCALAR), AVX3 (AVX-512 without VNNI, 2017 to 2019; they get AVX2).
  set(quipu_disabled "${QUIPU_DISABLED_TARGETS}")
  if(quipu_disabled STREQUAL "" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(quipu_disabled "(HWY_SSSE3|HWY_SSE4|HWY_AVX3)")
  endif()
  target_compile_definitions(quipu_run INTERFACE HWY_WANT_AVX3_DL)
  if(NOT quipu_disabled STREQUAL "")
    target_compile_definitions(quipu_run INTERFACE "HWY_DISABLED_TARGETS=${quipu_disabled}")
  endif()
endif()
