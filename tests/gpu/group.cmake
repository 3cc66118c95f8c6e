# What the compiler made of the kernels. Compiles them all again, so it is one of the long tests.
if(STOKER_CUDA_FOUND)
  add_test(NAME kernel_figures COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-kernels --nvcc=${STOKER_NVCC}
      --include=${PROJECT_BINARY_DIR}/include)
  set_tests_properties(kernel_figures PROPERTIES LABELS "gpu;long" SKIP_RETURN_CODE 77 TIMEOUT 1500)
endif()
