# quipu::mpi  quipu::run with MPI, where MPI was found: for programs that include quipu/parallel/mpi.hpp.
# Not exported but made anew by whoever uses the library: what MPI is, is the user's choice.
if(TARGET quipu::run AND TARGET MPI::MPI_CXX AND NOT TARGET quipu::mpi)
  add_library(quipu::mpi INTERFACE IMPORTED GLOBAL)
  target_link_libraries(quipu::mpi INTERFACE quipu::run MPI::MPI_CXX)
endif()
