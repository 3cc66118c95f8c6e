/* spill.h: temporary storage on disk, either in an unnamed file, which never outlives the process, or in a file named
 * by the owner, so that work can be resumed after a crash. Not thread-safe except stki_spill_sync. */
#ifndef STKI_SPILL_H
#define STKI_SPILL_H

#include <stoker/status.h>

typedef struct stki_spill stki_spill;

/* Creates an unnamed file in the folder of `beside`, or, if that fails or `beside` is a device, in TMPDIR or /tmp. */
stk_status stki_spill_create(const char *beside, stki_spill **out, stk_error *err);
/* Uses the file `name`, which is not deleted. keep -1: starts with an empty file. Otherwise the file is truncated to
 * `keep` bytes; STK_E_TRUNCATED: it is shorter. */
stk_status stki_spill_hold(const char *name, int64_t keep, stki_spill **out, stk_error *err);
stk_status stki_spill_append(stki_spill *spill, const void *bytes, int64_t count, stk_error *err);
/* Passes all appended bytes to the operating system. */
stk_status stki_spill_flush(stki_spill *spill, stk_error *err);
/* Waits until everything flushed before the call is on disk. Can be called from any thread. */
stk_status stki_spill_sync(stki_spill *spill, stk_error *err);
int64_t stki_spill_bytes(const stki_spill *spill);
stk_status stki_spill_read(stki_spill *spill, int64_t offset, void *to, int64_t count, stk_error *err);
void stki_spill_destroy(stki_spill *spill); /* NULL is allowed */

#endif
