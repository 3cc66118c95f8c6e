/* sink_common.h: what all sinks have in common: names of files, checks of rows, marks that are read back.
 */
#ifndef STKI_SINK_COMMON_H
#define STKI_SINK_COMMON_H

#include "sink.h"

typedef struct stki_sink_common {
    stki_sink base;      /* first member */
    stki_sink_opts opts; /* path and folder are owned */
    int64_t rows;        /* appended */
    int64_t *units;      /* bytes, of every field: of a row (ARRAY), of one entry along axis 0 (RAGGED), 1 */
    stk_status failed;   /* nothing more is written, finish fails too */
} stki_sink_common;

/* The struct is zeroed. */
stk_status stki_sink_common_init(stki_sink_common *common, const stki_sink_ops *ops, const stki_sink_opts *opts,
                                 stk_error *err);
void stki_sink_common_fini(stki_sink_common *common);

/* Before rows are taken: no earlier failure, no more rows than announced, every value what its field says.
 * STK_E_RANGE, STK_E_BAD_VALUE. */
stk_status stki_sink_check_rows(stki_sink_common *common, const stki_sink_value *values, int64_t rows, stk_error *err);
/* Behind them: counts them, or keeps the failure. */
stk_status stki_sink_took(stki_sink_common *common, int64_t rows, stk_status status);
/* STK_E_MISMATCH: fewer came than were announced. */
stk_status stki_sink_check_finish(const stki_sink_common *common, stk_error *err);
/* Fails when something has failed before. */
stk_status stki_sink_check_usable(const stki_sink_common *common, stk_error *err);

/* STK_E_UNSUPPORTED: "FILE: field NAME: found …, expected …". */
stk_status stki_sink_refuse(const stki_sink_opts *opts, const stki_sink_field *field, const char *found,
                            const char *expected, stk_error *err);

/* size + count * each, at most INT64_MAX / 2. All at least 0. */
int64_t stki_sink_times(int64_t size, int64_t count, int64_t each);

/* DIR/STEM.PART.ENDING of DIR/STEM.ENDING; part NULL: the path itself. New; NULL: no memory. */
char *stki_sink_array_path(const char *path, const char *part);
/* The name in the job's folder of a file that will be `final`; `more` behind it, or "". */
char *stki_sink_temporary(const char *folder, const char *final, const char *more);

/* A number of a mark, from 0 on. STK_E_CORRUPT: there is none. */
stk_status stki_mark_int(const json_t *mark, const char *key, const char *path, int64_t *out, stk_error *err);
/* Its "rows", which become the sink's: no more than may come. */
stk_status stki_mark_rows(stki_sink_common *common, const json_t *mark, stk_error *err);
/* The new JSON, or the failure to make it. */
stk_status stki_mark_new(json_t *made, json_t **out, stk_error *err);

#endif
