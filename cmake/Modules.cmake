# yolohpc_add_module, yolohpc_add_program and yolohpc_add_test: how a module, a program and a test are
# declared. Sources are found by folder, so that a new file needs no edit here.

include(CMakeParseArguments)
define_property(GLOBAL PROPERTY YOLOHPC_MODULES BRIEF_DOCS "modules" FULL_DOCS "modules in order of declaration")

# A backend folder that the build leaves out when it has no CUDA.
function(yolohpc_drop_backend_sources list_name)
  set(kept ${${list_name}})
  if(YOLOHPC_CUDA)
    list(FILTER kept EXCLUDE REGEX "/no_cuda/")
  else()
    list(FILTER kept EXCLUDE REGEX "/(cuda|nccl)/")
  endif()
  set(${list_name} ${kept} PARENT_SCOPE)
endfunction()

function(yolohpc_add_module name)
  cmake_parse_arguments(MODULE "TORCH" "" "USES;LIBS" ${ARGN})
  set_property(GLOBAL APPEND PROPERTY YOLOHPC_MODULES ${name})
  set_property(GLOBAL PROPERTY YOLOHPC_USES_${name} "${MODULE_USES}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp
       ${PROJECT_SOURCE_DIR}/src/${name}/*.cu)
  if(NOT YOLOHPC_CUDA)
    list(FILTER sources EXCLUDE REGEX "\\.cu$")
  endif()
  yolohpc_drop_backend_sources(sources)
  if(NOT sources)
    return()
  endif()
  if(name STREQUAL base)
    list(APPEND sources ${PROJECT_BINARY_DIR}/generated/build_info.cpp)
  endif()
  add_library(yolohpc_${name} STATIC ${sources})
  target_include_directories(yolohpc_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                             PRIVATE ${PROJECT_SOURCE_DIR}/src/${name})
  foreach(used IN LISTS MODULE_USES)
    if(TARGET yolohpc_${used})
      target_link_libraries(yolohpc_${name} PUBLIC yolohpc_${used})
    endif()
  endforeach()
  target_link_libraries(yolohpc_${name} PUBLIC yolohpc_torch PRIVATE yolohpc_options ${MODULE_LIBS})
  if(MODULE_TORCH)
    yolohpc_use_torch_pch(yolohpc_${name})
  endif()
endfunction()

# One precompiled header for every target that needs more of ATen than the Tensor type: parsing it costs
# more than compiling most files that use it.
function(yolohpc_use_torch_pch target)
  if(NOT YOLOHPC_PCH)
    return()
  endif()
  if(NOT TARGET yolohpc_torch_pch)
    add_library(yolohpc_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
    target_link_libraries(yolohpc_torch_pch PRIVATE yolohpc_torch yolohpc_options)
    target_precompile_headers(yolohpc_torch_pch PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/torch_pch.hpp>")
  endif()
  target_precompile_headers(${target} REUSE_FROM yolohpc_torch_pch)
  # Programs are compiled with -fPIE; GCC takes the header only where the option is the same.
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

function(yolohpc_add_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;MODULES;LIBS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  foreach(module IN LISTS PROGRAM_MODULES)
    target_link_libraries(${name} PRIVATE yolohpc_${module})
  endforeach()
  target_link_libraries(${name} PRIVATE ${PROGRAM_LIBS} yolohpc_options yolohpc_torch_link)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# yolohpc_add_test(FILE MODULES m... [RANKS 1 2 4] [LABELS l...] [TIMEOUT s] [LIBS l...] [TORCH])
#
# FILE is tests/<module>/<stem>.test.cpp, relative to the calling folder. With RANKS the program is started
# by mpirun once for each count and refuses any other; without, it runs alone.
function(yolohpc_add_test file)
  cmake_parse_arguments(TEST "TORCH" "TIMEOUT" "MODULES;RANKS;LABELS;LIBS;ENVIRONMENT" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  string(REGEX REPLACE "\\.test\\.cpp$" "" stem ${file})
  string(REPLACE "/" "." stem ${stem})
  set(target test_${folder}_${stem})
  foreach(module IN LISTS TEST_MODULES)
    if(NOT TARGET yolohpc_${module})
      message(STATUS "test ${folder}/${stem} waits for module ${module}")
      return()
    endif()
  endforeach()
  add_executable(${target} ${file})
  foreach(module IN LISTS TEST_MODULES)
    target_link_libraries(${target} PRIVATE yolohpc_${module})
  endforeach()
  target_link_libraries(${target} PRIVATE yolohpc_test_support ${TEST_LIBS} yolohpc_options
                                          yolohpc_torch_link)
  # GCC 12 takes std::regex for uninitialised when it is instrumented; these tests read fixtures with it.
  if(YOLOHPC_SANITIZE AND folder MATCHES "^(model|loss|parallel|engine)$")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(TEST_TORCH)
    yolohpc_use_torch_pch(${target})
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  set(environment "YOLOHPC_GOLDEN_DIR_DEFAULT=${PROJECT_SOURCE_DIR}/tests/golden"
      "YOLOHPC_SHARED_DIR=${PROJECT_SOURCE_DIR}/../shared" "YOLOHPC_BIN_DIR=${CMAKE_BINARY_DIR}/bin"
      "YOLOHPC_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "OMP_NUM_THREADS=1" ${YOLOHPC_MPI_TEST_ENVIRONMENT}
      ${YOLOHPC_SANITIZER_ENVIRONMENT} ${TEST_ENVIRONMENT})
  if(NOT TEST_RANKS)
    if(NOT TEST_LABELS)
      set(TEST_LABELS unit)
    endif()
    add_test(NAME ${folder}/${stem} COMMAND ${target})
    set_tests_properties(${folder}/${stem} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
      ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77)
    return()
  endif()
  list(APPEND TEST_LABELS mpi)
  list(REMOVE_DUPLICATES TEST_LABELS)
  foreach(ranks IN LISTS TEST_RANKS)
    set(test ${folder}/${stem}.np${ranks})
    add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${YOLOHPC_MPIEXEC_FLAGS}
             ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}>)
    set_tests_properties(${test} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
      ENVIRONMENT "${environment};YOLOHPC_TEST_RANKS=${ranks}" SKIP_RETURN_CODE 77
      PROCESSORS ${ranks})
  endforeach()
endfunction()
