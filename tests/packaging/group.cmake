# The package as its users see it: exported symbols, headers, include rules, and the installed copy.
set(packaging_dir ${CMAKE_CURRENT_LIST_DIR})
find_program(STOKER_CXX NAMES c++ g++ clang++)

add_test(NAME exports COMMAND ${PROJECT_SOURCE_DIR}/scripts/update-exports --check $<TARGET_FILE:stoker_shared>)
add_test(NAME headers_alone COMMAND ${packaging_dir}/headers_alone.sh ${CMAKE_C_COMPILER} "$<$<BOOL:${STOKER_CXX}>:${STOKER_CXX}>"
         ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
add_test(NAME exports_declared COMMAND ${packaging_dir}/exports_declared.sh ${CMAKE_C_COMPILER}
         ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
add_test(NAME install_examples COMMAND ${packaging_dir}/install_examples.sh ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER}
         "${STOKER_SANITIZE}")
add_test(NAME include_rules COMMAND ${packaging_dir}/include_rules.sh ${CMAKE_C_COMPILER} ${PROJECT_BINARY_DIR})
add_test(NAME row_rules COMMAND ${packaging_dir}/row_rules.py)
add_test(NAME docs_links COMMAND ${packaging_dir}/docs_links.py ${PROJECT_SOURCE_DIR})
add_test(NAME status_rules COMMAND ${packaging_dir}/status_rules.sh)
add_test(NAME timeout_rules COMMAND ${packaging_dir}/timeout_rules.py ${PROJECT_BINARY_DIR} ${STOKER_TEST_TIMEOUT})
set(packaging_tests exports headers_alone exports_declared install_examples include_rules row_rules docs_links
    status_rules timeout_rules)
if(NOT CMAKE_BUILD_TYPE MATCHES "Rel") # optimized objects do not contain every reference
  add_test(NAME link_rules COMMAND ${packaging_dir}/link_rules.py ${PROJECT_BINARY_DIR})
  list(APPEND packaging_tests link_rules)
endif()
set_tests_properties(${packaging_tests} PROPERTIES LABELS packaging TIMEOUT ${STOKER_TEST_TIMEOUT})
set_tests_properties(headers_alone PROPERTIES SKIP_RETURN_CODE 77) # without a C++ compiler
set_tests_properties(install_examples PROPERTIES LABELS "packaging;threads")
