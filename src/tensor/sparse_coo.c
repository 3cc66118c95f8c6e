/* sparse_coo.c: sparse tensors in coordinate format: one index per entry, any number of axes. */
#include "allocate.h"
#include "cast.h"
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "sparse_internal.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

/* ---- create ---- */

static stk_status check_lengths(const stk_coo *coo, stk_error *err)
{
    const stk_tensor *indices = &coo->indices, *values = &coo->values;

    if (indices->ndim != 2 || values->ndim != 1)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "a COO tensor needs indices with 2 axes and values with 1, not %d and %d", indices->ndim,
                         values->ndim);
    if (indices->shape[0] != coo->ndim || indices->shape[1] != values->shape[0])
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "indices of shape %s do not match %" PRId64 " values and %d axes: must be [%d, %" PRId64 "]",
                         STKI_SHAPE(2, indices->shape), values->shape[0], coo->ndim, coo->ndim, values->shape[0]);
    for (int i = 0; i < coo->ndim; i++)
        if (coo->shape[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "axis %d has the negative size %" PRId64, i, coo->shape[i]);
    return STK_OK;
}

stk_status stki_coo_open(const stk_coo *coo, int64_t **out_indices, stk_error *err)
{
    int64_t *indices = NULL;
    stk_status status = stki_sparse_check_values(&coo->values, err);

    status = status != STK_OK ? status : check_lengths(coo, err);
    status = status != STK_OK ? status : stki_indices_load(&coo->indices, &indices, err);
    for (int axis = 0; status == STK_OK && axis < coo->ndim; axis++) {
        int64_t count = coo->values.shape[0];
        status = stki_indices_check(indices + axis * count, count, coo->shape[axis],
                                    STKI_TEXT("the index along axis %d,", axis), err);
    }
    if (status != STK_OK) {
        stki_free(indices);
        return status;
    }
    *out_indices = indices;
    return STK_OK;
}

stk_status stk_coo_create(const stk_tensor *indices, const stk_tensor *values, int ndim, const int64_t *shape,
                          stk_coo *out, stk_error *err)
{
    STKI_PROFILE("coo_create");
    stk_coo made = {.indices = *indices, .values = *values, .ndim = ndim};
    int64_t *checked;
    stk_status status;

    if (ndim < 0 || ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_BAD_SHAPE, "%d axes: must be 0 to %d", ndim, STK_MAX_DIMS);
    if (ndim > 0)
        memcpy(made.shape, shape, (size_t)ndim * sizeof *shape);
    status = stki_coo_open(&made, &checked, err);
    if (status != STK_OK)
        return status;
    stki_free(checked);
    stk_tensor_retain(indices);
    stk_tensor_retain(values);
    *out = made;
    return STK_OK;
}

void stk_coo_release(stk_coo *coo)
{
    if (!coo)
        return;
    stk_tensor_release(&coo->indices);
    stk_tensor_release(&coo->values);
}

int64_t stk_coo_entries(const stk_coo *coo)
{
    return stk_tensor_numel(&coo->values);
}

/* ---- from dense ---- */

/* Iterates over the rows along the last axis in row-major order. */
struct scan {
    const stk_tensor *dense;
    stki_cast to_bool;
    int64_t element_bytes, length, step;
    int64_t index[STK_MAX_DIMS];
    const char *at;
};

static bool scan_begin(struct scan *scan, const stk_tensor *dense)
{
    int last = dense->ndim - 1;

    *scan = (struct scan){.dense = dense,
                          .element_bytes = stk_dtype_size(dense->dtype),
                          .length = dense->ndim ? dense->shape[last] : 1,
                          .step = dense->ndim ? dense->strides[last] : 0,
                          .at = dense->data};
    stki_cast_init(&scan->to_bool, STK_BOOL, dense->dtype, false);
    return stk_tensor_numel(dense) > 0;
}

static bool scan_next(struct scan *scan)
{
    for (int axis = scan->dense->ndim - 2; axis >= 0; axis--) {
        scan->at += scan->dense->strides[axis];
        if (++scan->index[axis] < scan->dense->shape[axis])
            return true;
        scan->at -= scan->dense->strides[axis] * scan->dense->shape[axis];
        scan->index[axis] = 0;
    }
    return false;
}

/* Counts the entries of the current row, and stores them from `entry` on unless `indices` is NULL. Returns the number
 * of the next entry. */
static int64_t scan_row(const struct scan *scan, int64_t entry, int64_t count, int64_t *indices, char *values)
{
    enum { BLOCK = 512 };
    const int last = scan->dense->ndim - 1;
    uint8_t there[BLOCK];

    for (int64_t i = 0; i < scan->length; i += BLOCK) {
        int64_t here = scan->length - i < BLOCK ? scan->length - i : BLOCK;
        stki_cast_row(&scan->to_bool, there, 1, scan->at + i * scan->step, scan->step, here);
        for (int64_t k = 0; k < here; k++) {
            if (!there[k])
                continue;
            if (indices) {
                for (int axis = 0; axis < last; axis++)
                    indices[axis * count + entry] = scan->index[axis];
                if (last >= 0)
                    indices[last * count + entry] = i + k;
                memcpy(values + entry * scan->element_bytes, scan->at + (i + k) * scan->step,
                       (size_t)scan->element_bytes);
            }
            entry++;
        }
    }
    return entry;
}

static int64_t scan_all(const stk_tensor *dense, int64_t count, int64_t *indices, char *values)
{
    struct scan scan;
    int64_t entry = 0;

    if (!scan_begin(&scan, dense))
        return 0;
    do
        entry = scan_row(&scan, entry, count, indices, values);
    while (scan_next(&scan));
    return entry;
}

stk_status stk_coo_from_dense(const stk_tensor *dense, stk_dtype index_dtype, stk_coo *out, stk_error *err)
{
    STKI_PROFILE("coo_from_dense");
    stk_coo made = {.ndim = dense->ndim, .coalesced = true};
    int64_t count, *indices = NULL;
    stk_tensor native = {0};
    stk_status status = stki_sparse_check_index_dtype(index_dtype, err);

    status = status != STK_OK ? status : stki_sparse_check_values(dense, err);
    if (status != STK_OK)
        return status;
    if (dense->flags & STK_TENSOR_SWAPPED) {
        status = stk_tensor_contiguous(dense, &native, err);
        if (status != STK_OK)
            return status;
        dense = &native;
    }
    memcpy(made.shape, dense->shape, sizeof made.shape);
    count = scan_all(dense, 0, NULL, NULL);
    status = stk_tensor_empty(dense->dtype, 1, &count, NULL, &made.values, err);
    if (status == STK_OK) {
        indices = stki_zalloc_array(count, (int64_t)sizeof *indices * (dense->ndim ? dense->ndim : 1));
        status = indices ? STK_OK
                         : stki_fail_memory(err, count * (int64_t)sizeof *indices * (dense->ndim ? dense->ndim : 1),
                                            "indices");
    }
    if (status == STK_OK) {
        scan_all(dense, count, indices, made.values.data);
        status = stki_indices_store(indices, 2, (const int64_t[]){dense->ndim, count}, index_dtype, &made.indices, err);
    }
    stki_free(indices);
    stk_tensor_release(&native);
    if (status != STK_OK) {
        stk_coo_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* ---- coalesce ---- */

struct groups {
    int64_t *indices; /* one array per axis, as loaded */
    int64_t *order;   /* entries sorted by index */
    int64_t *starts;  /* where in `order` each group of equal indices starts, and the end */
    int64_t *compact; /* one index per group */
    int64_t count;    /* groups */
    int64_t entries;
    int axes;
};

static bool same_index(const struct groups *groups, int64_t a, int64_t b)
{
    for (int axis = 0; axis < groups->axes; axis++)
        if (groups->indices[axis * groups->entries + a] != groups->indices[axis * groups->entries + b])
            return false;
    return true;
}

static void groups_end(struct groups *groups)
{
    stki_free(groups->indices);
    stki_free(groups->order);
    stki_free(groups->starts);
    stki_free(groups->compact);
}

static stk_status groups_begin(struct groups *groups, const stk_coo *coo, stk_error *err)
{
    stk_status status;

    *groups = (struct groups){.axes = coo->ndim, .entries = stk_coo_entries(coo)};
    status = stki_coo_open(coo, &groups->indices, err);
    if (status != STK_OK)
        return status;
    groups->order = stki_zalloc_array(groups->entries, sizeof *groups->order);
    groups->starts = stki_zalloc_array(groups->entries + 1, sizeof *groups->starts);
    groups->compact = stki_zalloc_array(groups->entries, (int64_t)sizeof(int64_t) * (coo->ndim ? coo->ndim : 1));
    if (!groups->order || !groups->starts || !groups->compact) {
        groups_end(groups);
        return stki_fail_memory(err, groups->entries, "coalescing a sparse tensor");
    }
    stki_sparse_order(groups->indices, coo->ndim, coo->shape, groups->entries, groups->order, groups->starts);
    for (int64_t k = 0; k < groups->entries; k++)
        if (k == 0 || !same_index(groups, groups->order[k - 1], groups->order[k]))
            groups->starts[groups->count++] = k;
    groups->starts[groups->count] = groups->entries;
    for (int axis = 0; axis < groups->axes; axis++)
        for (int64_t g = 0; g < groups->count; g++)
            groups->compact[axis * groups->count + g] =
                groups->indices[axis * groups->entries + groups->order[groups->starts[g]]];
    return STK_OK;
}

/* out[g] = the sum of group g of `in`, which is in entry order. */
#define SUM_GROUPS(name, type)                                                      \
    static void sum_##name(const struct groups *groups, const void *in, void *out)  \
    {                                                                               \
        const type *from = in;                                                      \
        type *to = out;                                                             \
        for (int64_t g = 0; g < groups->count; g++) {                               \
            type sum = from[groups->order[groups->starts[g]]];                      \
            for (int64_t k = groups->starts[g] + 1; k < groups->starts[g + 1]; k++) \
                sum += from[groups->order[k]];                                      \
            to[g] = sum;                                                            \
        }                                                                           \
    }

SUM_GROUPS(whole, uint64_t) /* wraps; signed integers have the same bits */
SUM_GROUPS(f32, float)
SUM_GROUPS(f64, double)

static stk_status sum_values(const struct groups *groups, const stk_tensor *values, stk_tensor *out, stk_error *err)
{
    stk_dtype wide_dtype = stki_sparse_wide(values->dtype);
    int64_t size = stk_dtype_size(wide_dtype);
    void *wide = stki_zalloc_array(groups->entries, size), *sums = stki_zalloc_array(groups->count, size);
    stki_cast cast;
    stk_status status = wide && sums ? STK_OK : stki_fail_memory(err, groups->entries, "sums of a sparse tensor");

    status = status != STK_OK ? status : stk_tensor_empty(values->dtype, 1, &groups->count, NULL, out, err);
    if (status == STK_OK) {
        stki_cast_init(&cast, wide_dtype, values->dtype, (values->flags & STK_TENSOR_SWAPPED) != 0);
        stki_cast_row(&cast, wide, size, values->data, values->strides[0], groups->entries);
        (wide_dtype == STK_F32 ? sum_f32 : wide_dtype == STK_F64 ? sum_f64 : sum_whole)(groups, wide, sums);
        stki_cast_init(&cast, values->dtype, wide_dtype, false);
        stki_cast_row(&cast, out->data, stk_dtype_size(values->dtype), sums, size, groups->count);
    }
    stki_free(wide);
    stki_free(sums);
    return status;
}

static stk_status retain_as(const stk_coo *coo, stk_coo *out)
{
    stk_tensor_retain(&coo->indices);
    stk_tensor_retain(&coo->values);
    *out = *coo;
    return STK_OK;
}

stk_status stk_coo_coalesce(const stk_coo *coo, stk_coo *out, stk_error *err)
{
    STKI_PROFILE("coo_coalesce");
    stk_coo made = {.ndim = coo->ndim, .coalesced = true};
    struct groups groups;
    stk_status status;

    if (coo->coalesced)
        return retain_as(coo, out);
    memcpy(made.shape, coo->shape, sizeof made.shape);
    status = groups_begin(&groups, coo, err);
    if (status != STK_OK)
        return status;
    status = stki_indices_store(groups.compact, 2, (const int64_t[]){coo->ndim, groups.count}, coo->indices.dtype,
                                &made.indices, err);
    status = status != STK_OK ? status : sum_values(&groups, &coo->values, &made.values, err);
    groups_end(&groups);
    if (status != STK_OK) {
        stk_coo_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* ---- to dense ---- */

stk_status stki_sparse_scatter(const stk_tensor *values, int ndim, const int64_t *shape, const int64_t *offsets,
                               stk_tensor *out, stk_error *err)
{
    int64_t size = stk_dtype_size(values->dtype);
    stki_cast cast;
    stk_status status = stk_tensor_zeros(values->dtype, ndim, shape, NULL, out, err);

    if (status != STK_OK)
        return status;
    stki_cast_init(&cast, values->dtype, values->dtype, (values->flags & STK_TENSOR_SWAPPED) != 0);
    for (int64_t k = 0; k < values->shape[0]; k++)
        stki_cast_row(&cast, (char *)out->data + offsets[k] * size, size,
                      (const char *)values->data + k * values->strides[0], size, 1);
    return STK_OK;
}

/* Replaces the indices of the first axis with offsets in the row-major dense tensor, in elements. */
static stk_status flatten_indices(const stk_coo *coo, int64_t *indices, stk_error *err)
{
    int64_t elements = 1, count = stk_coo_entries(coo);

    for (int axis = 0; axis < coo->ndim; axis++) {
        if (!stki_mul(elements, coo->shape[axis], &elements))
            return stki_fail(err, STK_E_BAD_SHAPE, "the number of elements in shape %s does not fit in 63 bits",
                             STKI_SHAPE(coo->ndim, coo->shape));
        for (int64_t k = 0; axis > 0 && k < count; k++)
            indices[k] = indices[k] * coo->shape[axis] + indices[axis * count + k];
    }
    return STK_OK;
}

stk_status stk_coo_to_dense(const stk_coo *coo, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("coo_to_dense");
    static const int64_t origin = 0; /* a coalesced tensor without axes has at most one entry */
    stk_coo sorted;
    int64_t *indices = NULL;
    stk_status status = stk_coo_coalesce(coo, &sorted, err);

    if (status != STK_OK)
        return status;
    status = stki_coo_open(&sorted, &indices, err);
    status = status != STK_OK ? status : flatten_indices(&sorted, indices, err);
    status = status != STK_OK ? status
                              : stki_sparse_scatter(&sorted.values, sorted.ndim, sorted.shape,
                                                    sorted.ndim ? indices : &origin, out, err);
    stki_free(indices);
    stk_coo_release(&sorted);
    return status;
}
