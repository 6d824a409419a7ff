# Compiler options of every target, the compiler cache, and how tests are started under MPI.

add_library(yolohpc_options INTERFACE)
target_compile_options(yolohpc_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual>)
if(YOLOHPC_WERROR)
  target_compile_options(yolohpc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Fusing a*b+c changes IoU values at a threshold; vectorised code asks for it where it is harmless.
target_compile_options(yolohpc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
set(CMAKE_CXX_FLAGS_RELEASE "-O3")
if(YOLOHPC_NATIVE)
  target_compile_options(yolohpc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()

set(YOLOHPC_SANITIZER_ENVIRONMENT)
if(YOLOHPC_SANITIZE)
  if(YOLOHPC_SANITIZE STREQUAL "address")
    set(kinds "address,undefined")
  else()
    set(kinds ${YOLOHPC_SANITIZE})
  endif()
  # _GLIBCXX_ASSERTIONS finds out-of-range subscripts that stay inside one allocation.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${kinds}> -fno-omit-frame-pointer -g1)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${kinds})
  set(CMAKE_CXX_FLAGS_RELEASE "-O1")
  # MPI and HDF5 keep memory until the process ends; vptr needs type information that LibTorch hides.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
  list(APPEND YOLOHPC_SANITIZER_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=0:halt_on_error=1" "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(yolohpc_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# Two compile jobs: one that parses ATen takes 1 GB.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS compile=2)
set(CMAKE_JOB_POOL_COMPILE compile)

set(YOLOHPC_MPIEXEC_FLAGS)
set(YOLOHPC_MPI_TEST_ENVIRONMENT)
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)
if(mpiexec_version MATCHES "Open MPI|OpenRTE")
  set(YOLOHPC_MPIEXEC_FLAGS --oversubscribe --bind-to none)
  # Ranks outnumber cores in tests, so a waiting one has to give up its core.
  set(YOLOHPC_MPI_TEST_ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
      "OMPI_MCA_mpi_yield_when_idle=1" "OMPI_MCA_rmaps_base_oversubscribe=1"
      "OMPI_MCA_btl_vader_single_copy_mechanism=none")
endif()
