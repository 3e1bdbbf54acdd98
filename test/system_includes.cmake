# Folders as options of a compiler that CMake does not call itself. /usr/include is on the path already, and
# named as a system folder it would hide what #include_next looks for.
function(quipu_system_includes out)
  set(options "")
  foreach(folder IN LISTS ARGN)
    if(NOT folder STREQUAL "/usr/include")
      list(APPEND options -isystem "${folder}")
    endif()
  endforeach()
  set(${out} "${options}" PARENT_SCOPE)
endfunction()
