/* progress.h: the position of the consumer. Batches are delivered in order and released in any order. A saved state
 * covers the longest prefix of steps that have all been released. Each leased batch stores the totals of the steps
 * before it, so the oldest leased batch contains the totals to save, even if many later batches have been released. All
 * functions may be called by any thread. No other lock is taken while the lock of a stki_progress is held. */
#ifndef STKI_PROGRESS_H
#define STKI_PROGRESS_H

#include "digest.h"
#include "thread.h"

/* Totals over steps. */
typedef struct stki_totals {
    stki_u128 digest;       /* digest of the stream, if enabled */
    int64_t failed;         /* samples skipped or replaced */
    int64_t epoch_failed;   /* samples skipped or replaced since the start of the epoch that the next step belongs to */
    int64_t epoch_left_out; /* rows skipped since the start of that epoch, including those lost because their partner
                               failed */
} stki_totals;

typedef struct stki_progress stki_progress;

/* `leases`: the maximum number of batches leased at once. */
stk_status stki_progress_create(int leases, int64_t step, stki_progress **out, stk_error *err);
void stki_progress_destroy(stki_progress *progress); /* NULL is allowed. */

/* Records the delivery of step `step`, which must be the next one; `after` contains the totals up to and including it.
 * Returns the lease number. */
int stki_progress_deliver(stki_progress *progress, int64_t step, const stki_totals *after);
void stki_progress_release(stki_progress *progress, int lease);
/* Returns the first step that has not been released, and the totals of the steps before it. */
void stki_progress_position(stki_progress *progress, int64_t *step, stki_totals *before);
/* Returns the next step to be delivered, and the totals of the steps before it. */
void stki_progress_delivered(stki_progress *progress, int64_t *step, stki_totals *out);
/* Moves the position to another step. Batches leased earlier no longer affect the position; they may be released at any
 * time. */
void stki_progress_restart(stki_progress *progress, int64_t step, const stki_totals *before);

#endif
