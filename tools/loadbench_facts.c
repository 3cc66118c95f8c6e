/* loadbench_facts.c: what a loader says about itself, kept beyond its end. */
#include "allocate.h"
#include "error.h"
#include "loadbench_run.h"
#include <inttypes.h>
#include <string.h>

static void format_shape(const stk_field_info *info, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "[");

    for (int i = 0; i < info->ndim && used < size; i++)
        used += snprintf(out + used, (size_t)(size - used), "%s%" PRId64, i > 0 ? ", " : "", info->shape[i]);
    if (used < size)
        snprintf(out + used, (size_t)(size - used), "]");
}

/* Of a sample in its file, where every sample has the same number of elements as its row of the batch. */
static int64_t sample_bytes(const stk_field_info *info)
{
    int64_t bytes = stk_dtype_size(info->source_dtype);

    for (int i = 1; i < info->ndim; i++)
        bytes = info->shape[i] < 0 ? 0 : bytes * info->shape[i];
    return bytes;
}

static void read_field(const stk_field_info *info, struct lb_field *out)
{
    snprintf(out->name, sizeof out->name, "%s", info->name);
    snprintf(out->layout, sizeof out->layout, "%s", info->layout ? info->layout : "");
    snprintf(out->kernel, sizeof out->kernel, "%s", info->kernel ? info->kernel : "");
    snprintf(out->access, sizeof out->access, "%s", info->access ? info->access : "");
    format_shape(info, out->shape, sizeof out->shape);
    out->source_dtype = info->source_dtype;
    out->dtype = info->dtype;
    out->sample_bytes = sample_bytes(info);
}

stk_status lb_facts_read(const stk_loader *loader, struct lb_facts *facts, stk_error *err)
{
    const int fields = stk_loader_field_count(loader), notes = stk_loader_note_count(loader);

    if (fields > LB_FIELDS)
        return stki_fail(err, STK_E_UNSUPPORTED, "loadbench shows at most %d fields, this data set has %d", LB_FIELDS,
                         fields);
    facts->options_json = stki_strdup(stk_loader_options_json(loader));
    if (!facts->options_json)
        return stki_fail_memory(err, 4096, "the options in effect");
    facts->samples = stk_loader_samples(loader);
    facts->steps_per_epoch = stk_loader_steps_per_epoch(loader);
    for (; facts->field_count < fields; facts->field_count++) {
        stk_field_info info;
        stk_status status = stk_loader_field(loader, facts->field_count, &info, err);
        if (status != STK_OK)
            return status;
        read_field(&info, &facts->fields[facts->field_count]);
    }
    for (; facts->note_count < notes && facts->note_count < LB_NOTES; facts->note_count++)
        snprintf(facts->notes[facts->note_count], sizeof facts->notes[0], "%s",
                 stk_loader_note(loader, facts->note_count));
    return STK_OK;
}

void lb_facts_fini(struct lb_facts *facts)
{
    stki_free(facts->options_json);
    memset(facts, 0, sizeof *facts);
}
