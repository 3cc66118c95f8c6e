# Images resized by Pillow: every variant of the resizer must produce the same bytes. README.md describes the cases.
stoker_test_program(resize_cases ${CMAKE_CURRENT_LIST_DIR}/resize_cases.c)
add_dependencies(tests_tensor resize_cases)
add_test(NAME oracle_resize COMMAND resize_cases ${CMAKE_CURRENT_LIST_DIR}/cases.tsv)
set_tests_properties(oracle_resize PROPERTIES LABELS "tensor;oracle" TIMEOUT ${STOKER_TEST_TIMEOUT})
add_test(NAME oracle_resize_edges COMMAND resize_cases ${CMAKE_CURRENT_LIST_DIR}/edges.tsv)
set_tests_properties(oracle_resize_edges PROPERTIES LABELS "tensor;oracle" TIMEOUT ${STOKER_TEST_TIMEOUT})
