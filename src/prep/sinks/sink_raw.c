/* sink_raw.c: writes files that contain only the values of an array (sink_columns.h); the reader's config must specify
 * dtype and shape. */
#include "sink_columns.h"
#include "sinks.h"

static stk_status raw_check(const stki_sink_opts *opts, stk_error *err)
{
    return stki_columns_check(opts, false, err);
}

static int64_t raw_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                           stki_sink_size *size)
{
    return stki_columns_measure(opts, false, values, count, size);
}

static stk_status raw_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    return stki_columns_open(&stki_sink_raw, opts, false, mark, out, err);
}

static const char *const endings[] = {".raw", ".bin", NULL};

const stki_sink_ops stki_sink_raw = {
    .format = "raw",
    .endings = endings,
    .resumes = true,
    .check = raw_check,
    .measure = raw_measure,
    .name = stki_columns_name,
    .open = raw_open,
    .append = stki_columns_append,
    .mark = stki_columns_mark,
    .sync = stki_columns_sync,
    .finish = stki_columns_finish,
    .files = stki_columns_files,
    .settled = stki_columns_settled,
    .destroy = stki_columns_destroy,
};
