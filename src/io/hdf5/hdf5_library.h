/* hdf5_library.h: the only way to libhdf5. Everybody who calls it includes this header and does so between
 * stki_hdf5_enter and stki_hdf5_leave: that holds the one process-wide lock, keeps the library from printing, and keeps
 * it from loading filter plugins unless they are allowed. What is done there with a file is noted (apart.h). Ids of the
 * library never cross a fork: who holds some remembers stki_fork_generation and asks nothing in a child.
 */
#ifndef STKI_HDF5_LIBRARY_H
#define STKI_HDF5_LIBRARY_H

#include "apart.h"
#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <stdbool.h>
#include <stoker/status.h>

/* What the library was set to before we came. */
typedef struct stki_hdf5_guard {
    H5E_auto2_t print;
    void *print_context;
    unsigned plugins;
} stki_hdf5_guard;

void stki_hdf5_enter(stki_hdf5_guard *guard, bool plugins);
void stki_hdf5_leave(const stki_hdf5_guard *guard);

/* Inside enter and leave, after a failed call: "FILE: NAME: WHAT (libhdf5: <what the library said>)", with the
 * library's errors read away. `name` may be NULL. The status follows from the library's error numbers: STK_E_TRUNCATED;
 * STK_E_UNSUPPORTED (of a newer version, or a filter is missing); STK_E_NOT_FOUND; STK_E_IO; else it is `otherwise`. */
stk_status stki_hdf5_fail(stk_error *err, stk_status otherwise, const char *path, const char *name, const char *what);
/* The same where the size of a chunk was asked for. *missing: nothing below the data set failed, so there is no such
 * chunk. */
stk_status stki_hdf5_fail_chunk(stk_error *err, const char *path, const char *name, const char *what, bool *missing);
/* "1.10.8". Asked once, like the next one. */
const char *stki_hdf5_version(void);
/* Does the library here lock by itself? */
bool stki_hdf5_thread_safe(void);

/* STK_E_FORKED where `generation` is not that of this process. */
stk_status stki_hdf5_check_fork(int64_t generation, const char *path, stk_error *err);

#endif
