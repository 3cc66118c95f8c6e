/* sink_pt.c: writes .pt files for torch.load (weights_only=True): a dict of tensors (sink_arrays.h). */
#include "sink_arrays.h"
#include "sinks.h"

enum { ARRAY_MOST = 768 /* bytes of an array's zip and pickle entries */ };

static stk_status pt_check(const stki_sink_opts *opts, stk_error *err)
{
    return stki_arrays_check(opts, false, STK_DTYPE_NONE, err);
}

static int64_t pt_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                          stki_sink_size *size)
{
    return stki_arrays_measure(opts, ARRAY_MOST, values, count, size);
}

static stk_status pt_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    const stki_arrays_opts own = {0};

    (void)mark;
    return stki_arrays_open(&stki_sink_pt, opts, &own, out, err);
}

static const char *const endings[] = {".pt", ".pth", NULL};

const stki_sink_ops stki_sink_pt = {
    .format = "pt",
    .endings = endings,
    .check = pt_check,
    .measure = pt_measure,
    .open = pt_open,
    .append = stki_arrays_append,
    .finish = stki_arrays_finish,
    .files = stki_arrays_files,
    .destroy = stki_arrays_destroy,
};
