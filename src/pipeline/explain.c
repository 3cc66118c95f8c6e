/* explain.c: describes what a loader will do: fields, order, shards, the folded transforms, the number of passes over
 * the data, and memory. Everything is known once the loader is open; no sample is read. */
#include "first_steps.h"
#include "help.h"
#include "row_maker.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT "  %-10s "

static const char *size_text(char buffer[32], int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buffer;
}

#define SIZE(bytes) size_text((char[32]){0}, bytes)

/* ---- one field ---- */

static void explain_source(const stki_field_plan *plan, FILE *to)
{
    const stki_field *field = plan->field;
    const stki_reader *first = field->shards[0];

    fprintf(to, LEFT "%s", "from", first->path);
    if (field->shard_count > 1)
        fprintf(to, " and %d more shard%s", field->shard_count - 1, field->shard_count > 2 ? "s" : "");
    fprintf(to, " (%s, %s): %" PRId64 " samples of %s %s%s\n", first->ops->format, first->access,
            stki_field_count(field), stk_dtype_name(field->dtype), field->variable ? "at most " : "",
            STKI_SHAPE(field->ndim, field->shape));
}

/* Prints the first five names; stk_loader_options_json returns all of them. */
static void explain_classes(const stki_field_classes *classes, FILE *to)
{
    const int64_t count = classes->names.count, shown = count < 5 ? count : 5;

    if (count == 0)
        return;
    fprintf(to, LEFT "%" PRId64 ", %s: ", "classes", count, classes->origin);
    for (int64_t i = 0; i < shown; i++)
        fprintf(to, "%s%s", i > 0 ? ", " : "", classes->list[i]);
    fputs(shown < count ? ", …\n" : "\n", to);
}

/* Prints the names of the steps for which `belongs` returns true. Returns false if there are none. */
static bool names_of(const stki_field_plan *plan, bool (*belongs)(const char *name), FILE *to)
{
    const stki_node *list = plan->config->transforms;
    bool any = false;

    for (int i = 0; list && list->kind == STKI_NODE_LIST && i < list->count; i++) {
        const stki_node *step = list->items[i];

        if (step->kind != STKI_NODE_MAP || step->count != 1 || !belongs(step->keys[0]))
            continue;
        if (any)
            fputs(", ", to);
        else
            fprintf(to, LEFT, "step");
        fputs(step->keys[0], to);
        any = true;
    }
    return any;
}

static bool is_late(const char *name)
{
    return !stki_first_steps_know(name) && !stki_geometry_knows(name) && !stki_colors_know(name) &&
           !stki_fold_takes(name);
}

static void explain_geometry(const stki_field_plan *plan, FILE *to)
{
    const stki_geometry *g = plan->image.geometry;
    int ways = 0;

    for (int n = 0; n < STKI_ORIENTATIONS; n++)
        ways += (plan->image.orientations & 1u << n) != 0;
    if (!names_of(plan, stki_geometry_knows, to))
        return;
    fprintf(to, ": %s%s", g->random ? "drawn for each sample; " : "",
            g->resizes             ? "one resize of one part of the image"
            : plan->image.resample ? "pixels are gathered into the worker's memory"
                                   : "a view of the sample, nothing is copied");
    if (ways > 1 && !plan->rows->has_shapes)
        fprintf(to, "; %d orientations, each with its own conversion", ways);
    if (g->pads && !plan->image.resample)
        fputs("; crops that extend past the edge are padded in strips in the cache", to);
    fputc('\n', to);
}

static void explain_arithmetic(const stki_field_plan *plan, FILE *to)
{
    const stki_fold *fold = plan->fold;

    if (!names_of(plan, stki_fold_takes, to))
        return;
    if (!fold->arithmetic) {
        fputs(": a cast\n", to);
        return;
    }
    fputs(": one multiply-add", to);
    for (int64_t c = 0; c < fold->channels && c < 4; c++)
        fprintf(to, "%s x * %.9g %c %.9g", c ? "," : "", fold->a[c], fold->b[c] < 0 ? '-' : '+',
                fold->b[c] < 0 ? -fold->b[c] : fold->b[c]);
    fprintf(to, "%s%s\n", fold->channels > 4 ? ", …" : "", fold->quantized ? ", rounded to levels" : "");
}

/* Prints how often the bytes pass through memory, and where intermediate results are stored. */
static void explain_passes(const stki_field_plan *plan, FILE *to)
{
    const stki_reader *first = plan->field->shards[0];
    int passes = 1;

    fprintf(to, LEFT, "passes");
    if (first->copies) {
        fprintf(to, "%s; ", first->image ? "decoded into the worker's memory" : "read into the worker's memory");
        passes++;
    }
    if (plan->image.geometry && plan->image.geometry->resizes)
        fputs(plan->image.strip_rows && !plan->image.colors ? "resized a few lines at a time in the cache; "
                                                            : "resized; ",
              to);
    if (plan->image.colors)
        fputs("colors are changed in f32 planes in the cache; ", to);
    if (plan->maker->pass) {
        fputs(plan->maker->pass, to);
        passes++;
    }
    fprintf(to, "a byte is read %d time%s on its way into the row, which is written once\n", passes,
            passes > 1 ? "s" : "");
}

static void explain_field(const stki_core *core, int number, FILE *to)
{
    const stki_field_plan *plan = &core->plans[number];
    const stki_field_plan *sample = stki_plan_of_sample(plan);
    stki_row_form form;

    stki_plan_form(plan, &form);
    fprintf(to, "field %s\n", plan->name);
    explain_source(plan, to);
    explain_classes(&core->classes[number], to);
    if (names_of(plan, stki_first_steps_know, to))
        fputs(": define the samples\n", to);
    explain_geometry(sample, to);
    if (names_of(plan, stki_colors_know, to))
        fputs(": in f32, 0 to 255, a few lines at a time\n", to);
    explain_arithmetic(sample, to);
    if (names_of(plan, is_late, to))
        fputs(": applied to the finished row\n", to);
    if (plan->maker->explain)
        plan->maker->explain(plan, to);
    if (sample->convert.count)
        fprintf(to, LEFT "%s\n", "kernel", stki_convert_name(stki_plan_kernel(sample, 0)));
    if (plan->device.convert)
        fprintf(to, LEFT "%s\n", "on device", plan->device.kernel);
    explain_passes(sample, to);
    if (plan->rows->has_shapes) {
        fprintf(to, LEFT "%s of %s, each with its own shape, at most %s per row\n", "to", stk_dtype_name(form.dtype),
                stki_layout_name(form.layout), SIZE(form.row_bytes));
        return;
    }
    fprintf(to, LEFT "%s%s %s%s%s, %s per row\n", "to", plan->rows->measured ? "at most " : "",
            stk_dtype_name(form.dtype), STKI_SHAPE(plan->ndim, form.shape), form.layout ? " " : "",
            stki_layout_name(form.layout), SIZE(form.row_bytes));
}

/* ---- the loader ---- */

static void explain_order(const stki_core *core, FILE *to)
{
    const stki_loader_config *config = core->config;
    const stki_batching *b = &core->batching;
    char buffer[160];
    const char *obstacle;

    fprintf(to, "order\n" LEFT "%s, seed %" PRId64 ", %" PRId64 " positions per epoch\n", "order",
            stki_config_words("order")[config->order], config->seed, b->length);
    fprintf(to,
            LEFT "%" PRId64 " rows per step over %" PRId64 " rank%s; this one is %" PRId64 " and gets at most %" PRId64
                 "; %" PRId64 " steps per epoch, last batch %s\n",
            "batches", b->global_batch, b->world_size, b->world_size > 1 ? "s" : "", b->rank, core->max_rows,
            core->steps, stki_config_words("last_batch")[b->last]);
    if (core->dataset->windows)
        fprintf(to, LEFT "%" PRId64 " over samples, in %" PRId64 " groups\n", "windows", core->dataset->count,
                core->dataset->windows->group_count);
    fprintf(to, LEFT "%d worker%s, tiles of %" PRId64 " rows", "work", core->worker_count,
            core->worker_count == 1 ? "" : "s", core->rows_per_tile);
    if (core->tiles_per_row > 1)
        fprintf(to, ", each row in %" PRId64 " parts", core->tiles_per_row);
    fputc('\n', to);
    obstacle = stki_help_obstacle(core, buffer, sizeof buffer);
    if (core->worker_count > 0)
        fprintf(to, LEFT "%s%s\n", "consumer", obstacle ? "does not make rows: " : "makes rows while it waits",
                obstacle ? obstacle : "");
}

static void explain_memory(const stki_core *core, FILE *to)
{
    fprintf(to, "memory\n" LEFT "%d slots of %s (%" PRId64 " bytes), %s in all, %s\n", "slots", core->slot_count,
            SIZE(core->layout.bytes), core->layout.bytes, SIZE(core->layout.bytes * core->slot_count),
            core->slot_count > 0 && core->slots[0]->pinned ? "page-locked" : "ordinary memory");
    fprintf(to, LEFT "%s\n", "stores", core->streams ? "with streaming stores" : "with ordinary stores");
}

void stki_explain(const stki_core *core, FILE *to)
{
    for (int i = 0; i < core->plan_count; i++)
        explain_field(core, i, to);
    explain_order(core, to);
    explain_memory(core, to);
    for (int i = 0; i < stki_notes_count(&core->config->notes); i++)
        fprintf(to, "%s" LEFT "%s\n", i ? "" : "notes\n", "", stki_notes_get(&core->config->notes, i));
}
