# Installing: headers, the two targets, the CMake functions. find_package(quipu) gives them back.
include(GNUInstallDirs)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/quipu" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
