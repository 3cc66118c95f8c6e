/* ops_test.h: shared code of the tests of operations: random strided tensors with random elements, and single elements
 * as numbers. */
#ifndef STKT_OPS_TEST_H
#define STKT_OPS_TEST_H

#include "cast.h"
#include "dtype.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include "tensor_model.h"
#include <math.h>
#include <stoker/stoker.h>

static const stk_dtype stkt_dtypes[] = {STK_BOOL, STK_U8,  STK_I8,  STK_U16,  STK_I16, STK_U32, STK_I32,
                                        STK_U64,  STK_I64, STK_F16, STK_BF16, STK_F32, STK_F64};
enum { STKT_DTYPES = sizeof stkt_dtypes / sizeof stkt_dtypes[0] };

/* Casts one element to another dtype. */
static inline void stkt_cast(stk_dtype to, void *dst, stk_dtype from, const void *src)
{
    stki_cast cast;

    stki_cast_init(&cast, to, from, false);
    stki_cast_row(&cast, dst, 16, src, 16, 1);
}

static inline double stkt_as_double(stk_dtype dtype, const void *src)
{
    double x;

    stkt_cast(STK_F64, &x, dtype, src);
    return x;
}

/* Mostly small numbers, so that ties and equal values are common; sometimes limits, NaN and infinities. */
static inline void stkt_random_element(uint64_t *random, stk_dtype dtype, void *out)
{
    static const double special[] = {0, -0.0, 1, -1, NAN, INFINITY, -INFINITY, 0.1, 65504, 1e-40, 3.4e38, 0.5, -2.5};
    double x = (double)stkt_random_in(random, -40, 40) / (stkt_random_in(random, 0, 1) ? 1 : 4);
    uint64_t bits = stkt_random(random);
    bool real = stki_dtype_category(dtype) == STKI_CATEGORY_REAL;

    if (dtype != STK_BOOL && !real && bits % 4 == 0) {
        memcpy(out, &bits, (size_t)stk_dtype_size(dtype));
        return;
    }
    if (real && bits % 8 == 0)
        x = special[bits / 8 % (sizeof special / sizeof special[0])];
    if (!real && stki_dtype_signed(dtype) == false)
        x = fabs(x);
    stkt_cast(dtype, out, STK_F64, &x);
}

static inline void stkt_fill_random(uint64_t *random, const stk_tensor *base)
{
    int64_t size = stk_dtype_size(base->dtype);
    char element[16];

    for (int64_t i = 0; i < stk_tensor_numel(base); i++) {
        stkt_random_element(random, base->dtype, element);
        memcpy((char *)base->data + i * size, element, (size_t)size);
    }
}

/* Replaces `*view` by `next`, a view of it. */
static inline void stkt_replace(stk_tensor *view, stk_tensor next)
{
    stk_tensor_release(view);
    *view = next;
}

/* A view of exactly this shape, with permuted, stepped, reversed and shifted axes, inside a larger new tensor whose
 * bytes have no particular alignment. */
static inline void stkt_strided_view(uint64_t *random, stk_dtype dtype, int ndim, const int64_t *shape,
                                     stk_tensor *base, stk_tensor *out)
{
    int64_t larger[STK_MAX_DIMS], steps[STK_MAX_DIMS];
    int to_base[STK_MAX_DIMS];
    stk_tensor view, next;
    stk_error err;

    for (int i = 0; i < ndim; i++) {
        int j = stkt_random_in(random, 0, 1) ? i : (int)stkt_random_in(random, 0, i);
        to_base[i] = j == i ? i : to_base[j];
        to_base[j] = i;
    }
    for (int i = 0; i < ndim; i++) {
        steps[i] = stkt_random_in(random, 0, 4) ? 1 : 2;
        larger[to_base[i]] = shape[i] * steps[i] + stkt_random_in(random, 0, 3) / 3;
    }
    assert_ok(stk_tensor_empty(dtype, ndim, larger, NULL, base, &err));
    assert_ok(stk_tensor_permute(base, to_base, &view, &err));
    for (int i = 0; i < ndim; i++) {
        assert_ok(stk_tensor_slice(&view, i, 0, shape[i] * steps[i], steps[i], &next, &err));
        stkt_replace(&view, next);
        if (stkt_random_in(random, 0, 5) == 0) {
            assert_ok(stk_tensor_flip(&view, i, &next, &err));
            stkt_replace(&view, next);
        }
    }
    *out = view;
}

/* Up to four axes; the last two often have sizes around the widths of vectors and tiles, and rarely 0. */
static inline int stkt_random_shape(uint64_t *random, int64_t *shape)
{
    static const int64_t long_sizes[] = {15, 16, 17, 31, 32, 33, 63, 64, 65, 100};
    int ndim = (int)stkt_random_in(random, 0, 4);
    int64_t count = 1;

    for (int i = ndim - 1; i >= 0; i--) {
        bool is_long = count < 1000 && stkt_random_in(random, 0, 2) == 0;
        shape[i] = is_long ? long_sizes[stkt_random_in(random, 0, 9)] : stkt_random_in(random, 1, 5);
        if (stkt_random_in(random, 0, 60) == 0)
            shape[i] = 0;
        count *= shape[i];
    }
    return ndim;
}

/* Returns whether two elements have equal bits or are both NaN. */
static inline bool stkt_same(stk_dtype dtype, const void *a, const void *b)
{
    if (!memcmp(a, b, (size_t)stk_dtype_size(dtype)))
        return true;
    return stki_dtype_category(dtype) == STKI_CATEGORY_REAL && isnan(stkt_as_double(dtype, a)) &&
           isnan(stkt_as_double(dtype, b));
}

#endif
