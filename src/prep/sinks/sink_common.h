/* sink_common.h: shared by all sinks: names of files, checks of rows, parsing of marks. */
#ifndef STKI_SINK_COMMON_H
#define STKI_SINK_COMMON_H

#include "sink.h"

typedef struct stki_sink_common {
    stki_sink base;      /* first member */
    stki_sink_opts opts; /* path and folder are owned */
    int64_t rows;        /* appended */
    int64_t *units;      /* per field: bytes of a row (ARRAY) or of one entry along axis 0 (RAGGED); otherwise 1 */
    stk_status failed;   /* after a failure, nothing more is written and finish fails */
} stki_sink_common;

/* The struct must be zeroed. */
stk_status stki_sink_common_init(stki_sink_common *common, const stki_sink_ops *ops, const stki_sink_opts *opts,
                                 stk_error *err);
void stki_sink_common_fini(stki_sink_common *common);

/* Checks rows before they are appended: no earlier failure, no more rows than announced, all values as described by
 * their fields. STK_E_RANGE, STK_E_BAD_VALUE. */
stk_status stki_sink_check_rows(stki_sink_common *common, const stki_sink_value *values, int64_t rows, stk_error *err);
/* Called after an append: counts the rows, or records the failure. */
stk_status stki_sink_took(stki_sink_common *common, int64_t rows, stk_status status);
/* STK_E_MISMATCH: fewer rows than announced. */
stk_status stki_sink_check_finish(const stki_sink_common *common, stk_error *err);
/* Fails if an earlier call failed. */
stk_status stki_sink_check_usable(const stki_sink_common *common, stk_error *err);

/* Fails with STK_E_UNSUPPORTED and the message "FILE: field NAME: found …, expected …". */
stk_status stki_sink_refuse(const stki_sink_opts *opts, const stki_sink_field *field, const char *found,
                            const char *expected, stk_error *err);

/* Returns size + count * each, limited to INT64_MAX / 2. All arguments must be non-negative. */
int64_t stki_sink_times(int64_t size, int64_t count, int64_t each);

/* Returns DIR/STEM.PART.EXTENSION for DIR/STEM.EXTENSION; part NULL: a copy of the path. Free with stki_free; NULL: out
 * of memory. */
char *stki_sink_array_path(const char *path, const char *part);
/* Returns the temporary name of the file `final` in the job's folder, with the suffix `more` (may be ""). */
char *stki_sink_temporary(const char *folder, const char *final, const char *more);

/* Reads a non-negative number from a mark. STK_E_CORRUPT: it is missing. */
stk_status stki_mark_int(const json_t *mark, const char *key, const char *path, int64_t *out, stk_error *err);
/* Sets the sink's rows from "rows" of the mark, which must not exceed most_rows. */
stk_status stki_mark_rows(stki_sink_common *common, const json_t *mark, stk_error *err);
/* Stores `made` in *out. STK_E_MEMORY: `made` is NULL. */
stk_status stki_mark_new(json_t *made, json_t **out, stk_error *err);

#endif
