# The calls of the library that faults.c and host_faults.c let fail, as options of the linker.
set(STOKER_FAULT_OPTIONS)
foreach(call stki_block_alloc stki_zalloc stki_zalloc_array stki_resize stki_strdup stki_format mmap pread pwrite pwritev
             fsync fdatasync close rename stki_host_submit)
  list(APPEND STOKER_FAULT_OPTIONS -Wl,--wrap=${call})
endforeach()
