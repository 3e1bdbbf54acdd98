// The version of the library: the one place that states it. CMake's project(VERSION) reads it here.
// Semantic versioning; below 1.0 a minor version may change what programs rely on.
#pragma once

#define QUIPU_VERSION_MAJOR 0
#define QUIPU_VERSION_MINOR 1
#define QUIPU_VERSION_PATCH 0

#define QUIPU_VERSION_TEXT_OF(x) #x
#define QUIPU_VERSION_TEXT(x) QUIPU_VERSION_TEXT_OF(x)
/// "0.1.0"
#define QUIPU_VERSION                     \
  QUIPU_VERSION_TEXT(QUIPU_VERSION_MAJOR) \
  "." QUIPU_VERSION_TEXT(QUIPU_VERSION_MINOR) "." QUIPU_VERSION_TEXT(QUIPU_VERSION_PATCH)
