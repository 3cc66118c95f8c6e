/* row_layout.h: how the rows of a field are stored in a batch. A plan has
 *
 *     tensors    the list of the field's tensors: extent, dtype, shape, and offset in a slot. All code that lays out
 *                slots, copies them to devices, closes gaps, counts bytes or names tensors iterates over this list.
 *     rows       one of four layouts, which fills in the list and does what the list cannot express:
 *
 *         stki_fixed_rows     rows of one shape                       NAME
 *         stki_ragged_rows    rows of different lengths               NAME.values, NAME.offsets
 *         stki_padded_rows    the same, padded to a common length     NAME, NAME.mask, NAME.lengths
 *         stki_image_rows     images of different shapes, flat        NAME.values, NAME.offsets, NAME.shapes
 *
 * Lengths are measured before rows are made. They are written to the tensor of counts, from its second element on. When
 * all lengths are known, `settle` converts them to the final counts. `memory` is the memory of a slot; any thread may
 * work on any row. */
#ifndef STKI_ROW_LAYOUT_H
#define STKI_ROW_LAYOUT_H

#include <stdbool.h>
#include <stoker/status.h>
#include <stoker/tensor.h>

typedef struct stki_field_plan stki_field_plan;

/* What determines the number of units of a tensor. */
enum stki_extent {
    STKI_PER_ROW,
    STKI_PER_ENTRY,        /* the entries of all rows, stored consecutively */
    STKI_PER_PADDED_ENTRY, /* for each row, as many entries as the common length */
    STKI_OFFSETS,          /* counts, i64: the offset of each row's first entry, then the end of the last row's */
    STKI_LENGTHS /* counts, i64: the length of each row; stored after the common length, which is not part of the tensor
                  */
};

enum { STKI_ROW_TENSORS = 3 /* maximum number for one field */ };

typedef struct stki_row_tensor {
    const char *name, *ending; /* NULL: the field's name; `ending` is appended */
    enum stki_extent extent;
    stk_dtype dtype;
    int ndim; /* axes of a unit, which follow the axis of the extent; these members describe the delivered tensor */
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], out_bytes;
    int64_t unit_bytes; /* in a slot; the form on a device may differ (stki_plan_split) */
    int64_t row_bytes;  /* bytes of the largest row */
    int64_t offset;     /* offset in a slot; set by the slot's layout */
    bool late;   /* stored after the tensors that are not late; also in host memory if the batch is on a device */
    bool viewed; /* views narrow its second axis */
} stki_row_tensor;

/* A row without its padding. */
typedef struct stki_batch_row {
    char *data;
    int64_t bytes, entries; /* number of entries in a row of varying length, otherwise 0 */
    const int64_t
        *shape; /* shape of an image with its own (height, width, channels in the sample's order), otherwise NULL */
} stki_batch_row;

typedef struct stki_row_layout {
    const char *word;   /* printed in the lines by which saved positions are compared */
    bool measured;      /* rows have lengths */
    bool has_shapes;    /* rows have their own shapes, and the plan's shape is flat */
    const char *no_job; /* why preparation jobs cannot write such rows; NULL: they can */
    /* Fills the plan's list of tensors. */
    void (*list)(stki_field_plan *plan);
    /* Called when all lengths of the batch are known. NULL: nothing to do. */
    void (*settle)(const stki_field_plan *plan, char *memory, int64_t rows);
    /* Changes the length of one row in a settled batch. False: no room. NULL: nothing to do. */
    bool (*fit)(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length);
    /* Fills the padding; called when the row's own entries have been written. NULL: there is no padding. */
    void (*complete)(const stki_field_plan *plan, char *memory, int64_t row);
    /* Clears a failed row that remains in the batch. */
    void (*clear)(const stki_field_plan *plan, char *memory, int64_t row);
    void (*row)(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out);
} stki_row_layout;

extern const stki_row_layout stki_fixed_rows, stki_ragged_rows, stki_padded_rows, stki_image_rows;

/* Fills the list of tensors of a plan that is otherwise complete. */
void stki_plan_list_tensors(stki_field_plan *plan);
/* Appends a tensor other than the first one. */
stki_row_tensor *stki_plan_add_tensor(stki_field_plan *plan, const char *ending, enum stki_extent extent,
                                      stk_dtype dtype);
/* Appends the first tensor: the rows or their entries. */
void stki_plan_add_values(stki_field_plan *plan, const char *ending, enum stki_extent extent);
/* Zeroes the row in all tensors except the late ones. */
void stki_zero_row(const stki_field_plan *plan, char *memory, int64_t row);
/* Shared by the layouts whose rows are stored consecutively (rows_ragged.c). */
void stki_ragged_settle(const stki_field_plan *plan, char *memory, int64_t rows);
bool stki_ragged_fit(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length);
void stki_ragged_row(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out);

#endif
