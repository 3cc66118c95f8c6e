/* sink_rows.h: rows with fields of all kinds, and sinks that write them. All rows are in memory, so that they can be
 * appended in runs of any length and compared with what is read back. */
#ifndef STKT_SINK_ROWS_H
#define STKT_SINK_ROWS_H

#include "file_compare.h"
#include "jpeg_make.h"
#include "sinks.h"
#include "test_random.h"

enum { STKT_SINK_FIELDS = 8, STKT_SINK_FILES = 16 };

struct stkt_rows {
    stki_sink_field fields[STKT_SINK_FIELDS];
    int field_count;
    int64_t rows;
    stki_sink_value *values; /* [rows][field_count] */
    char *arena;             /* memory that the values point into */
    int64_t used, room;
};

/* Allocates rows for these fields, of about `bytes` bytes each. */
static inline void stkt_rows_init(struct stkt_rows *r, int64_t rows, int64_t bytes)
{
    memset(r, 0, sizeof *r);
    r->rows = rows;
    r->values = calloc((size_t)(rows * STKT_SINK_FIELDS), sizeof *r->values);
    r->room = rows * bytes + 8192;
    r->arena = calloc(1, (size_t)r->room);
    assert_non_null(r->values);
    assert_non_null(r->arena);
}

static inline void stkt_rows_fini(struct stkt_rows *r)
{
    free(r->values);
    free(r->arena);
}

static inline char *stkt_rows_take(struct stkt_rows *r, int64_t size)
{
    char *at = r->arena + r->used;

    assert_true(r->used + size <= r->room);
    r->used += (size + 7) / 8 * 8;
    return at;
}

/* Bytes that differ from row to row and that are valid numbers of any dtype. */
static inline char *stkt_rows_noise(struct stkt_rows *r, int field, int64_t row, int64_t size)
{
    char *bytes = stkt_rows_take(r, size);
    uint64_t random = (uint64_t)row * 31 + (uint64_t)field + 1;

    for (int64_t i = 0; i < size; i += 8) {
        uint64_t x = stkt_random(&random) & UINT64_C(0x3F3F3F3F3F3F3F3F); /* never NaN or negative */

        memcpy(bytes + i, &x, (size_t)(size - i < 8 ? size - i : 8));
    }
    return bytes;
}

static inline stki_sink_value *stkt_value(struct stkt_rows *r, int field, int64_t row)
{
    return &r->values[row * r->field_count + field];
}

static inline int stkt_add_field(struct stkt_rows *r, const char *name, enum stki_sink_kind kind, stk_dtype dtype,
                                 int ndim, int64_t a, int64_t b)
{
    r->fields[r->field_count] =
        (stki_sink_field){.name = name, .kind = kind, .dtype = dtype, .ndim = ndim, .shape = {a, b}};
    return r->field_count++;
}

static inline void stkt_make_image_file(struct stkt_rows *r, stki_sink_value *v, int64_t row)
{
    const stkt_jpeg how = {.width = (int)(16 + row % 2 * 8), .height = (int)(8 + row % 3 * 8), .quality = 80};
    stkt_bytes file = stkt_jpeg_make(&how);

    v->height = how.height;
    v->width = how.width;
    v->channels = 3;
    v->encoding = STKI_JPEG;
    v->size = (int64_t)file.size;
    v->bytes = memcpy(stkt_rows_take(r, v->size), file.data, file.size);
    free(file.data);
}

/* Fills all values after all fields were added. */
static inline void stkt_fill_rows(struct stkt_rows *r)
{
    for (int f = 0; f < r->field_count; f++)
        for (int64_t row = 0; row < r->rows; row++) {
            const stki_sink_field *field = &r->fields[f];
            stki_sink_value *v = stkt_value(r, f, row);
            int64_t item = stk_dtype_size(field->dtype);

            switch (field->kind) {
            case STKI_SINK_ARRAY:
                v->size = item * (field->ndim > 0 ? field->shape[0] : 1) * (field->ndim > 1 ? field->shape[1] : 1) *
                          (field->ndim > 2 ? field->shape[2] : 1);
                break;
            case STKI_SINK_RAGGED:
                v->length = row % 4 == 1 ? 0 : row * 7 % 23;
                v->size = v->length * item * (field->ndim > 1 ? field->shape[1] : 1);
                break;
            case STKI_SINK_IMAGE:
                v->height = 1 + row % 5;
                v->width = 1 + row % 3 * 4;
                v->channels = 3;
                v->size = v->height * v->width * 3;
                break;
            default:
                v->size = row % 5 == 2 ? 0 : row * 131 % 700;
                break;
            }
            if (field->encode && !strcmp(field->encode, "json")) {
                char text[32];

                v->size = snprintf(text, sizeof text, "{\"row\": %d}", (int)row);
                v->bytes = memcpy(stkt_rows_take(r, v->size), text, (size_t)v->size);
            } else if (field->kind == STKI_SINK_IMAGE && field->encode && row % 2) { /* every second row */
                stkt_make_image_file(r, v, row);
            } else {
                v->bytes = stkt_rows_noise(r, f, row, v->size);
            }
        }
}

static inline void stkt_sink_opts(const struct stkt_rows *r, const stki_sink_ops *ops, const char *path,
                                  const char *folder, const void *options, stki_sink_opts *out)
{
    (void)ops;
    *out = (stki_sink_opts){.path = path,
                            .folder = folder,
                            .fields = r->fields,
                            .field_count = r->field_count,
                            .most_rows = r->rows,
                            .options = options};
}

/* Appends rows [from, to) in runs of 1 to `most` rows, whose random lengths come from *random. */
static inline stk_status stkt_append(stki_sink *sink, const struct stkt_rows *r, int64_t from, int64_t to, int64_t most,
                                     uint64_t *random, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t row = from, n; row < to && !status; row += n) {
        n = stkt_random_in(random, 1, most < to - row ? most : to - row);
        status = sink->ops->append(sink, r->values + row * r->field_count, n, err);
    }
    return status;
}

#endif
