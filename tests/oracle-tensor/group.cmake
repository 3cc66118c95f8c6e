# The driver of the tensor oracle, and one test per case file. README.md describes the files.
set(oracle_tensor ${CMAKE_CURRENT_LIST_DIR})
file(GLOB oracle_tensor_sources CONFIGURE_DEPENDS ${oracle_tensor}/test_cases*.c)
add_executable(test_cases ${oracle_tensor_sources})
set_target_properties(test_cases PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_link_libraries(test_cases PRIVATE stoker_flags stoker_test_support stoker_static m)
target_include_directories(test_cases SYSTEM PRIVATE ${oracle_tensor}) # no warnings about casefile.h
target_compile_options(test_cases PRIVATE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/tests/support"
                       "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src/tensor"
    "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src/base")
add_dependencies(tests_tensor test_cases)

foreach(cases
    broadcast
    cast
    create
    device
    elementwise
    fuzz-cast
    fuzz-elementwise
    fuzz-inplace
    fuzz-layout
    fuzz-matmul
    fuzz-quant
    fuzz-reduce
    fuzz-scalar
    fuzz-sparse
    fuzz-unsigned
    fuzz-views
    fuzz-xent
    inplace
    layout
    lifetime
    matmul
    policy
    quant
    reduce
    seeds
    sparse
    tables
    views
    xent
    )
  add_test(NAME oracle-tensor-${cases} COMMAND test_cases ${oracle_tensor}/${cases}.txt)
  set_tests_properties(oracle-tensor-${cases} PROPERTIES LABELS "tensor;oracle" TIMEOUT ${STOKER_TEST_TIMEOUT})
endforeach()

# The element-wise, reduction and product cases again, with each choice of kernels and without a CBLAS.
set(oracle_tensor_ops)
foreach(cases broadcast elementwise fuzz-elementwise fuzz-inplace fuzz-matmul fuzz-reduce fuzz-unsigned inplace matmul reduce)
  list(APPEND oracle_tensor_ops ${oracle_tensor}/${cases}.txt)
endforeach()
foreach(isa ref avx2)
  add_test(NAME oracle-tensor-ops-${isa} COMMAND test_cases ${oracle_tensor_ops})
  set_tests_properties(oracle-tensor-ops-${isa} PROPERTIES LABELS "tensor;oracle" TIMEOUT ${STOKER_TEST_TIMEOUT}
      ENVIRONMENT "STOKER_ISA=${isa};STOKER_CBLAS=off")
endforeach()

# Devices: device.txt between the CPU and the host device (or the one in STOKER_TEST_DEVICE), and the other case files
# with all tensors on that device, both with and without a stream. Sparse tensors exist only in ordinary memory;
# seeds.txt has some.
set(oracle_tensor_dense)
foreach(cases broadcast cast create elementwise fuzz-cast fuzz-elementwise fuzz-inplace fuzz-layout fuzz-matmul fuzz-quant
    fuzz-reduce fuzz-scalar fuzz-unsigned fuzz-views fuzz-xent inplace layout lifetime matmul policy quant reduce tables views
    xent)
  list(APPEND oracle_tensor_dense ${oracle_tensor}/${cases}.txt)
endforeach()
add_test(NAME oracle-tensor-other-device COMMAND test_cases --other=tested ${oracle_tensor}/device.txt)
add_test(NAME oracle-tensor-other-stream COMMAND test_cases --other=tested --stream ${oracle_tensor}/device.txt)
add_test(NAME oracle-tensor-on-device COMMAND test_cases --device=tested ${oracle_tensor_dense})
add_test(NAME oracle-tensor-on-stream COMMAND test_cases --device=tested --stream ${oracle_tensor_dense})
add_test(NAME oracle-tensor-on-twins COMMAND test_cases --device=tested --stream ${oracle_tensor_dense})
# The test device has no kernels, so the processor computes everything on copies.
add_test(NAME oracle-tensor-on-copies COMMAND test_cases --device=test ${oracle_tensor_dense})
set_tests_properties(oracle-tensor-on-copies oracle-tensor-other-device oracle-tensor-other-stream oracle-tensor-on-device
    oracle-tensor-on-stream oracle-tensor-on-twins PROPERTIES LABELS "tensor;oracle;gpu" TIMEOUT ${STOKER_TEST_TIMEOUT})
set_property(TEST oracle-tensor-on-twins PROPERTY ENVIRONMENT STOKER_HOST_KERNELS=twin)
