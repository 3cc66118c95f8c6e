/* guard.h: mapped files that are cut while somebody reads them. Reading a mapped page that the file no longer has
 * raises SIGBUS, which ends the process. A guarded mapping turns that into zeros and a mark:
 *
 *     stki_guard_add       enters the mapping into a table; the first one installs the handler of SIGBUS
 *     the handler          finds the address in the table, enters the page that was missing as bad, puts zeros over it
 *                          and returns: the read goes on and gets zeros
 *     stki_guard_broken    is asked after the bytes were used, and before anybody relies on them
 *     stki_guard_bad       tells whose bytes they were
 *
 * An address that is in no guarded mapping, and a SIGBUS that somebody sent, go to the handler that was there before
 * ours, or do what they did without us: end the process. A handler that the program installs later is left where it is,
 * and should pass on what it does not know; only where the system's own ways (SIG_DFL, SIG_IGN) were put back, the next
 * mapping installs ours again.
 *
 * A thread that has SIGBUS blocked cannot be helped: the system ends the process then, whatever handlers there are.
 * Any thread.
 */
#ifndef STKI_GUARD_H
#define STKI_GUARD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stki_guard stki_guard;

/* `start` must be what mmap gave. NULL: no memory for the table; the mapping is then not to be used. */
stki_guard *stki_guard_add(const void *start, int64_t bytes);
/* Before the mapping is undone, and when nobody reads it any more. NULL is fine. */
void stki_guard_remove(stki_guard *guard);
/* Is any page bad? NULL: false. */
bool stki_guard_broken(const stki_guard *guard);
/* Is one of those bad that these bytes of the mapping lie on? NULL: false. */
bool stki_guard_bad(const stki_guard *guard, const void *start, int64_t bytes);

/* A fork waits for the table's lock. Locks that are held while files are closed (HDF5's) must be waited for before it:
 * their owner calls this first and registers its own handlers behind, which then run first. */
void stki_guard_watch_forks(void);

#endif
