# The Python binding over the built library. A library with a sanitizer can't be loaded into an ordinary Python.
if(STOKER_SANITIZE STREQUAL "")
  find_program(STOKER_PYTHON python3)
  if(STOKER_PYTHON)
    add_test(NAME python_binding COMMAND ${STOKER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_stoker.py ${tests_dir}/data)
    set_tests_properties(python_binding PROPERTIES LABELS python SKIP_RETURN_CODE 77 TIMEOUT 1500
        ENVIRONMENT "STOKER_LIBRARY=$<TARGET_FILE:stoker_shared>;PYTHONDONTWRITEBYTECODE=1")
  endif()
endif()
