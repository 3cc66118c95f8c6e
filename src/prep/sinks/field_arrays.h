/* field_arrays.h: stores a field as named arrays, for formats that only contain arrays. Rows of one shape form an array
 * NAME. Rows of varying size are stored as delivered by the loader: NAME.values, their concatenation, and NAME.offsets
 * (i64, one more than rows), their starts along axis 0 of the values; images also have NAME.shapes (i64: height, width,
 * channels). */
#ifndef STKI_FIELD_ARRAYS_H
#define STKI_FIELD_ARRAYS_H

#include "sink_common.h"

enum stki_sink_array_kind { STKI_ARRAY_ROWS, STKI_ARRAY_VALUES, STKI_ARRAY_OFFSETS, STKI_ARRAY_SHAPES };

typedef struct stki_sink_array {
    char *name;
    enum stki_sink_array_kind kind;
    int field;
    stk_dtype dtype;
    int ndim; /* axes of one row of the array */
    int64_t shape[STK_MAX_DIMS], row_bytes;
    bool alias;
    int64_t rows;  /* rows of the array so far, including those before a resumed mark */
    int64_t total; /* OFFSETS: the last offset */
    bool lengths;  /* OFFSETS: counted in entries along axis 0 instead of bytes */
} stki_sink_array;

typedef struct stki_field_arrays {
    stki_sink_array *items;
    int count;
} stki_field_arrays;

stk_status stki_field_arrays_init(stki_field_arrays *arrays, const stki_sink_field *fields, int field_count,
                                  stk_error *err);
void stki_field_arrays_fini(stki_field_arrays *arrays);
/* Returns the number of rows of the array for `rows` samples; -1: unknown in advance. */
int64_t stki_field_array_rows(const stki_sink_array *array, int64_t rows);

/* Like measure of sink.h, but only for the arrays. Arrays of offsets start with one entry. */
int64_t stki_field_arrays_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                                  stki_sink_size *size);

/* Receives consecutive rows of array `array`. `lasting`: they stay valid until the append ends; otherwise only during
 * this call. */
typedef stk_status (*stki_field_array_put)(void *context, int array, const void *bytes, int64_t rows, bool lasting,
                                           stk_error *err);

/* Passes the first entry of each array of offsets, 0, to `put`. */
stk_status stki_field_arrays_begin(stki_field_arrays *arrays, stki_field_array_put put, void *context, stk_error *err);
/* Passes checked rows (stki_sink_check_rows) to `put`, as many at once as are contiguous. */
stk_status stki_field_arrays_append(stki_field_arrays *arrays, const stki_sink_value *values, int64_t rows,
                                    int field_count, stki_field_array_put put, void *context, stk_error *err);

#endif
