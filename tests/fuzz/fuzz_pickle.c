/* Fuzz target: arbitrary bytes as the pickle of a .pt file: the pickle machine, the walk through its objects, and the
 * geometry of each tensor. Memory must stay proportional to the pickle, and every accepted tensor must lie inside its
 * storage. */
#include "allocate.h"
#include "fuzz_file.h"
#include "pt_tensor.h"

static void check_tensor(const stki_pt_tensor *t)
{
    __int128 last = t->offset, elements = 1;
    int64_t size = stk_dtype_size(t->dtype);

    DEMAND(size > 0 && t->ndim >= 0 && t->ndim <= STK_MAX_DIMS);
    DEMAND(t->key_bytes >= 1 && t->key_bytes <= 20);
    for (int i = 0; i < t->key_bytes; i++)
        DEMAND(t->key[i] >= '0' && t->key[i] <= '9');
    for (int i = 0; i < t->ndim; i++) {
        DEMAND(t->shape[i] >= 0 && t->strides[i] >= 0 && t->strides[i] % size == 0);
        elements *= t->shape[i];
        last += (__int128)(t->shape[i] > 0 ? t->shape[i] - 1 : 0) * t->strides[i];
    }
    DEMAND(t->data_bytes == (int64_t)(elements * size));
    DEMAND(t->offset >= 0 && t->offset % size == 0);
    DEMAND(elements == 0 || last + size <= t->storage_bytes);
}

static void check_leaves(const stki_pt_pickle *pickle, size_t size)
{
    stki_pt_leaves leaves;
    stki_pt_tensor tensor;
    stk_error err;
    stk_status status = stki_pt_walk(pickle, (int64_t)size, FUZZ_PATH, &leaves, &err);

    if (status) {
        fuzz_check_failure(status, &err);
        return;
    }
    for (int64_t i = 0; i < leaves.count; i++) {
        const stki_pt_value *value = &pickle->values[leaves.leaves[i].value];

        DEMAND(leaves.leaves[i].value >= 0 && leaves.leaves[i].value < pickle->count);
        if (value->kind != STKI_PT_TENSOR)
            continue;
        status = stki_pt_tensor_of(pickle, value, FUZZ_PATH, &tensor, &err);
        if (status)
            fuzz_check_failure(status, &err);
        else
            check_tensor(&tensor);
    }
    stki_pt_leaves_free(&leaves);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_memory_stats before, after;
    stki_pt_pickle pickle;
    uint8_t *copy = malloc(size ? size : 1); /* of exactly this size */
    stk_error err;
    stk_status status;

    DEMAND(copy);
    if (size)
        memcpy(copy, data, size);
    stki_memory_reset_peak(STKI_MEM_HOST);
    stki_memory_read(STKI_MEM_HOST, &before);
    status = stki_pt_unpickle(copy, (int64_t)size, FUZZ_PATH, &pickle, &err);
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(after.peak_bytes - before.bytes <= 4096 + 256 * (int64_t)size);
    if (status) {
        fuzz_check_failure(status, &err);
    } else {
        check_leaves(&pickle, size);
        stki_pt_pickle_free(&pickle);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(after.bytes == before.bytes);
    free(copy);
    return 0;
}
