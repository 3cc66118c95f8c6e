/* loader_echo.c: the options in effect in a loader as JSON, and the values derived from them. */
#include "allocate.h"
#include "core.h"
#include "device_table.h"
#include "error.h"
#include "loader_handle.h"
#include "text_json.h"
#include <stdio.h>
#include <stdlib.h>

static int64_t bytes_of(const stki_field *field)
{
    int64_t bytes = stk_dtype_size(field->dtype);

    for (int i = 0; i < field->ndim; i++)
        bytes *= field->shape[i];
    return bytes;
}

/* Adds the folded arithmetic: y = x * multiply + add per channel; for quantized levels also `zero_point`. */
static json_t *affine_json(const stki_fold *fold)
{
    json_t *json = json_object(), *multiply = json_array(), *add = json_array();

    for (int64_t c = 0; c < fold->channels; c++) {
        json_array_append_new(multiply, json_real(fold->a[c]));
        json_array_append_new(add, json_real(fold->b[c]));
    }
    json_object_set_new(json, "multiply", multiply);
    json_object_set_new(json, "add", add);
    json_object_set_new(json, "zero_point", json_integer(fold->zero_point));
    return json;
}

static json_t *field_json(const stki_core *core, int number)
{
    const stki_field_plan *plan = &core->plans[number];
    const stki_field_plan *sample = stki_plan_of_sample(plan);
    const stki_field_classes *classes = &core->classes[number];
    const stki_field *field = plan->field;
    json_t *json = json_object(), *shape = json_array(), *paths = json_array();
    stki_row_form form;

    stki_plan_form(plan, &form);
    for (int i = 0; i < field->shard_count; i++)
        json_array_append_new(paths, stki_text_json(field->shards[i]->path));
    json_object_set_new(json, "path", paths);
    json_object_set_new(json, "format", json_string(field->shards[0]->ops->format));
    json_object_set_new(json, "access", json_string(field->shards[0]->access));
    json_object_set_new(json, "source_dtype", json_string(stk_dtype_long_name(field->dtype)));
    json_object_set_new(json, "dtype", json_string(stk_dtype_long_name(form.dtype)));
    json_object_set_new(json, "layout", json_string(stki_layout_name(form.layout)));
    json_array_append_new(shape, json_integer(core->max_rows));
    for (int i = 0; i < plan->ndim; i++)
        json_array_append_new(shape, json_integer(form.shape[i]));
    json_object_set_new(json, "batch_shape", shape);
    json_object_set_new(json, "varying", json_boolean(plan->rows->measured));
    json_object_set_new(json, "row_bytes", json_integer(form.row_bytes));
    if (sample->convert.count)
        json_object_set_new(json, "kernel", json_string(stki_convert_name(stki_plan_kernel(sample, 0))));
    if (plan->device.convert)
        json_object_set_new(json, "device_kernel", json_string(plan->device.kernel));
    if (!field->variable)
        json_object_set_new(json, "sample_bytes",
                            json_integer(bytes_of(field) * (plan->config->row_samples > 0 ? plan->shape[0] : 1)));
    if (classes->names.count > 0) {
        json_object_set_new(json, "classes", stki_classes_json(&classes->names));
        json_object_set_new(json, "classes_from", stki_text_json(classes->origin));
    }
    if (sample->fold->arithmetic)
        json_object_set_new(json, "affine", affine_json(sample->fold));
    return json;
}

/* Adds the hashes of the sections by which a saved position is compared. */
static json_t *prints_json(const stki_core *core)
{
    uint32_t sections[STKI_STATE_SECTIONS];

    stki_state_hash(&core->print, sections);
    return stki_state_sections_json(sections);
}

static json_t *ranks_json(const stki_ranks *ranks)
{
    json_t *json = json_object();

    json_object_set_new(json, "source", json_string(ranks->source));
    json_object_set_new(json, "rank", json_integer(ranks->rank));
    json_object_set_new(json, "world_size", json_integer(ranks->world_size));
    json_object_set_new(json, "data_rank", json_integer(ranks->data_rank));
    json_object_set_new(json, "data_world_size", json_integer(ranks->data_world_size));
    return json;
}

static json_t *order_json(const stki_core *core)
{
    json_t *json = json_object(), *sources = json_array();
    stki_order_print print;
    char hash[17];

    stki_order_fingerprint(core->order, &print);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)print.whole);
    json_object_set_new(json, "kind", json_string(stki_config_words("order")[print.kind]));
    json_object_set_new(json, "seed", json_integer(core->config->seed));
    json_object_set_new(json, "version", json_integer(print.version));
    json_object_set_new(json, "fingerprint", json_string(hash));
    json_object_set_new(json, "positions_per_epoch", json_integer(print.length));
    json_object_set_new(json, "data_set_samples", json_integer(core->dataset->count));
    if (core->config->split)
        json_object_set_new(json, "split", stki_options_json(&stki_split_table, &core->config->split_config));
    if (core->config->bucket_by)
        json_object_set_new(json, "bucket_by", json_string(core->config->bucket_by));
    if (core->quality.batch > 0) {
        json_object_set_new(json, "quality", json_real(core->quality.quality));
        json_object_set_new(json, "quality_classes_per_batch", json_real(core->quality.classes));
        json_object_set_new(json, "quality_classes_shuffled", json_real(core->quality.shuffled));
    }
    for (int d = 0; d < core->source_count; d++)
        json_array_append_new(sources, json_pack("{s:s, s:f, s:I, s:I}", "name", core->sources[d].name, "weight",
                                                 core->sources[d].weight, "samples", (json_int_t)core->sources[d].count,
                                                 "positions_per_epoch", (json_int_t)core->sources[d].share));
    json_object_set_new(json, "datasets", sources);
    return json;
}

stk_status stki_loader_echo(stk_loader *loader, stk_error *err)
{
    const stki_core *core = loader->core;
    json_t *json = json_object(), *fields = json_object(), *plan = json_object(),
           *section = stki_config_json(core->config);
    char *text;

    for (int i = 0; i < core->plan_count; i++)
        json_object_set_new(fields, core->plans[i].name, field_json(core, i));
    json_object_set_new(json, "fields", fields);
    if (section) {
        json_object_set_new(section, "num_workers",
                            json_integer(core->worker_count)); /* in the options, -1 means no workers */
        json_object_set_new(json, "loader", section);
    }
    json_object_set_new(plan, "order", order_json(core));
    json_object_set_new(plan, "samples", json_integer(core->batching.length));
    json_object_set_new(plan, "steps_per_epoch", json_integer(core->steps));
    json_object_set_new(plan, "global_batch_rows", json_integer(core->batching.global_batch));
    json_object_set_new(plan, "slots", json_integer(core->slot_count));
    json_object_set_new(plan, "slot_bytes", json_integer(core->layout.bytes));
    json_object_set_new(plan, "workers", json_integer(core->worker_count));
    json_object_set_new(plan, "rows_per_tile", json_integer(core->rows_per_tile));
    json_object_set_new(plan, "parts_per_row", json_integer(core->tiles_per_row));
    json_object_set_new(plan, "pinned", json_boolean(core->pinned_slots == core->slot_count));
    json_object_set_new(plan, "pinned_slots", json_integer(core->pinned_slots));
    json_object_set_new(plan, "pinned_reason", json_string(core->pin_reason));
    if (core->device) {
        json_object_set_new(plan, "device", json_string(core->device->name));
        json_object_set_new(plan, "device_slots", json_integer(core->config->device_prefetch));
        json_object_set_new(plan, "device_slot_bytes", json_integer(core->device_slot_bytes));
    }
    json_object_set_new(plan, "isa", json_string(stki_isa_name(stki_isa())));
    json_object_set_new(plan, "ranks", ranks_json(&core->config->ranks));
    json_object_set_new(plan, "fingerprints", prints_json(core));
    json_object_set_new(json, "plan", plan);
    text = json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    if (text) {
        loader->options_json = stki_strdup(text);
        free(text);
    }
    return loader->options_json ? STK_OK : stki_fail_memory(err, 0, "the options in effect");
}
