# Tests the Python package in the build folder, in the environment that scripts/python-venv creates from
# requirements.txt.
if(TARGET stoker_python)
  set(python_tests ${CMAKE_CURRENT_LIST_DIR})
  set(venv ${PROJECT_SOURCE_DIR}/build/python-venv)
  add_test(NAME python_venv COMMAND ${PROJECT_SOURCE_DIR}/scripts/python-venv)
  set_tests_properties(python_venv PROPERTIES LABELS python FIXTURES_SETUP python_venv
      TIMEOUT 600) # downloads packages

  # The package on the simulated CUDA, whose objects are linked before those of the archive. Tests call the library in
  # this module.
  stoker_python_module(stoker_python_sim ${PROJECT_BINARY_DIR}/python-sim/stoker $<TARGET_OBJECTS:stoker_sim_cuda>)
  target_link_libraries(stoker_python_sim PRIVATE -Wl,--whole-archive $<TARGET_FILE:stoker_static> -Wl,--no-whole-archive
      stoker_static)
  target_link_options(stoker_python_sim PRIVATE LINKER:-z,muldefs)
  add_dependencies(stoker_python_sim stoker_static stoker_python_package)
  foreach(name _options.py _transforms.py)
    file(CREATE_LINK ${PROJECT_BINARY_DIR}/python/stoker/${name} ${PROJECT_BINARY_DIR}/python-sim/stoker/${name} SYMBOLIC)
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS ${python_tests}/test_*.py)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE test_ python_ name ${name})
    set(package python)
    set(labels python)
    if(name MATCHES "_sim$")
      set(package python-sim)
      list(APPEND labels gpu)
    endif()
    add_test(NAME ${name} COMMAND ${venv}/bin/python -X dev -W error ${source} -v)
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" FIXTURES_REQUIRED python_venv TIMEOUT ${STOKER_TEST_TIMEOUT}
        ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/${package};PYTHONDONTWRITEBYTECODE=1;STOKER_TEST_DATA=${tests_dir}/data")
  endforeach()
endif()
