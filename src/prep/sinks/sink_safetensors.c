/* sink_safetensors.c: writes .safetensors files with one tensor per array (sink_arrays.h). */
#include "sink_arrays.h"
#include "sink_common.h"
#include "sinks.h"

enum { ARRAY_MOST = 512 /* bytes of an array's header entry */ };
#include <string.h>

static stk_status safetensors_check(const stki_sink_opts *opts, stk_error *err)
{
    for (int i = 0; i < opts->field_count; i++)
        if (strcmp(opts->fields[i].name, "__metadata__") == 0)
            return stki_sink_refuse(opts, &opts->fields[i], "a name that the format uses itself", "another name", err);
    return stki_arrays_check(opts, false, STK_C128, err);
}

static int64_t safetensors_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                                   stki_sink_size *size)
{
    return stki_arrays_measure(opts, ARRAY_MOST, values, count, size);
}

static stk_status safetensors_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    const stki_arrays_opts own = {0};

    (void)mark;
    return stki_arrays_open(&stki_sink_safetensors, opts, &own, out, err);
}

static const char *const endings[] = {".safetensors", NULL};

const stki_sink_ops stki_sink_safetensors = {
    .format = "safetensors",
    .endings = endings,
    .check = safetensors_check,
    .measure = safetensors_measure,
    .open = safetensors_open,
    .append = stki_arrays_append,
    .finish = stki_arrays_finish,
    .files = stki_arrays_files,
    .destroy = stki_arrays_destroy,
};
