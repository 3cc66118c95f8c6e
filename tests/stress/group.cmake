# The soak test: scripts/soak runs it for minutes under the sanitizers, ordinary test runs for a few turns.
stoker_test_program(stress_soak ${CMAKE_CURRENT_LIST_DIR}/stress_soak.c)
add_test(NAME stress_soak COMMAND stress_soak --turns 60)
set_tests_properties(stress_soak PROPERTIES LABELS "stress;threads" TIMEOUT ${STOKER_TEST_TIMEOUT})
