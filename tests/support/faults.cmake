# Linker options that redirect calls of the library to faults.c, host_faults.c and kernels_general.c in test programs.
set(STOKER_FAULT_OPTIONS)
foreach(call stki_block_alloc stki_zalloc stki_zalloc_array stki_resize stki_strdup stki_format mmap pread pwrite pwritev
             fsync fdatasync close rename stki_host_submit
             stki_plan_tiles stki_plan_runs stki_plan_pixels stki_plan_is_binary_runs)
  list(APPEND STOKER_FAULT_OPTIONS -Wl,--wrap=${call})
endforeach()
