# tests/tools/test_NAME.c tests parts of the programs, which it is linked with (all but their main functions).
file(GLOB tool_parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/loadbench/loadbench_*.c)
add_library(loadbench_parts OBJECT ${tool_parts})
target_link_libraries(loadbench_parts PRIVATE stoker_flags stoker_static)
target_compile_options(loadbench_parts PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src/base"
                                               "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools/loadbench"
                                               "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools/sheet"
                                               "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools/live"
                                               "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools/codec")
set(prep_tool ${PROJECT_SOURCE_DIR}/tools/stoker)
add_library(prep_parts OBJECT ${prep_tool}/stoker_prep_show.c ${prep_tool}/stoker_prep_text.c ${prep_tool}/stoker_json.c)
target_link_libraries(prep_parts PRIVATE stoker_flags stoker_static PkgConfig::JANSSON)
foreach(folder src/base src/prep tools/stoker tools/live)
  target_compile_options(prep_parts PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/${folder}")
endforeach()
file(GLOB tool_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.c)
foreach(source ${tool_tests})
  get_filename_component(name ${source} NAME_WE)
  stoker_test_program(${name} ${source} $<TARGET_OBJECTS:loadbench_parts> $<TARGET_OBJECTS:prep_parts> $<TARGET_OBJECTS:stoker_sheet>
                      $<TARGET_OBJECTS:stoker_live> $<TARGET_OBJECTS:stoker_codec>)
  foreach(folder loadbench live codec stoker)
    target_compile_options(${name} PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tools/${folder}")
  endforeach()
  add_test(NAME ${name} COMMAND ${name})
  file(STRINGS ${source} first LIMIT_COUNT 1)
  set(labels tools)
  if(first MATCHES "stki-threads")
    list(APPEND labels threads)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 300)
endforeach()
