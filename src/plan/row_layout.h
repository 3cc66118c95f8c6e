/* row_layout.h: how the rows of a field are stored in a batch. A plan has
 *
 *     tensors    the list of the field's tensors: extent, dtype, shape, and offset in a slot. All code that lays out
 *                slots, copies them to devices, closes gaps, counts bytes or names tensors iterates over this list.
 *     rows       one of four layouts, which makes the list and does what the list cannot express:
 *
 *         stki_fixed_rows     rows of one shape                       NAME
 *         stki_ragged_rows    rows of different lengths               NAME.values, NAME.offsets
 *         stki_padded_rows    the same, padded to a common length     NAME, NAME.mask, NAME.lengths
 *         stki_image_rows     images of different shapes, flat        NAME.values, NAME.offsets, NAME.shapes
 *
 * Lengths are measured before rows are made. They are written after the first of the `counts` and settled when all are
 * known. `memory` is the memory of a slot; any thread may work on any row.
 */
#ifndef STKI_ROW_LAYOUT_H
#define STKI_ROW_LAYOUT_H

#include <stdbool.h>
#include <stoker/status.h>
#include <stoker/tensor.h>

typedef struct stki_field_plan stki_field_plan;

/* How many units a tensor has. */
enum stki_extent {
    STKI_PER_ROW,
    STKI_PER_ENTRY,        /* of all rows together, which lie one behind the other */
    STKI_PER_PADDED_ENTRY, /* the common length for each row */
    STKI_OFFSETS,          /* counts, i64: where the entries of each row begin, and where those of the last end */
    STKI_LENGTHS           /* counts, i64: of each row; behind the common length, which is no part of the tensor */
};

enum { STKI_ROW_TENSORS = 3 /* of one field, at most */ };

typedef struct stki_row_tensor {
    const char *name, *ending; /* NULL: the field's name; and what follows it */
    enum stki_extent extent;
    stk_dtype dtype;
    int ndim; /* axes of a unit, behind those of the extent; as a consumer gets it */
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], out_bytes;
    int64_t unit_bytes; /* in a slot; a device may make something else of it (stki_plan_split) */
    int64_t row_bytes;  /* of the largest row */
    int64_t offset;     /* in a slot; set by the slot's layout */
    bool late;   /* lies behind the large ones, and is also kept in ordinary memory if the batch is on a device */
    bool viewed; /* its second axis is what views are ranges of */
} stki_row_tensor;

/* A row without its padding. */
typedef struct stki_batch_row {
    char *data;
    int64_t bytes, entries; /* entries: of a row of varying length, else 0 */
    const int64_t *shape; /* of an image in a shape of its own (height, width, channels in the sample's order); NULL */
} stki_batch_row;

typedef struct stki_row_layout {
    const char *word;   /* for saved positions: rows of other layouts are other rows */
    bool measured;      /* rows have lengths */
    bool has_shapes;    /* rows have shapes of their own, and the plan's is flat */
    const char *no_job; /* why a preparation job does not write such rows; NULL: it does */
    /* Fills the plan's list of tensors. */
    void (*list)(stki_field_plan *plan);
    /* All lengths of the batch are known. NULL: nothing to do. */
    void (*settle)(const stki_field_plan *plan, char *memory, int64_t rows);
    /* Makes room for another length in a batch that is settled. False: there is none. NULL: nothing to do. */
    bool (*fit)(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length);
    /* The row's own entries are there: fills what lies behind them. NULL: nothing does. */
    void (*complete)(const stki_field_plan *plan, char *memory, int64_t row);
    /* A row that has failed but stays. */
    void (*clear)(const stki_field_plan *plan, char *memory, int64_t row);
    void (*row)(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out);
} stki_row_layout;

extern const stki_row_layout stki_fixed_rows, stki_ragged_rows, stki_padded_rows, stki_image_rows;

/* Lists the tensors of a plan that will not change any more. */
void stki_plan_list_tensors(stki_field_plan *plan);
/* Appends one of `unit_bytes` a unit. */
stki_row_tensor *stki_plan_add_tensor(stki_field_plan *plan, const char *ending, enum stki_extent extent,
                                      stk_dtype dtype);
/* The first: the rows, or their entries. */
void stki_plan_add_values(stki_field_plan *plan, const char *ending, enum stki_extent extent);
/* Zeros every tensor's part of the row but the late ones'. */
void stki_zero_row(const stki_field_plan *plan, char *memory, int64_t row);
/* What layouts share whose rows lie one behind the other (rows_ragged.c). */
void stki_ragged_settle(const stki_field_plan *plan, char *memory, int64_t rows);
bool stki_ragged_fit(const stki_field_plan *plan, char *memory, int64_t rows, int64_t row, int64_t length);
void stki_ragged_row(const stki_field_plan *plan, char *memory, int64_t row, stki_batch_row *out);

#endif
