# FFCV itself reads what stoker wrote. Skipped unless FFCV is installed for python3 or for STOKER_FFCV_PYTHON.
if(DEFINED ENV{STOKER_FFCV_PYTHON})
  set(ffcv_python $ENV{STOKER_FFCV_PYTHON})
else()
  find_program(ffcv_python python3)
endif()
stoker_test_program(write_beton ${CMAKE_CURRENT_LIST_DIR}/write_beton.c)
if(ffcv_python)
  add_test(NAME ffcv_reads_beton COMMAND ${ffcv_python} ${CMAKE_CURRENT_LIST_DIR}/read_beton.py $<TARGET_FILE:write_beton>
           ${tests_dir}/oracle/beton/jpg_label.beton)
  set_tests_properties(ffcv_reads_beton PROPERTIES LABELS "io;long" SKIP_RETURN_CODE 77 TIMEOUT ${STOKER_TEST_TIMEOUT})
endif()
