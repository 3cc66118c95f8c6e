# tests/tools/test_NAME.c tests parts of the programs, which it is linked with (all but their main functions).
file(GLOB tool_parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/loadbench_*.c)
add_library(loadbench_parts OBJECT ${tool_parts})
target_link_libraries(loadbench_parts PRIVATE stoker_flags stoker_static)
target_compile_options(loadbench_parts PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src/base"
                                               "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools")
file(GLOB tool_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.c)
foreach(source ${tool_tests})
  get_filename_component(name ${source} NAME_WE)
  stoker_test_program(${name} ${source} $<TARGET_OBJECTS:loadbench_parts>)
  target_compile_options(${name} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS tools TIMEOUT 120)
endforeach()
