/* failed.h: handling of samples that fail (loader.on_error): the run ends, the row is skipped, or another sample
 * replaces it. Workers resolve the failed rows of a batch as soon as its last tile is done (fill_failed.c). Failures
 * are counted, listed and compared with the budget when the batch is delivered, in order, so the result does not depend
 * on timing (failed.c). */
#ifndef STKI_FAILED_H
#define STKI_FAILED_H

#include "core.h"
#include "progress.h"

/* One failed sample of a batch. */
struct stki_failure {
    struct stki_failure *next; /* next failure in the batch; the list is sorted by row */
    int64_t row, sample, position;
    int32_t source;
    bool with_partner; /* the sample of the row's mixing partner failed, not its own */
    int64_t failed_sample;
    int32_t failed_source; /* its data set, whose on_error applies */
    bool settled;          /* it does not end the run, because the row was skipped or replaced */
    bool padding;          /* the row is padding, so the failure is not counted */
    int64_t substitute;    /* the replacement sample; -1: none */
    stk_error error;
};

/* Returns the enum stk_on_error that applies to a data set. */
int stki_failed_policy(const stki_core *core, int32_t source);
/* Whether on_error applies to a status: true for errors in the sample, false for those of the process (out of memory or
 * descriptors). */
bool stki_failed_may_settle(stk_status status);

/* Records why a row failed. The first reason is kept, except that a failure of the row's own sample replaces a failure
 * of its partner's. Thread-safe. */
void stki_failed_note(stki_core *core, stk_batch *batch, int64_t row, bool with_partner, const stk_error *error);
void stki_failed_forget(stk_batch *batch);

/* fill_failed.c: called after the tiles of a phase. Makes replacement rows; after the last phase it also removes
 * skipped rows and sets the batch's error to the first one that ends the run. */
void stki_failed_settle(struct stki_worker *worker, bool last_phase);

/* Returns the largest number of failed samples, out of `rows`, whose share does not exceed `fraction`. */
int64_t stki_failed_most(double fraction, int64_t rows);
/* Fails with STK_E_LIMIT; the message contains the number of failed samples, the number that `key` allows and the last
 * error. */
stk_status stki_failed_over(const stk_error *last, int64_t count, const char *allowed, const char *key, stk_error *err);

/* failed.c: counts and lists the batch's failures and adds them to the totals of its step. Fails if the budget is
 * exceeded, or if all rows of an epoch were skipped. Only for the thread that calls stk_loader_next. */
stk_status stki_failed_deliver(stki_core *core, stk_batch *batch, stki_totals *after, stk_error *err);
/* Writes the failures of a batch that ends the run to the error list. */
void stki_failed_list(stki_core *core, const stk_batch *batch);
/* Opens the list of failed samples (loader.error_list). */
stk_status stki_failed_open(stki_core *core, stk_error *err);
void stki_failed_close(stki_core *core);

#endif
