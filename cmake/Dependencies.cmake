# The libraries, found and wrapped as targets. jobs/deps installs them.
#
# LibTorch is imported library by library: its own CMake package refuses a machine without CUDA, since the
# only wheel there is was built with it, and libtorch.so would pull in all of CUDA.

find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(nlohmann_json REQUIRED)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
find_package(yaml-cpp REQUIRED)

# The C interface of MPI alone: the old C++ bindings need a library that many systems lack.
add_library(yolohpc_mpi INTERFACE)
target_link_libraries(yolohpc_mpi INTERFACE MPI::MPI_C)
target_compile_definitions(yolohpc_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)

add_library(yolohpc_hdf5 INTERFACE)
target_include_directories(yolohpc_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(yolohpc_hdf5 INTERFACE ${HDF5_C_LIBRARIES})

add_library(yolohpc_images INTERFACE)
target_link_libraries(yolohpc_images INTERFACE PkgConfig::TURBOJPEG PkgConfig::JPEG PNG::PNG)

add_library(yolohpc_yaml INTERFACE)
target_link_libraries(yolohpc_yaml INTERFACE yaml-cpp)

# CUDA: on when a toolkit is found.
if(NOT DEFINED YOLOHPC_CUDA)
  find_package(CUDAToolkit QUIET)
  option(YOLOHPC_CUDA "build the CUDA and NCCL backends" ${CUDAToolkit_FOUND})
endif()
if(YOLOHPC_CUDA)
  find_package(CUDAToolkit REQUIRED)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  enable_language(CUDA)
  # CMake before 3.26 does not know how to ask this compiler for C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
    message(FATAL_ERROR "CUDA was found, NCCL was not. Install it (libnccl-dev), name it with "
                        "-DNCCL_INCLUDE_DIR and -DNCCL_LIBRARY, or build with -DYOLOHPC_CUDA=OFF.")
  endif()
endif()

# LibTorch
if(NOT YOLOHPC_TORCH_DIR)
  set(YOLOHPC_TORCH_DIR $ENV{YOLOHPC_TORCH_DIR})
endif()
if(NOT YOLOHPC_TORCH_DIR)
  if(YOLOHPC_CUDA)
    set(cuda_word ON)
  else()
    set(cuda_word OFF)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env YOLOHPC_CUDA=${cuda_word}
                  ${PROJECT_SOURCE_DIR}/jobs/deps --print-torch
                  OUTPUT_VARIABLE YOLOHPC_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT EXISTS ${YOLOHPC_TORCH_DIR}/include/ATen/ATen.h)
  message(FATAL_ERROR "LibTorch is not at '${YOLOHPC_TORCH_DIR}'. Run jobs/deps, or give "
                      "-DYOLOHPC_TORCH_DIR=<folder with include/ and lib/>.")
endif()
set(YOLOHPC_TORCH_DIR ${YOLOHPC_TORCH_DIR} CACHE PATH "LibTorch: folder with include/ and lib/" FORCE)
message(STATUS "LibTorch: ${YOLOHPC_TORCH_DIR}")

set(torch_libraries c10 torch_cpu)
if(YOLOHPC_CUDA)
  list(APPEND torch_libraries c10_cuda torch_cuda)
endif()
foreach(library IN LISTS torch_libraries)
  add_library(torch::${library} SHARED IMPORTED)
  set_target_properties(torch::${library} PROPERTIES IMPORTED_LOCATION
                        ${YOLOHPC_TORCH_DIR}/lib/lib${library}.so)
endforeach()
add_library(yolohpc_torch INTERFACE)
target_include_directories(yolohpc_torch SYSTEM INTERFACE
  ${YOLOHPC_TORCH_DIR}/include ${YOLOHPC_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(yolohpc_torch INTERFACE torch::torch_cpu torch::c10 Threads::Threads)

# What programs link in addition: the CUDA half of LibTorch registers its kernels when it is loaded, so the
# linker may not drop it.
add_library(yolohpc_torch_link INTERFACE)
target_link_options(yolohpc_torch_link INTERFACE -Wl,--disable-new-dtags)
if(YOLOHPC_CUDA)
  target_link_libraries(yolohpc_torch INTERFACE CUDA::cudart)
  target_include_directories(yolohpc_torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_options(yolohpc_torch_link INTERFACE -Wl,--no-as-needed
    -Wl,-rpath-link,${CUDAToolkit_LIBRARY_DIR} -Wl,--allow-shlib-undefined)
  target_link_libraries(yolohpc_torch_link INTERFACE torch::torch_cuda torch::c10_cuda ${NCCL_LIBRARY})
endif()
