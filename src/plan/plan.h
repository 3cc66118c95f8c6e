/* plan.h: how one field's samples become rows of a batch: the dtype, shape and layout of a row, and the compiled
 * conversion for every geometry that the field's shards have. Resolved and compiled once; then read by any thread. */
#ifndef STKI_PLAN_H
#define STKI_PLAN_H

#include "color_steps.h"
#include "convert.h"
#include "dataset_internal.h"
#include "document.h"
#include "geometry.h"
#include "late_steps.h"
#include "packed_reader.h"
#include "row_layout.h"
#include <string.h>

/* `pad` of a field of varying length: rows of one length with a mask, instead of values and offsets. */
typedef struct stki_pad {
    bool padded, truncate; /* truncate: what is longer than `to` is cut */
    int64_t to;            /* 0: the longest of the batch */
    double value;
    char element[16]; /* the value, in the field's dtype */
} stki_pad;

/* `ragged` of a field of images: each keeps a shape of its own (rows_images.h). */
typedef struct stki_ragged {
    bool asked;
    int64_t max_bytes; /* of a row; 0: the largest */
} stki_ragged;

/* `source.window`: windows over neighbouring samples, or elements along an array's axis. */
enum stki_offsets { STKI_OFFSETS_FIXED, STKI_OFFSETS_SHIFTED, STKI_OFFSETS_RANDOM };
enum stki_take { STKI_TAKE_FIRST, STKI_TAKE_LAST, STKI_TAKE_ALL };
typedef struct stki_window {
    int64_t length;           /* 0: there are none */
    int64_t stride, dilation; /* from one window to the next, and inside one; at least 1 */
    int offsets;              /* enum stki_offsets; where not fixed, the order says where windows begin */
    const char *group_by;     /* "files", "none" or a field; see docs/order.md */
    int take;                 /* enum stki_take: what fields without windows give */
} stki_window;

/* From one place where a window may begin to the next: windows that move may begin at any sample. */
static inline int64_t stki_window_step(const stki_window *window)
{
    return window->offsets == STKI_OFFSETS_FIXED ? window->stride : 1;
}

/* What `source` says of a stream of tokens. */
typedef struct stki_tokens {
    bool documents, ends; /* the stream is cut where `token` begins or ends a document */
    int64_t token;
    bool packed;
    stki_pack_opts pack;
} stki_tokens;

/* Where the names of a field's classes come from, and what becomes of others: source.classes and unknown_class. */
enum stki_classes_from {
    STKI_CLASSES_DEFAULT, /* as SORTED, of class folders */
    STKI_CLASSES_SORTED,  /* all that occur in the field */
    STKI_CLASSES_LISTED,
    STKI_CLASSES_FILES /* which have names of classes */
};
#define STKI_UNKNOWN_ERROR (INT64_MIN + 1) /* of `unknown`; any other value is the number that they get */
#define STKI_UNKNOWN_SKIP INT64_MIN
typedef struct stki_class_config {
    const stki_node *node; /* where it stands in the config; NULL: not given */
    enum stki_classes_from from;
    const stki_node *list;
    const char **paths; /* the array is owned by the config */
    int path_count;
    int64_t unknown;
} stki_class_config;

typedef struct stki_field_config {
    const char *name;
    const stki_node *node; /* where it stands in the config, for messages; NULL: from the C API */
    const char **paths;    /* shards; the array is owned by the config */
    int path_count;
    const stki_node *synthetic; /* instead of paths */
    stki_reader_opts source;    /* how the files are opened; its texts belong to the config */
    bool sample_per_file;
    stk_dtype source_dtype, dtype;
    const char *source_layout, *layout; /* NULL: none given */
    const char *base_dir;               /* where relative paths start that no file names; NULL: the working directory */
    const stki_node *transforms;        /* a list, or NULL */
    const stki_node *views;             /* a map of ranges, or NULL (views.h) */
    stki_pad pad;
    stki_ragged ragged;
    stki_tokens tokens;
    stki_window window;
    int64_t row_samples; /* rows are so many samples, window.dilation apart; 0: one, without an axis for them. Set when
                            the data set is open */
    stki_class_config classes;
    /* The segments or positions of a packed field before it; it has no files of its own. */
    bool derived;
    int derived_from;
    enum stki_packed_part derived_part;
} stki_field_config;

enum stki_layout { STKI_LAYOUT_NONE, STKI_LAYOUT_NCHW, STKI_LAYOUT_NHWC, STKI_LAYOUT_CHANNELS_LAST };

/* What a consumer gets as a row. */
typedef struct stki_row_form {
    stk_dtype dtype;
    enum stki_layout layout;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], row_bytes; /* as in the plan */
} stki_row_form;

/* Of the rows in the slots. Where a device makes the rows that a consumer gets (plan_split.c), these are the stored
 * samples' pixels, and device_form is what comes of them. */
typedef struct stki_field_plan {
    const stki_field *field;
    const char *name;
    stk_dtype dtype;
    enum stki_layout source_layout; /* of a sample */
    enum stki_layout layout;
    int ndim;                                  /* axes of a row */
    int64_t shape[STK_MAX_DIMS];               /* of a row; of varying length: axis 0 is the largest */
    int64_t strides[STK_MAX_DIMS];             /* bytes inside a row */
    int64_t row_bytes;                         /* of the largest row */
    const stki_row_layout *rows;               /* how they lie in a batch */
    int tensor_count, counts;                  /* counts: which of them has the offsets or lengths */
    stki_row_tensor tensors[STKI_ROW_TENSORS]; /* set by stki_plan_list_tensors */
    bool varies;                               /* the length of axis 0 differs from batch to batch */
    const struct stki_row_maker *maker;        /* what makes them (pipeline/row_maker.h), set by the loader */
    const struct stki_row_maker *under;        /* of a maker that wraps another */
    bool may_split;                            /* a row may be made in parts: reading its sample costs nothing */
    bool truncates;                            /* what is longer than shape[0] is cut to it */
    const char *too_long;                      /* what to do about longer samples otherwise */
    stki_pad pad;
    int convert_count;
    stki_convert **converts; /* one for each way that shards are stored; ragged fields without arithmetic have none */
    stki_convert **turned; /* [convert * STKI_ORIENTATIONS + orientation], where rows can come so: the first of them is
                              the one in `converts` */
    int *convert_of_shard;
    const stki_geometry *geometry;             /* crops and resizes; NULL: none */
    const stki_colors *colors;                 /* steps that change colours; NULL: none */
    bool resample;                             /* rows are made by way of a block of a worker's memory (resample.h) */
    const stki_field *box_field;               /* where the samples' own boxes come from */
    int height_axis, width_axis, channel_axis; /* of the sample; where geometry or resample are set */
    unsigned orientations;                     /* bit n: rows can come in orientation n (geometry.h) */
    bool random;                               /* every row has a placing of its own */
    bool alike;                                /* samples must have the shape of the first */
    stki_placing placing;                      /* what samples of one shape are seen through; random: not this */
    uint8_t *fill;                             /* of padded windows: a pixel's elements */
    bool fill_is_bytes;                        /* all of its bytes are one */
    int64_t sample_shape[STK_MAX_DIMS];        /* resample: of the first sample; the channels are those of all */
    int64_t block_strides[STK_MAX_DIMS], block_bytes; /* resample: of the block, in the order of the sample's axes */
    /* Resized rows are converted some pixel rows at a time, while they are in the first-level cache. */
    int64_t strip_rows, strip_bytes;          /* of the block; strip_rows 0: converted whole */
    stki_convert *strips[4], *last_strips[4]; /* by orientation (those that transpose have none); with
                                                colours [0]: from planes, turned already */
    stki_convert *padded[STKI_ORIENTATIONS];  /* from the block, where other rows are views */
    int64_t units;                            /* into which it may be cut: the fewest of all converts */
    stki_convert *device_convert; /* from the row above to device_form; NULL: the row is what a consumer gets */
    stki_row_form device_form;
    char device_kernel[64]; /* "cuda:0 u8>f32" */
    /* Rows that are more than a conversion (plan_made.h); all of it empty for others. */
    const stki_one_hot *one_hot;
    const stki_erase *erase;
    const stki_mix *mix;
    const struct stki_field_plan *mixed_by; /* these are the labels of that field */
    struct stki_field_plan *unrounded;      /* mixed: the same rows in f32 */
    bool is_unrounded;                      /* this is that of another plan */
    bool has_partners;                /* labels that are not mixed but come in pairs, with the first one's share */
    stki_convert *round, *round_rest; /* f32 to the row's dtype, in blocks */
    uint8_t *on_off;                  /* one_hot: the element of another class, and of the label's */
    uint8_t *erased;                  /* the elements of an erased pixel, one a channel */
    double erased_a[STKI_LATE_CHANNELS], erased_b[STKI_LATE_CHANNELS];
    struct stki_field_plan *each; /* rows are windows: of one sample of them (plan_window.h); else NULL */
    int number;                   /* among the loader's fields */
    const stki_field_config *config;
    int source_axis[STK_MAX_DIMS]; /* row axis i is axis source_axis[i] of the sample */
    struct stki_fold *fold;
} stki_field_plan;

/* The file number `index` that a list of transforms reads parameters from; NULL: there are no more. */
stki_node *stki_transforms_path(const stki_node *transforms, int index);
/* What can be said of a field's layouts and transforms without knowing its data. */
stk_status stki_plan_check(const stki_field_config *config, stk_error *err);
/* Works out what a row is. The config and the field must outlive the plan. */
stk_status stki_plan_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                             stk_error *err);
/* Finds the fields that plans name. */
stk_status stki_plans_link(stki_field_plan *plans, int count, stk_error *err);
stk_status stki_plan_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight, stk_error *err);
void stki_plan_fini(stki_field_plan *plan); /* fine on a zeroed plan */

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
    if (plan->device_convert) {
        *out = plan->device_form;
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

    return (o.flip_u ? (height - 1) * strides[plan->height_axis] : 0) +
           (o.flip_v ? (width - 1) * strides[plan->width_axis] : 0);
}
/* The same from a sample's first element, for rows that are views. */
static inline int64_t stki_plan_view_offset(const stki_field_plan *plan, const stki_placing *placing,
                                            const int64_t *strides)
{
    if (!plan->geometry)
        return 0;
    return placing->top * strides[plan->height_axis] + placing->left * strides[plan->width_axis] +
           stki_plan_turn_offset(plan, placing->orientation, strides);
}
static inline const stki_convert *stki_plan_convert(const stki_field_plan *plan, int shard, stki_orientation o)
{
    return plan->turned[plan->convert_of_shard[shard] * STKI_ORIENTATIONS + stki_orientation_number(o)];
}
/* From the block, whatever other rows are made of. */
static inline const stki_convert *stki_plan_block_convert(const stki_field_plan *plan, stki_orientation o)
{
    const int n = stki_orientation_number(o);

    return plan->resample ? plan->turned[n] : plan->padded[n];
}

/* ---- transform.c ---- */

/* A list of transforms folded into y = a[c] * x + b[c] and a store. */
typedef struct stki_fold {
    int64_t channels; /* 1 or the sample's channels */
    double *a, *b;
    bool cast;       /* there was a cast */
    bool arithmetic; /* there was scale, normalize or quantize, or a step that changes colours */
    bool quantized;
    int32_t zero_point;
    stki_geometry geometry;
    stki_colors colors;
    stki_erase erase;
    stki_mix mix;
    stki_one_hot one_hot;
    stk_dtype dtype; /* what the transforms leave: f32 after arithmetic, the quantised type, the last cast; else the
                        source's */
} stki_fold;

/* `channels`: how many the sample has, 0 if it has no declared channel axis (per-channel parameters are then refused).
 */
stk_status stki_fold_create(const stki_field_config *config, stk_dtype source, int64_t channels, stki_fold **out,
                            stk_error *err);
void stki_fold_destroy(stki_fold *fold);
/* Is the operation arithmetic, which the coefficients and the dtype hold completely? */
bool stki_fold_takes(const char *operation);
/* All operations that a list of transforms may hold; NULL behind the last one. */
const stki_operation *stki_fold_operation(int index);

#endif
