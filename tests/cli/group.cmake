# tests/cli/NAME.test runs the programs as a user would. Each one is a bash script that starts in an empty folder;
# lib.sh has the assertions.
find_program(BASH_PROGRAM bash REQUIRED)
add_executable(train_images ${PROJECT_SOURCE_DIR}/examples/train_images.c) # docs/guides/imagenet.md runs it
set_target_properties(train_images PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_link_libraries(train_images PRIVATE stoker_flags stoker_static)
add_library(bad_hdf5 MODULE ${PROJECT_SOURCE_DIR}/tests/cli/bad_hdf5.c) # preloaded by damaged_hdf5.test
target_link_libraries(bad_hdf5 PRIVATE stoker_flags PkgConfig::HDF5)
# compiles a program of the documentation against this build
set(stoker_compile "${CMAKE_C_COMPILER} program.c -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include -Wall -Werror $<TARGET_FILE:stoker_shared> -Wl,-rpath,$<TARGET_FILE_DIR:stoker_shared>")
if(STOKER_SANITIZE)
  string(APPEND stoker_compile " -fsanitize=${STOKER_SANITIZE}")
endif()
file(GLOB cli_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.test)
if(STOKER_SANITIZE MATCHES "address") # needs more memory than the control group of this test has
  list(FILTER cli_tests EXCLUDE REGEX "/small_group\\.test$")
endif()
foreach(script ${cli_tests})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME cli_${name} COMMAND ${BASH_PROGRAM} ${CMAKE_CURRENT_LIST_DIR}/run.sh ${script})
  file(STRINGS ${script} first LIMIT_COUNT 1)
  set(labels cli)
  if(first MATCHES "stki-long")
    list(APPEND labels long)
  endif()
  set_tests_properties(cli_${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT ${STOKER_TEST_TIMEOUT}
      ENVIRONMENT "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/libhdf5.supp:print_suppressions=0;LOADBENCH=$<TARGET_FILE:loadbench>;STOKER=$<TARGET_FILE:stoker>;BAD_HDF5=$<TARGET_FILE:bad_hdf5>;TRAIN_IMAGES=$<TARGET_FILE:train_images>;SOURCE=${PROJECT_SOURCE_DIR};COMPILE=${stoker_compile}")
endforeach()
