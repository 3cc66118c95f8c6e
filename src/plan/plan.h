/* plan.h: how the samples of one field become rows of a batch: the dtype, shape and layout of a row, and the
 * conversions compiled for every storage format found in the field's shards. A plan is resolved and compiled once and
 * is then constant; any thread may read it. */
#ifndef STKI_PLAN_H
#define STKI_PLAN_H

#include "convert.h"
#include "row_layout.h"
#include "transform.h"
#include <string.h>

enum stki_layout { STKI_LAYOUT_NONE, STKI_LAYOUT_NCHW, STKI_LAYOUT_NHWC, STKI_LAYOUT_CHANNELS_LAST };

/* The form of a row as delivered to the consumer. */
typedef struct stki_row_form {
    stk_dtype dtype;
    enum stki_layout layout;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], row_bytes; /* as in stki_field_plan */
} stki_row_form;

/* Which part of an image a row shows, and how its pixels are produced (geometry.h, resample.h, color_rows.h). All zero
 * for samples without a source layout. */
typedef struct stki_plan_image {
    const stki_geometry *geometry;             /* crops and resizes; NULL: none */
    const stki_colors *colors;                 /* steps that change colors; NULL: none */
    const stki_field *box_field;               /* the field that has a box for each sample; NULL: none */
    int height_axis, width_axis, channel_axis; /* numbers of these axes in the sample */
    /* shape of the first sample; the number of channels is the same in all samples */
    int64_t sample_shape[STK_MAX_DIMS];
    bool uniform;             /* all samples must have the shape of the first one */
    bool resample;            /* rows are made in a block of the worker's scratch memory */
    bool random;              /* every row has its own placement */
    stki_placement placement; /* the placement of samples of one shape; unused if random */
    unsigned orientations;    /* bit n: orientation n is possible (geometry.h) */
    uint8_t *fill;            /* padded windows: the elements of a fill pixel */
    bool fill_is_bytes;       /* all its bytes are equal: memset can be used */
    /* strides and size of the block, in the order of the sample's axes */
    int64_t block_strides[STK_MAX_DIMS], block_bytes;
    /* Resized rows are converted a strip of pixel rows at a time, while the strip is in the L1 cache. */
    int64_t strip_rows, strip_bytes;          /* size of a strip; strip_rows 0: converted as a whole */
    stki_convert *strips[4], *last_strips[4]; /* by orientation; none for those that transpose. With color steps, only
                                                 [0], because the planes are already oriented */
    stki_convert *padded[STKI_ORIENTATIONS];  /* conversions from the block for padded rows, if other rows are views */
} stki_plan_image;

/* Conversions from samples of fixed shape to rows; empty for other rows. */
typedef struct stki_conversions {
    int count; /* number of storage formats among the shards */
    int *of_shard;
    stki_convert **turned; /* [number * STKI_ORIENTATIONS + orientation]; NULL: the orientation is not possible */
    int64_t units;         /* number of units a row may be divided into; minimum over all conversions */
} stki_conversions;

/* The plan of a field's rows in the slots. If a device makes the delivered rows (plan_split.c), the slots hold the
 * pixels of the stored samples, and device.form describes the delivered rows. */
typedef struct stki_field_plan {
    const stki_field *field;
    const stki_field_config *config;
    const char *name;
    int number; /* index among the loader's fields */

    /* the row */
    stk_dtype dtype;
    enum stki_layout layout, source_layout; /* source_layout: of the sample */
    int ndim;
    int64_t shape[STK_MAX_DIMS];   /* if the length of rows varies, shape[0] is the maximum */
    int64_t strides[STK_MAX_DIMS]; /* bytes */
    int64_t row_bytes;             /* bytes of the largest row */
    int source_axis[STK_MAX_DIMS]; /* axis i of the row is axis source_axis[i] of the sample */

    /* how rows are stored in a batch */
    const stki_row_layout *rows;
    int tensor_count, counts;                  /* counts: index of the tensor with the offsets or lengths */
    stki_row_tensor tensors[STKI_ROW_TENSORS]; /* set by stki_plan_list_tensors */
    bool varies;                               /* the length of axis 0 varies from batch to batch */
    bool truncates;                            /* longer samples are cut to shape[0] */
    const char *too_long;                      /* if not `truncates`: advice in the message about longer samples */
    stki_pad pad;

    /* making rows */
    const struct stki_row_maker *maker; /* pipeline/row_maker.h; the loader sets these three members */
    const struct stki_row_maker *under; /* the maker that `maker` wraps, if any */
    bool may_split;                     /* a row may be made in parts, because its sample need not be read or decoded */
    /* plan of the samples of a window, or of the unrounded f32 rows to mix; NULL: none */
    struct stki_field_plan *inner;
    bool is_unrounded; /* this is a plan of unrounded f32 rows */
    stki_fold *fold;
    bool converts; /* rows are converted from samples of fixed shape */
    stki_plan_image image;
    stki_conversions convert;
    struct {
        const stki_one_hot *step; /* NULL: not a one-hot field */
        uint8_t *on_off;          /* two elements: the value for other classes, then the value for the label's class */
    } one_hot;
    struct {
        const stki_erase *step; /* NULL: no erasing */
        uint8_t *pixel; /* the elements of an erased pixel, one per channel; a, b: the arithmetic for random values */
        double a[STKI_LATE_CHANNELS], b[STKI_LATE_CHANNELS];
    } erase;
    struct {
        const stki_mix *step;                /* NULL: not images that are mixed */
        const struct stki_field_plan *image; /* set if this field has the labels for that image field */
        bool paired; /* labels are not mixed: a row has its label, the partner's label and the share of the first */
        stki_convert *round, *round_rest; /* convert f32 to the row's dtype: `round` a whole block, `round_rest` the
                                             remainder of a row */
    } mix;
    struct {
        /* converts rows of the shape and dtype above to `form`; NULL: rows are delivered unchanged */
        stki_convert *convert;
        stki_row_form form;
        char kernel[64]; /* "cuda:0 u8>f32" */
    } device;
} stki_field_plan;

/* Checks a field's layouts and transforms without the data. */
stk_status stki_plan_check(const stki_field_config *config, stk_error *err);
/* Determines everything about rows that does not depend on other fields. The config and the field must outlive the
 * plan. */
stk_status stki_plan_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                             stk_error *err);
/* Resolves references between the plans' fields. */
stk_status stki_plans_link(stki_field_plan *plans, int count, stk_error *err);
stk_status stki_plan_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err);
void stki_plan_fini(stki_field_plan *plan); /* a zeroed plan is allowed */

/* ---- plan_convert.c ---- */

/* Compiles the conversions of a plan with `converts` set. */
stk_status stki_conversions_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight,
                                    stk_error *err);
void stki_conversions_fini(stki_field_plan *plan);
/* Returns the folded coefficients in one array: all a, then all b (stki_free). stki_plan_describe uses them to describe
 * the conversion of unrotated rows of the first shard. */
stk_status stki_plan_coefficients(const stki_field_plan *plan, float **out, stk_error *err);
void stki_plan_describe(const stki_field_plan *plan, const float *coefficients, stki_convert_desc *desc);

/* ---- plan_split.c: rows made on a device ---- */

/* Whether rows are plain copies of samples, so that there is nothing for a device to do. */
bool stki_plan_only_copies(const stki_field_plan *plan);
/* Returns the first feature of a resolved plan that devices do not support, such as "resize"; NULL: none. The config
 * owns the text. */
const char *stki_plan_device_obstacle(const stki_field_plan *plan);
/* Computes what a device would do: *stored is the form of the rows that the workers would make, *out the conversion
 * from it to the delivered row. */
stk_status stki_plan_second_part(const stki_field_plan *plan, stki_row_form *stored, stki_convert **out,
                                 stk_error *err);
/* Changes the plan so that workers make rows of the form `stored`. Takes ownership of the conversion. Call between
 * resolve and compile. */
void stki_plan_split(stki_field_plan *plan, const stki_row_form *stored, stki_convert *convert, const char *device);

/* Returns the form of a delivered row. */
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

/* For measured rows: returns the counts in a slot's memory, an array of rows + 1 numbers. */
static inline int64_t *stki_row_counts(const stki_field_plan *plan, char *memory)
{
    return (int64_t *)(void *)(memory + plan->tensors[plan->counts].offset);
}

/* Returns the address of a tensor's row in a slot's memory, and its size in bytes. */
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

/* Returns the number of bytes that a slot needs for this many rows of a tensor. */
static inline int64_t stki_tensor_room(const stki_row_tensor *tensor, int64_t rows)
{
    const bool counts = tensor->extent == STKI_OFFSETS || tensor->extent == STKI_LENGTHS;

    return (rows + counts) * tensor->row_bytes;
}

/* Returns the number of units of a tensor in a batch. */
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

/* Whether a row is a window of samples, which `inner` makes. */
static inline bool stki_plan_is_window(const stki_field_plan *plan)
{
    return plan->inner && plan->config->row_samples > 0;
}

/* Returns the plan of one sample: `inner` if rows are windows, otherwise the plan itself. */
static inline const stki_field_plan *stki_plan_of_sample(const stki_field_plan *plan)
{
    return stki_plan_is_window(plan) ? plan->inner : plan;
}

static inline const char *stki_layout_name(enum stki_layout layout)
{
    static const char *const names[] = {"", "nchw", "nhwc", "channels_last"};

    return names[layout];
}

/* Returns the height, width and channel axes of a row. */
static inline void stki_plan_image_axes(const stki_field_plan *plan, int *h, int *w, int *c)
{
    *h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    *w = *h + 1;
    *c = *h == 0 ? 2 : 0;
}

/* Returns the stride from one line of pixels to the next, in bytes. */
static inline int64_t stki_plan_line_stride(const stki_field_plan *plan)
{
    return plan->strides[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1];
}
/* Returns the offset in bytes from a window's first element to element 0, 0, … of the row. `strides`: along the
 * sample's axes. */
static inline int64_t stki_plan_turn_offset(const stki_field_plan *plan, stki_orientation o, const int64_t *strides)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t height = plan->shape[o.transpose ? h + 1 : h], width = plan->shape[o.transpose ? h : h + 1];

    return (o.flip_u ? (height - 1) * strides[plan->image.height_axis] : 0) +
           (o.flip_v ? (width - 1) * strides[plan->image.width_axis] : 0);
}
/* The same relative to the sample's first element, for rows that are views of samples. */
static inline int64_t stki_plan_view_offset(const stki_field_plan *plan, const stki_placement *placement,
                                            const int64_t *strides)
{
    if (!plan->image.geometry)
        return 0;
    return placement->top * strides[plan->image.height_axis] + placement->left * strides[plan->image.width_axis] +
           stki_plan_turn_offset(plan, placement->orientation, strides);
}
/* Returns the conversion for the first possible orientation. */
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
/* Returns the conversion from the block, which either all rows or only padded rows use. */
static inline const stki_convert *stki_plan_block_convert(const stki_field_plan *plan, stki_orientation o)
{
    const int n = stki_orientation_number(o);

    return plan->image.resample ? plan->convert.turned[n] : plan->image.padded[n];
}

#endif
