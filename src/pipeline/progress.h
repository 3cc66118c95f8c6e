/* progress.h: how far the consumer is. Batches go out in order and come back in any; what a saved state may count is
 * the longest prefix of steps that have all come back. Every batch that is out remembers what the steps before it add
 * up to, so that the oldest one out has the answer, however many later ones were released. Any thread; the lock is a
 * leaf.
 */
#ifndef STKI_PROGRESS_H
#define STKI_PROGRESS_H

#include "digest.h"
#include "thread.h"

/* What steps add up to. */
typedef struct stki_totals {
    stki_u128 digest;       /* of the stream, where it is asked for */
    int64_t failed;         /* samples left out or replaced */
    int64_t epoch_failed;   /* of them, since the epoch of the next step began */
    int64_t epoch_left_out; /* rows left out since then, those lost with their partner too */
} stki_totals;

typedef struct stki_progress stki_progress;

/* Room for `leases` batches out at once. */
stk_status stki_progress_create(int leases, int64_t step, stki_progress **out, stk_error *err);
void stki_progress_destroy(stki_progress *progress); /* NULL is fine */

/* The batch of step `step`, the next one, goes out; `after` is what all steps up to it add up to. The lease's number.
 */
int stki_progress_deliver(stki_progress *progress, int64_t step, const stki_totals *after);
void stki_progress_release(stki_progress *progress, int lease);
/* The first step that has not come back, and what those before it add up to. */
void stki_progress_position(stki_progress *progress, int64_t *step, stki_totals *before);
/* What all that went out adds up to. */
void stki_progress_delivered(stki_progress *progress, int64_t *step, stki_totals *out);
/* Goes on at another step. Batches that are out no longer count, whenever they come back. */
void stki_progress_restart(stki_progress *progress, int64_t step, const stki_totals *before);

#endif
