/* tensor_model.h: a simple model of views, with which strided views are compared: for every index, in row-major order,
 * the element of the base that it refers to. */
#ifndef STKT_TENSOR_MODEL_H
#define STKT_TENSOR_MODEL_H

#include "test_random.h"
#include <stdbool.h>
#include <stoker/tensor.h>
#include <string.h>

enum { STKT_MODEL_MAX = 4096 };

typedef struct stkt_model {
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t element[STKT_MODEL_MAX]; /* position in the base, in elements */
} stkt_model;

static inline int64_t stkt_count(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    return count;
}

/* The index of the n-th element in row-major order. */
static inline void stkt_unravel(int ndim, const int64_t *shape, int64_t n, int64_t *index)
{
    for (int i = ndim - 1; i >= 0; i--) {
        index[i] = n % shape[i];
        n /= shape[i];
    }
}

static inline int64_t stkt_ravel(int ndim, const int64_t *shape, const int64_t *index)
{
    int64_t n = 0;
    for (int i = 0; i < ndim; i++)
        n = n * shape[i] + index[i];
    return n;
}

/* Address of the n-th element of a tensor in row-major order. */
static inline char *stkt_element(const stk_tensor *tensor, int64_t n)
{
    int64_t index[STK_MAX_DIMS], offset = 0;

    stkt_unravel(tensor->ndim, tensor->shape, n, index);
    for (int i = 0; i < tensor->ndim; i++)
        offset += index[i] * tensor->strides[i];
    return (char *)((uintptr_t)tensor->data + (uintptr_t)offset);
}

/* Returns whether the tensor and the model refer to the same elements of the base at `base`. */
static inline bool stkt_model_matches(const stkt_model *model, const stk_tensor *tensor, const void *base)
{
    if (tensor->ndim != model->ndim ||
        (model->ndim > 0 && memcmp(tensor->shape, model->shape, sizeof model->shape[0] * (size_t)model->ndim)))
        return false;
    for (int64_t n = 0; n < stkt_count(model->ndim, model->shape); n++)
        if (stkt_element(tensor, n) - (const char *)base != model->element[n] * stk_dtype_size(tensor->dtype))
            return false;
    return true;
}

static inline void stkt_model_init(stkt_model *model, int ndim, const int64_t *shape)
{
    model->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        model->shape[i] = shape[i];
    for (int64_t n = 0; n < stkt_count(ndim, shape); n++)
        model->element[n] = n;
}

/* Maps an index of the new shape to one of the old shape. */
typedef void (*stkt_mapping)(const int64_t *index, int64_t *old_index, const int64_t *args);

static inline void stkt_model_map(stkt_model *model, int ndim, const int64_t *shape, stkt_mapping mapping,
                                  const int64_t *args)
{
    static stkt_model old;
    int64_t index[STK_MAX_DIMS], old_index[STK_MAX_DIMS];

    old = *model;
    model->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        model->shape[i] = shape[i];
    for (int64_t n = 0; n < stkt_count(ndim, shape); n++) {
        stkt_unravel(ndim, shape, n, index);
        mapping(index, old_index, args);
        model->element[n] = old.element[stkt_ravel(old.ndim, old.shape, old_index)];
    }
}

#endif
