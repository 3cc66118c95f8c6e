/* kernel_check.h: shared code of the kernel tests: random numbers, dtypes and important values, memory with guard
 * bytes, and comparison of elements in which any NaN equals any other. */
#ifndef STKT_KERNEL_CHECK_H
#define STKT_KERNEL_CHECK_H

#include "cmocka_all.h"
#include "small_float.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/tensor.h>
#include <string.h>

/* ---- random ---- */

static uint64_t check_state = 1;

static inline uint64_t check_random(void)
{
    uint64_t z = check_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int64_t check_below(int64_t bound)
{
    return (int64_t)(check_random() % (uint64_t)bound);
}

static inline bool check_one_in(int64_t n)
{
    return check_below(n) == 0;
}

/* ---- values ---- */

static inline stk_dtype check_part(stk_dtype dtype)
{
    return dtype == STK_C64 ? STK_F32 : dtype == STK_C128 ? STK_F64 : dtype;
}

/* Fills a part of an element with random bits, a number near the limits of small types, or an ordinary number. */
static inline void check_fill_part(stk_dtype dtype, void *to)
{
    static const double marked[] = {
        0,     -0.0,       0.5,          1.5,           -0.5,    2.5,     127.5,  128,    255,   255.5, 256,  -128.5,
        -129,  32767.5,    65504,        65520,         65519.9, 6.1e-5,  5.9e-8, 2.9e-8, 448,   464,   465,  57344,
        61440, 2147483647, 2147483648.0, -2147483649.0, 9.3e18,  -9.3e18, 1.9e19, 3.4e38, 1e-45, 1e-40, 1e300};
    uint64_t bits = check_random();
    double x = marked[check_below((int64_t)(sizeof marked / sizeof *marked))] * (check_one_in(2) ? 1 : -1);
    int64_t way = check_below(8);

    if (way < 4)
        x = (double)check_below(200000) / 512.0 - 150.0;
    if (way == 7)
        x = check_one_in(2) ? (double)NAN : (double)INFINITY * (check_one_in(2) ? 1 : -1);
    if (way == 6 || (dtype != STK_F32 && dtype != STK_F64 && dtype != STK_F16 && dtype != STK_BF16)) {
        memcpy(to, &bits, (size_t)stk_dtype_size(dtype));
    } else if (dtype == STK_F64) {
        memcpy(to, &x, 8);
    } else if (dtype == STK_F32) {
        float f = (float)x;
        memcpy(to, &f, 4);
    } else {
        uint16_t half = dtype == STK_F16 ? stki_f16_encode((float)x) : stki_bf16_encode((float)x);
        memcpy(to, &half, 2);
    }
    if (dtype == STK_BOOL && check_one_in(2))
        *(uint8_t *)to &= 1;
}

static inline void check_reverse(uint8_t *bytes, int64_t size)
{
    for (int64_t i = 0; i < size / 2; i++) {
        uint8_t byte = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = byte;
    }
}

static inline void check_fill_element(stk_dtype dtype, bool swapped, uint8_t *to)
{
    const stk_dtype part = check_part(dtype);
    const int64_t size = stk_dtype_size(part);

    for (int64_t at = 0; at < stk_dtype_size(dtype); at += size) {
        check_fill_part(part, to + at);
        if (swapped)
            check_reverse(to + at, size);
    }
}

static inline bool check_is_nan(stk_dtype dtype, const uint8_t *at)
{
    uint16_t half;
    float f;
    double d;

    switch (dtype) {
    case STK_F16:
        memcpy(&half, at, 2);
        return isnan(stki_f16_decode(half));
    case STK_BF16:
        memcpy(&half, at, 2);
        return isnan(stki_bf16_decode(half));
    case STK_F8_E4M3FN:
        return isnan(stki_f8_e4m3fn_decode(*at));
    case STK_F8_E5M2:
        return isnan(stki_f8_e5m2_decode(*at));
    case STK_F32:
        memcpy(&f, at, 4);
        return isnan(f);
    case STK_F64:
        memcpy(&d, at, 8);
        return isnan(d);
    default:
        return false;
    }
}

/* Compares bits part by part; all NaNs are equal. */
static inline bool check_same(stk_dtype dtype, const uint8_t *a, const uint8_t *b)
{
    const stk_dtype part = check_part(dtype);
    const int64_t size = stk_dtype_size(part);

    for (int64_t at = 0; at < stk_dtype_size(dtype); at += size)
        if (memcmp(a + at, b + at, (size_t)size) != 0 && !(check_is_nan(part, a + at) && check_is_nan(part, b + at)))
            return false;
    return true;
}

/* ---- strided memory ---- */

enum { CHECK_GUARD = 64 };

/* A view of random geometry that owns its memory. */
struct check_view {
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
    uint8_t *block, *data; /* data: the element at index 0, 0, … */
    int64_t bytes;
};

/* Strides for `shape` with the axes in random order, with gaps, and sometimes reversed or (sources only) repeated. */
static inline void check_view_make(struct check_view *view, stk_dtype dtype, int ndim, const int64_t *shape,
                                   bool may_repeat, bool plain)
{
    int order[STK_MAX_DIMS];
    int64_t step = stk_dtype_size(dtype), low = 0, high = step;

    *view = (struct check_view){.dtype = dtype, .ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        view->shape[i] = shape[i];
        order[i] = ndim - 1 - i;
    }
    if (!plain)
        for (int i = ndim - 1; i > 0; i--) {
            int j = (int)check_below(i + 1), k = order[i];
            order[i] = order[j];
            order[j] = k;
        }
    for (int i = 0; i < ndim; i++) {
        int axis = order[i];
        if (!plain && check_one_in(5))
            step += check_one_in(2) ? stk_dtype_size(dtype) * check_below(3) : check_below(5);
        view->strides[axis] = !plain && may_repeat && check_one_in(8) ? 0 : step;
        if (!plain && check_one_in(5))
            view->strides[axis] = -view->strides[axis];
        if (view->strides[axis] != 0)
            step *= shape[axis] ? shape[axis] : 1;
        int64_t reach = view->strides[axis] * (shape[axis] - 1);
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    int64_t shift = plain && check_one_in(2) ? 0 : check_below(17);
    view->bytes = high - low + 2 * CHECK_GUARD + shift;
    view->block = aligned_alloc(64, (size_t)((view->bytes + 63) / 64 * 64));
    assert_non_null(view->block);
    memset(view->block, 0xa5, (size_t)view->bytes);
    view->data = view->block + CHECK_GUARD + shift - low;
}

static inline void check_view_free(struct check_view *view)
{
    free(view->block);
}

/* Advances to the next index; false after the last. */
static inline bool check_next(int ndim, const int64_t *shape, int64_t *index)
{
    for (int i = ndim - 1; i >= 0; i--) {
        if (++index[i] < shape[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static inline int64_t check_offset(const struct check_view *view, const int64_t *index)
{
    int64_t at = 0;

    for (int i = 0; i < view->ndim; i++)
        at += index[i] * view->strides[i];
    return at;
}

static inline int64_t check_numel(int ndim, const int64_t *shape)
{
    int64_t n = 1;

    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

static inline void check_view_fill(struct check_view *view, bool swapped)
{
    int64_t index[STK_MAX_DIMS] = {0};

    if (check_numel(view->ndim, view->shape) == 0)
        return;
    do
        check_fill_element(view->dtype, swapped, view->data + check_offset(view, index));
    while (check_next(view->ndim, view->shape, index));
}

/* The same geometry and bytes in other memory, at the same offset within 64 bytes. */
static inline void check_view_copy(struct check_view *to, const struct check_view *from)
{
    *to = *from;
    to->block = aligned_alloc(64, (size_t)((from->bytes + 63) / 64 * 64));
    assert_non_null(to->block);
    memcpy(to->block, from->block, (size_t)from->bytes);
    to->data = to->block + (from->data - from->block);
}

/* Compares all bytes, including those around the elements. Elements that are equal except for NaN payloads are copied
 * into `found` first. */
static inline void check_view_same(const struct check_view *expected, struct check_view *found, const char *what)
{
    int64_t index[STK_MAX_DIMS] = {0};

    if (check_numel(found->ndim, found->shape) > 0)
        do {
            const uint8_t *a = expected->data + check_offset(expected, index);
            uint8_t *b = found->data + check_offset(found, index);
            if (!check_same(found->dtype, a, b)) {
                char text[256] = "";
                for (int i = 0, used = 0; i < found->ndim && used < 200; i++)
                    used += snprintf(text + used, sizeof text - (size_t)used, " %lld/%lld", (long long)index[i],
                                     (long long)found->shape[i]);
                fail_msg("%s: element%s of %s: expected %02x%02x%02x%02x found %02x%02x%02x%02x", what, text,
                         stk_dtype_name(found->dtype), a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]);
            }
            memcpy(b, a, (size_t)stk_dtype_size(found->dtype));
        } while (check_next(found->ndim, found->shape, index));
    if (memcmp(expected->block, found->block, (size_t)found->bytes) != 0)
        fail_msg("%s: bytes beside the elements were written", what);
}

static inline stk_tensor check_tensor(const struct check_view *view)
{
    stk_tensor tensor = {.data = view->data, .dtype = view->dtype, .ndim = view->ndim};

    memcpy(tensor.shape, view->shape, sizeof view->shape);
    memcpy(tensor.strides, view->strides, sizeof view->strides);
    return tensor;
}

/* A shape with few axes, of lengths near the widths of vectors and tiles, with at most `most` elements. */
static inline int check_shape(int64_t most, int64_t *shape)
{
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65, 100, 127};
    int ndim = (int)check_below(6);
    int64_t n = 1;

    for (int i = 0; i < ndim; i++) {
        shape[i] = lengths[check_below((int64_t)(sizeof lengths / sizeof *lengths))];
        while (n * shape[i] > most)
            shape[i] = (shape[i] + 1) / 2;
        n *= shape[i];
    }
    return ndim;
}

#endif
