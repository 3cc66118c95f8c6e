# Loaders as ranks of a launcher: torchrun's variables, and the real mpirun where it is installed.
add_executable(ranks_read ${CMAKE_CURRENT_LIST_DIR}/ranks_read.c)
set_target_properties(ranks_read PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_link_libraries(ranks_read PRIVATE stoker_flags stoker_static PkgConfig::JANSSON)
add_test(NAME ranks_torchrun COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/ranks.sh $<TARGET_FILE:ranks_read> torchrun)
find_program(STOKER_MPIRUN mpirun)
if(STOKER_MPIRUN)
  execute_process(COMMAND ${STOKER_MPIRUN} --version OUTPUT_VARIABLE mpirun_version ERROR_QUIET)
endif()
if(mpirun_version MATCHES "Open MPI") # others have other options
  add_test(NAME ranks_mpirun COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/ranks.sh $<TARGET_FILE:ranks_read> mpirun)
  set_tests_properties(ranks_mpirun PROPERTIES LABELS ranks TIMEOUT 300)
endif()
set_tests_properties(ranks_torchrun PROPERTIES LABELS ranks TIMEOUT 300)
