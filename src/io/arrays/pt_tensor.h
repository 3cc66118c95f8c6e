/* pt_tensor.h: extracts shapes, strides and offsets of tensors, and the leaves with their paths, from the values of a
 * pickle. */
#ifndef STKI_PT_TENSOR_H
#define STKI_PT_TENSOR_H

#include "pt_pickle.h"

typedef struct stki_pt_tensor {
    const char *key; /* the digits that name the storage's member; not NUL-terminated */
    int key_bytes;
    const char *location; /* "cpu", "cuda:0"; not NUL-terminated */
    int location_bytes;
    int64_t storage_bytes;
    int64_t offset,
        data_bytes; /* offset of the first element in the storage; bytes of all elements, counting repeated ones */
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS]; /* bytes */
} stki_pt_tensor;

/* `value` must be an STKI_PT_TENSOR. On success, every element is inside [0, storage_bytes). */
stk_status stki_pt_tensor_of(const stki_pt_pickle *pickle, const stki_pt_value *value, const char *label,
                             stki_pt_tensor *out, stk_error *err);

typedef struct stki_pt_leaf {
    char *path; /* keys and indices joined by '/'; "" if the root is a leaf */
    int32_t value;
} stki_pt_leaf;

typedef struct stki_pt_leaves {
    stki_pt_leaf *leaves;
    int64_t count, room;
} stki_pt_leaves;

/* Lists everything except tuples, lists and dicts, in the pickle's order. STK_E_LIMIT: values are nested more than 1000
 * deep, or containers are shared so often that the paths are out of proportion to the pickle's `length` bytes.
 * STK_E_UNSUPPORTED: a cycle, or a key that is not a plain value. */
stk_status stki_pt_walk(const stki_pt_pickle *pickle, int64_t length, const char *label, stki_pt_leaves *out,
                        stk_error *err);
void stki_pt_leaves_free(stki_pt_leaves *leaves);

#endif
