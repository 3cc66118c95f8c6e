/* hdf5_library.h: access to libhdf5. All code that calls it includes this header and does so between stki_hdf5_enter
 * and stki_hdf5_leave, which hold the process-wide lock, and keep the library from printing and from loading filter
 * plugins that are not allowed. The file in use is recorded (apart.h). IDs of the library must not be used after a
 * fork: code that owns an ID also stores stki_fork_generation and does not use the ID in a child process. */
#ifndef STKI_HDF5_LIBRARY_H
#define STKI_HDF5_LIBRARY_H

#include "apart.h"
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <stdbool.h>
#include <stoker/status.h>

/* The library's previous settings. */
typedef struct stki_hdf5_guard {
    H5E_auto2_t print;
    void *print_context;
    unsigned plugins;
} stki_hdf5_guard;

void stki_hdf5_enter(stki_hdf5_guard *guard, bool plugins);
void stki_hdf5_leave(const stki_hdf5_guard *guard);

/* Reports a failed call to the library and clears its error stack. Called between enter and leave. The message is
 * "FILE: NAME: WHAT (libhdf5: MESSAGE)"; `name` may be NULL. The status is derived from the library's error numbers:
 * STK_E_TRUNCATED, STK_E_UNSUPPORTED (newer version or missing filter), STK_E_NOT_FOUND, STK_E_MEMORY, STK_E_IO, or
 * else `otherwise`. */
stk_status stki_hdf5_fail(stk_error *err, stk_status otherwise, const char *path, const char *name, const char *what);
/* Like stki_hdf5_fail, for a failed call that read elements. Sets *chunk to whether their chunk could not be decoded,
 * in which case its other elements fail too. */
stk_status stki_hdf5_fail_elements(stk_error *err, const char *path, const char *name, bool *chunk);
/* Returns the version, such as "1.10.8". This and the next function query the library only once. */
const char *stki_hdf5_version(void);
/* Whether the library is built with thread safety. */
bool stki_hdf5_thread_safe(void);

/* Fails with STK_E_FORKED if `generation` is not that of this process. */
stk_status stki_hdf5_check_fork(int64_t generation, const char *path, stk_error *err);

#endif
