/* spill.h: bytes that are kept on disk for a while, in a file without a name: nothing is left of it whatever happens.
 * Or under a name that is its owner's, where work may have to go on with them after a crash. One thread at a time, but
 * for stki_spill_sync. */
#ifndef STKI_SPILL_H
#define STKI_SPILL_H

#include <stoker/status.h>

typedef struct stki_spill stki_spill;

/* In the folder of `beside`; where that can't be, or `beside` is a device, in TMPDIR or /tmp. */
stk_status stki_spill_create(const char *beside, stki_spill **out, stk_error *err);
/* In the file `name`, which stays. keep -1: it starts empty; else it is cut to the `keep` bytes that it must have
 * (STK_E_TRUNCATED: it has fewer). */
stk_status stki_spill_hold(const char *name, int64_t keep, stki_spill **out, stk_error *err);
stk_status stki_spill_append(stki_spill *spill, const void *bytes, int64_t count, stk_error *err);
/* All that was appended is in the system's hands. */
stk_status stki_spill_flush(stki_spill *spill, stk_error *err);
/* What was flushed before the call is on the disk; any thread. */
stk_status stki_spill_sync(stki_spill *spill, stk_error *err);
int64_t stki_spill_bytes(const stki_spill *spill);
stk_status stki_spill_read(stki_spill *spill, int64_t offset, void *to, int64_t count, stk_error *err);
void stki_spill_destroy(stki_spill *spill); /* NULL is fine */

#endif
