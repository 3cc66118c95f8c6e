/* writer.c: see writer.h. Checks the order of calls, names and row counts, and writes whole tensors in chunks. */
#include "writer.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "tensor_internal.h"
#include "text_check.h"
#include <inttypes.h>
#include <string.h>

enum { PIECE = 256 << 10, ALIGN = 64, FIRST_NAMES = 16 };

/* ---- names ---- */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return hash;
}

/* Returns the name's slot, or the free slot in which it belongs. The table is never full. */
static char **place_of(char **names, int64_t room, const char *name)
{
    uint64_t at = hash_of(name) % (uint64_t)room;

    while (names[at] && strcmp(names[at], name) != 0)
        at = (at + 1) % (uint64_t)room;
    return &names[at];
}

static stk_status grow_names(stki_writer *w, stk_error *err)
{
    int64_t room = w->name_room ? 2 * w->name_room : FIRST_NAMES;
    char **names;

    if (w->name_count < w->name_room / 2)
        return STK_OK;
    names = stki_zalloc_array(room, sizeof(char *));
    if (!names)
        return stki_fail_memory(err, room * (int64_t)sizeof(char *), "names");
    for (int64_t i = 0; i < w->name_room; i++)
        if (w->names[i])
            *place_of(names, room, w->names[i]) = w->names[i];
    stki_free(w->names);
    w->names = names;
    w->name_room = room;
    return STK_OK;
}

static stk_status add_name(stki_writer *w, const char *name, stk_error *err)
{
    char what[48], **place;
    stk_status status = grow_names(w, err);

    if (status != STK_OK)
        return status;
    if (stki_text_check(name, (int64_t)strlen(name), STKI_TEXT_KEY, what) >= 0)
        return stki_fail(err, STK_E_BAD_ARG, "the name of an array contains %s", what);
    place = place_of(w->names, w->name_room, name);
    if (*place)
        return stki_fail(err, STK_E_BAD_ARG, "the array %s already exists", name);
    *place = stki_strdup(name);
    if (!*place)
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, "a name");
    w->name_count++;
    return STK_OK;
}

static void free_names(stki_writer *w)
{
    for (int64_t i = 0; i < w->name_room; i++)
        stki_free(w->names[i]);
    stki_free(w->names);
    w->names = NULL;
    w->name_count = w->name_room = 0;
}

/* ---- the calls ---- */

/* Stores the first failure, so that commit fails. This includes calls that were rejected before anything was written,
 * because their data would be missing from the file. */
static stk_status note(stki_writer *w, stk_status status)
{
    if (status != STK_OK && !w->failed)
        w->failed = status;
    return status;
}

static stk_status check_turn(stki_writer *w, bool writing, stk_error *err)
{
    if (w->failed)
        return stki_fail(err, w->failed, "an earlier call failed, so the file cannot be finished");
    if (w->writing == writing)
        return STK_OK;
    return stki_fail(err, STK_E_BAD_ARG, writing ? "no array has been started" : "an array is not complete");
}

/* The shape of a row is checked later by stki_row_major. */
static stk_status check_begin(const char *name, int row_ndim, const int64_t *row_shape, int64_t rows, stk_error *err)
{
    stk_status status = stki_check_given(name, "name", err);

    if (status == STK_OK && row_ndim < -1)
        status = stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){NULL, -1, -1, STKI_TEXT("%d", row_ndim), STKI_TEXT("-1 (a scalar) to %d", STK_MAX_DIMS - 1)},
            "array %s: row_ndim", name);
    if (status == STK_OK && row_ndim > 0)
        status = stki_check_given(row_shape, "row_shape", err);
    if (status == STK_OK && (rows < -1 || (row_ndim < 0 && rows != 1 && rows != -1)))
        status = stki_fail_at(err, STK_E_BAD_ARG,
                              (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64, rows),
                                           row_ndim < 0 ? "1 or -1" : "a number of at least 0, or -1"},
                              "array %s: rows", name);
    return status;
}

static stk_status begin(stki_writer *w, const char *name, stk_dtype dtype, int row_ndim, const int64_t *row_shape,
                        int64_t rows, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];
    stk_status status = check_turn(w, false, err);

    if (status == STK_OK)
        status = check_begin(name, row_ndim, row_shape, rows, err);
    if (status != STK_OK)
        return status;
    status = stki_row_major(dtype, row_ndim > 0 ? row_ndim : 0, row_shape, strides, &w->row_bytes, err);
    if (status == STK_OK)
        status = add_name(w, name, err);
    if (status == STK_OK)
        status = w->ops->begin(w, name, dtype, row_ndim < 0 ? -1 : row_ndim, row_shape, rows, err);
    w->writing = status == STK_OK;
    w->rows = 0;
    w->rows_wanted = row_ndim < 0 ? 1 : rows;
    return status;
}

stk_status stki_writer_begin(stki_writer *w, const char *name, stk_dtype dtype, int row_ndim, const int64_t *row_shape,
                             int64_t rows, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    return status != STK_OK ? status : note(w, begin(w, name, dtype, row_ndim, row_shape, rows, err));
}

static stk_status append(stki_writer *w, const void *rows, int64_t count, stk_error *err)
{
    int64_t total, bytes;
    stk_status status = check_turn(w, true, err);

    if (status != STK_OK)
        return status;
    if (count < 0)
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){NULL, -1, -1, STKI_TEXT("%" PRId64, count), "at least 0"},
                            "invalid number of rows to append");
    if (!stki_add(w->rows, count, &total) || !stki_mul(total, w->row_bytes, &bytes))
        return stki_fail(err, STK_E_BAD_SHAPE, "the size in bytes does not fit in 63 bits with %" PRId64 " more rows",
                         count);
    if (w->rows_wanted >= 0 && total > w->rows_wanted)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "the number of appended rows is %" PRId64 ", but %" PRId64 " were declared", total,
                         w->rows_wanted);
    if (count == 0)
        return STK_OK;
    status = w->row_bytes > 0 ? stki_check_given(rows, "rows", err) : STK_OK;
    if (status != STK_OK)
        return status;
    status = w->ops->append(w, rows, count, err);
    if (status == STK_OK)
        w->rows = total;
    return status;
}

stk_status stki_writer_append(stki_writer *w, const void *rows, int64_t count, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    return status != STK_OK ? status : note(w, append(w, rows, count, err));
}

static stk_status end(stki_writer *w, stk_error *err)
{
    stk_status status = check_turn(w, true, err);

    if (status != STK_OK)
        return status;
    if (w->rows_wanted >= 0 && w->rows != w->rows_wanted)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "the number of appended rows is %" PRId64 ", but %" PRId64 " were declared", w->rows,
                         w->rows_wanted);
    w->writing = false;
    return w->ops->end(w, err);
}

stk_status stki_writer_end(stki_writer *w, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    return status != STK_OK ? status : note(w, end(w, err));
}

stk_status stki_writer_commit(stki_writer *w, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status == STK_OK)
        status = check_turn(w, false, err);
    if (status != STK_OK) {
        stki_writer_abort(w);
        return status;
    }
    free_names(w);
    return w->ops->commit(w, err);
}

void stki_writer_abort(stki_writer *w)
{
    if (!w)
        return;
    free_names(w);
    w->ops->abort(w);
}

/* ---- whole tensors ---- */

static stk_status add_in_pieces(stki_writer *w, const stk_tensor *t, int64_t total, stk_error *err)
{
    int64_t at_once = w->row_bytes > 0 && w->row_bytes < PIECE ? PIECE / w->row_bytes : 1, strides[STK_MAX_DIMS];
    int64_t packed_bytes;
    stk_tensor piece = *t;
    stk_status status;
    char *packed;

    piece.shape[0] = at_once = at_once < total ? at_once : total;
    status = stki_row_major(t->dtype, piece.ndim, piece.shape, strides, &packed_bytes, err);
    if (status != STK_OK)
        return status;
    packed = stki_block_alloc(NULL, packed_bytes, ALIGN);
    if (!packed)
        return stki_fail_memory(err, packed_bytes, "rows to write");
    for (int64_t row = 0; row < total && status == STK_OK; row += at_once) {
        piece.shape[0] = at_once < total - row ? at_once : total - row;
        if (w->row_bytes > 0)
            stki_copy_strided(packed, t->dtype, strides, (const char *)t->data + row * piece.strides[0], t->dtype,
                              piece.strides, t->flags & STK_TENSOR_SWAPPED, piece.ndim, piece.shape);
        status = stki_writer_append(w, packed, piece.shape[0], err);
    }
    stki_block_free(NULL, packed, packed_bytes, ALIGN);
    return status;
}

/* Contiguous rows in native byte order are written directly; bool is copied, which normalizes every byte to 0 or 1. */
static stk_status add_rows(stki_writer *w, const stk_tensor *t, int64_t total, stk_error *err)
{
    stk_status status = total > 0 && w->row_bytes > 0 ? stki_check_given(t->data, "tensor.data", err) : STK_OK;

    if (status != STK_OK || total == 0)
        return status;
    if (t->dtype != STK_BOOL && !(t->flags & STK_TENSOR_SWAPPED) && stk_tensor_is_contiguous(t))
        return stki_writer_append(w, t->data, total, err);
    return add_in_pieces(w, t, total, err);
}

static stk_status add(stki_writer *w, const char *name, stk_tensor t, stk_error *err)
{
    stk_status status;

    if (t.device && stk_device_get_kind(t.device) != STK_DEVICE_CPU)
        return stki_fail(err, STK_E_BAD_DEVICE, "array %s is on %s: only CPU tensors can be written", name,
                         stk_device_name(t.device));
    status = stki_writer_begin(w, name, t.dtype, t.ndim - 1, t.ndim > 0 ? t.shape + 1 : NULL,
                               t.ndim > 0 ? t.shape[0] : 1, err);
    if (status != STK_OK)
        return status;
    if (t.ndim == 0) {
        t.ndim = 1;
        t.shape[0] = 1;
        t.strides[0] = 0;
    }
    status = add_rows(w, &t, t.shape[0], err);
    return status != STK_OK ? status : stki_writer_end(w, err);
}

stk_status stki_writer_add(stki_writer *w, const char *name, const stk_tensor *tensor, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status != STK_OK)
        return status;
    status = stki_check_given(name, "name", err);
    if (status == STK_OK)
        status = stki_check_given(tensor, "tensor", err);
    return note(w, status != STK_OK ? status : add(w, name, *tensor, err));
}
