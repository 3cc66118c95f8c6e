/* field_arrays.h: a field as named arrays, for formats that hold nothing else. Rows of one shape are an array NAME.
 * Rows whose sizes differ are as the loader delivers them: NAME.values, all of them one behind the other, and
 * NAME.offsets (i64, one more than rows), where each begins along axis 0 of the values; images also have NAME.shapes
 * (i64: height, width, channels).
 */
#ifndef STKI_FIELD_ARRAYS_H
#define STKI_FIELD_ARRAYS_H

#include "sink_common.h"

enum stki_sink_array_kind { STKI_ARRAY_ROWS, STKI_ARRAY_VALUES, STKI_ARRAY_OFFSETS, STKI_ARRAY_SHAPES };

typedef struct stki_sink_array {
    char *name;
    enum stki_sink_array_kind kind;
    int field;
    stk_dtype dtype;
    int ndim; /* of one row of the array */
    int64_t shape[STK_MAX_DIMS], row_bytes;
    bool alias;
    int64_t rows;  /* of the array, so far */
    int64_t total; /* OFFSETS: the last one … */
    bool lengths;  /* … which counts entries along axis 0, not bytes */
} stki_sink_array;

typedef struct stki_field_arrays {
    stki_sink_array *items;
    int count;
} stki_field_arrays;

stk_status stki_field_arrays_init(stki_field_arrays *arrays, const stki_sink_field *fields, int field_count,
                                  stk_error *err);
void stki_field_arrays_fini(stki_field_arrays *arrays);
/* The rows of the array that will be there when `rows` samples are; -1: that is not known before. */
int64_t stki_field_array_rows(const stki_sink_array *array, int64_t rows);

/* As measure of sink.h, of arrays alone: the bytes of all of them. Arrays that are not rows of one shape begin with an
 * offset. */
int64_t stki_field_arrays_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                                  stki_sink_size *size);

/* Takes rows of array number `array`, one behind the other. `lasting`: they stay until the append ends; else they are
 * good for this call alone. */
typedef stk_status (*stki_field_array_put)(void *context, int array, const void *bytes, int64_t rows, bool lasting,
                                           stk_error *err);

/* The rows that arrays begin with: the first offset, 0. */
stk_status stki_field_arrays_begin(stki_field_arrays *arrays, stki_field_array_put put, void *context, stk_error *err);
/* Hands checked rows on (stki_sink_check_rows), as many at once as lie one behind the other. */
stk_status stki_field_arrays_append(stki_field_arrays *arrays, const stki_sink_value *values, int64_t rows,
                                    int field_count, stki_field_array_put put, void *context, stk_error *err);

#endif
