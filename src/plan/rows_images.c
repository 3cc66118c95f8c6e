/* rows_images.c: see rows_images.h and row_layout.h. The size of the largest row must be known before the first batch.
 * If the transforms do not determine it, the headers of all samples are read when the loader is opened, by a few
 * threads. Readers cache the headers, so the first epoch need not read them again. */
#include "rows_images.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "first_steps.h"
#include "store_image.h"
#include "tensor_internal.h"
#include "thread.h"
#include "thread_pool.h"
#include <string.h>

enum { SCANNERS = 8, FEW = 256 /* FEW: number of samples up to which one thread is faster */, AT_ONCE = 64 };

/* ---- the config ---- */

typedef struct ragged_options {
    int64_t max_bytes;
} ragged_options;

static const char *const largest_words[] = {"largest", NULL};

static const stki_option options[] = {
    STKI_SIZE_WORDS(ragged_options, max_bytes, largest, 1, INT64_MAX, largest_words, 0,
                    "Maximum size of a row; largest: the size that the transforms determine, or the largest one in the "
                    "headers of all samples, which are read at open",
                    .effect = STKI_ON_FAILURES),
};
const stki_option_table stki_ragged_table = STKI_OPTION_TABLE("dataset.fields.NAME.ragged", options);

stk_status stki_ragged_read(const stki_node *node, stki_ragged *out, stk_error *err)
{
    ragged_options o = {0};
    stk_status status = STK_OK;

    if (stki_node_is_null(node))
        return STK_OK;
    if (node->kind != STKI_NODE_MAP)
        return stki_node_bool(node, &out->asked, err);
    stki_options_defaults(&stki_ragged_table, &o);
    status = stki_options_read(&stki_ragged_table, node, &o, NULL, err);
    *out = (stki_ragged){.asked = true, .max_bytes = o.max_bytes};
    return status;
}

/* ---- restrictions ---- */

static stk_status STK_PRINTF(3, 4) refuse(const stki_field_plan *plan, stk_error *err, const char *format, ...)
{
    char text[384];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return stki_fail(err, STK_E_UNSUPPORTED, "dataset.fields.%s: ragged: %s", plan->config->name, text);
}

static stk_status check_samples(const stki_field_plan *plan, stk_error *err)
{
    const stki_field *field = plan->field;

    if (field->ndim != STKI_IMAGE_AXES)
        return refuse(plan, err,
                      "found samples of %d ax%s, expected images; other samples of varying length do not need ragged",
                      field->ndim, field->ndim == 1 ? "is" : "es");
    if (plan->source_layout == STKI_LAYOUT_NONE)
        return refuse(plan, err,
                      "the axes of height, width and channels are unknown; specify the layout of the samples: source: "
                      "{layout: nhwc} or {layout: nchw}");
    if (field->dtype != STK_U8)
        return refuse(plan, err, "found samples of %s, expected uint8", stk_dtype_long_name(field->dtype));
    return STK_OK;
}

static stk_status check_steps(const stki_field_plan *plan, stk_error *err)
{
    const stki_node *list = plan->config->transforms;

    for (int i = 0; list && list->kind == STKI_NODE_LIST && i < list->count; i++) {
        const char *name = list->items[i]->kind == STKI_NODE_MAP ? list->items[i]->keys[0] : "a step";

        if (!stki_geometry_knows(name) && !stki_first_steps_know(name))
            return refuse(plan, err,
                          "found %s in its transforms, expected only steps that move pixels: images with their own "
                          "shapes remain uint8",
                          name);
    }
    return STK_OK;
}

stk_status stki_image_rows_check(const stki_field_plan *plan, stk_error *err)
{
    const stki_field_config *config = plan->config;
    stk_status status = check_samples(plan, err);

    if (status != STK_OK || (status = check_steps(plan, err)) != STK_OK)
        return status;
    if (plan->dtype != STK_U8)
        return refuse(plan, err, "found dtype: %s, expected none: images with their own shapes remain uint8",
                      stk_dtype_name(plan->dtype));
    if (plan->layout != plan->source_layout)
        return refuse(plan, err, "found layout: %s, expected the samples' own, %s", config->layout,
                      stki_layout_name(plan->source_layout));
    if (config->pad.padded)
        return refuse(plan, err,
                      "found pad, which is for samples of varying length; to add pixels around images, use the "
                      "transform pad");
    if (config->views)
        return refuse(plan, err, "found views, which require rows of one shape");
    return STK_OK;
}

/* ---- room ---- */

/* Returns the size of the largest row that an image of this shape can become; -1: unknown. */
static int64_t most_of(const stki_field_plan *plan, int64_t height, int64_t width, int64_t channels)
{
    stki_geometry either;
    const stki_geometry_step *why;
    int64_t bytes, most = -1, out_height, out_width;

    if (!plan->image.geometry)
        return height > 0 && width > 0 && stki_mul(height, width, &bytes) && stki_mul(bytes, channels, &bytes) ? bytes
                                                                                                               : -1;
    for (int turn = 0; turn < 2; turn++) { /* angles may or may not swap height and width, so try both */
        either = *plan->image.geometry;
        for (int i = 0; i < either.count; i++)
            if (either.steps[i].kind == STKI_ROTATE && (either.steps[i].turns & 5) && (either.steps[i].turns & 10))
                either.steps[i].turns = turn ? 2 : 1;
        if (!stki_geometry_size(&either, height, width, &out_height, &out_width, &why) ||
            !stki_mul(out_height, out_width, &bytes) || !stki_mul(bytes, channels, &bytes))
            return -1;
        most = bytes > most ? bytes : most;
    }
    return most;
}

typedef struct scan {
    const stki_field_plan *plan;
    int64_t count;
    stki_counter largest;
} scan;

static int64_t look_at(const stki_field_plan *plan, int64_t index)
{
    int64_t within, shape[STK_MAX_DIMS];
    const stki_reader *shard = stki_field_locate(plan->field, index, &within);

    if (stki_reader_shape(shard, within, shape, NULL) != STK_OK)
        return 0; /* the error is reported when the sample is read */
    return most_of(plan, shape[plan->image.height_axis], shape[plan->image.width_axis],
                   shape[plan->image.channel_axis]);
}

/* Measures one part: a run of samples. */
static stk_status scan_part(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    scan *s = context;
    const int64_t first = part * AT_ONCE, end = s->count - first < AT_ONCE ? s->count : first + AT_ONCE;

    (void)task, (void)worker, (void)err;
    for (int64_t i = first; i < end; i++)
        stki_count_max(&s->largest, look_at(s->plan, i));
    return STK_OK;
}

static stk_status scan_all(const stki_field_plan *plan, int64_t *largest, stk_error *err)
{
    scan s = {.plan = plan, .count = stki_field_count(plan->field) - plan->field->ahead};
    const int64_t parts = s.count > 0 ? (s.count + AT_ONCE - 1) / AT_ONCE : 0;
    const int threads = s.count <= FEW ? 0 : stki_cpu_count() - 1 < SCANNERS ? stki_cpu_count() - 1 : SCANNERS;
    stk_status status = stki_thread_pool_run("stoker-scan", threads, parts, scan_part, &s, err);

    *largest = stki_counted(&s.largest);
    return status;
}

/* Whether any step can enlarge an image. If so, the limit on a sample's size does not limit its row. */
static bool may_grow(const stki_geometry *geometry)
{
    return geometry && (geometry->resizes || geometry->pads);
}

static stk_status find_largest(const stki_field_plan *plan, int64_t *out, stk_error *err)
{
    const stki_field_config *config = plan->config;
    const bool variable = plan->field->variable;
    const int64_t *shape = plan->field->shape, channels = shape[plan->image.channel_axis];
    const int64_t said = most_of(plan, variable ? 0 : shape[plan->image.height_axis],
                                 variable ? 0 : shape[plan->image.width_axis], channels);
    stk_status status;

    *out = config->ragged.max_bytes;
    if (*out == 0 && said >= 0)
        *out = said;
    if (*out == 0 && config->source.max_bytes > 0 && !may_grow(plan->image.geometry))
        *out = config->source.max_bytes;
    if (*out == 0 && plan->image.geometry && plan->image.geometry->box_field)
        return refuse(
            plan, err,
            "the size of the rows is unknown, because it depends on each sample's box: set ragged: {max_bytes: "
            "…}, or add a resize: [height, width]");
    if (*out == 0 && (status = scan_all(plan, out, err)) != STK_OK)
        return status;
    *out = *out > 0 ? *out : 1;
    return STK_OK;
}

stk_status stki_image_rows_resolve(stki_field_plan *plan, stk_error *err)
{
    const int64_t *shape = plan->field->shape;
    int64_t largest = 0, row[STKI_IMAGE_AXES];
    char where[256];
    stk_status status = STK_OK;

    if (!plan->field->variable &&
        /* reports now, not with the first batch, that a step does not fit */
        (!plan->image.geometry || !plan->image.geometry->box_field))
        status = stki_image_shape_after(plan, shape, NULL, NULL, row, err);
    if (status != STK_OK)
        return stki_fail_place(err, status, NULL, -1,
                               stki_text(where, sizeof where, "dataset.fields.%s", plan->config->name));
    if ((status = find_largest(plan, &largest, err)) != STK_OK)
        return status;
    plan->rows = &stki_image_rows;
    plan->varies = true;
    plan->ndim = 1;
    plan->shape[0] = largest;
    return STK_OK;
}

/* ---- in a batch ---- */

static void list(stki_field_plan *plan)
{
    stki_row_tensor *shapes;

    stki_plan_add_values(plan, ".values", STKI_PER_ENTRY);
    stki_plan_add_tensor(plan, ".offsets", STKI_OFFSETS, STK_I64)->late = true;
    shapes = stki_plan_add_tensor(plan, ".shapes", STKI_PER_ROW, STK_I64);
    shapes->ndim = 1;
    shapes->shape[0] = STKI_IMAGE_AXES;
    shapes->strides[0] = sizeof(int64_t);
    shapes->out_bytes = shapes->unit_bytes = shapes->row_bytes = STKI_IMAGE_SHAPE_BYTES;
    shapes->late = true;
}

int64_t *stki_image_row_shape(const stki_field_plan *plan, char *memory, int64_t row)
{
    return (int64_t *)(void *)(memory + plan->tensors[2].offset) + row * STKI_IMAGE_AXES;
}

static void row_at(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out)
{
    stki_ragged_row(plan, memory, row, out);
    out->shape = stki_image_row_shape(plan, memory, row);
}

const stki_row_layout stki_image_rows = {.word = "of own shapes",
                                         .measured = true,
                                         .has_shapes = true,
                                         .list = list,
                                         .settle = stki_ragged_settle,
                                         .fit = stki_ragged_fit,
                                         .clear = stki_zero_row,
                                         .row = row_at};
