# Device programs again, with all work of the host device done by the kernels' twins, in its own memory and streams.
foreach(name test_device_copy test_any_device test_prefetch test_loader_device)
  if(TARGET ${name})
    add_test(NAME ${name}-twins COMMAND ${name})
    set_tests_properties(${name}-twins PROPERTIES LABELS gpu SKIP_RETURN_CODE 77 TIMEOUT 300
        ENVIRONMENT "STOKER_HOST_KERNELS=twin;STOKER_TEST_DEVICE=host")
  endif()
endforeach()
