# tests/cli/NAME.test runs the programs as a user would. Each is a bash script that starts in an empty folder; lib.sh has
# the assertions.
find_program(BASH_PROGRAM bash REQUIRED)
file(GLOB cli_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.test)
foreach(script ${cli_tests})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME cli_${name} COMMAND ${BASH_PROGRAM} ${CMAKE_CURRENT_LIST_DIR}/run.sh ${script})
  set_tests_properties(cli_${name} PROPERTIES LABELS cli SKIP_RETURN_CODE 77 TIMEOUT 300
      ENVIRONMENT "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/libhdf5.supp:print_suppressions=0;LOADBENCH=$<TARGET_FILE:loadbench>;STOKER=$<TARGET_FILE:stoker>;SOURCE=${PROJECT_SOURCE_DIR}")
endforeach()
