/* sink_npy.c: writes one .npy file per array (sink_columns.h). Dtypes that .npy cannot name are rejected unless the
 * field's alias requests raw bytes. */
#include "sink_columns.h"
#include "sinks.h"

static stk_status npy_check(const stki_sink_opts *opts, stk_error *err)
{
    return stki_columns_check(opts, true, err);
}

static int64_t npy_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                           stki_sink_size *size)
{
    return stki_columns_measure(opts, true, values, count, size);
}

static stk_status npy_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    return stki_columns_open(&stki_sink_npy, opts, true, mark, out, err);
}

static const char *const endings[] = {".npy", NULL};

const stki_sink_ops stki_sink_npy = {
    .format = "npy",
    .endings = endings,
    .aliases = true,
    .resumes = true,
    .check = npy_check,
    .measure = npy_measure,
    .name = stki_columns_name,
    .open = npy_open,
    .append = stki_columns_append,
    .mark = stki_columns_mark,
    .sync = stki_columns_sync,
    .finish = stki_columns_finish,
    .files = stki_columns_files,
    .settled = stki_columns_settled,
    .destroy = stki_columns_destroy,
};
