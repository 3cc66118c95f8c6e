/* sink_parts.h: a field as named arrays, for formats that hold nothing else. Rows of one shape are an array NAME. Rows
 * whose sizes differ are as the loader delivers them: NAME.values, all of them one behind the other, and NAME.offsets
 * (i64, one more than rows), where each begins along axis 0 of the values; images also have NAME.shapes (i64: height,
 * width, channels).
 */
#ifndef STKI_SINK_PARTS_H
#define STKI_SINK_PARTS_H

#include "sink_common.h"

enum stki_sink_array_kind { STKI_PART_ROWS, STKI_PART_VALUES, STKI_PART_OFFSETS, STKI_PART_SHAPES };

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

typedef struct stki_parts {
    stki_sink_array *items;
    int count;
} stki_parts;

stk_status stki_parts_init(stki_parts *parts, const stki_sink_field *fields, int field_count, stk_error *err);
void stki_parts_fini(stki_parts *parts);
/* The rows of the array that will be there when `rows` samples are; -1: that is not known before. */
int64_t stki_part_expected(const stki_sink_array *part, int64_t rows);

/* Takes rows of part number `part`, one behind the other. `lasting`: they stay until the append ends; else they are
 * good for this call alone. */
typedef stk_status (*stki_part_put)(void *context, int part, const void *bytes, int64_t rows, bool lasting,
                                    stk_error *err);

/* The rows that arrays begin with: the first offset, 0. */
stk_status stki_parts_begin(stki_parts *parts, stki_part_put put, void *context, stk_error *err);
/* Hands checked rows on (stki_sink_check_rows), as many at once as lie one behind the other. */
stk_status stki_parts_append(stki_parts *parts, const stki_sink_value *values, int64_t rows, int field_count,
                             stki_part_put put, void *context, stk_error *err);

#endif
