/* guard.h: protects against mapped files being truncated while they are read. Reading a mapped page that the file no
 * longer has raises SIGBUS, which kills the process. In a guarded mapping, missing pages read as zeros instead:
 *
 *     stki_guard_add       adds the mapping to a table; the first call installs the SIGBUS handler
 *     the handler          finds the address in the table, records the missing page as bad, maps zeros over it and
 *                          returns: the read continues and returns zeros
 *     stki_guard_broken    reports whether any page is bad; must be called after the bytes have been read and
 *                          before the result is used
 *     stki_guard_bad       reports whether any page of some bytes is bad
 *
 * Other addresses, and a SIGBUS sent by a process, are passed to the previous handler, or have the default effect of
 * killing the process. A handler that the program installs later is left in place, and should forward signals that it
 * does not handle. The next mapping reinstalls stoker's handler only if SIG_DFL or SIG_IGN has been restored.
 *
 * A thread with SIGBUS blocked is not protected: the kernel then kills the process regardless of handlers.
 * Thread-safe. */
#ifndef STKI_GUARD_H
#define STKI_GUARD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stki_guard stki_guard;

/* Guards a mapping. `start` must be a result of mmap. NULL: out of memory; the mapping must not be used. */
stki_guard *stki_guard_add(const void *start, int64_t bytes);
/* Removes the guard. Call this before munmap, when the mapping is no longer read. Accepts NULL. */
void stki_guard_remove(stki_guard *guard);
/* Whether any page is bad. NULL: false. */
bool stki_guard_broken(const stki_guard *guard);
/* Whether any page that contains these bytes is bad. NULL: false. */
bool stki_guard_bad(const stki_guard *guard, const void *start, int64_t bytes);

/* Makes fork acquire the table's lock. A lock that is held while files are closed, such as that of HDF5, must be
 * acquired before the table's lock. Its owner therefore calls this function before it registers its own fork handlers,
 * which then run first. */
void stki_guard_watch_forks(void);

#endif
