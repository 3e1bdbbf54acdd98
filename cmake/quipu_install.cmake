# Installing: headers, the two targets, the CMake functions, the programs. find_package(quipu) gives
# them back. Component `development` is all that a build against quipu needs and holds no binary;
# `programs` is what examples/ built.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(quipu_config_dir "${CMAKE_INSTALL_DATADIR}/cmake/quipu")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/quipu" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development FILES_MATCHING PATTERN "*.hpp")

# Two export sets: a user without Highway still gets the types.
install(TARGETS quipu EXPORT quipuTargets COMPONENT development)
install(EXPORT quipuTargets NAMESPACE quipu:: DESTINATION "${quipu_config_dir}" COMPONENT development)
if(QUIPU_CAN_RUN)
  install(TARGETS quipu_run EXPORT quipuRunTargets COMPONENT development)
  install(EXPORT quipuRunTargets NAMESPACE quipu:: DESTINATION "${quipu_config_dir}" COMPONENT development)
endif()

# Header-only: the version file does not tie the package to a word size.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/quipuConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
file(GLOB quipu_templates CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/*.in")
install(FILES "${PROJECT_SOURCE_DIR}/cmake/quipuConfig.cmake" "${PROJECT_BINARY_DIR}/quipuConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/quipu_dependencies.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/quipu_mpi.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/quipu_add_engine.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/quipu_add_programs.cmake" ${quipu_templates}
        DESTINATION "${quipu_config_dir}" COMPONENT development)
# The sources of the programs, which quipu_add_programs compiles for a user's own models.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/" DESTINATION "${quipu_config_dir}/programs"
        COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "quipu_*.cpp")

# At the end of the top-level list, when the programs are known.
function(quipu_install_programs)
  foreach(program IN ITEMS generate inspect atlas trace convert bench)
    if(TARGET quipu-${program})
      install(TARGETS quipu-${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL quipu_install_programs)
