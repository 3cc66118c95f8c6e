/* plan.h: how one field's samples become rows of a batch: the dtype, shape and layout of a row, and the compiled
 * conversion for every geometry that the field's shards have. Resolved and compiled once; then read by any thread. */
#ifndef STKI_PLAN_H
#define STKI_PLAN_H

#include "convert.h"
#include "row_layout.h"
#include "transform.h"
#include <string.h>

enum stki_layout { STKI_LAYOUT_NONE, STKI_LAYOUT_NCHW, STKI_LAYOUT_NHWC, STKI_LAYOUT_CHANNELS_LAST };

/* What a consumer gets as a row. */
typedef struct stki_row_form {
    stk_dtype dtype;
    enum stki_layout layout;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], row_bytes; /* as in the plan */
} stki_row_form;

/* What a row shows of an image, and how its pixels get there (geometry.h, resample.h, color_rows.h). Of samples without
 * a source layout all of it is empty. */
typedef struct stki_plan_image {
    const stki_geometry *geometry;                    /* crops and resizes; NULL: none */
    const stki_colors *colors;                        /* steps that change colors; NULL: none */
    const stki_field *box_field;                      /* where the samples' own boxes come from */
    int height_axis, width_axis, channel_axis;        /* of the sample */
    int64_t sample_shape[STK_MAX_DIMS];               /* of the first sample; the channels are those of all */
    bool uniform;                                     /* samples must have the shape of the first */
    bool resample;                                    /* rows are made by way of a block of a worker's memory */
    bool random;                                      /* every row has a placing of its own */
    stki_placing placing;                             /* what samples of one shape are seen through; random: not this */
    unsigned orientations;                            /* bit n: rows can come in orientation n (geometry.h) */
    uint8_t *fill;                                    /* of padded windows: a pixel's elements */
    bool fill_is_bytes;                               /* all of its bytes are one */
    int64_t block_strides[STK_MAX_DIMS], block_bytes; /* of the block, in the order of the sample's axes */
    /* Resized rows are converted some pixel rows at a time, while they are in the first-level cache. */
    int64_t strip_rows, strip_bytes;          /* of the block; strip_rows 0: converted whole */
    stki_convert *strips[4], *last_strips[4]; /* by orientation (those that transpose have none); with colors [0]: from
                                                 planes, turned already */
    stki_convert *padded[STKI_ORIENTATIONS];  /* from the block, where other rows are views */
} stki_plan_image;

/* From samples of fixed shape to rows; empty for other rows. */
typedef struct stki_conversions {
    int count; /* one for each way that shards are stored */
    int *of_shard;
    stki_convert **turned; /* [number * STKI_ORIENTATIONS + orientation], where rows can come so; else NULL */
    int64_t units;         /* into which a row may be cut: the fewest of all */
} stki_conversions;

/* Of the rows in the slots. Where a device makes the rows that a consumer gets (plan_split.c), these are the stored
 * samples' pixels, and device.form is what comes of them. */
typedef struct stki_field_plan {
    const stki_field *field;
    const stki_field_config *config;
    const char *name;
    int number; /* among the loader's fields */

    /* a row */
    stk_dtype dtype;
    enum stki_layout layout, source_layout; /* source_layout: of a sample */
    int ndim;
    int64_t shape[STK_MAX_DIMS];   /* of varying length: axis 0 is the largest */
    int64_t strides[STK_MAX_DIMS]; /* bytes */
    int64_t row_bytes;             /* of the largest */
    int source_axis[STK_MAX_DIMS]; /* axis i is axis source_axis[i] of the sample */

    /* how rows lie in a batch */
    const stki_row_layout *rows;
    int tensor_count, counts;                  /* counts: which of them has the offsets or lengths */
    stki_row_tensor tensors[STKI_ROW_TENSORS]; /* set by stki_plan_list_tensors */
    bool varies;                               /* the length of axis 0 differs from batch to batch */
    bool truncates;                            /* what is longer than shape[0] is cut to it */
    const char *too_long;                      /* what to do about longer samples otherwise */
    stki_pad pad;                              /* of padded rows */

    /* how they are made */
    const struct stki_row_maker *maker; /* pipeline/row_maker.h; set by the loader, like the next two */
    const struct stki_row_maker *under; /* of a maker that wraps another */
    bool may_split;                     /* a row may be made in parts: reading its sample costs nothing */
    struct stki_field_plan *inner;      /* of the samples of a window; of the rows in f32 that are mixed; else NULL */
    bool is_unrounded;                  /* this is such a plan of rows in f32 */
    stki_fold *fold;
    bool converts; /* rows are conversions of samples of fixed shape */
    stki_plan_image image;
    stki_conversions convert;
    struct {
        const stki_one_hot *step; /* NULL: the field is no label that becomes a row */
        uint8_t *on_off;          /* the element of another class, and of the label's */
    } one_hot;
    struct {
        const stki_erase *step; /* NULL: nothing is erased */
        uint8_t *pixel;         /* the elements of an erased one, one a channel */
        double a[STKI_LATE_CHANNELS], b[STKI_LATE_CHANNELS];
    } erase;
    struct {
        const stki_mix *step;                /* NULL: these are no images that are mixed */
        const struct stki_field_plan *image; /* these are the labels of that field */
        bool paired;                      /* labels that are not mixed but come in pairs, with the first one's share */
        stki_convert *round, *round_rest; /* f32 to the row's dtype, in blocks */
    } mix;
    struct {
        stki_convert *convert; /* from the row above to `form`; NULL: the row is what a consumer gets */
        stki_row_form form;
        char kernel[64]; /* "cuda:0 u8>f32" */
    } device;
} stki_field_plan;

/* What can be said of a field's layouts and transforms without knowing its data. */
stk_status stki_plan_check(const stki_field_config *config, stk_error *err);
/* Works out what a row is. The config and the field must outlive the plan. */
stk_status stki_plan_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                             stk_error *err);
/* Finds the fields that plans name. */
stk_status stki_plans_link(stki_field_plan *plans, int count, stk_error *err);
stk_status stki_plan_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err);
void stki_plan_fini(stki_field_plan *plan); /* fine on a zeroed plan */

/* ---- plan_convert.c ---- */

/* Makes the conversions of a plan that `converts`. */
stk_status stki_conversions_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight,
                                    stk_error *err);
void stki_conversions_fini(stki_field_plan *plan);
/* The folded coefficients, a then b (stki_free), and the conversion of unturned rows of the first shard with them. */
stk_status stki_plan_coefficients(const stki_field_plan *plan, float **out, stk_error *err);
void stki_plan_describe(const stki_field_plan *plan, const float *coefficients, stki_convert_desc *desc);

/* ---- plan_split.c: rows made on a device ---- */

/* Nothing is done to the samples, so a device has nothing to do either. */
bool stki_plan_only_copies(const stki_field_plan *plan);
/* The first thing of a resolved plan that has no form on a device, "resize" or another step's name; NULL: none. Lives
 * as long as the config. */
const char *stki_plan_device_obstacle(const stki_field_plan *plan);
/* What a device would do: the form of the stored samples, and the conversion from it to the row. */
stk_status stki_plan_second_part(const stki_field_plan *plan, stki_row_form *stored, stki_convert **out,
                                 stk_error *err);
/* From here on the plan makes `stored`; it owns the conversion. Between resolve and compile. */
void stki_plan_split(stki_field_plan *plan, const stki_row_form *stored, stki_convert *convert, const char *device);

/* The row as a consumer gets it. */
static inline void stki_plan_form(const stki_field_plan *plan, stki_row_form *out)
{
    if (plan->device.convert) {
        *out = plan->device.form;
        return;
    }
    *out = (stki_row_form){.dtype = plan->dtype, .layout = plan->layout, .row_bytes = plan->row_bytes};
    memcpy(out->shape, plan->shape, sizeof plan->shape);
    memcpy(out->strides, plan->strides, sizeof plan->strides);
}

/* Of measured rows: the counts in a slot's memory, rows + 1 of them. */
static inline int64_t *stki_row_counts(const stki_field_plan *plan, char *memory)
{
    return (int64_t *)(void *)(memory + plan->tensors[plan->counts].offset);
}

/* Where a row of a tensor lies in a slot's memory, and how many bytes it has. */
static inline char *stki_tensor_row(const stki_field_plan *plan, const stki_row_tensor *tensor, char *memory,
                                    int64_t row, int64_t *bytes)
{
    const int64_t *counts;

    *bytes = tensor->unit_bytes;
    switch (tensor->extent) {
    case STKI_PER_ENTRY:
        counts = stki_row_counts(plan, memory);
        *bytes = (counts[row + 1] - counts[row]) * tensor->unit_bytes;
        return memory + tensor->offset + counts[row] * tensor->unit_bytes;
    case STKI_PER_PADDED_ENTRY:
        *bytes = stki_row_counts(plan, memory)[0] * tensor->unit_bytes;
        break;
    case STKI_LENGTHS:
        row++;
        break;
    case STKI_PER_ROW:
    case STKI_OFFSETS:
        break;
    }
    return memory + tensor->offset + row * *bytes;
}

/* Bytes of a slot with room for this many rows. */
static inline int64_t stki_tensor_room(const stki_row_tensor *tensor, int64_t rows)
{
    const bool counts = tensor->extent == STKI_OFFSETS || tensor->extent == STKI_LENGTHS;

    return (rows + counts) * tensor->row_bytes;
}

/* How many units a tensor has in a batch. */
static inline int64_t stki_tensor_units(const stki_field_plan *plan, const stki_row_tensor *tensor, char *memory,
                                        int64_t rows)
{
    switch (tensor->extent) {
    case STKI_PER_ENTRY:
        return rows > 0 ? stki_row_counts(plan, memory)[rows] : 0;
    case STKI_PER_PADDED_ENTRY:
        return rows * stki_row_counts(plan, memory)[0];
    case STKI_OFFSETS:
        return rows + 1;
    case STKI_PER_ROW:
    case STKI_LENGTHS:
        break;
    }
    return rows;
}

/* Rows are several samples, of which `inner` is the plan. */
static inline bool stki_plan_is_window(const stki_field_plan *plan)
{
    return plan->inner && plan->config->row_samples > 0;
}

/* The plan of one sample of a window; without windows the plan itself. */
static inline const stki_field_plan *stki_plan_of_sample(const stki_field_plan *plan)
{
    return stki_plan_is_window(plan) ? plan->inner : plan;
}

static inline const char *stki_layout_name(enum stki_layout layout)
{
    static const char *const names[] = {"", "nchw", "nhwc", "channels_last"};

    return names[layout];
}

/* Where a row's lines, pixels and channels are. */
static inline void stki_plan_image_axes(const stki_field_plan *plan, int *h, int *w, int *c)
{
    *h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    *w = *h + 1;
    *c = *h == 0 ? 2 : 0;
}

/* From one pixel row of a row to the next, bytes. */
static inline int64_t stki_plan_line_stride(const stki_field_plan *plan)
{
    return plan->strides[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1];
}
/* Bytes from a window's first element to what is element 0, 0, … of the row. `strides`: along the sample's axes. */
static inline int64_t stki_plan_turn_offset(const stki_field_plan *plan, stki_orientation o, const int64_t *strides)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t height = plan->shape[o.transpose ? h + 1 : h], width = plan->shape[o.transpose ? h : h + 1];

    return (o.flip_u ? (height - 1) * strides[plan->image.height_axis] : 0) +
           (o.flip_v ? (width - 1) * strides[plan->image.width_axis] : 0);
}
/* The same from a sample's first element, for rows that are views. */
static inline int64_t stki_plan_view_offset(const stki_field_plan *plan, const stki_placing *placing,
                                            const int64_t *strides)
{
    if (!plan->image.geometry)
        return 0;
    return placing->top * strides[plan->image.height_axis] + placing->left * strides[plan->image.width_axis] +
           stki_plan_turn_offset(plan, placing->orientation, strides);
}
/* Of whichever orientation comes first, for its name. */
static inline const stki_convert *stki_plan_kernel(const stki_field_plan *plan, int number)
{
    stki_convert *const *turned = plan->convert.turned + number * STKI_ORIENTATIONS;

    while (!*turned)
        turned++;
    return *turned;
}
static inline const stki_convert *stki_plan_convert(const stki_field_plan *plan, int shard, stki_orientation o)
{
    return plan->convert.turned[plan->convert.of_shard[shard] * STKI_ORIENTATIONS + stki_orientation_number(o)];
}
/* From the block, whatever other rows are made of. */
static inline const stki_convert *stki_plan_block_convert(const stki_field_plan *plan, stki_orientation o)
{
    const int n = stki_orientation_number(o);

    return plan->image.resample ? plan->convert.turned[n] : plan->image.padded[n];
}

#endif
