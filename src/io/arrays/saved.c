/* saved.c: see saved.h. */
#include "saved.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "tensor_internal.h"
#include <string.h>

static stk_status add(stki_saved_list *list, const char *name, stk_error *err)
{
    stk_status status =
        stki_grow(&list->items, &list->room, list->count + 1, sizeof *list->items, "the tensors of a file", err);

    if (status != STK_OK)
        return status;
    list->items[list->count] = (stki_saved){.name = stki_strdup(name)};
    if (!list->items[list->count].name)
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, name);
    list->count++;
    return STK_OK;
}

stk_status stki_saved_begin(stki_saved_list *list, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS];
    stki_saved *saved;
    stk_status status = stki_row_major(dtype, row_ndim > 0 ? row_ndim : 0, row_shape, strides, &list->row_bytes, err);

    if (status == STK_OK)
        status = add(list, name, err);
    if (status != STK_OK)
        return status;
    saved = &list->items[list->count - 1];
    saved->dtype = dtype;
    saved->ndim = row_ndim + 1;
    if (row_ndim > 0)
        memcpy(saved->shape + 1, row_shape, sizeof *row_shape * (size_t)row_ndim);
    list->scalar = row_ndim < 0;
    list->rows = 0;
    return STK_OK;
}

int64_t stki_saved_append(stki_saved_list *list, int64_t count)
{
    list->rows += count;
    return count * list->row_bytes;
}

stki_saved *stki_saved_end(stki_saved_list *list)
{
    stki_saved *saved = &list->items[list->count - 1];

    if (!list->scalar)
        saved->shape[0] = list->rows;
    return saved;
}

void stki_saved_fini(stki_saved_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free(list->items[i].name);
    stki_free(list->items);
}
