/* sink_npz.c: .npz files: a member an array (sink_arrays.h), stored or deflated; times are those of the format's first
 * day. */
#include "sink_arrays.h"
#include "sinks.h"

struct npz_options {
    int64_t level;
};

static const stki_option option_rows[] = {
    STKI_INT(struct npz_options, level, 0, 0, 9, "", "Of compression; 0: none, so that the arrays can be mapped"),
};
static const stki_option_table option_table = STKI_OPTION_TABLE("output (npz)", option_rows);

static stk_status npz_check(const stki_sink_opts *opts, stk_error *err)
{
    return stki_arrays_check(opts, true, STK_DTYPE_NONE, err);
}

static stk_status npz_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    const struct npz_options *options = opts->options;
    stki_arrays_opts own = {0};

    (void)mark;
    if (options)
        own.level = (int)options->level;
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
    .open = npz_open,
    .append = stki_arrays_append,
    .finish = stki_arrays_finish,
    .files = stki_arrays_files,
    .destroy = stki_arrays_destroy,
};
