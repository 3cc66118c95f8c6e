/* npy_write.c: see npy_write.h. The header is written first for a row count that is not known yet, with room for the
 * longest, and again at the end. */
#include "npy_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "output.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 256 << 10, HEADER_MAX = 1024, ALIGN = 64 };

struct stki_npy_writer {
    stki_output *output;
    stk_dtype dtype;
    bool scalar; /* the file's shape is () */
    int row_ndim;
    int64_t row_shape[STK_MAX_DIMS];
    int64_t row_bytes, rows, header_bytes;
};

/* ---- the header ------------------------------------------------------------------------------------------------- */

static const char *descr_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL:
        return "|b1";
    case STK_U8:
        return "|u1";
    case STK_I8:
        return "|i1";
    case STK_U16:
        return "<u2";
    case STK_I16:
        return "<i2";
    case STK_U32:
        return "<u4";
    case STK_I32:
        return "<i4";
    case STK_U64:
        return "<u8";
    case STK_I64:
        return "<i8";
    case STK_F16:
        return "<f2";
    case STK_F32:
        return "<f4";
    case STK_F64:
        return "<f8";
    case STK_C64:
        return "<c8";
    case STK_C128:
        return "<c16";
    case STK_BF16:
        return "<V2";
    case STK_F8_E4M3FN:
        return "|V1";
    case STK_F8_E5M2:
        return "<f1";
    default:
        return NULL;
    }
}

static bool is_alias(stk_dtype dtype)
{
    return dtype == STK_BF16 || dtype == STK_F8_E4M3FN || dtype == STK_F8_E5M2;
}

static int header_text(const stki_npy_writer *w, int64_t rows, char *text)
{
    int used = snprintf(text, HEADER_MAX, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(w->dtype));

    if (!w->scalar)
        used += snprintf(text + used, (size_t)(HEADER_MAX - used), w->row_ndim ? "%" PRId64 : "%" PRId64 ",", rows);
    for (int i = 0; i < w->row_ndim; i++)
        used += snprintf(text + used, (size_t)(HEADER_MAX - used), ", %" PRId64, w->row_shape[i]);
    return used + snprintf(text + used, (size_t)(HEADER_MAX - used), "), }");
}

/* Magic, version 1.0, length, text, spaces, newline. At most 32 sizes of 21 characters: always far below 64 KiB. */
static void make_header(const stki_npy_writer *w, int64_t rows, char *header)
{
    int64_t text = w->header_bytes - 10;

    memset(header, ' ', (size_t)w->header_bytes);
    memcpy(header, "\x93NUMPY\x01", 8);
    header[8] = (char)(text & 0xFF);
    header[9] = (char)(text >> 8);
    header[10 + header_text(w, rows, header + 10)] = ' ';
    header[w->header_bytes - 1] = '\n';
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

/* At once, past the buffer: a disk that is full already says so here. */
static stk_status begin(stki_npy_writer *w, stk_error *err)
{
    char header[HEADER_MAX];
    stk_status status;

    w->header_bytes = stki_round_up(10 + header_text(w, INT64_MAX, header) + 1, ALIGN);
    make_header(w, 0, header);
    status = stki_output_write_at(w->output, 0, header, w->header_bytes, err);
    return status ? status : stki_output_seek(w->output, w->header_bytes, err);
}

static stk_status check_dtype(const char *path, stk_dtype dtype, bool alias, stk_error *err)
{
    if (!descr_of(dtype))
        return stki_fail_at(err, STK_E_BAD_DTYPE,
                            (stki_place){path, -1, -1, STKI_TEXT("dtype number %d", (int)dtype), NULL}, "cannot write");
    if (is_alias(dtype) && !alias)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, stk_dtype_long_name(dtype), "a type that npy files can name"},
                            "npy files cannot say that they hold this type; as raw bytes (%s) its reader must be told",
                            descr_of(dtype));
    return STK_OK;
}

static stk_status create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool scalar,
                         bool alias, stki_npy_writer **out, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];
    stki_npy_writer *w;
    stk_status status = check_dtype(path, dtype, alias, err);

    if (!status && row_ndim >= STK_MAX_DIMS)
        status = stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, -1, STKI_TEXT("%d axes a row", row_ndim), STKI_TEXT("at most %d", STK_MAX_DIMS - 1)},
            "too many axes");
    if (status)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->dtype = dtype;
    w->scalar = scalar;
    w->row_ndim = row_ndim;
    if (row_ndim > 0)
        memcpy(w->row_shape, row_shape, sizeof *row_shape * (size_t)row_ndim);
    status = stki_row_major(dtype, row_ndim, row_shape, strides, &w->row_bytes, err);
    if (!status)
        status = stki_output_create(path, &w->output, err);
    if (!status)
        status = begin(w, err);
    if (status)
        stki_npy_abort(w);
    else
        *out = w;
    return status;
}

stk_status stki_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                           stki_npy_writer **out, stk_error *err)
{
    return create(path, dtype, row_ndim, row_shape, false, alias, out, err);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

stk_status stki_npy_append(stki_npy_writer *w, const void *rows, int64_t count, stk_error *err)
{
    int64_t bytes, total, file_bytes;
    stk_status status = STK_OK;

    if (count < 0 || !stki_mul(count, w->row_bytes, &bytes) || !stki_add(w->rows, count, &total) ||
        !stki_mul(total, w->row_bytes, &file_bytes) || !stki_add(file_bytes, w->header_bytes, &file_bytes))
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){stki_output_path(w->output), -1, -1, STKI_TEXT("%" PRId64 " more rows", count),
                                         "a file size that fits in 63 bits"},
                            "cannot append");
    status = stki_output_append(w->output, rows, bytes, err);
    if (!status)
        w->rows = total;
    return status;
}

stk_status stki_npy_commit(stki_npy_writer *w, stk_error *err)
{
    char header[HEADER_MAX];
    stk_error first;
    stk_status status, closed;

    make_header(w, w->rows, header);
    status = stki_output_seek(w->output, 0, &first);
    if (!status)
        status = stki_output_append(w->output, header, w->header_bytes, &first);
    closed = stki_output_commit(w->output, err); /* fails after a failed write */
    if (status && err)
        *err = first;
    stki_free(w);
    return status ? status : closed;
}

void stki_npy_abort(stki_npy_writer *w)
{
    if (!w)
        return;
    stki_output_abort(w->output);
    stki_free(w);
}

/* ---- whole tensors ---------------------------------------------------------------------------------------------- */

/* Axis 0 in pieces of about the buffer's size, each packed row-major on the way. */
static stk_status append_tensor(stki_npy_writer *w, const stk_tensor *t, stk_error *err)
{
    int64_t at_once = w->row_bytes > 0 && w->row_bytes < PIECE ? PIECE / w->row_bytes : 1, strides[STK_MAX_DIMS];
    int64_t total = t->ndim > 0 ? t->shape[0] : 1, bytes, packed_bytes;
    stk_tensor piece = *t;
    stk_status status = STK_OK;
    char *packed;

    if (piece.ndim == 0) {
        piece.ndim = 1;
        piece.shape[0] = 1;
        piece.strides[0] = 0;
    }
    piece.shape[0] = at_once = at_once < total ? at_once : total;
    status = stki_row_major(t->dtype, piece.ndim, piece.shape, strides, &packed_bytes, err);
    if (status)
        return status;
    packed = stki_block_alloc(NULL, packed_bytes, ALIGN);
    if (!packed)
        return stki_fail_memory(err, packed_bytes, "rows to write");
    for (int64_t row = 0; row < total && !status; row += at_once) {
        piece.shape[0] = at_once < total - row ? at_once : total - row;
        bytes = piece.shape[0] * w->row_bytes;
        if (bytes > 0)
            stki_copy_strided(packed, t->dtype, strides, (const char *)t->data + row * piece.strides[0], t->dtype,
                              piece.strides, t->flags & STK_TENSOR_SWAPPED, piece.ndim, piece.shape);
        status = stki_npy_append(w, packed, piece.shape[0], err);
    }
    stki_block_free(NULL, packed, packed_bytes, ALIGN);
    return status;
}

stk_status stki_npy_write_tensor(const char *path, const stk_tensor *tensor, stk_error *err)
{
    stki_npy_writer *w;
    int row_ndim = tensor->ndim > 0 ? tensor->ndim - 1 : 0;
    stk_status status;

    if (tensor->device && stk_device_get_kind(tensor->device) != STK_DEVICE_CPU)
        return stki_fail_at(err, STK_E_BAD_DEVICE,
                            (stki_place){path, -1, -1, stk_device_name(tensor->device), "memory of the CPU"},
                            "cannot write a tensor");
    status = create(path, tensor->dtype, row_ndim, tensor->shape + 1, tensor->ndim == 0, false, &w, err);
    if (status)
        return status;
    status = append_tensor(w, tensor, err);
    if (!status)
        return stki_npy_commit(w, err);
    stki_npy_abort(w);
    return status;
}
