# STOKER_CUDA: AUTO builds the CUDA device if nvcc and the static runtime library are found, ON requires them, OFF omits the
# device. The runtime is linked statically and loads the driver when a cuda device is requested, so a library built with CUDA
# also works on machines without a driver.
#
# Kernels (src/gpu/*.cu) are compiled by plain nvcc commands instead of CMake's CUDA language: this takes no time at
# configure time, the C compiler remains the linker, and the sanitizers and warnings of the C files do not apply to
# nvcc's own code.
set(STOKER_CUDA AUTO CACHE STRING "The CUDA device: AUTO (if the toolkit is found), ON (required), OFF")
set_property(CACHE STOKER_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STOKER_CUDA_ARCHITECTURES native CACHE STRING "GPUs to compile kernels for, e.g. 75;90; the newest also as PTX, for later ones. \
native: this machine's, or only 75 if it has none; all: 75;80;86;89;90;100")
set(STOKER_CUDA_HOST_COMPILER "" CACHE FILEPATH "C++ compiler that nvcc calls (-ccbin); empty: nvcc's default")

# The reason why CUDA is not supported, for error messages; empty if it is.
set(STOKER_CUDA_MISSING "")
set(STOKER_CUDA_FOUND FALSE)

function(stoker_cuda_find)
  if(STOKER_CUDA STREQUAL "OFF")
    set(STOKER_CUDA_MISSING "STOKER_CUDA=OFF" PARENT_SCOPE)
    return()
  endif()
  find_program(STOKER_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT STOKER_NVCC)
    set(STOKER_CUDA_MISSING "no nvcc was found" PARENT_SCOPE)
    return()
  endif()
  set(CUDAToolkit_NVCC_EXECUTABLE ${STOKER_NVCC})
  find_package(CUDAToolkit 12.0 QUIET)
  if(NOT TARGET CUDA::cudart_static)
    set(STOKER_CUDA_MISSING "${STOKER_NVCC} has no CUDA 12 or later with libcudart_static beside it" PARENT_SCOPE)
    return()
  endif()

  # A toolkit supports a range of GPUs; others are removed from the lists.
  execute_process(COMMAND ${STOKER_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  set(all)
  foreach(one 75 80 86 89 90 100)
    if(one IN_LIST known)
      list(APPEND all ${one})
    endif()
  endforeach()
  set(architectures ${STOKER_CUDA_ARCHITECTURES})
  if(architectures STREQUAL "all")
    set(architectures ${all})
  elseif(NOT architectures OR architectures STREQUAL "native") # older build folders have an empty value
    set(architectures)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader TIMEOUT 30 OUTPUT_VARIABLE found ERROR_QUIET)
    string(REPLACE "." "" found "${found}")
    string(REGEX MATCHALL "[0-9]+" found "${found}")
    foreach(one ${found})
      if(one IN_LIST known AND one GREATER_EQUAL 70) # the kernels use __nanosleep, which older GPUs do not have
        list(APPEND architectures ${one})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES architectures)
  endif()
  if(NOT architectures) # the oldest one, because its PTX runs on all GPUs
    list(GET all 0 architectures)
  endif()
  list(SORT architectures COMPARE NATURAL)
  foreach(one ${architectures})
    if(NOT one IN_LIST known)
      message(FATAL_ERROR "STOKER_CUDA_ARCHITECTURES: ${STOKER_NVCC} does not support ${one} (it supports ${known})")
    endif()
  endforeach()

  # nvcc needs a C++ compiler that it supports; only a trial compilation shows whether it has one.
  set(probed "${STOKER_NVCC} ${CUDAToolkit_VERSION} ${architectures} ${STOKER_CUDA_HOST_COMPILER}")
  if(NOT STOKER_CUDA_PROBED STREQUAL probed)
    list(GET architectures 0 first)
    file(WRITE ${PROJECT_BINARY_DIR}/cuda_probe.cu "__global__ void probe(int *x) { *x = 1; }\n")
    execute_process(COMMAND ${STOKER_NVCC} ${stoker_nvcc_host} -arch=sm_${first} -c ${PROJECT_BINARY_DIR}/cuda_probe.cu
        -o ${PROJECT_BINARY_DIR}/cuda_probe.o RESULT_VARIABLE failed OUTPUT_VARIABLE why ERROR_VARIABLE why)
    file(REMOVE ${PROJECT_BINARY_DIR}/cuda_probe.o ${PROJECT_BINARY_DIR}/cuda_probe.cu)
    if(failed)
      message(STATUS "CUDA: ${STOKER_NVCC} does not compile:\n${why}")
      set(STOKER_CUDA_MISSING "${STOKER_NVCC} found no C++ compiler that it works with" PARENT_SCOPE)
      return()
    endif()
    set(STOKER_CUDA_PROBED "${probed}" CACHE INTERNAL "nvcc and options of the last trial compilation")
  endif()
  set(STOKER_CUDA_FOUND TRUE PARENT_SCOPE)
  set(STOKER_CUDA_VERSION ${CUDAToolkit_VERSION} PARENT_SCOPE)
  set(STOKER_CUDA_INCLUDE ${CUDAToolkit_INCLUDE_DIRS} PARENT_SCOPE)
  set(stoker_cuda_list ${architectures} PARENT_SCOPE)
endfunction()

set(stoker_nvcc_host)
if(STOKER_CUDA_HOST_COMPILER)
  set(stoker_nvcc_host -ccbin ${STOKER_CUDA_HOST_COMPILER})
endif()
stoker_cuda_find()
if(NOT STOKER_CUDA_FOUND AND STOKER_CUDA STREQUAL "ON")
  message(FATAL_ERROR "STOKER_CUDA=ON: ${STOKER_CUDA_MISSING}")
endif()

set(stoker_nvcc_code)
foreach(one ${stoker_cuda_list})
  list(APPEND stoker_nvcc_code -gencode=arch=compute_${one},code=sm_${one})
  set(newest ${one})
endforeach()
if(STOKER_CUDA_FOUND)
  list(APPEND stoker_nvcc_code -gencode=arch=compute_${newest},code=compute_${newest})
  message(STATUS "CUDA: toolkit ${STOKER_CUDA_VERSION}, kernels for ${stoker_cuda_list} and PTX of ${newest}")
else()
  message(STATUS "CUDA: no (${STOKER_CUDA_MISSING})")
endif()

# Flags for all kernels, which scripts/check-kernels repeats: --fmad=false, so that only explicit operations are fused, and no
# fast-math.
set(stoker_nvcc_flags -std=c++17 -O3 --fmad=false)
if(STOKER_CUDA_VERSION VERSION_GREATER_EQUAL 13) # the drivers it requires support compressed kernels, a fifth of the size
  list(APPEND stoker_nvcc_flags --compress-mode=size)
endif()

# nvcc's launch code stores a kernel's handle in a static variable. Thread-safe initialization of such variables needs
# the C++ library, which nothing else here uses. On x86-64, stores are not reordered, so plain initialization is safe:
# the handle is stored before the flag that marks it as initialized, and two threads that initialize it store the same
# value. On other processors, the C++ library is linked.
set(stoker_cuda_runtime CUDA::cudart_static)
set(stoker_nvcc_guards -fno-threadsafe-statics)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(stoker_cuda_runtime CUDA::cudart_static stdc++)
  set(stoker_nvcc_guards -fthreadsafe-statics)
endif()

# stoker_cuda_objects(OUT SOURCES FOLDERS): compiles .cu files with the public headers and those of the given folders of src/.
# OUT receives the object files, to be linked like any other source of the directory that calls this.
function(stoker_cuda_objects out sources folders)
  set(objects)
  set(seen -I${STOKER_ROOT}/include -I${PROJECT_BINARY_DIR}/include)
  foreach(folder ${folders})
    list(APPEND seen -Xcompiler=-iquote,${STOKER_ROOT}/src/${folder})
  endforeach()
  set(kept ${PROJECT_BINARY_DIR}/kernels)
  if(PROJECT_BINARY_DIR MATCHES "^${STOKER_ROOT}/build/")
    set(kept ${STOKER_ROOT}/build/kernels) # shared by all presets
  endif()
  set(warnings -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
  if(STOKER_WERROR)
    list(APPEND warnings -Werror=all-warnings -Xcompiler=-Werror)
  endif()
  foreach(source ${sources})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda
        COMMAND ${STOKER_ROOT}/cmake/nvcc_once.sh ${kept} ${STOKER_ROOT} ${PROJECT_BINARY_DIR} ${object} "nvcc ${STOKER_CUDA_VERSION}" --
            ${CMAKE_C_COMPILER_LAUNCHER} ${STOKER_NVCC} ${stoker_nvcc_host} ${stoker_nvcc_code} ${stoker_nvcc_flags} ${warnings}
            -Xcompiler=-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-ffp-contract=off,${stoker_nvcc_guards} ${seen}
            -MD -MT ${object} -MF ${object}.d -c ${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# stoker_trace(TARGET): in builds with CUDA, makes the target's ranges visible in Nsight Systems (src/gpu/trace.h).
function(stoker_trace target)
  if(STOKER_CUDA_FOUND)
    target_include_directories(${target} SYSTEM PRIVATE ${STOKER_CUDA_INCLUDE})
    target_compile_definitions(${target} PRIVATE STKI_TRACE)
  endif()
endfunction()

# stoker_cuda_link(TARGET OBJECTS RUNTIME): configures TARGET, the object library of src/gpu. OBJECTS receives the compiled
# kernels, and RUNTIME the libraries to link. Without CUDA both are empty, and TARGET is compiled with the reason.
macro(stoker_cuda_link target objects runtime)
  stoker_trace(${target})
  if(STOKER_CUDA_FOUND)
    target_compile_definitions(${target} PRIVATE "STKI_CUDA_ARCHITECTURES=$<JOIN:${stoker_cuda_list},$<COMMA>>")
    file(GLOB stoker_kernels CONFIGURE_DEPENDS ${STOKER_ROOT}/src/gpu/*.cu)
    stoker_cuda_objects(${objects} "${stoker_kernels}" "gpu;tensor;base")
    set(${runtime} ${stoker_cuda_runtime})
  else()
    target_compile_definitions(${target} PRIVATE "STKI_CUDA_MISSING=\"${STOKER_CUDA_MISSING}\"")
  endif()
endmacro()
