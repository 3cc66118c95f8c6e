/* count_pass.h: the pass over the data before the one that writes, which determines the parameters of `quantize:
 * {calibrate: …}` and `normalize: {stats: job}` in a job's transforms. It counts the rows of a loader whose transforms
 * end before that step, batch by batch. Batches depend only on the job and its data, and are the blocks of statistics
 * (stats_tally.h), so the result does not depend on which task or thread counts them.
 *
 * Batches are grouped into units of about half a gigabyte. The tally of a unit is stored in the work folder as
 * count-KEY-00000.tally, under its own lock: an interrupted pass is resumed, and tasks share the units. Each task first
 * processes its own share, then any unclaimed units; it ends when all tallies exist. */
#ifndef STKI_COUNT_PASS_H
#define STKI_COUNT_PASS_H

#include "count_pool.h"
#include "prep_run.h"

#define STKI_COUNT_UNIT_BYTES (INT64_C(512) << 20)

/* `run` must have job, opts and cancelled set; the pass uses its loader and core while it runs. Takes ownership of the
 * config. `text`: other input that determines the result, such as the transforms. `unit_bytes`: size of the rows in a
 * unit. *reports: the results by field, as a new JSON object. `inputs` (may be NULL) receives a description of the
 * files (stki_prep_describe_inputs). */
stk_status stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields, int field_count,
                           const char *text, int64_t unit_bytes, json_t **inputs, json_t **reports, stk_error *err);

#endif
