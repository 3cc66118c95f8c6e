/* Tests of views: random chains against a list of elements computed by index arithmetic, the strides that torch
 * defines, rejected arguments, and reference counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocate.h"
#include "tensor_internal.h"
#include "tensor_model.h"
#include <stdlib.h>

/* ---- the model of each view: args[0] is the number of axes of the old shape, args[1...] the arguments ---- */

static void copy_index(const int64_t *index, int64_t *old, int64_t ndim)
{
    for (int64_t i = 0; i < ndim; i++)
        old[i] = index[i];
}

static void map_slice(const int64_t *index, int64_t *old, const int64_t *args)
{
    copy_index(index, old, args[0]);
    old[args[1]] = args[2] + index[args[1]] * args[3];
}

static void map_select(const int64_t *index, int64_t *old, const int64_t *args)
{
    for (int64_t i = 0, from = 0; i < args[0]; i++)
        old[i] = i == args[1] ? args[2] : index[from++];
}

static void map_permute(const int64_t *index, int64_t *old, const int64_t *args)
{
    for (int64_t i = 0; i < args[0]; i++)
        old[args[1 + i]] = index[i];
}

static void map_unsqueeze(const int64_t *index, int64_t *old, const int64_t *args)
{
    for (int64_t i = 0, from = 0; i < args[0] + 1; i++)
        if (i != args[1])
            old[from++] = index[i];
}

static void map_expand(const int64_t *index, int64_t *old, const int64_t *args)
{
    copy_index(index, old, args[0]);
    old[args[1]] = 0;
}

static void map_reshape(const int64_t *index, int64_t *old, const int64_t *args)
{
    int64_t new_ndim = args[1];

    stkt_unravel((int)args[0], args + 2 + new_ndim, stkt_ravel((int)new_ndim, args + 2, index), old);
}

static void replace(stk_tensor *view, const stk_tensor *next)
{
    stk_tensor_release(view);
    *view = *next;
}

static void step_slice(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int dim = (int)stkt_random_in(random, 0, model->ndim - 1);
    int64_t size = model->shape[dim], start = stkt_random_in(random, 0, size),
            end = stkt_random_in(random, start, size);
    int64_t step = stkt_random_in(random, 1, 3), shape[STK_MAX_DIMS], count = 0;
    stk_tensor next;

    for (int64_t i = start; i < end; i += step)
        count++;
    assert_int_equal(stk_tensor_slice(view, dim - (start % 2 ? model->ndim : 0), start, end, step, &next, NULL),
                     STK_OK);
    copy_index(model->shape, shape, model->ndim);
    shape[dim] = count;
    stkt_model_map(model, model->ndim, shape, map_slice, (int64_t[]){model->ndim, dim, start, step});
    replace(view, &next);
}

static void step_narrow(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int dim = (int)stkt_random_in(random, 0, model->ndim - 1);
    int64_t size = model->shape[dim], start = stkt_random_in(random, 0, size);
    int64_t length = stkt_random_in(random, 0, size - start), shape[STK_MAX_DIMS];
    stk_tensor next;

    assert_int_equal(stk_tensor_narrow(view, dim, start, length, &next, NULL), STK_OK);
    copy_index(model->shape, shape, model->ndim);
    shape[dim] = length;
    stkt_model_map(model, model->ndim, shape, map_slice, (int64_t[]){model->ndim, dim, start, 1});
    replace(view, &next);
}

static void step_flip(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int dim = (int)stkt_random_in(random, 0, model->ndim - 1);
    stk_tensor next;

    assert_int_equal(stk_tensor_flip(view, dim, &next, NULL), STK_OK);
    stkt_model_map(model, model->ndim, model->shape, map_slice,
                   (int64_t[]){model->ndim, dim, model->shape[dim] - 1, -1});
    replace(view, &next);
}

static void step_select(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int dim = (int)stkt_random_in(random, 0, model->ndim - 1);
    int64_t size = model->shape[dim], at, shape[STK_MAX_DIMS];
    stk_tensor next;

    if (size == 0 || model->ndim < 3)
        return;
    at = stkt_random_in(random, 0, size - 1);
    assert_int_equal(stk_tensor_select(view, dim, at % 2 ? at - size : at, &next, NULL), STK_OK);
    for (int i = 0, to = 0; i < model->ndim; i++)
        if (i != dim)
            shape[to++] = model->shape[i];
    stkt_model_map(model, model->ndim - 1, shape, map_select, (int64_t[]){model->ndim, dim, at});
    replace(view, &next);
}

static void step_permute(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int64_t args[STK_MAX_DIMS + 1] = {model->ndim}, shape[STK_MAX_DIMS];
    int dims[STK_MAX_DIMS];
    stk_tensor next;

    for (int i = 0; i < model->ndim; i++) {
        int j = (int)stkt_random_in(random, 0, i);
        dims[i] = dims[j];
        dims[j] = i;
    }
    for (int i = 0; i < model->ndim; i++) {
        args[1 + i] = dims[i];
        shape[i] = model->shape[dims[i]];
        dims[i] -= i % 2 ? model->ndim : 0;
    }
    assert_int_equal(stk_tensor_permute(view, dims, &next, NULL), STK_OK);
    stkt_model_map(model, model->ndim, shape, map_permute, args);
    replace(view, &next);
}

static void step_unsqueeze(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int dim = (int)stkt_random_in(random, 0, model->ndim);
    int64_t shape[STK_MAX_DIMS];
    stk_tensor next;

    if (model->ndim == 7)
        return;
    assert_int_equal(stk_tensor_unsqueeze(view, dim, &next, NULL), STK_OK);
    for (int i = 0, from = 0; i <= model->ndim; i++)
        shape[i] = i == dim ? 1 : model->shape[from++];
    stkt_model_map(model, model->ndim + 1, shape, map_unsqueeze, (int64_t[]){model->ndim, dim});
    replace(view, &next);
}

static void step_expand(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int64_t shape[STK_MAX_DIMS], count = stkt_count(model->ndim, model->shape);
    stk_tensor next;

    copy_index(model->shape, shape, model->ndim);
    for (int i = 0; i < model->ndim; i++) {
        if (model->shape[i] != 1 || count > 500)
            continue;
        shape[i] = stkt_random_in(random, 0, 3);
        assert_int_equal(stk_tensor_expand(view, model->ndim, shape, &next, NULL), STK_OK);
        stkt_model_map(model, model->ndim, shape, map_expand, (int64_t[]){model->ndim, i});
        replace(view, &next);
        return;
    }
}

/* Splits an axis or joins two; `view` may fail to join them, `reshape` may not. */
static void step_reshape(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    int64_t args[2 + 2 * STK_MAX_DIMS] = {0}, *shape = args + 2, count = stkt_count(model->ndim, model->shape);
    int dim = (int)stkt_random_in(random, 0, model->ndim - 1), ndim = 0;
    bool split = stkt_random_in(random, 0, 1) && model->shape[dim] % 2 == 0 && model->ndim < 7;
    stk_tensor next;
    stk_status status;

    if (!split && dim + 1 >= model->ndim)
        return;
    for (int i = 0; i < model->ndim; i++) {
        if (split && i == dim) {
            shape[ndim++] = 2;
            shape[ndim++] = model->shape[i] / 2;
        } else if (!split && i == dim) {
            shape[ndim++] = model->shape[i] * model->shape[i + 1];
            i++;
        } else {
            shape[ndim++] = model->shape[i];
        }
    }
    args[0] = model->ndim;
    args[1] = ndim;
    copy_index(model->shape, shape + ndim, model->ndim);
    status = stk_tensor_view(view, ndim, shape, &next, NULL);
    if (status == STK_E_BAD_VIEW) {
        assert_false(split || count == 0);
        return;
    }
    assert_int_equal(status, STK_OK);
    {
        int64_t kept[STK_MAX_DIMS];
        copy_index(shape, kept, ndim);
        stkt_model_map(model, ndim, kept, map_reshape, args);
    }
    replace(view, &next);
}

static void random_view(uint64_t *random, stk_tensor *view, stkt_model *model)
{
    static void (*const steps[])(uint64_t *, stk_tensor *,
                                 stkt_model *) = {step_slice,     step_narrow, step_flip,    step_select,  step_permute,
                                                  step_unsqueeze, step_expand, step_reshape, step_permute, step_flip};

    steps[stkt_random_in(random, 0, sizeof steps / sizeof *steps - 1)](random, view, model);
}

/* A random chain of views of a base with numbered elements, and copies of its result. */
static void random_chain(uint64_t *random)
{
    static stkt_model model;
    int64_t shape[4], count;
    int ndim = (int)stkt_random_in(random, 1, 4), length = (int)stkt_random_in(random, 1, 8);
    stk_tensor base, view, clone, flat;
    uint16_t *numbers;

    for (int i = 0; i < ndim; i++)
        shape[i] = stkt_random_in(random, 0, 12) ? stkt_random_in(random, 1, 6) : 0;
    assert_int_equal(stk_tensor_empty(STK_U16, ndim, shape, NULL, &base, NULL), STK_OK);
    numbers = base.data;
    for (int64_t i = 0; i < stk_tensor_numel(&base); i++)
        numbers[i] = (uint16_t)(i * 7);
    stkt_model_init(&model, ndim, shape);
    view = base;
    stk_tensor_retain(&view);
    while (length--) {
        random_view(random, &view, &model);
        assert_true(stkt_model_matches(&model, &view, base.data));
    }
    assert_int_equal(stk_storage_refs(base.storage), 2);
    count = stkt_count(model.ndim, model.shape);
    assert_int_equal(stk_tensor_numel(&view), count);
    assert_int_equal(stk_tensor_clone(&view, &clone, NULL), STK_OK);
    assert_true(clone.storage != base.storage);
    assert_true(stk_tensor_is_contiguous(&clone));
    for (int64_t n = 0; n < count; n++)
        assert_int_equal(((uint16_t *)clone.data)[n], (uint16_t)(model.element[n] * 7));
    assert_int_equal(stk_tensor_reshape(&view, 1, (int64_t[]){count}, &flat, NULL), STK_OK);
    for (int64_t n = 0; n < count; n++)
        assert_int_equal(*(uint16_t *)(void *)stkt_element(&flat, n), (uint16_t)(model.element[n] * 7));
    stk_tensor_release(&flat);
    stk_tensor_release(&clone);
    stk_tensor_release(&view);
    assert_int_equal(stk_storage_refs(base.storage), 1);
    stk_tensor_release(&base);
}

static void random_chains(void **state)
{
    uint64_t random = 20;

    (void)state;
    for (int i = 0; i < 20000; i++)
        random_chain(&random);
}

/* ---- torch's strides of axes for which they do not matter ---- */

static void make(stk_dtype dtype, int ndim, const int64_t *shape, stk_tensor *out)
{
    assert_int_equal(stk_tensor_empty(dtype, ndim, shape, NULL, out, NULL), STK_OK);
}

static void assert_geometry(const stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *element_strides)
{
    assert_int_equal(tensor->ndim, ndim);
    for (int i = 0; i < ndim; i++) {
        assert_int_equal(tensor->shape[i], shape[i]);
        assert_int_equal(tensor->strides[i], element_strides[i] * stk_dtype_size(tensor->dtype));
    }
}

#define GEOMETRY(tensor, ndim, ...) assert_geometry(tensor, ndim, __VA_ARGS__)
#define LIST(...) ((const int64_t[]){__VA_ARGS__})

static void strides_that_do_not_matter(void **state)
{
    stk_tensor a, b, scalar;

    (void)state;
    make(STK_F32, 3, LIST(2, 0, 3), &a);
    GEOMETRY(&a, 3, LIST(2, 0, 3), LIST(3, 3, 1));
    assert_int_equal(stk_tensor_unsqueeze(&a, -1, &b, NULL), STK_OK);
    GEOMETRY(&b, 4, LIST(2, 0, 3, 1), LIST(3, 3, 1, 1));
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_unsqueeze(&a, 1, &b, NULL), STK_OK);
    GEOMETRY(&b, 4, LIST(2, 1, 0, 3), LIST(3, 0, 3, 1));
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_slice(&a, 2, 2, 2, 5, &b, NULL), STK_OK);
    GEOMETRY(&b, 3, LIST(2, 0, 0), LIST(3, 3, 5));
    assert_int_equal((char *)b.data - (char *)a.data, 8);
    stk_tensor_release(&b);
    stk_tensor_release(&a);
    make(STK_F64, 2, LIST(1, 3), &a);
    assert_int_equal(stk_tensor_expand(&a, 4, LIST(1, 2, 4, -1), &b, NULL), STK_OK);
    GEOMETRY(&b, 4, LIST(1, 2, 4, 3), LIST(0, 0, 0, 1));
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_expand(&a, 3, LIST(1, 1, 3), &b, NULL), STK_OK);
    GEOMETRY(&b, 3, LIST(1, 1, 3), LIST(3, 3, 1));
    stk_tensor_release(&b);
    stk_tensor_release(&a);
    make(STK_I16, 0, NULL, &scalar);
    assert_int_equal(stk_tensor_expand(&scalar, 2, LIST(1, 3), &b, NULL), STK_OK);
    GEOMETRY(&b, 2, LIST(1, 3), LIST(0, 0));
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_view(&scalar, 2, LIST(1, 1), &b, NULL), STK_OK);
    GEOMETRY(&b, 2, LIST(1, 1), LIST(1, 1));
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_flatten(&scalar, 0, -1, &b, NULL), STK_OK);
    GEOMETRY(&b, 1, LIST(1), LIST(1));
    stk_tensor_release(&b);
    stk_tensor_release(&scalar);
}

/* Rows S01 and S03: odd strides on axes of length 1. */
static void size_one_axes_do_not_count(void **state)
{
    stk_tensor image, permuted, first, again, copy, flipped;

    (void)state;
    make(STK_F32, 4, LIST(1, 32, 32, 3), &image);
    assert_int_equal(stk_tensor_permute(&image, (int[]){0, 3, 1, 2}, &permuted, NULL), STK_OK);
    assert_true(stk_tensor_is_channels_last(&permuted));
    assert_false(stk_tensor_is_contiguous(&permuted));
    assert_int_equal(stk_tensor_select(&permuted, 0, 0, &first, NULL), STK_OK);
    assert_int_equal(stk_tensor_unsqueeze(&first, 0, &again, NULL), STK_OK);
    GEOMETRY(&again, 4, LIST(1, 3, 32, 32), LIST(3, 1, 96, 3)); /* the stride of the new axis is arbitrary */
    assert_true(stk_tensor_is_channels_last(&again));
    assert_int_equal(stk_tensor_contiguous(&again, &copy, NULL), STK_OK);
    GEOMETRY(&copy, 4, LIST(1, 3, 32, 32), LIST(3072, 1024, 32, 1));
    stk_tensor_release(&copy);
    stk_tensor_release(&again);
    stk_tensor_release(&first);
    stk_tensor_release(&permuted);
    stk_tensor_release(&image);
    make(STK_U8, 3, LIST(1, 10, 20), &image);
    assert_int_equal(stk_tensor_flip(&image, 0, &flipped, NULL), STK_OK);
    assert_true(flipped.strides[0] < 0);
    assert_true(stk_tensor_is_contiguous(&flipped));
    stk_tensor_release(&flipped);
    stk_tensor_release(&image);
    make(STK_U8, 4, LIST(2, 3, 1, 1), &image); /* both layouts at once */
    assert_true(stk_tensor_is_contiguous(&image) && stk_tensor_is_channels_last(&image));
    stk_tensor_release(&image);
}

static void huge_numbers_do_not_overflow(void **state)
{
    stk_tensor a, b, c;

    (void)state;
    make(STK_F64, 2, LIST(3, 4), &a);
    assert_int_equal(stk_tensor_slice(&a, 0, INT64_MIN, INT64_MAX, INT64_MAX, &b, NULL), STK_OK);
    assert_int_equal(b.shape[0], 1);
    assert_int_equal(stk_tensor_slice(&b, 0, 0, 1, INT64_MAX, &c, NULL), STK_OK);
    assert_int_equal(c.shape[0], 1);
    assert_ptr_equal(c.data, a.data);
    stk_tensor_release(&c);
    stk_tensor_release(&b);
    assert_int_equal(stk_tensor_slice(&a, 1, -3, INT64_MAX, 1, &b, NULL), STK_OK);
    assert_int_equal(b.shape[1], 3);
    stk_tensor_release(&b);
    stk_tensor_release(&a);
}

static void refusals(void **state)
{
    stk_tensor a, t, scalar, out = {.ndim = 77};
    stk_error err;

    (void)state;
    make(STK_I32, 2, LIST(3, 4), &a);
    make(STK_I32, 0, NULL, &scalar);
    assert_int_equal(stk_tensor_transpose(&a, 0, 1, &t, NULL), STK_OK);
#define REFUSED(kind, call) assert_int_equal(call, kind)
    REFUSED(STK_E_BAD_DIM, stk_tensor_slice(&a, 2, 0, 1, 1, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_slice(&scalar, 0, 0, 1, 1, &out, &err));
    REFUSED(STK_E_BAD_STEP, stk_tensor_slice(&a, 0, 0, 1, 0, &out, &err));
    REFUSED(STK_E_BAD_STEP, stk_tensor_slice(&a, 0, 0, 1, -1, &out, &err));
    REFUSED(STK_E_BAD_INDEX, stk_tensor_select(&a, 0, 3, &out, &err));
    REFUSED(STK_E_BAD_INDEX, stk_tensor_select(&a, 0, -4, &out, &err));
    REFUSED(STK_E_BAD_INDEX, stk_tensor_narrow(&a, 1, 2, 3, &out, &err));
    REFUSED(STK_E_BAD_INDEX, stk_tensor_narrow(&a, 1, 2, INT64_MAX, &out, &err));
    REFUSED(STK_E_BAD_INDEX, stk_tensor_narrow(&a, 1, 5, 0, &out, &err));
    REFUSED(STK_E_BAD_ARG, stk_tensor_narrow(&a, 1, 0, -1, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_permute(&a, (int[]){0, 0}, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_permute(&a, (int[]){0, 2}, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_transpose(&a, 0, -3, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_unsqueeze(&a, 3, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_squeeze(&a, 2, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_flip(&scalar, 0, &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_flatten(&a, 1, 0, &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 1, LIST(13), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 2, LIST(-1, -1), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 2, LIST(-1, 5), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 2, LIST(-1, 0), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 2, LIST(-2, -6), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_view(&a, 3, LIST(INT64_MAX, INT64_MAX, 12), &out, &err));
    REFUSED(STK_E_BAD_VIEW, stk_tensor_view(&t, 1, LIST(12), &out, &err));
    assert_string_equal(err.message,
                        "view: shape [4, 3] with byte strides [4, 16] cannot be viewed as [12] without a copy");
    REFUSED(STK_E_UNSUPPORTED, stk_tensor_view(&a, 33, LIST(0), &out, &err));
    REFUSED(STK_E_BAD_BROADCAST, stk_tensor_expand(&a, 2, LIST(3, 5), &out, &err));
    REFUSED(STK_E_BAD_BROADCAST, stk_tensor_expand(&a, 1, LIST(4), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_expand(&a, 3, LIST(-1, 3, 4), &out, &err));
    REFUSED(STK_E_BAD_SHAPE, stk_tensor_expand(&scalar, 2, LIST(INT64_MAX, 2), &out, &err));
    REFUSED(STK_E_BAD_DIM, stk_tensor_squeeze(&scalar, 1, &out, &err));
    assert_int_equal(out.ndim, 77); /* unchanged */
    stk_tensor_release(&a);
    assert_int_equal(stk_storage_refs(t.storage), 1); /* no failed call kept a reference */
    stk_tensor_release(&t);
    stk_tensor_release(&scalar);
}

static void at_most_32_axes(void **state)
{
    int64_t shape[STK_MAX_DIMS + 1];
    stk_tensor a, out;

    (void)state;
    for (int i = 0; i <= STK_MAX_DIMS; i++)
        shape[i] = 1;
    assert_int_equal(stk_tensor_empty(STK_U8, STK_MAX_DIMS + 1, shape, NULL, &a, NULL), STK_E_UNSUPPORTED);
    make(STK_U8, STK_MAX_DIMS, shape, &a);
    assert_int_equal(stk_tensor_unsqueeze(&a, 0, &out, NULL), STK_E_UNSUPPORTED);
    assert_int_equal(stk_tensor_expand(&a, STK_MAX_DIMS + 1, shape, &out, NULL), STK_E_UNSUPPORTED);
    assert_int_equal(stk_tensor_squeeze_all(&a, &out, NULL), STK_OK);
    assert_int_equal(out.ndim, 0);
    stk_tensor_release(&out);
    stk_tensor_release(&a);
}

static void views_keep_flags_and_storage(void **state)
{
    stk_tensor a, b;

    (void)state;
    make(STK_U8, 1, LIST(4), &a);
    a.flags |= STK_TENSOR_READONLY;
    assert_int_equal(stk_tensor_slice(&a, 0, 1, 3, 1, &b, NULL), STK_OK);
    assert_true(b.flags & STK_TENSOR_READONLY);
    stk_tensor_release(&a);
    stk_tensor_release(&a); /* releasing twice does nothing */
    assert_int_equal(stk_storage_refs(b.storage), 1);
    stk_tensor_release(&b);
    stk_tensor_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_chains),
        cmocka_unit_test(strides_that_do_not_matter),
        cmocka_unit_test(size_one_axes_do_not_count),
        cmocka_unit_test(huge_numbers_do_not_overflow),
        cmocka_unit_test(refusals),
        cmocka_unit_test(at_most_32_axes),
        cmocka_unit_test(views_keep_flags_and_storage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
