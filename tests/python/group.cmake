# The Python binding over the built library. A library with a sanitizer can't be loaded into an ordinary Python.
if(STOKER_SANITIZE STREQUAL "")
  # The first Python that has NumPy: the one in PATH, else the system's, for which scripts/install-packages installs it.
  find_program(STOKER_PYTHON_IN_PATH python3)
  set(STOKER_PYTHON ${STOKER_PYTHON_IN_PATH})
  foreach(candidate ${STOKER_PYTHON_IN_PATH} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(missing STREQUAL "0")
      set(STOKER_PYTHON ${candidate})
      break()
    endif()
  endforeach()
  if(STOKER_PYTHON)
    add_test(NAME python_binding COMMAND ${STOKER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_stoker.py ${tests_dir}/data)
    set_tests_properties(python_binding PROPERTIES LABELS python SKIP_RETURN_CODE 77 TIMEOUT ${STOKER_TEST_TIMEOUT}
        ENVIRONMENT "STOKER_LIBRARY=$<TARGET_FILE:stoker_shared>;PYTHONDONTWRITEBYTECODE=1")

    # The library over the simulated CUDA, whose objects come before those of the archive.
    add_library(stoker_sim_shared SHARED $<TARGET_OBJECTS:stoker_sim_cuda>)
    set_target_properties(stoker_sim_shared PROPERTIES OUTPUT_NAME stoker_sim LINKER_LANGUAGE C)
    target_link_libraries(stoker_sim_shared PRIVATE -Wl,--whole-archive $<TARGET_FILE:stoker_static> -Wl,--no-whole-archive
        stoker_static)
    target_link_options(stoker_sim_shared PRIVATE LINKER:-z,muldefs)
    add_dependencies(stoker_sim_shared stoker_static)
    add_test(NAME python_binding_cuda COMMAND ${STOKER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_stoker_cuda.py)
    set_tests_properties(python_binding_cuda PROPERTIES LABELS "python;gpu" TIMEOUT ${STOKER_TEST_TIMEOUT}
        ENVIRONMENT "STOKER_LIBRARY=$<TARGET_FILE:stoker_sim_shared>;PYTHONDONTWRITEBYTECODE=1")
  endif()
endif()
