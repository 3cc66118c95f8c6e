/* Operations by the twins of a GPU's kernels, or by the kernels of the device that STOKER_TEST_DEVICE names, are
 * compared with the same operations on the CPU: copies and casts, fills, element-wise operations with broadcasting
 * and scalars, sums, quantizing; with random dtypes, shapes and strides, and guard bytes around and between all
 * elements. */
#include "device_memory.h"
#include "kernel_check.h"
#include "kernel_nest.h"
#include "kernel_ops.h"
#include "kernel_plan.h"
#include "kernel_twin.h"
#include "kernels_general.h"
#include <stoker/ops.h>
#include <stoker/quant.h>

/* ---- a device that counts its kernels ---- */

static stk_device *there_device;
static bool counted;
static int64_t met[STKI_KERNELS];

static stk_status run_twin(stk_device *self, const stki_launch *launch, stk_stream *stream, stk_error *err)
{
    (void)self, (void)stream, (void)err;
    met[launch->kernel]++;
    stki_kernel_twin_run(launch);
    return STK_OK;
}

STKI_KERNEL_ENTRIES(run_twin)

/* A device with the host device's memory and kernels that run immediately; or the tested device. */
static int make_device(void **state)
{
    const char *name = getenv("STOKER_TEST_DEVICE");
    static stki_device_ops ops;
    static stk_device counting;
    static const stki_device_ops kernels = {STKI_KERNEL_OPS};
    stk_device *host;

    (void)state;
    if (stk_device_find(name ? name : "host", &host, NULL) != STK_OK)
        return -1;
    there_device = host;
    counted = !name;
    if (name)
        return 0;
    ops = *host->ops;
    ops.convert = kernels.convert;
    ops.copy_strided = kernels.copy_strided;
    ops.elementwise = kernels.elementwise;
    ops.sum = kernels.sum;
    ops.quantize = kernels.quantize;
    counting = *host;
    counting.ops = &ops;
    counting.name = "counting";
    there_device = &counting;
    return 0;
}

/* Views and their bytes on the device. */
static struct mirror {
    struct check_view *view;
    void *block;
} mirrors[8];
static int mirror_count;

static void move(const struct mirror *mirror, bool there)
{
    void *here = mirror->view->block;

    assert_int_equal(there_device->ops->copy(there_device, there ? mirror->block : here, there,
                                             there ? here : mirror->block, !there, mirror->view->bytes, NULL, NULL),
                     STK_OK);
}

/* A tensor for the view over a copy of its bytes on the device, valid until the next fetch. */
static stk_tensor on_device(struct check_view *view)
{
    struct mirror *mirror = &mirrors[mirror_count++];
    stk_tensor tensor = check_tensor(view);

    assert_true(mirror_count <= 8);
    mirror->view = view;
    assert_int_equal(stki_device_alloc(there_device, STK_MEMORY_DEVICE, view->bytes, &mirror->block, NULL), STK_OK);
    move(mirror, true);
    tensor.device = there_device;
    tensor.data = (char *)mirror->block + (view->data - view->block);
    return tensor;
}

/* Copies the bytes of all views back, and frees those on the device. */
static void fetch(void)
{
    for (int i = 0; i < mirror_count; i++) {
        move(&mirrors[i], false);
        stki_device_free(there_device, STK_MEMORY_DEVICE, mirrors[i].block, mirrors[i].view->bytes);
    }
    mirror_count = 0;
}

static stk_dtype any_dtype(void)
{
    return (stk_dtype)(1 + check_below(STK_DTYPE_END - 1));
}

static stk_dtype computable(void)
{
    return (stk_dtype)(1 + check_below(STK_F64));
}

/* A view that may have axes of length 1, or fewer axes, than the shape to which it broadcasts. */
static void make_operand(struct check_view *view, stk_dtype dtype, int ndim, const int64_t *shape, bool plain)
{
    int64_t own[STK_MAX_DIMS];
    int skip = plain || !check_one_in(3) || ndim == 0 ? 0 : (int)check_below(ndim + 1);

    for (int i = skip; i < ndim; i++)
        own[i - skip] = plain || !check_one_in(5) ? shape[i] : 1;
    check_view_make(view, dtype, ndim - skip, own, true, plain);
    check_view_fill(view, false);
}

/* Integers below 100, whose sums are exact in the dtypes used for sums, or numbers of similar size. */
static void fill_tame(struct check_view *view, bool whole)
{
    int64_t index[STK_MAX_DIMS] = {0};
    stk_tensor tensor = check_tensor(view);

    if (stk_tensor_numel(&tensor) == 0)
        return;
    do {
        int64_t x = check_below(view->dtype == STK_BOOL ? 2 : 100);
        stk_scalar value = whole ? stk_int(x) : stk_real((double)check_below(200000) / 512.0 - 150.0);
        assert_int_equal(stk_tensor_set(&tensor, view->ndim, index, value, NULL), STK_OK);
    } while (check_next(view->ndim, view->shape, index));
}

/* ---- copies ---- */

static void test_copies(void **state)
{
    (void)state;
    check_state = 21;
    for (int i = 0; i < 3000; i++) {
        int64_t shape[STK_MAX_DIMS];
        int ndim = check_shape(4000, shape);
        stk_dtype from = any_dtype(), to = check_one_in(3) ? from : any_dtype();
        bool plain = check_one_in(4), swapped = check_one_in(6);
        struct check_view src, expected, found;
        char what[96];
        make_operand(&src, from, ndim, shape, plain);
        if (from == STK_BOOL && to == STK_BOOL) /* bools are copied as bytes between memories */
            fill_tame(&src, true);
        check_view_make(&expected, to, ndim, shape, false, plain);
        check_view_copy(&found, &expected);
        stk_tensor here = check_tensor(&expected), there = on_device(&found), in = check_tensor(&src),
                   din = on_device(&src);
        in.flags |= swapped ? STK_TENSOR_SWAPPED : 0;
        din.flags = in.flags;
        stkt_kernels_general(check_one_in(3));
        assert_int_equal(stk_tensor_copy(&here, &in, NULL), STK_OK);
        assert_int_equal(stk_tensor_copy(&there, &din, NULL), STK_OK);
        stkt_kernels_general(false);
        fetch();
        snprintf(what, sizeof what, "copy %d: %s to %s", i, stk_dtype_name(from), stk_dtype_name(to));
        check_view_same(&expected, &found, what);
        check_view_free(&src);
        check_view_free(&expected);
        check_view_free(&found);
    }
}

static void test_fills(void **state)
{
    (void)state;
    check_state = 22;
    for (int i = 0; i < 600; i++) {
        int64_t shape[STK_MAX_DIMS];
        int ndim = check_shape(2000, shape);
        struct check_view expected, found;
        check_view_make(&expected, any_dtype(), ndim, shape, false, check_one_in(3));
        check_view_copy(&found, &expected);
        stk_tensor here = check_tensor(&expected), there = on_device(&found);
        assert_int_equal(stk_tensor_fill(&here, stk_int(1), NULL), STK_OK);
        assert_int_equal(stk_tensor_fill(&there, stk_int(1), NULL), STK_OK);
        fetch();
        check_view_same(&expected, &found, "fill");
        check_view_free(&expected);
        check_view_free(&found);
    }
}

/* ---- element-wise ---- */

static stk_scalar any_scalar(void)
{
    static const double reals[] = {0.5, -3, 1e10, 0, -0.0, 255, 7};

    switch (check_below(4)) {
    case 0:
        return stk_bool(check_one_in(2));
    case 1:
        return stk_int((int64_t)check_below(600) - 300);
    default:
        return stk_real(check_one_in(10) ? (double)NAN : reals[check_below(7)]);
    }
}

/* The same tensor here and on the device; one without axes may stay on the CPU. */
struct pair {
    stk_tensor here, there;
};

static struct pair both_of(struct check_view *view)
{
    struct pair pair = {.here = check_tensor(view)};

    pair.there = view->ndim == 0 && check_one_in(2) ? pair.here : on_device(view);
    return pair;
}

static void check_binary(int round)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = check_shape(3000, shape);
    bool plain = check_one_in(3), same = check_one_in(3);
    stk_binary_op op = (stk_binary_op)check_below(STK_BINARY_OPS);
    stk_dtype first = same ? (check_one_in(2) ? STK_F32 : check_one_in(2) ? STK_F16 : STK_BF16) : computable();
    struct check_view a, b, expected, found;
    char what[128];

    make_operand(&a, first, ndim, shape, plain);
    make_operand(&b, same ? first : computable(), ndim, shape, plain);
    check_view_make(&expected, same ? first : computable(), ndim, shape, false, plain);
    check_view_copy(&found, &expected);
    struct pair p = both_of(&a), q = both_of(&b);
    const bool number = check_one_in(4), left = check_one_in(2);
    stk_scalar scalar = any_scalar();
    stk_operand here[2] = {stk_operand_tensor(&p.here), stk_operand_tensor(&q.here)},
                there[2] = {stk_operand_tensor(&p.there), stk_operand_tensor(&q.there)};
    if (number)
        here[left ? 0 : 1] = there[left ? 0 : 1] = stk_operand_scalar(scalar);
    stk_tensor out = check_tensor(&expected), device_out = on_device(&found);
    stk_status status = stk_tensor_binary_into(op, here[0], here[1], &out, NULL);
    stkt_kernels_general(check_one_in(4));
    stk_status found_status = stk_tensor_binary_into(op, there[0], there[1], &device_out, NULL);
    stkt_kernels_general(false);
    fetch();
    snprintf(what, sizeof what, "binary %d: op %d, %s, %s to %s", round, (int)op, stk_dtype_name(a.dtype),
             stk_dtype_name(b.dtype), stk_dtype_name(expected.dtype));
    /* with both operands on the CPU, the result would also be there */
    if (found_status != STK_E_BAD_DEVICE)
        assert_int_equal(found_status, status);
    if (found_status == STK_OK)
        check_view_same(&expected, &found, what);
    check_view_free(&a);
    check_view_free(&b);
    check_view_free(&expected);
    check_view_free(&found);
}

static void test_binary(void **state)
{
    (void)state;
    check_state = 23;
    for (int i = 0; i < 6000; i++)
        check_binary(i);
}

static void test_clamp_and_in_place(void **state)
{
    (void)state;
    check_state = 24;
    for (int i = 0; i < 1500; i++) {
        int64_t shape[STK_MAX_DIMS];
        int ndim = check_shape(2000, shape);
        struct check_view expected, found;
        stk_scalar low = any_scalar(), high = any_scalar();
        const stk_scalar *lower = check_one_in(4) ? NULL : &low, *upper = check_one_in(4) ? NULL : &high;
        check_view_make(&expected, computable(), ndim, shape, false, check_one_in(2));
        check_view_fill(&expected, false);
        check_view_copy(&found, &expected);
        stk_tensor here = check_tensor(&expected), there = on_device(&found);
        stk_status status = stk_tensor_clamp_into(&here, lower, upper, &here, NULL);
        assert_int_equal(stk_tensor_clamp_into(&there, lower, upper, &there, NULL), status);
        status = stk_tensor_mul_into(&here, &here, &here, NULL);
        assert_int_equal(stk_tensor_mul_into(&there, &there, &there, NULL), status);
        fetch();
        check_view_same(&expected, &found, "clamp, and mul in place");
        check_view_free(&expected);
        check_view_free(&found);
    }
}

/* ---- quantizing ---- */

static stk_quant *any_quant(stk_qdtype qdtype, int ndim, const int64_t *shape)
{
    double scales[256];
    int64_t zeros[256];
    int axis = ndim > 0 && check_one_in(2) ? (int)check_below(ndim) : STK_QUANT_PER_TENSOR;
    int64_t count = axis < 0 ? 1 : shape[axis];
    stk_quant *quant = NULL;

    for (int64_t i = 0; i < count; i++) {
        scales[i] = check_one_in(3) ? 0.1 * (double)(1 + check_below(30)) : 1.0 / (double)(1 + check_below(5000));
        zeros[i] = qdtype == STK_QUINT8  ? check_below(256)
                   : qdtype == STK_QINT8 ? check_below(256) - 128
                                         : (int64_t)(int32_t)check_random();
    }
    assert_int_equal(stk_quant_create(qdtype, axis, count, scales, zeros, &quant, NULL), STK_OK);
    return quant;
}

static void test_quantizing(void **state)
{
    (void)state;
    check_state = 25;
    for (int i = 0; i < 1500; i++) {
        int64_t shape[STK_MAX_DIMS];
        int ndim = check_shape(3000, shape);
        bool plain = check_one_in(3), back = check_one_in(2);
        stk_qdtype qdtype = (stk_qdtype)(1 + check_below(3));
        stk_quant *quant = any_quant(qdtype, ndim, shape);
        stk_dtype whole = stk_qdtype_integers(qdtype);
        struct check_view src, expected, found;
        check_view_make(&src, back ? whole : STK_F32, ndim, shape, true, plain);
        check_view_fill(&src, false);
        check_view_make(&expected, back ? STK_F32 : whole, ndim, shape, false, plain);
        check_view_copy(&found, &expected);
        stk_tensor in = check_tensor(&src), din = on_device(&src), here = check_tensor(&expected),
                   there = on_device(&found);
        if (back) {
            assert_int_equal(stk_dequantize_into(&in, quant, &here, NULL), STK_OK);
            assert_int_equal(stk_dequantize_into(&din, quant, &there, NULL), STK_OK);
        } else {
            assert_int_equal(stk_quantize_into(&in, quant, &here, NULL), STK_OK);
            assert_int_equal(stk_quantize_into(&din, quant, &there, NULL), STK_OK);
        }
        fetch();
        check_view_same(&expected, &found, back ? "dequantize" : "quantize");
        check_view_free(&src);
        check_view_free(&expected);
        check_view_free(&found);
        stk_quant_release(quant);
    }
}

/* ---- sums ---- */

static double value_of(const stk_tensor *tensor, const int64_t *index)
{
    stk_scalar scalar;

    assert_int_equal(stk_tensor_get(tensor, tensor->ndim, index, &scalar, NULL), STK_OK);
    return scalar.kind == STK_SCALAR_REAL   ? scalar.as.f
           : scalar.kind == STK_SCALAR_BOOL ? (double)scalar.as.b
           : scalar.kind == STK_SCALAR_INT  ? (double)scalar.as.i
                                            : (double)scalar.as.u;
}

/* The unit in the last place of a result of that dtype. */
static double last_place(stk_dtype dtype, double x)
{
    int digits = dtype == STK_F64 ? 52 : dtype == STK_F32 ? 23 : dtype == STK_F16 ? 10 : 7;

    return ldexp(1, (x == 0 ? -20 : ilogb(x)) - digits);
}

/* Floats may differ in the last place, because the order of additions affects it; everything else must be equal. */
static void compare_sums(const stk_tensor *expected, const stk_tensor *found, bool exact, const char *what)
{
    int64_t index[STK_MAX_DIMS] = {0};

    assert_int_equal(expected->dtype, found->dtype);
    assert_int_equal(expected->ndim, found->ndim);
    do {
        double a = value_of(expected, index), b = value_of(found, index);
        double room = exact ? 0 : last_place(expected->dtype, a);
        if (!(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= room))
            fail_msg("%s: expected %.17g, found %.17g", what, a, b);
    } while (check_next(expected->ndim, expected->shape, index));
}

/* `exact`: the elements are small integers, whose sums are exact. `large`: only integer sums, which wrap, are compared,
 * because float sums of large elements that cancel may have no correct digit. */
static void check_sum(struct check_view *view, bool exact, bool large)
{
    stk_tensor in = check_tensor(view), din = on_device(view), expected, found;
    int dims[STK_MAX_DIMS], count = 0;
    bool keep = check_one_in(2), all = check_one_in(4), mean = check_one_in(3);
    stk_dtype dtype = check_one_in(2) ? STK_DTYPE_NONE : computable();
    char what[96];

    for (int i = 0; i < view->ndim; i++)
        if (check_one_in(2))
            dims[count++] = check_one_in(2) ? i : i - view->ndim;
    stk_status status =
        (mean ? stk_tensor_mean : stk_tensor_sum)(&in, count, all ? NULL : dims, keep, dtype, &expected, NULL);
    assert_int_equal(
        (mean ? stk_tensor_mean : stk_tensor_sum)(&din, count, all ? NULL : dims, keep, dtype, &found, NULL), status);
    fetch();
    if (status)
        return;
    snprintf(what, sizeof what, "sum of %s as %s", stk_dtype_name(view->dtype), stk_dtype_name(found.dtype));
    if (!large || found.dtype < STK_F16)
        compare_sums(&expected, &found, (exact && !mean) || found.dtype < STK_F16, what);
    stk_tensor_release(&expected);
    stk_tensor_release(&found);
}

static void test_sums(void **state)
{
    (void)state;
    check_state = 26;
    for (int i = 0; i < 2500; i++) {
        int64_t shape[STK_MAX_DIMS];
        int ndim = check_shape(2000, shape);
        stk_dtype dtype = computable();
        bool whole = check_one_in(2);
        struct check_view view;
        check_view_make(&view, dtype, ndim, shape, true, check_one_in(3));
        if (whole || dtype >= STK_F16)
            fill_tame(&view, whole);
        else
            check_view_fill(&view, false);
        check_sum(&view, whole, !whole && dtype < STK_F16);
        check_view_free(&view);
    }
}

/* Enough elements that results are computed in parts, along rows and along columns. */
static void test_large_sums(void **state)
{
    static const int64_t shapes[][3] = {{1, 300000, 1}, {3, 40000, 2}, {2, 5000, 40}, {300, 7, 200}, {1, 2, 100000}};

    (void)state;
    check_state = 27;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int dim = 0; dim < 3; dim++) {
            int64_t n = check_numel(3, shapes[s]);
            float *values = malloc((size_t)n * sizeof *values);
            stk_tensor in, din, expected, found;
            assert_non_null(values);
            for (int64_t i = 0; i < n; i++)
                values[i] = (float)check_below(1000000) / 1000.0f - 300.0f;
            assert_int_equal(stk_tensor_borrow(values, STK_F32, 3, shapes[s], NULL, &in, NULL), STK_OK);
            assert_int_equal(stk_tensor_to_device(&in, there_device, &din, NULL), STK_OK);
            assert_int_equal(stk_tensor_sum(&in, 1, &dim, false, STK_DTYPE_NONE, &expected, NULL), STK_OK);
            assert_int_equal(stk_tensor_sum(&din, 1, &dim, false, STK_DTYPE_NONE, &found, NULL), STK_OK);
            compare_sums(&expected, &found, false, "large sum");
            stk_tensor_release(&expected);
            stk_tensor_release(&found);
            stk_tensor_release(&din);
            free(values);
        }
}

/* Rounding errors are compensated: large numbers that cancel leave the small ones, to the last place. */
static void test_cancelling_sums(void **state)
{
    enum { ROWS = 3000, COLUMNS = 40 };
    const int64_t shape[2] = {ROWS, COLUMNS};
    static double values[ROWS][COLUMNS];
    int rows = 0;
    stk_tensor in, there, found;

    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            values[i][j] = i % 300 == 0 ? 0x1p60 : i % 300 == 299 ? -0x1p60 : 1;
    assert_int_equal(stk_tensor_borrow(values, STK_F64, 2, shape, NULL, &in, NULL), STK_OK);
    assert_int_equal(stk_tensor_to_device(&in, there_device, &there, NULL), STK_OK);
    for (int all = 0; all < 2; all++) {
        assert_int_equal(stk_tensor_sum(&there, 1, all ? NULL : &rows, true, STK_DTYPE_NONE, &found, NULL), STK_OK);
        assert_true(value_of(&found, (const int64_t[]){0, 0}) == 2980.0 * (all ? COLUMNS : 1));
        stk_tensor_release(&found);
    }
    stk_tensor_release(&there);
}

static void test_all_kernels_were_used(void **state)
{
    (void)state;
    if (!counted)
        return;
    assert_true(met[STKI_KERNEL_MAP_LINEAR] > 1000);
    assert_true(met[STKI_KERNEL_MAP_TILED] > 50);
    assert_true(met[STKI_KERNEL_BINARY_LINEAR] > 1000);
    assert_true(met[STKI_KERNEL_BINARY_RUNS] > 30);
    assert_true(met[STKI_KERNEL_SUM_ROWS] > 50);
    assert_true(met[STKI_KERNEL_SUM_CELLS] > 50);
    assert_true(met[STKI_KERNEL_SUM_FINISH] > 3);
}

/* ---- operations without a kernel ---- */

static int64_t refused;

static stk_status refuse(stk_error *err)
{
    refused++;
    snprintf(err->message, sizeof err->message, "no kernel");
    return err->status = STK_E_UNSUPPORTED;
}

static stk_status refuse_copy(stk_device *device, const stk_tensor *dst, const stk_tensor *src, stk_stream *stream,
                              stk_error *err)
{
    (void)device, (void)dst, (void)src, (void)stream;
    return refuse(err);
}

static stk_status refuse_elementwise(stk_device *device, const stki_elementwise_job *job, stk_stream *stream,
                                     stk_error *err)
{
    (void)device, (void)job, (void)stream;
    return refuse(err);
}

static stk_status refuse_sum(stk_device *device, const stki_sum_job *job, stk_stream *stream, stk_error *err)
{
    (void)device, (void)job, (void)stream;
    return refuse(err);
}

static stk_status refuse_quantize(stk_device *device, const stki_quantize_job *job, stk_stream *stream, stk_error *err)
{
    (void)device, (void)job, (void)stream;
    return refuse(err);
}

/* Operations that the device rejects are computed in host memory; this is not an error. */
static void test_refusals(void **state)
{
    const int64_t shape[2] = {6, 7};
    stk_device *before = there_device;
    stki_device_ops ops = *before->ops;
    stk_device refusing = *before;
    const double scale = 0.25;
    const int64_t zero = 3;
    stk_quant *quant;

    (void)state;
    check_state = 30;
    ops.copy_strided = refuse_copy;
    ops.elementwise = refuse_elementwise;
    ops.sum = refuse_sum;
    ops.quantize = refuse_quantize;
    refusing.ops = &ops;
    there_device = &refusing;
    assert_int_equal(stk_quant_create(STK_QINT8, STK_QUANT_PER_TENSOR, 1, &scale, &zero, &quant, NULL), STK_OK);
    for (int i = 0; i < 20; i++) {
        struct check_view a, expected[3], found[3];
        check_view_make(&a, STK_F32, 2, shape, false, i == 0);
        fill_tame(&a, true);
        for (int k = 0; k < 3; k++) {
            check_view_make(&expected[k], k == 1 ? STK_I8 : STK_F32, 2, shape, false, false);
            check_view_copy(&found[k], &expected[k]);
        }
        stk_tensor in = check_tensor(&a), din = on_device(&a), here[3], there[3], sum, device_sum;
        stk_error err = {0};
        for (int k = 0; k < 3; k++) {
            here[k] = check_tensor(&expected[k]);
            there[k] = on_device(&found[k]);
        }
        assert_int_equal(stk_tensor_add_into(&in, &in, &here[0], NULL), STK_OK);
        assert_int_equal(stk_quantize_into(&in, quant, &here[1], NULL), STK_OK);
        assert_int_equal(stk_tensor_fill(&here[2], stk_real(1.5), NULL), STK_OK);
        assert_int_equal(stk_tensor_sum(&in, 0, NULL, false, STK_DTYPE_NONE, &sum, NULL), STK_OK);
        refused = 0;
        assert_int_equal(stk_tensor_add_into(&din, &din, &there[0], &err), STK_OK);
        assert_int_equal(stk_quantize_into(&din, quant, &there[1], &err), STK_OK);
        assert_int_equal(stk_tensor_sum(&din, 0, NULL, false, STK_DTYPE_NONE, &device_sum, &err), STK_OK);
        assert_int_equal(refused, 3);
        assert_int_equal(stk_tensor_fill(&there[2], stk_real(1.5), &err), STK_OK);
        assert_string_equal(err.message, "");
        assert_true(value_of(&sum, NULL) == value_of(&device_sum, NULL));
        stk_tensor_release(&sum);
        stk_tensor_release(&device_sum);
        fetch();
        for (int k = 0; k < 3; k++) {
            check_view_same(&expected[k], &found[k], "refused");
            check_view_free(&expected[k]);
            check_view_free(&found[k]);
        }
        check_view_free(&a);
    }
    stk_quant_release(quant);
    there_device = before;
}

/* ---- division ---- */

/* Quotients computed by multiplication, near multiples of many divisors. */
static void test_divisors(void **state)
{
    (void)state;
    check_state = 28;
    for (int i = 0; i < 300000; i++) {
        uint32_t n = i < 4096 ? (uint32_t)i + 1 : (uint32_t)(check_random() >> (33 + check_below(31))) + 1;
        uint32_t x = (uint32_t)(check_random() >> 33);
        stki_divisor by = stki_divisor_of(n >> 31 ? 1 : n);
        n = n >> 31 ? 1 : n;
        const uint32_t tries[] = {x, x / n * n, x / n * n - (x / n * n > 0), 0, INT32_MAX, n, n - 1};
        for (size_t k = 0; k < sizeof tries / sizeof *tries; k++)
            assert_int_equal(stki_quotient(by, tries[k]), tries[k] / n);
    }
}

/* ---- indices beyond 31 bits ---- */

/* The position of an element, computed axis by axis, in nests of more elements than fit in memory. */
static void test_wide_indices(void **state)
{
    (void)state;
    check_state = 29;
    for (int i = 0; i < 20000; i++) {
        stki_strided plan = {.operands = 3, .ndim = 1 + (int)check_below(4)};
        uint64_t count = 1, rest, index;
        int64_t at[3] = {0};
        stki_nest nest;
        for (int k = 0; k < plan.ndim; k++) {
            plan.shape[k] = 1 + check_below(check_one_in(2) ? 40000 : 9);
            count *= (uint64_t)plan.shape[k];
            for (int side = 0; side < 3; side++)
                plan.strides[side][k] = check_below(1 << 20) - (1 << 19);
        }
        stki_nest_of(&nest, &plan, 0, 3);
        assert_int_equal(nest.wide, count > INT32_MAX);
        index = check_one_in(4) ? count - 1 : check_random() % count;
        rest = index;
        for (int k = plan.ndim - 1; k >= 0; k--) {
            for (int side = 0; side < 3; side++)
                at[side] += (int64_t)(rest % (uint64_t)plan.shape[k]) * plan.strides[side][k];
            rest /= (uint64_t)plan.shape[k];
        }
        const stki_offsets found = stki_nest_at(&nest, 0, index, 3);
        for (int side = 0; side < 3; side++)
            assert_int_equal(found.side[side], at[side]);
    }
}

static void test_operations_without_a_kernel(void **state)
{
    const stk_tensor huge = {.dtype = STK_U8,
                             .ndim = 2,
                             .shape = {INT64_C(1) << 31, INT64_C(1) << 14},
                             .strides = {INT64_C(1) << 15, 1}},
                     turned = {
                         .dtype = STK_I16, .ndim = 2, .shape = {INT64_C(1) << 31, INT64_C(1) << 14}, .strides = {0, 0}};
    stki_launch launch;
    stk_error err = {0};

    (void)state;
    assert_int_equal(stki_kernel_plan_copy(&huge, &turned, &launch, &err), STK_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "35184372088832 elements"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_clamp_and_in_place),
        cmocka_unit_test(test_quantizing),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_large_sums),
        cmocka_unit_test(test_cancelling_sums),
        cmocka_unit_test(test_all_kernels_were_used),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_divisors),
        cmocka_unit_test(test_wide_indices),
        cmocka_unit_test(test_operations_without_a_kernel),
    };

    return cmocka_run_group_tests(tests, make_device, NULL);
}
