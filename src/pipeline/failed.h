/* failed.h: samples that fail, and what becomes of them (loader.on_error): the run ends, the row is left out, or
 * another sample takes its place. Workers settle the rows of a batch as soon as its last tile has ended
 * (fill_failed.c); what it comes to is counted, listed and compared with the budget when the batch is delivered, in
 * order, so that it does not depend on timing (failed.c). */
#ifndef STKI_FAILED_H
#define STKI_FAILED_H

#include "core.h"
#include "progress.h"

/* One failed sample of a batch. */
struct stki_failure {
    struct stki_failure *next; /* of the batch, by row */
    int64_t row, sample, position;
    int32_t source;
    bool with_partner;     /* the sample that failed is the one that the row is mixed with, the next two */
    int64_t failed_sample; /* else that of the row itself */
    int32_t failed_source; /* whose on_error decides */
    bool settled;          /* it does not end the run */
    bool padding;          /* the row is no sample of the epoch, so that nothing is counted */
    int64_t substitute;    /* the sample that took its place; -1: none */
    stk_error error;
};

/* enum stk_on_error of a data set. */
int stki_failed_policy(const stki_core *core, int32_t source);
/* Is it the sample's fault? That the process is out of memory or descriptors is not. */
bool stki_failed_may_settle(stk_status status);

/* Remembers why a row has failed, unless that is known; that its own sample failed replaces that its partner's did. Any
 * thread. */
void stki_failed_note(stki_core *core, stk_batch *batch, int64_t row, bool with_partner, const stk_error *error);
void stki_failed_forget(stk_batch *batch);

/* fill_failed.c: after the tiles of a phase. Replaces what is to be replaced; behind the last phase also leaves out
 * what is to be left out, and sets the batch's error to the first one that ends the run. */
void stki_failed_settle(struct stki_worker *worker, bool last_phase);

/* The most of `rows` samples whose share is not above `fraction`. */
int64_t stki_failed_most(double fraction, int64_t rows);
/* STK_E_LIMIT: says how many samples failed, how many `key` allows, and why the last one did. */
stk_status stki_failed_over(const stk_error *last, int64_t count, const char *allowed, const char *key, stk_error *err);

/* failed.c: counts and lists the batch's failures, and adds them to what its steps add up to. Not STK_OK: the budget is
 * used up, or an epoch has come to nothing. For the thread that calls next. */
stk_status stki_failed_deliver(stki_core *core, stk_batch *batch, stki_totals *after, stk_error *err);
/* Lists the failures of a batch that ends the run. */
void stki_failed_list(stki_core *core, const stk_batch *batch);
/* Opens the list of failed samples (loader.error_list). */
stk_status stki_failed_open(stki_core *core, stk_error *err);
void stki_failed_close(stki_core *core);

#endif
