/* running_sums.h: XXH3-64 of files that only grow, taken piece by piece while their bytes are still in memory, so that
 * little is left to read when they are finished. One thread. */
#ifndef STKI_RUNNING_SUMS_H
#define STKI_RUNNING_SUMS_H

#include "sink.h"

typedef struct stki_running_sums stki_running_sums;

/* Of the files of a sink that says they only grow (`settled`). NULL with STK_OK: it does not say so. */
stk_status stki_running_sums_create(const stki_sink *sink, stki_running_sums **out, stk_error *err);
void stki_running_sums_destroy(stki_running_sums *sums); /* NULL is fine */
/* Takes what has come since the last call. */
stk_status stki_running_sums_go_on(stki_running_sums *sums, stk_error *err);
/* The rest, and the sum of file `index` of the sink's and its bytes. */
stk_status stki_running_sums_finish(stki_running_sums *sums, int index, uint64_t *out, int64_t *bytes, stk_error *err);

#endif
