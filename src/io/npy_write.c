/* npy_write.c: see npy_write.h. Ordinary writes through a small buffer, never a mapping, so that a full disk is an
 * error here and no signal. The header is written first for a row count that is not known yet, with room for the
 * longest, and again at the end.
 *
 * What is at the final path decides how: nothing or a regular file, and the file is made beside it and renamed over it;
 * a device, and it is written in place, every error checked (writing to /dev/full fails). */
#include "npy_write.h"
#include "allocate.h"
#include "checked.h"
#include "counter.h"
#include "error.h"
#include "npy_write_test.h"
#include "tensor_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, HEADER_MAX = 1024, ALIGN = 64 };

struct stki_npy_writer {
    char *path;
    char *temporary; /* NULL: written in place */
    int fd;
    stk_dtype dtype;
    bool scalar; /* the file's shape is () */
    int row_ndim;
    int64_t row_shape[STK_MAX_DIMS];
    int64_t row_bytes, rows, header_bytes;
    int64_t used;      /* of buffer */
    stk_status failed; /* a write failed: nothing more is written, commit fails too */
    char buffer[BUFFER];
};

/* ---- the system's side, with faults on demand ------------------------------------------------------------------- */

static stki_counter fail_call[STKI_NPY_CALLS], fail_errno;

void stki_npy_test_fail_write(enum stki_npy_call call, int64_t n, int error_number)
{
    stki_count_set(&fail_errno, error_number);
    stki_count_set(&fail_call[call], n);
}

static bool must_fail(enum stki_npy_call call)
{
    if (stki_counted(&fail_call[call]) <= 0 ||
        atomic_fetch_sub_explicit(&fail_call[call], 1, memory_order_relaxed) != 1)
        return false;
    errno = (int)stki_counted(&fail_errno);
    return true;
}

static stk_status write_all(stki_npy_writer *w, const void *bytes, int64_t count, int64_t at, stk_error *err)
{
    const char *from = bytes;

    while (count > 0) {
        ssize_t n = must_fail(STKI_NPY_WRITE) ? -1
                    : at >= 0                 ? pwrite(w->fd, from, (size_t)count, at)
                                              : write(w->fd, from, (size_t)count);
        if (n < 0 && errno != EINTR)
            return stki_fail_errno(err, errno, w->path, "cannot write %" PRId64 " bytes", count);
        if (n > 0) {
            from += n;
            count -= n;
            at += at >= 0 ? n : 0;
        }
    }
    return STK_OK;
}

static stk_status flush(stki_npy_writer *w, stk_error *err)
{
    stk_status status = write_all(w, w->buffer, w->used, -1, err);

    w->used = 0;
    return status;
}

static stk_status sync_directory(const char *path, stk_error *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash == path ? stki_strdup("/")
                : slash       ? stki_format("%.*s", (int)(slash - path), path)
                              : stki_strdup(".");
    stk_status status = STK_OK;
    int fd;

    if (!dir)
        return stki_fail_memory(err, (int64_t)strlen(path), "a directory name");
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (must_fail(STKI_NPY_SYNC_DIRECTORY) || fd < 0 || (fsync(fd) && errno != EINVAL)) /* some can't sync one */
        status = stki_fail_errno(err, errno, path, "cannot sync its directory");
    if (fd >= 0)
        (void)close(fd);
    stki_free(dir);
    return status;
}

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

static stk_status open_in_place(stki_npy_writer *w, stk_error *err)
{
    w->fd = open(w->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (w->fd < 0)
        return stki_fail_errno(err, errno, w->path, "cannot open for writing");
    if (lseek(w->fd, 0, SEEK_SET) < 0)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){w->path, -1, -1, "something without positions", "a file or a device with them"},
            "cannot write an npy file there");
    return STK_OK;
}

static stk_status open_beside(stki_npy_writer *w, stk_error *err)
{
    static stki_counter serial;

    do {
        stki_free(w->temporary);
        w->temporary = stki_format("%s.tmp.%ld.%" PRId64, w->path, (long)getpid(),
                                   atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
        if (!w->temporary)
            return stki_fail_memory(err, (int64_t)strlen(w->path) + 32, w->path);
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (w->fd < 0 && errno == EEXIST);
    if (w->fd < 0) {
        stk_status status = stki_fail_errno(err, errno, w->path, "cannot make %s", w->temporary);
        stki_free(w->temporary); /* nothing to remove */
        w->temporary = NULL;
        return status;
    }
    return STK_OK;
}

static stk_status open_output(stki_npy_writer *w, stk_error *err)
{
    struct stat st;
    bool there = !stat(w->path, &st);
    char header[HEADER_MAX];
    stk_status status;

    if (there && S_ISDIR(st.st_mode))
        return stki_fail_at(err, STK_E_IO, (stki_place){w->path, -1, -1, "a directory", "a file name"}, "cannot write");
    status = there && !S_ISREG(st.st_mode) ? open_in_place(w, err) : open_beside(w, err);
    if (status)
        return status;
    w->header_bytes = stki_round_up(10 + header_text(w, INT64_MAX, header) + 1, ALIGN);
    make_header(w, 0, header);
    return write_all(w, header, w->header_bytes, -1, err);
}

/* Closes and removes what was written; frees. */
static void discard(stki_npy_writer *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    if (w->temporary)
        (void)unlink(w->temporary);
    stki_free(w->temporary);
    stki_free(w->path);
    stki_free(w);
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
    w->fd = -1;
    w->dtype = dtype;
    w->scalar = scalar;
    w->row_ndim = row_ndim;
    w->path = stki_strdup(path);
    if (row_ndim > 0)
        memcpy(w->row_shape, row_shape, sizeof *row_shape * (size_t)row_ndim);
    status = w->path ? stki_row_major(dtype, row_ndim, row_shape, strides, &w->row_bytes, err)
                     : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (!status)
        status = open_output(w, err);
    if (status)
        discard(w);
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

static stk_status append_bytes(stki_npy_writer *w, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    if (count > BUFFER - w->used)
        status = flush(w, err);
    if (!status && count > BUFFER)
        return write_all(w, bytes, count, -1, err);
    if (!status) {
        memcpy(w->buffer + w->used, bytes, (size_t)count);
        w->used += count;
    }
    return status;
}

stk_status stki_npy_append(stki_npy_writer *w, const void *rows, int64_t count, stk_error *err)
{
    int64_t bytes, total, file_bytes;

    if (w->failed)
        return stki_fail_at(err, w->failed, (stki_place){w->path, -1, -1, NULL, NULL}, "an earlier write failed");
    if (count < 0 || !stki_mul(count, w->row_bytes, &bytes) || !stki_add(w->rows, count, &total) ||
        !stki_mul(total, w->row_bytes, &file_bytes) || !stki_add(file_bytes, w->header_bytes, &file_bytes))
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){w->path, -1, -1, STKI_TEXT("%" PRId64 " more rows", count),
                                         "a file size that fits in 63 bits"},
                            "cannot append");
    if (bytes > 0)
        w->failed = append_bytes(w, rows, bytes, err);
    if (!w->failed)
        w->rows = total;
    return w->failed;
}

static stk_status finish_bytes(stki_npy_writer *w, stk_error *err)
{
    char header[HEADER_MAX];
    stk_status status = flush(w, err);

    make_header(w, w->rows, header);
    if (!status)
        status = write_all(w, header, w->header_bytes, 0, err);
    if (!status && (must_fail(STKI_NPY_SYNC) || fsync(w->fd)) && (w->temporary || errno != EINVAL))
        status = stki_fail_errno(err, errno, w->path, "cannot sync");
    if ((close(w->fd) || must_fail(STKI_NPY_CLOSE)) && !status)
        status = stki_fail_errno(err, errno, w->path, "cannot close");
    w->fd = -1;
    return status;
}

static stk_status put_in_place(stki_npy_writer *w, stk_error *err)
{
    stk_status status;

    if (must_fail(STKI_NPY_RENAME) || rename(w->temporary, w->path))
        return stki_fail_errno(err, errno, w->path, "cannot rename %s to it", w->temporary);
    stki_free(w->temporary);
    w->temporary = NULL;
    status = sync_directory(w->path, err);
    if (status)
        (void)unlink(w->path); /* a name that might not survive a crash is no success */
    return status;
}

stk_status stki_npy_commit(stki_npy_writer *w, stk_error *err)
{
    stk_status status =
        w->failed ? stki_fail_at(err, w->failed, (stki_place){w->path, -1, -1, NULL, NULL}, "an earlier write failed")
                  : finish_bytes(w, err);

    if (!status && w->temporary)
        status = put_in_place(w, err);
    discard(w);
    return status;
}

void stki_npy_abort(stki_npy_writer *w)
{
    if (w)
        discard(w);
}

/* ---- whole tensors ---------------------------------------------------------------------------------------------- */

/* Axis 0 in pieces of about the buffer's size, each packed row-major on the way. */
static stk_status append_tensor(stki_npy_writer *w, const stk_tensor *t, stk_error *err)
{
    int64_t at_once = w->row_bytes > 0 && w->row_bytes < BUFFER ? BUFFER / w->row_bytes : 1, strides[STK_MAX_DIMS];
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
