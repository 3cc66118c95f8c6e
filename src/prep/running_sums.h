/* running_sums.h: XXH3-64 of append-only files, computed incrementally while the bytes are still in memory, so that
 * little has to be read when they are finished. Not thread-safe. */
#ifndef STKI_RUNNING_SUMS_H
#define STKI_RUNNING_SUMS_H

#include "sink.h"

typedef struct stki_running_sums stki_running_sums;

/* Creates the sums of a sink whose files are append-only (`settled`). *out is NULL if they are not, or if there are too
 * many of them. */
stk_status stki_running_sums_create(const stki_sink *sink, stki_running_sums **out, stk_error *err);
void stki_running_sums_destroy(stki_running_sums *sums); /* NULL is allowed */
/* Returns the current sizes of the files, as a new JSON array; NULL: out of memory. */
json_t *stki_running_sums_ends(const stki_running_sums *sums);
/* Adds the bytes up to the sizes in line["ends"], and stores the checksums of the files up to there in line["sums"]. */
stk_status stki_running_sums_go_on(stki_running_sums *sums, json_t *line, stk_error *err);
/* Called before any byte has been added. Functions that add bytes return STK_E_CORRUPT if the checksums up to
 * line["ends"] differ from line["sums"], if the line has any. */
void stki_running_sums_expect(stki_running_sums *sums, const json_t *line);
/* Adds the remaining bytes, and returns the checksum and size of the sink's file `index`. */
stk_status stki_running_sums_finish(stki_running_sums *sums, int index, uint64_t *out, int64_t *bytes, stk_error *err);

#endif
