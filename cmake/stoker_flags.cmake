# Compiler flags shared by all targets: C11 with GNU/Linux system interfaces, and no floating-point contraction
# (docs/internals/convert.md depends on this).
get_filename_component(STOKER_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY) # cmake/gpu-check is a separate project
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELEASE "-O3 -g")
if(STOKER_SANITIZE) # reports of sanitizers only need line numbers
  set(CMAKE_C_FLAGS_DEBUG "-Og -g1")
else()
  set(CMAKE_C_FLAGS_DEBUG "-Og -g")
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

add_library(stoker_flags INTERFACE)
target_compile_definitions(stoker_flags INTERFACE _GNU_SOURCE $<$<CONFIG:Debug>:STKI_POISON>)
target_compile_options(stoker_flags INTERFACE
    -ffp-contract=off -fno-math-errno
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual
    -Wwrite-strings -Wvla -Wundef -Wformat=2 -Wimplicit-fallthrough -Wno-missing-field-initializers)
# At -O3, gcc issues this warning falsely for values that are set only on success; it remains enabled at -Og.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  target_compile_options(stoker_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(STOKER_WERROR)
  target_compile_options(stoker_flags INTERFACE -Werror)
endif()
if(STOKER_SANITIZE)
  target_compile_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(stoker_flags INTERFACE -fsanitize=${STOKER_SANITIZE})
  if(STOKER_SANITIZE MATCHES "undefined")
    target_compile_options(stoker_flags INTERFACE -fno-sanitize-recover=all)
  endif()
endif()

# stoker_folder(NAME USES...): builds one folder of src/ as an object library. Its include path has the public headers,
# its own headers and those of the folders that it may use, so a wrong #include does not compile. -iquote prevents
# conflicts of our file names with <system> headers. Files whose path matches STOKER_LEFT_OUT are not part of this
# build. The calls, from the bottom up, are the only list of folders; tests read a copy, folders.txt in the build
# folder.
file(WRITE ${PROJECT_BINARY_DIR}/folders.txt "")
function(stoker_folder folder)
  string(REPLACE ";" " " line "${folder};${ARGN}")
  file(APPEND ${PROJECT_BINARY_DIR}/folders.txt "${line}\n")
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${STOKER_ROOT}/src/${folder}/*.c)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "_(avx2|avx512|vnni)\\.c$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(FILTER sources EXCLUDE REGEX "_neon\\.c$")
  endif()
  if(STOKER_LEFT_OUT)
    list(FILTER sources EXCLUDE REGEX "${STOKER_LEFT_OUT}")
  endif()
  add_library(stoker_${name} OBJECT ${sources})
  target_link_libraries(stoker_${name} PRIVATE stoker_flags Threads::Threads)
  target_include_directories(stoker_${name} PRIVATE ${STOKER_ROOT}/include ${PROJECT_BINARY_DIR}/include)
  foreach(visible ${folder} ${ARGN})
    target_compile_options(stoker_${name} PRIVATE "SHELL:-iquote ${STOKER_ROOT}/src/${visible}")
  endforeach()
  foreach(source ${sources})
    if(source MATCHES "_avx2\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    elseif(source MATCHES "_avx512\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
          "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vbmi;-mprefer-vector-width=512")
    elseif(source MATCHES "_vnni\\.c$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
          "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vbmi;-mavx512vnni;-mprefer-vector-width=512")
    endif()
  endforeach()
endfunction()
