/* count_pass.h: the pass over the data that comes before the one that writes: what `quantize: {calibrate: …}` and
 * `normalize: {stats: job}` in a job's transforms stand for. The rows of a loader whose transforms end before that step
 * are counted batch by batch. Batches depend on the job and its data alone, and are the blocks of statistics
 * (stats_tally.h), so that the result does not depend on who counts which.
 *
 * The batches are cut into units of about half a gigabyte. What a unit comes to is kept in a file of the work folder,
 * count-KEY-00000.tally, made under a lock of its own: an interrupted pass goes on, and tasks share the units. Each
 * task begins with its share and then takes whatever nobody is at; it ends when all are there.
 */
#ifndef STKI_COUNT_PASS_H
#define STKI_COUNT_PASS_H

#include "count_pool.h"
#include "prep_run.h"

#define STKI_COUNT_UNIT_BYTES (INT64_C(512) << 20)

/* `run` has job, opts and cancelled; its loader and core are the pass's while it runs. The config is taken over.
 * `text`: what else decides the result, such as the transforms. `unit_bytes`: of the rows in a unit. *reports: what was
 * found by field, new JSON. *inputs: the files (stki_prep_describe_inputs); NULL: not wanted. */
stk_status stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields, int field_count,
                           const char *text, int64_t unit_bytes, json_t **inputs, json_t **reports, stk_error *err);

#endif
