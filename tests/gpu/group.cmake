# Device tests on the simulated CUDA.
foreach(name test_any_device test_device_copy test_prefetch_device test_caching_pool_device test_loader_on_device)
  stoker_test_program(${name}_sim ${CMAKE_CURRENT_LIST_DIR}/${name}.c)
  stoker_use_sim_cuda(${name}_sim)
  add_test(NAME ${name}_sim COMMAND ${CMAKE_COMMAND} -E env STOKER_TEST_DEVICE=cuda:1 $<TARGET_FILE:${name}_sim>)
  set_tests_properties(${name}_sim PROPERTIES LABELS "gpu;threads" TIMEOUT ${STOKER_TEST_TIMEOUT})
endforeach()

# Checks what the compiler reports about the kernels. It compiles all of them again, so it is a long test.
if(STOKER_CUDA_FOUND)
  add_test(NAME kernel_figures COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-kernels --nvcc=${STOKER_NVCC}
      --include=${PROJECT_BINARY_DIR}/include)
  set_tests_properties(kernel_figures PROPERTIES LABELS "gpu;long" SKIP_RETURN_CODE 77
      TIMEOUT 1500) # compiles every kernel for every architecture
endif()

# scripts/gpu-check on the host device. Its programs are built without the libraries of the readers, and without CUDA,
# whose compiler is slow and adds only kernels. The first run takes a minute of CPU time to build; later ones build what
# has changed. The programs do not depend on this build's options, so only one kind of build runs the test.
if(STOKER_SANITIZE STREQUAL "" AND CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_test(NAME gpu_check COMMAND ${CMAKE_COMMAND} -E env GPU_CHECK_FOLDER=${PROJECT_BINARY_DIR}
      "GPU_CHECK_CMAKE=-DSTOKER_CUDA=OFF -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER}"
      ${PROJECT_SOURCE_DIR}/scripts/gpu-check --device=host)
  set_tests_properties(gpu_check PROPERTIES LABELS gpu PROCESSORS 2 FIXTURES_SETUP gpu_programs
      TIMEOUT 1200) # builds its programs
  add_test(NAME gpu_bundle COMMAND ${CMAKE_CURRENT_LIST_DIR}/bundle_alone.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(gpu_bundle PROPERTIES LABELS gpu FIXTURES_REQUIRED gpu_programs FIXTURES_SETUP gpu_bundle
      TIMEOUT 300) # copies and strips all programs
  # All steps of the script, including those that need the bundle.
  add_test(NAME gpu_check_whole COMMAND ${CMAKE_COMMAND} -E env GPU_CHECK_FOLDER=${PROJECT_BINARY_DIR}
      OUT=${PROJECT_BINARY_DIR}/gpu-check-whole ${PROJECT_SOURCE_DIR}/scripts/gpu-check --device=host --minutes=15)
  set_tests_properties(gpu_check_whole PROPERTIES LABELS "gpu;long" PROCESSORS 2
      FIXTURES_REQUIRED "gpu_programs;gpu_bundle" TIMEOUT 1500) # its limit is 15 minutes
endif()
