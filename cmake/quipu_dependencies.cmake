# Every dependency is named here once. find_package first; FetchContent only where that finds
# nothing and the user has a network (QUIPU_FETCH_DEPENDENCIES).
option(QUIPU_FETCH_DEPENDENCIES "Fetch what find_package does not find" OFF)
include(FetchContent)
# What is found here is used by targets that a parent project links (CMake 3.24 on).
set(quipu_targets_global "${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL}")
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

# The typed side: Boost.Hana, headers only.
find_package(Boost 1.74 REQUIRED)

# Running: Highway kernels, PCRE2 for pre-tokenizers, nlohmann/json for config.json and safetensors
# headers, minizip for torch.save archives, threads.
find_package(Threads REQUIRED)
find_package(hwy 1.0.3 CONFIG QUIET)
if(NOT TARGET hwy::hwy)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(QUIPU_HWY QUIET IMPORTED_TARGET GLOBAL libhwy>=1.0.3)
    if(QUIPU_HWY_FOUND)
      add_library(hwy::hwy ALIAS PkgConfig::QUIPU_HWY)
    endif()
  endif()
endif()
if(NOT TARGET hwy::hwy AND QUIPU_FETCH_DEPENDENCIES)
  FetchContent_Declare(highway GIT_REPOSITORY https://github.com/google/highway.git GIT_TAG 1.2.0)
  set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
  FetchContent_MakeAvailable(highway)
  if(NOT TARGET hwy::hwy)
    add_library(hwy::hwy ALIAS hwy)
  endif()
endif()
find_package(nlohmann_json 3.10 CONFIG QUIET)
if(NOT nlohmann_json_FOUND AND QUIPU_FETCH_DEPENDENCIES)
  FetchContent_Declare(nlohmann_json GIT_REPOSITORY https://github.com/nlohmann/json.git GIT_TAG v3.11.3)
  FetchContent_MakeAvailable(nlohmann_json)
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(QUIPU_PCRE2 QUIET IMPORTED_TARGET GLOBAL libpcre2-8)
  pkg_check_modules(QUIPU_MINIZIP QUIET IMPORTED_TARGET GLOBAL minizip)
endif()

set(QUIPU_CAN_RUN TRUE)
foreach(need IN ITEMS hwy::hwy nlohmann_json::nlohmann_json PkgConfig::QUIPU_PCRE2 PkgConfig::QUIPU_MINIZIP)
  if(NOT TARGET ${need})
    set(QUIPU_CAN_RUN FALSE)
    message(STATUS "quipu::run is not available: ${need} was not found")
  endif()
endforeach()

# Optional: MPI, for model-parallel ranks that are processes (quipu::mpi, quipu/parallel/mpi.hpp).
if(QUIPU_CAN_RUN)
  set(MPI_CXX_SKIP_MPICXX ON CACHE BOOL "The C interface of MPI is enough")
  find_package(MPI QUIET COMPONENTS CXX)
endif()

# Programs, tests, benchmarks.
if(QUIPU_BUILD_PROGRAMS)
  find_package(CLI11 CONFIG REQUIRED)
  find_package(fmt CONFIG REQUIRED)
endif()
if(QUIPU_BUILD_TESTS)
  find_package(GTest CONFIG REQUIRED)
endif()
if(QUIPU_BUILD_BENCH)
  find_package(benchmark CONFIG REQUIRED)
  # Other libraries' products, measured beside ours if they are there.
  find_package(Eigen3 CONFIG QUIET)
  find_package(dnnl CONFIG QUIET)
  find_package(OpenMP COMPONENTS CXX QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(QUIPU_OPENBLAS QUIET IMPORTED_TARGET openblas)
  endif()
endif()
# A user's own find_package calls are as they were before find_package(quipu).
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL "${quipu_targets_global}")
