/* prep_open.c: opens a job. The number of rows per batch and the length of a piece depend only on the data and the job,
 * and are determined as soon as the loader has opened its files. */
#include "allocate.h"
#include "checked.h"
#include "clock.h"
#include "decode.h"
#include "error.h"
#include "prep_run.h"
#include "row_maker.h"
#include "rows_images.h"
#include "token_split.h"
#include <string.h>

#define BATCH_BYTES (INT64_C(2) << 20) /* size of a batch of rows of the largest size */
#define SLOTS_BYTES (INT64_C(24) << 20)
enum { BATCH_MOST = 1024, SLOTS_LEAST = 6, SLOTS_MOST = 32 };

/* ---- sizes ---- */

/* Returns the largest size of an encoded row of the field; 0: not encoded, passed without a copy. */
static int64_t encoded_bytes(const stki_prep_run *run, const stki_field_plan *plan)
{
    const stki_finisher_ops *ops = stki_finisher_of(stki_node_get(stki_job_field(run->job, plan->name), "encode"));
    int64_t bytes = 0;

    return ops && stki_mul(plan->row_bytes, ops->most_out, &bytes) ? bytes : 0;
}

/* Reserves memory for batches of encoded rows: at least one batch, and at most half of a given budget. */
static void set_aside(stki_prep_run *run, stki_loader_config *config, int64_t encoded)
{
    int64_t batch;

    run->depth = STKI_PREP_DEPTH;
    if (!stki_mul(encoded, run->batch_rows, &batch) || batch == 0)
        return;
    if (config->memory_budget > 0 && run->depth > config->memory_budget / 2 / batch)
        run->depth = (int)(config->memory_budget / 2 / batch);
    run->depth = run->depth < 1 ? 1 : run->depth;
    if (!stki_mul(batch, run->depth, &config->aside_bytes))
        config->aside_bytes = batch;
}

static stk_status arrange(void *context, struct stki_core *core, stk_error *err)
{
    stki_prep_run *run = context;
    stki_loader_config *config = core->config;
    int64_t largest = 0, encoded = 0, slots;
    stk_status status = stki_filter_apply(run->job->prep.filter, core, run->cancelled, &run->filter, err);

    for (int i = 0; i < run->filter.rule_count && status == STK_OK; i++) {
        char text[200];

        stki_config_note(config, "prep.filter: %s",
                         stki_filter_text(&run->filter.rules[i], run->filter.before, text, sizeof text));
    }
    if (status != STK_OK)
        return status;
    for (int i = 0; i < config->field_count; i++) {
        stki_field_plan plan = {0};

        status = stki_plan_resolve(&config->fields[i], &core->dataset->fields[i], &plan, err);

        if (status == STK_OK) {
            largest += plan.row_bytes;
            encoded += encoded_bytes(run, &plan);
        }
        stki_plan_fini(&plan);
        if (status != STK_OK)
            return status;
    }
    run->batch_rows = largest > 0 ? BATCH_BYTES / largest : BATCH_MOST;
    run->batch_rows = run->batch_rows < 1 ? 1 : run->batch_rows > BATCH_MOST ? BATCH_MOST : run->batch_rows;
    config->batch_size = run->batch_rows;
    slots = SLOTS_BYTES / (run->batch_rows * (largest > 0 ? largest : 1));
    set_aside(run, config, encoded);
    config->prefetch = slots < SLOTS_LEAST ? SLOTS_LEAST : slots > SLOTS_MOST ? SLOTS_MOST : slots;
    return STK_OK;
}

static void left_out(void *context, int64_t position, int64_t sample, const stk_error *error)
{
    stki_row_feed_left_out(&((stki_prep_run *)context)->rows, position, sample, error);
}

static stk_status open_loader(stki_prep_run *run, stk_error *err)
{
    stki_loader_config *config;
    stk_status status = stki_job_loader(run->job, NULL, NULL, &config, err);

    if (status != STK_OK)
        return status;
    config->arrange = arrange;
    config->left_out = left_out;
    config->job_context = run;
    config->idle = true;
    status = stki_loader_open_config(config, &run->loader, err);
    if (status == STK_OK)
        run->core = run->loader->core;
    return status;
}

/* ---- fields ---- */

static bool is_image(const stki_field_plan *plan)
{
    const int64_t channels = plan->ndim == 3 ? plan->shape[2] : 0;

    return plan->dtype == STK_U8 && plan->ndim == 3 && plan->field->shards[0]->image && channels >= 1 &&
           channels <= 4 && (plan->layout == STKI_LAYOUT_NHWC || plan->layout == STKI_LAYOUT_NONE) &&
           (plan->source_layout != STKI_LAYOUT_NCHW || plan->layout == STKI_LAYOUT_NHWC);
}

static bool is_row_major(const stki_field_plan *plan)
{
    int64_t stride = stk_dtype_size(plan->dtype);

    for (int d = plan->ndim - 1; d >= 0; d--) {
        if (plan->shape[d] > 1 && plan->strides[d] != stride)
            return false;
        stride *= plan->shape[d];
    }
    return true;
}

static stk_status check_plan(const stki_field_plan *plan, stk_error *err)
{
    const stki_node *node = plan->config->node;

    if (plan->rows->no_job)
        return stki_fail_node(err, node, "%s", plan->rows->no_job);
    if (plan->maker->no_job)
        return stki_fail_node(err, node, "%s", plan->maker->no_job);
    if (plan->rows->has_shapes && (plan->dtype != STK_U8 || plan->source_layout == STKI_LAYOUT_NCHW))
        return stki_fail_node(err, node,
                              "ragged: found images that are not uint8, height x width x channels; images of different "
                              "shapes can only be written as pixels or image files");
    if (!is_row_major(plan))
        return stki_fail_node(err, node,
                              "layout: found channels_last, expected nchw or nhwc: rows in files are "
                              "row-major");
    return STK_OK;
}

/* Returns the channel axis plus 1; 0: unknown. */
static int channel_axis(const stki_field_plan *plan)
{
    if (plan->rows->measured || plan->ndim < 1)
        return 0;
    if (plan->layout == STKI_LAYOUT_NCHW)
        return 1;
    return plan->layout == STKI_LAYOUT_NHWC || is_image(plan) ? plan->ndim : 0;
}

void stki_prep_describe(const stki_field_plan *plan, stki_sink_field *out)
{
    *out = (stki_sink_field){.name = plan->name,
                             .kind = plan->rows->measured ? STKI_SINK_RAGGED : STKI_SINK_ARRAY,
                             .dtype = plan->dtype,
                             .ndim = plan->ndim,
                             .image = !plan->rows->measured && is_image(plan),
                             .channel_axis = channel_axis(plan),
                             .largest_bytes = plan->row_bytes};
    memcpy(out->shape, plan->shape, (size_t)plan->ndim * sizeof *out->shape);
    if (plan->rows->measured && plan->dtype == STK_U8 && plan->ndim == 1)
        out->ending = plan->field->shards[0]->ending;
    if (plan->rows->measured && stki_image_opts(&plan->config->source).none)
        out->kind = STKI_SINK_BYTES;
    if (plan->rows->has_shapes) {
        out->kind = STKI_SINK_IMAGE;
        out->encodings = 1U << STKI_PLAIN;
        out->ndim = STKI_IMAGE_AXES;
        memset(out->shape, 0, sizeof out->shape); /* the shape varies from row to row */
        out->channel_axis = plan->layout == STKI_LAYOUT_NCHW ? 1 : STKI_IMAGE_AXES;
        if (plan->field->shards[0]->ndim == STKI_IMAGE_AXES && plan->source_layout != STKI_LAYOUT_NCHW)
            out->shape[out->channel_axis - 1] = plan->field->shards[0]->shape[STKI_IMAGE_AXES - 1];
    }
}

/* Finds the encoder of the field, if any. The encoder checks its own keys. */
static stk_status find_finisher(stki_prep_run *run, stki_prep_field *field, stk_error *err)
{
    const stki_node *node = stki_job_field(run->job, field->in.name), *encode = stki_node_get(node, "encode");
    const bool undecoded = field->in.kind == STKI_SINK_BYTES;
    const stki_finisher_ops *ops;
    stki_finish_options options = {0};
    char words[160];
    stk_status status;

    if (!encode && !undecoded) {
        status = stki_options_read(&stki_finish_table, node, &options, NULL, err);
        field->out.extension = options.extension;
        field->out.alias = options.alias;
        return status;
    }
    /* Without `encode`, image files are kept unchanged, and only their headers are read. */
    ops = encode ? stki_finisher_of(encode) : &stki_finish_keep;
    if (!ops)
        return stki_fail_value(err, encode, "%s (docs/reference/encode.md)", stki_finisher_list(words, sizeof words));
    if (stki_node_get(node, "extension"))
        field->out.extension = stki_node_get(node, "extension")->text;
    field->out.encode = ops->name;
    return ops->create(node, &field->in, &field->out, &field->finisher, err);
}

static stk_status check_names(const stki_prep_run *run, stk_error *err)
{
    const stki_node *fields = run->job->output.fields;

    for (int i = 0; fields && i < fields->count; i++) {
        bool found = false;

        for (int f = 0; f < run->field_count; f++)
            found = found || strcmp(fields->keys[i], run->fields[f].in.name) == 0;
        if (!found)
            return stki_fail_key(err, fields->items[i], "no field of the data set has this name");
    }
    return STK_OK;
}

static stk_status make_fields(stki_prep_run *run, stk_error *err)
{
    stk_status status = STK_OK;

    run->field_count = run->core->plan_count;
    run->fields = stki_zalloc_array(run->field_count, sizeof *run->fields);
    run->sink_fields = stki_zalloc_array(run->field_count, sizeof *run->sink_fields);
    if (!run->fields || !run->sink_fields)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *run->fields, "fields");
    for (int i = 0; i < run->field_count && status == STK_OK; i++) {
        stki_prep_field *field = &run->fields[i];

        field->plan = &run->core->plans[i];
        status = check_plan(field->plan, err);
        if (status == STK_OK) {
            stki_prep_describe(field->plan, &field->in);
            field->out = field->in;
            status = find_finisher(run, field, err);
        }
        run->sink_fields[i] = field->out;
    }
    return status == STK_OK ? check_names(run, err) : status;
}

/* Checks in advance that encoding the longest row does not exceed the memory limit of all threads. */
static stk_status check_scratch(const stki_prep_run *run, stk_error *err)
{
    const int64_t budget = run->core->config->memory_budget,
                  threads = run->core->worker_count > 0 ? run->core->worker_count : 1;
    char words[STKI_TOKEN_PATTERN_LIST];

    for (int i = 0; i < run->field_count; i++) {
        const stki_prep_field *field = &run->fields[i];
        const int64_t row = field->in.largest_bytes,
                      each = field->finisher && field->finisher->ops->scratch_bytes
                                 ? field->finisher->ops->scratch_bytes(field->finisher, row)
                                 : 0;

        if (each > budget / threads && each > row)
            return stki_fail_at(
                err, STK_E_LIMIT,
                (stki_place){NULL, -1, -1,
                             STKI_TEXT("%lld bytes in each of %lld threads", (long long)each, (long long)threads),
                             STKI_TEXT("at most %lld bytes in total (prep.memory_budget)", (long long)budget)},
                "output.fields.%s: memory to encode the longest row, of %lld bytes: split texts first (split: %s, or "
                "a pattern), lower prep.num_workers, or raise prep.memory_budget",
                field->in.name, (long long)row, stki_token_pattern_list(NULL, words, sizeof words));
    }
    return STK_OK;
}

/* ---- pieces and checks ---- */

static stk_status make_observers(stki_prep_run *run, stk_error *err)
{
    stki_sink_field *fields;
    stk_status status;

    if (!run->job->stats)
        return STK_OK;
    fields = stki_zalloc_array(run->field_count, sizeof *fields);
    if (!fields)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *fields, "fields");
    for (int i = 0; i < run->field_count; i++)
        fields[i] = run->fields[i].in;
    status =
        stki_observers_create(run->job->stats, fields, run->field_count, &run->observers, &run->observer_count, err);
    stki_free(fields);
    return status;
}

/* Positions per piece: about piece_bytes of a file, and a multiple of the batch if it is longer than one. */
static int64_t piece_rows(const stki_prep_run *run)
{
    int64_t rows = run->job->prep.piece_bytes / stki_prep_row_bytes(run), batch = run->batch_rows;

    if (rows < 1)
        return 1;
    return rows > batch ? rows / batch * batch : rows;
}

static void cut(stki_prep_run *run)
{
    const stki_job *job = run->job;
    const int64_t positions = stk_loader_samples(run->loader), shard_rows = job->output.shard_rows;
    const bool resumes = job->format->resumes;

    if (shard_rows > 0 && !resumes) /* formats without marks redo an interrupted shard from its start */
        run->cuts = stki_cuts_of(positions, shard_rows, shard_rows);
    else
        run->cuts = stki_cuts_of(positions, piece_rows(run), shard_rows);
    run->mode = shard_rows > 0                     ? STKI_PREP_SHARDS
                : run->opts->tasks > 1 || !resumes ? STKI_PREP_SPOOLED
                                                   : STKI_PREP_WHOLE;
    run->units = run->mode == STKI_PREP_SHARDS    ? run->cuts.shards
                 : run->mode == STKI_PREP_SPOOLED ? run->cuts.pieces
                                                  : 1;
}

/* Rejects mixing pixels and encoded rows in formats that do not record which is which. */
static stk_status check_mixed(const stki_prep_run *run, stk_error *err)
{
    for (int i = 0; i < run->field_count; i++)
        if (stki_sink_is_mixed(&run->sink_fields[i]) && !run->job->format->mixes)
            return stki_fail_node(err, stki_job_field(run->job, run->sink_fields[i].name),
                                  "some rows would be JPEG and others pixels, which %s cannot distinguish: remove "
                                  "proportion, above_pixels and above_bytes, or write a .beton",
                                  run->job->format->format);
    return STK_OK;
}

/* Rejects field options that do not apply to this format. */
static stk_status check_said(const stki_prep_run *run, stk_error *err)
{
    const stki_sink_ops *format = run->job->format;
    const char *means = format->extensions ? format->extensions : "";

    for (int i = 0; i < run->field_count; i++) {
        const stki_node *node = stki_job_field(run->job, run->sink_fields[i].name),
                        *extension = stki_node_get(node, "extension");

        if (!stki_node_is_null(extension) && strcmp(means, "any") != 0 && strcmp(extension->text, means) != 0)
            return stki_fail_key(err, extension,
                                 "has no effect in %s, which contains no files%s%s: remove it, or write a .tar",
                                 format->format, *means ? "; the only value that it accepts is " : "", means);
        if (run->sink_fields[i].alias && !format->aliases)
            return stki_fail_key(err, stki_node_get(node, "alias"),
                                 "has no effect in %s, which has its own names for types: remove it", format->format);
    }
    return STK_OK;
}

static stk_status check_format(const stki_prep_run *run, stk_error *err)
{
    const int64_t positions = stk_loader_samples(run->loader), each = run->job->output.shard_rows;
    const int64_t rows = each > 0 && each < positions ? each : positions;
    const stki_sink_opts opts = stki_prep_sink_opts(run, rows > 0 ? rows : 1);
    stk_status status = check_mixed(run, err);

    if (status == STK_OK)
        status = check_said(run, err);
    return status == STK_OK && run->job->format->check ? run->job->format->check(&opts, err) : status;
}

/* Returns the identity of the encoders: with another vocabulary or codec version, it is another job. */
static json_t *encoders(const stki_prep_run *run)
{
    json_t *list = json_array();

    for (int i = 0; list && i < run->field_count; i++) {
        const stki_finisher *finisher = run->fields[i].finisher;
        json_t *about = finisher && finisher->ops->describe ? finisher->ops->describe(finisher) : json_null();

        json_array_append_new(list, about);
    }
    return list;
}

static stk_status identify(stki_prep_run *run, stk_error *err)
{
    char dataset[STKI_U128_TEXT], order[STKI_U128_TEXT];
    static const char *const modes[] = {"whole", "shards", "spooled"};

    run->identity = json_pack("{s:i, s:s, s:o, s:s, s:s, s:I, s:I, s:I, s:s, s:o}", "version", STKI_PREP_IDENTITY,
                              "stoker", stk_version(), "job", stki_job_json(run->job), "dataset",
                              stki_u128_text(stki_core_fingerprint(run->core, "dataset"), dataset), "order",
                              stki_u128_text(stki_core_fingerprint(run->core, "loader"), order), "positions",
                              (json_int_t)run->cuts.positions, "batch_rows", (json_int_t)run->batch_rows, "piece_rows",
                              (json_int_t)run->cuts.piece_rows, "mode", modes[run->mode], "encoders", encoders(run));
    if (run->identity && run->job->requested)
        json_object_set(run->identity, "requested", run->job->requested);
    return run->identity ? STK_OK : stki_fail_memory(err, 1024, "a job");
}

stk_status stki_prep_open(stki_prep_run *run, stk_error *err)
{
    stk_status status;

    run->lock = -1;
    run->began_ns = stki_now_ns();
    run->rows.cancelled = run->cancelled;
    if ((status = open_loader(run, err)) != STK_OK || (status = make_fields(run, err)) != STK_OK ||
        (status = check_scratch(run, err)) != STK_OK || (status = make_observers(run, err)) != STK_OK ||
        (status = check_format(run, err)) != STK_OK || (status = stki_prep_find_sizes(run, err)) != STK_OK)
        return status;
    cut(run);
    if ((status = identify(run, err)) != STK_OK)
        return status;
    run->threads = run->core->worker_count;
    run->rows.core = run->core;
    run->rows.batch_rows = run->batch_rows;
    run->rows.positions = run->cuts.positions;
    return stki_row_feed_init(&run->rows, run->loader, run->core->slot_count, err);
}

void stki_prep_close_loader(stki_prep_run *run)
{
    for (int i = 0; run->notes && run->loader && i < stk_loader_note_count(run->loader); i++) {
        const char *note = stk_loader_note(run->loader, i);

        if (note)
            stki_notes_add(run->notes, "%s", note);
    }
    stk_loader_destroy(run->loader);
    run->loader = NULL;
    run->core = NULL;
}

void stki_prep_close(stki_prep_run *run)
{
    stki_flusher_destroy(run->flusher);
    stki_finish_pool_destroy(run->pool);
    stki_row_feed_fini(&run->rows);
    for (int i = 0; run->fields && i < run->field_count; i++)
        if (run->fields[i].finisher)
            run->fields[i].finisher->ops->destroy(run->fields[i].finisher);
    for (int i = 0; i < run->observer_count; i++)
        run->observers[i]->ops->destroy(run->observers[i]);
    stki_free(run->observers);
    stki_free(run->fields);
    stki_free(run->sink_fields);
    stki_prep_close_loader(run);
    json_decref(run->stays);
    json_decref(run->identity);
    stki_work_close(run);
}
