/* sink_npz.c: writes .npz files with one member per array (sink_arrays.h), stored or deflated; all times are the
 * earliest that the format can represent. */
#include "sink_arrays.h"
#include "sinks.h"

enum { ARRAY_MOST = 512 /* bytes of an array's zip entries */ };

struct npz_options {
    int64_t level;
};

static const stki_option option_rows[] = {
    STKI_INT(struct npz_options, level, 0, 0, 9, "", "Compression level; 0: none, so that the arrays can be mapped"),
};
static const stki_option_table option_table = STKI_OPTION_TABLE("output (npz)", option_rows);

static stk_status npz_check(const stki_sink_opts *opts, stk_error *err)
{
    return stki_arrays_check(opts, true, STK_DTYPE_NONE, err);
}

static int64_t npz_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                           stki_sink_size *size)
{
    return stki_arrays_measure(opts, ARRAY_MOST, values, count, size);
}

static int npz_level(const stki_sink_opts *opts)
{
    const struct npz_options *options = opts->options;

    return options ? (int)options->level : 0;
}

static int64_t npz_packed(const stki_sink_opts *opts, int field, const void *bytes, int64_t size)
{
    return stki_arrays_packed(npz_level(opts), false, &opts->fields[field], bytes, size);
}

static stk_status npz_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    const stki_arrays_opts own = {.level = npz_level(opts)};

    (void)mark;
    return stki_arrays_open(&stki_sink_npz, opts, &own, out, err);
}

static const char *const endings[] = {".npz", NULL};

const stki_sink_ops stki_sink_npz = {
    .format = "npz",
    .endings = endings,
    .aliases = true,
    .table = &option_table,
    .options_bytes = sizeof(struct npz_options),
    .check = npz_check,
    .measure = npz_measure,
    .packed = npz_packed,
    .open = npz_open,
    .append = stki_arrays_append,
    .finish = stki_arrays_finish,
    .files = stki_arrays_files,
    .destroy = stki_arrays_destroy,
};
