# find_package(quipu): the targets quipu::quipu and, where what it needs is found, quipu::run and
# quipu::mpi; the functions quipu_add_engine and quipu_add_programs.
include(CMakeFindDependencyMacro)
find_dependency(Boost 1.74)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/quipu_dependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/quipuTargets.cmake")
if(QUIPU_CAN_RUN AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/quipuRunTargets.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/quipuRunTargets.cmake")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/quipu_mpi.cmake")
# quipu_add_programs needs these two; a user without them can still use the rest.
find_package(CLI11 CONFIG QUIET)
find_package(fmt CONFIG QUIET)
include("${CMAKE_CURRENT_LIST_DIR}/quipu_add_engine.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/quipu_add_programs.cmake")
