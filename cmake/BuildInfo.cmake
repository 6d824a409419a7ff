# Writes what the program says about its own build (yolohpc --version).

execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE YOLOHPC_GIT_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT YOLOHPC_GIT_REVISION)
  set(YOLOHPC_GIT_REVISION "unknown")
endif()
file(STRINGS ${YOLOHPC_TORCH_DIR}/version.py torch_version REGEX "^__version__")
string(REGEX MATCH "[0-9][^']*" YOLOHPC_TORCH_VERSION "${torch_version}")
if(YOLOHPC_CUDA)
  set(YOLOHPC_CUDA_VERSION "${CUDAToolkit_VERSION}")
else()
  set(YOLOHPC_CUDA_VERSION "none")
endif()
if(YOLOHPC_SANITIZE)
  set(YOLOHPC_SANITIZE_WORD ${YOLOHPC_SANITIZE})
else()
  set(YOLOHPC_SANITIZE_WORD "none")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in
               ${PROJECT_BINARY_DIR}/generated/build_info.cpp @ONLY)
