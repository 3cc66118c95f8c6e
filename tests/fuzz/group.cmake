# tests/fuzz/fuzz_NAME.c defines LLVMFuzzerTestOneInput, which aborts if a property does not hold. Ordinary test runs
# replay the inputs in tests/fuzz/corpus/NAME. With -DSTOKER_FUZZ=ON (preset "fuzz", clang), fuzz_NAME searches for new
# inputs; scripts/fuzz runs it.
set(fuzz_dir ${CMAKE_CURRENT_LIST_DIR})

if(STOKER_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "STOKER_FUZZ needs clang, found ${CMAKE_C_COMPILER_ID}; use the preset \"fuzz\"")
  endif()
  add_custom_target(fuzzers)
endif()

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${fuzz_dir}/fuzz_*.c)
list(FILTER fuzz_sources EXCLUDE REGEX "/fuzz_replay_main\\.c$")
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" corpus ${name})
  stoker_test_program(${name}_replay ${source} ${fuzz_dir}/fuzz_replay_main.c)
  target_compile_options(${name}_replay PRIVATE "SHELL:-iquote ${fuzz_dir}")
  add_test(NAME ${name}_replay COMMAND ${name}_replay ${fuzz_dir}/corpus/${corpus})
  set_tests_properties(${name}_replay PROPERTIES LABELS fuzz TIMEOUT ${STOKER_TEST_TIMEOUT})
  if(STOKER_FUZZ)
    stoker_test_program(${name} ${source})
    target_compile_options(${name} PRIVATE "SHELL:-iquote ${fuzz_dir}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  endif()
endforeach()
