/* Tests of COO and CSR tensors against dense index arithmetic, with random repeated entries, every dtype, strided
 * parts, rejected and modified tensors, failing allocations, and the estimates of memory. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "leak_check.h"
#include "sparse_internal.h"
#include "stk_test.h"
#include "tensor_model.h"
#include "test_device.h"
#include <math.h>
#include <stoker/stoker.h>

static uint64_t state = 11;

enum { MOST = 4096 };

/* ---- a dense tensor and its entries ---- */

struct entries {
    int ndim;
    int64_t shape[4], count, elements;
    int64_t index[4][MOST];
    double value[MOST];
    double dense[MOST]; /* sums */
};

static void random_entries(struct entries *e, int ndim, int64_t most)
{
    e->ndim = ndim;
    e->elements = 1;
    for (int i = 0; i < ndim; i++) {
        e->shape[i] = stkt_random_in(&state, 1, most);
        e->elements *= e->shape[i];
    }
    assert_true(e->elements <= MOST);
    memset(e->dense, 0, sizeof e->dense);
    e->count = stkt_random_in(&state, 0, 60);
    for (int64_t k = 0; k < e->count; k++) {
        int64_t index[4];
        for (int i = 0; i < ndim; i++)
            e->index[i][k] = index[i] = stkt_random_in(&state, 0, e->shape[i] - 1);
        e->value[k] = (double)stkt_random_in(&state, -20, 20);
        e->dense[stkt_ravel(ndim, e->shape, index)] += e->value[k];
    }
}

static stk_tensor tensor_of(stk_dtype dtype, int ndim, const int64_t *shape, const double *values)
{
    stk_tensor wide, tensor;
    stk_error err;

    assert_ok(stk_tensor_empty(STK_F64, ndim, shape, NULL, &wide, &err));
    if (stk_tensor_numel(&wide) > 0)
        memcpy(wide.data, values, (size_t)stk_tensor_nbytes(&wide));
    assert_ok(stk_tensor_to(&wide, dtype, &tensor, &err));
    stk_tensor_release(&wide);
    return tensor;
}

static double element(const stk_tensor *tensor, int64_t n)
{
    int64_t index[STK_MAX_DIMS];
    stk_scalar scalar;
    stk_error err;

    stkt_unravel(tensor->ndim, tensor->shape, n, index);
    assert_ok(stk_tensor_get(tensor, tensor->ndim, index, &scalar, &err));
    return scalar.kind == STK_SCALAR_REAL   ? scalar.as.f
           : scalar.kind == STK_SCALAR_UINT ? (double)scalar.as.u
           : scalar.kind == STK_SCALAR_BOOL ? scalar.as.b
                                            : (double)scalar.as.i;
}

/* The same elements with other strides: every second column of a larger tensor, reversed. */
static stk_tensor scattered(const stk_tensor *tensor)
{
    int64_t shape[STK_MAX_DIMS];
    int last = tensor->ndim - 1;
    stk_tensor large, half, out;
    stk_error err;

    memcpy(shape, tensor->shape, sizeof shape);
    shape[last] = 2 * shape[last] + 1;
    assert_ok(stk_tensor_zeros(tensor->dtype, tensor->ndim, shape, NULL, &large, &err));
    assert_ok(stk_tensor_slice(&large, last, 1, shape[last], 2, &half, &err));
    assert_ok(stk_tensor_flip(&half, last, &out, &err));
    assert_ok(stk_tensor_copy(&out, tensor, &err));
    stk_tensor_release(&half);
    stk_tensor_release(&large);
    return out;
}

static stk_coo coo_of(const struct entries *e, stk_dtype dtype, stk_dtype index_dtype, bool strided)
{
    double flat[4 * MOST];
    stk_tensor indices, values;
    stk_coo coo;
    stk_error err;

    for (int i = 0; i < e->ndim; i++)
        for (int64_t k = 0; k < e->count; k++)
            flat[i * e->count + k] = (double)e->index[i][k];
    indices = tensor_of(index_dtype, 2, (const int64_t[]){e->ndim, e->count}, flat);
    values = tensor_of(dtype, 1, &e->count, e->value);
    if (strided) {
        stk_tensor other = scattered(&indices);
        stk_tensor_release(&indices);
        indices = other;
        other = scattered(&values);
        stk_tensor_release(&values);
        values = other;
    }
    assert_ok(stk_coo_create(&indices, &values, e->ndim, e->shape, &coo, &err));
    stk_tensor_release(&indices);
    stk_tensor_release(&values);
    return coo;
}

static void assert_dense(const stk_tensor *dense, const struct entries *e)
{
    assert_int_equal(dense->ndim, e->ndim);
    assert_memory_equal(dense->shape, e->shape, sizeof e->shape[0] * (size_t)e->ndim);
    for (int64_t n = 0; n < e->elements; n++)
        assert_true(element(dense, n) == e->dense[n]);
}

static void assert_sorted(const stk_coo *coo)
{
    int64_t before = -1;

    assert_true(coo->coalesced);
    for (int64_t k = 0; k < stk_coo_entries(coo); k++) {
        int64_t index[4];
        for (int i = 0; i < coo->ndim; i++)
            index[i] = (int64_t)element(&coo->indices, i * stk_coo_entries(coo) + k);
        assert_true(stkt_ravel(coo->ndim, coo->shape, index) > before);
        before = stkt_ravel(coo->ndim, coo->shape, index);
    }
}

/* ---- random entries ---- */

static void test_coo(void **unused)
{
    static struct entries e;
    static const stk_dtype dtypes[] = {STK_F32, STK_F64, STK_I32, STK_I16, STK_F16, STK_BF16};
    stk_error err;

    (void)unused;
    for (int round = 0; round < 300; round++) {
        stk_dtype dtype = dtypes[stkt_random_in(&state, 0, 5)];
        stk_coo coo, sorted, again, back;
        stk_tensor dense;
        random_entries(&e, (int)stkt_random_in(&state, 1, 4), 7);
        coo = coo_of(&e, dtype, round % 2 ? STK_I32 : STK_I64, round % 3 == 0);
        assert_false(coo.coalesced);
        assert_int_equal(stk_coo_entries(&coo), e.count);
        assert_int_equal(stk_coo_bytes(&coo), e.count * (e.ndim * (round % 2 ? 4 : 8) + stk_dtype_size(dtype)));
        assert_ok(stk_coo_to_dense(&coo, &dense, &err));
        assert_dense(&dense, &e);
        assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
        assert_sorted(&sorted);
        assert_int_equal(sorted.indices.dtype, coo.indices.dtype);
        assert_ok(stk_coo_coalesce(&sorted, &again, &err));
        assert_ptr_equal(again.values.data, sorted.values.data);
        assert_ok(stk_coo_from_dense(&dense, STK_I32, &back, &err));
        assert_sorted(&back);
        stk_tensor_release(&dense);
        assert_ok(stk_coo_to_dense(&back, &dense, &err));
        assert_dense(&dense, &e);
        stk_tensor_release(&dense);
        stk_coo_release(&back);
        stk_coo_release(&again);
        stk_coo_release(&sorted);
        stk_coo_release(&coo);
    }
}

static void test_csr(void **unused)
{
    static struct entries e;
    stk_error err;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        stk_coo coo, back;
        stk_csr csr, direct;
        stk_tensor dense, dense2;
        int64_t nonzero = 0;
        random_entries(&e, 2, 15);
        coo = coo_of(&e, STK_F32, STK_I64, round % 3 == 0);
        assert_ok(stk_csr_from_coo(&coo, &csr, &err));
        assert_ok(stk_csr_to_dense(&csr, &dense, &err));
        assert_dense(&dense, &e);
        assert_ok(stk_coo_from_csr(&csr, &back, &err));
        assert_sorted(&back);
        assert_ok(stk_coo_to_dense(&back, &dense2, &err));
        assert_dense(&dense2, &e);
        assert_ok(stk_csr_from_dense(&dense, STK_I32, &direct, &err));
        for (int64_t n = 0; n < e.elements; n++)
            nonzero += e.dense[n] != 0;
        assert_int_equal(stk_csr_entries(&direct), nonzero);
        assert_int_equal(stk_csr_bytes(&direct), 4 * (e.shape[0] + 1) + 8 * nonzero);
        stk_tensor_release(&dense2);
        assert_ok(stk_csr_to_dense(&direct, &dense2, &err));
        assert_dense(&dense2, &e);
        stk_csr_release(&direct);
        stk_tensor_release(&dense2);
        stk_tensor_release(&dense);
        stk_coo_release(&back);
        stk_csr_release(&csr);
        stk_coo_release(&coo);
    }
}

static void test_matmul(void **unused)
{
    static struct entries e;
    static double right[MOST];
    static const stk_dtype dtypes[] = {STK_F32, STK_F64, STK_I64, STK_I16, STK_F16};
    stk_error err;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        stk_dtype dtype = dtypes[round % 5];
        int64_t columns = stkt_random_in(&state, 0, 9);
        bool vector = round % 7 == 0;
        stk_coo coo;
        stk_csr csr;
        stk_tensor dense, product;
        random_entries(&e, 2, 15);
        columns = vector ? 1 : columns;
        for (int64_t n = 0; n < e.shape[1] * columns; n++)
            right[n] = (double)stkt_random_in(&state, -3, 3);
        dense = tensor_of(dtype, vector ? 1 : 2, (const int64_t[]){e.shape[1], columns}, right);
        if (round % 2) {
            stk_tensor other = scattered(&dense);
            stk_tensor_release(&dense);
            dense = other;
        }
        coo = coo_of(&e, dtype, STK_I32, false);
        assert_ok(stk_csr_from_coo(&coo, &csr, &err));
        assert_ok(stk_csr_matmul(&csr, &dense, &product, &err));
        assert_int_equal(product.ndim, vector ? 1 : 2);
        assert_int_equal(product.dtype, dtype);
        for (int64_t i = 0; i < e.shape[0]; i++)
            for (int64_t j = 0; j < columns; j++) {
                double sum = 0;
                for (int64_t k = 0; k < e.shape[1]; k++)
                    sum += e.dense[i * e.shape[1] + k] * right[k * columns + j];
                assert_true(element(&product, i * columns + j) == sum);
            }
        stk_tensor_release(&product);
        stk_tensor_release(&dense);
        stk_csr_release(&csr);
        stk_coo_release(&coo);
    }
}

/* ---- values ---- */

/* Conversion to COO and back keeps all bits: subnormals, NaN payloads, the largest numbers. */
static void test_every_dtype(void **unused)
{
    static char zeros[16];
    stk_error err;

    (void)unused;
    for (stk_dtype dtype = STK_BOOL; dtype < STK_DTYPE_END; dtype++) {
        stk_tensor dense, back;
        stk_coo coo;
        int64_t size = stk_dtype_size(dtype);
        assert_ok(stk_tensor_zeros(dtype, 2, (const int64_t[]){7, 300}, NULL, &dense, &err));
        for (int64_t n = 0; n < 2100; n++)
            if (stkt_random_in(&state, 0, 3) == 0)
                for (int64_t b = 0; b < size; b++)
                    ((uint8_t *)dense.data)[n * size + b] =
                        dtype == STK_BOOL ? 1 : (uint8_t)stkt_random_in(&state, 0, 255);
        if (dtype == STK_C64 || dtype == STK_C128) {
            assert_status(stk_coo_from_dense(&dense, STK_I64, &coo, &err), STK_E_BAD_DTYPE);
            stk_tensor_release(&dense);
            continue;
        }
        ((uint8_t *)dense.data)[0] = 1; /* nonzero in every dtype */
        assert_ok(stk_coo_from_dense(&dense, STK_I64, &coo, &err));
        assert_true(stk_coo_entries(&coo) > 0);
        assert_ok(stk_coo_to_dense(&coo, &back, &err));
        for (int64_t n = 0; n < 2100; n++) /* -0.0 does not become an entry, so it comes back as 0 */
            assert_memory_equal((char *)back.data + n * size,
                                element(&dense, n) == 0 ? zeros : (char *)dense.data + n * size, (size_t)size);
        stk_tensor_release(&back);
        stk_coo_release(&coo);
        stk_tensor_release(&dense);
    }
}

/* Which values are entries, and how repeated ones are summed. */
static void test_special_values(void **unused)
{
    const double values[] = {NAN, -0.0, 0.0, 5};
    stk_tensor dense = tensor_of(STK_F32, 1, (const int64_t[]){4}, values), sums, indices;
    stk_coo coo, sorted;
    stk_error err;

    (void)unused;
    assert_ok(stk_coo_from_dense(&dense, STK_I64, &coo, &err));
    assert_int_equal(stk_coo_entries(&coo), 2);
    assert_true(isnan(element(&coo.values, 0)));
    stk_coo_release(&coo);
    stk_tensor_release(&dense);

    indices = tensor_of(STK_I64, 2, (const int64_t[]){1, 3}, (const double[]){2, 2, 2});
    /* f16: 2048 + 1 + 1 is 2048 if each step is rounded, and 2050 if only the sum is */
    sums = tensor_of(STK_F16, 1, (const int64_t[]){3}, (const double[]){2048, 1, 1});
    assert_ok(stk_coo_create(&indices, &sums, 1, (const int64_t[]){3}, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_true(element(&sorted.values, 0) == 2050);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&sums);
    /* i8 wraps */
    sums = tensor_of(STK_I8, 1, (const int64_t[]){3}, (const double[]){100, 100, 100});
    assert_ok(stk_coo_create(&indices, &sums, 1, (const int64_t[]){3}, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_true(element(&sorted.values, 0) == 44);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&sums);
    /* bool: the sum is a logical or */
    sums = tensor_of(STK_BOOL, 1, (const int64_t[]){3}, (const double[]){1, 1, 0});
    assert_ok(stk_coo_create(&indices, &sums, 1, (const int64_t[]){3}, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_true(element(&sorted.values, 0) == 1);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&sums);
    /* a sum of 0 remains an entry */
    sums = tensor_of(STK_F32, 1, (const int64_t[]){3}, (const double[]){1, -2, 1});
    assert_ok(stk_coo_create(&indices, &sums, 1, (const int64_t[]){3}, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_int_equal(stk_coo_entries(&sorted), 1);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&sums);
    stk_tensor_release(&indices);
}

/* Without axes there is one position; with an axis of length 0 there are none. */
static void test_no_axes_and_no_elements(void **unused)
{
    stk_tensor scalar = tensor_of(STK_F32, 0, NULL, (const double[]){3}), back, empty, indices;
    stk_coo coo, sorted;
    stk_csr csr;
    stk_error err;

    (void)unused;
    assert_ok(stk_coo_from_dense(&scalar, STK_I64, &coo, &err));
    assert_int_equal(stk_coo_entries(&coo), 1);
    assert_ok(stk_coo_to_dense(&coo, &back, &err));
    assert_int_equal(back.ndim, 0);
    assert_true(element(&back, 0) == 3);
    stk_tensor_release(&back);
    stk_coo_release(&coo);
    stk_tensor_release(&scalar);

    indices = tensor_of(STK_I64, 2, (const int64_t[]){0, 3}, NULL);
    scalar = tensor_of(STK_F32, 1, (const int64_t[]){3}, (const double[]){1, 2, 4});
    assert_ok(stk_coo_create(&indices, &scalar, 0, NULL, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_int_equal(stk_coo_entries(&sorted), 1);
    assert_ok(stk_coo_to_dense(&coo, &back, &err));
    assert_true(element(&back, 0) == 7);
    stk_tensor_release(&back);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&scalar);
    stk_tensor_release(&indices);

    assert_ok(stk_tensor_zeros(STK_F32, 2, (const int64_t[]){0, 4}, NULL, &empty, &err));
    assert_ok(stk_csr_from_dense(&empty, STK_I32, &csr, &err));
    assert_int_equal(csr.row_starts.shape[0], 1);
    assert_ok(stk_csr_to_dense(&csr, &back, &err));
    assert_int_equal(back.shape[0], 0);
    stk_tensor_release(&back);
    stk_csr_release(&csr);
    stk_tensor_release(&empty);
}

/* Shapes with more than 2^63 elements are valid until a dense tensor is requested. */
static void test_huge_shape(void **unused)
{
    const int64_t shape[] = {INT64_C(1) << 40, INT64_C(1) << 41};
    const double flat[] = {0x1p30, 5, 0x1p30, 0x1p35, 7, 9}; /* the high bits decide the order */
    stk_tensor indices = tensor_of(STK_I64, 2, (const int64_t[]){2, 3}, flat), dense;
    stk_tensor values = tensor_of(STK_F32, 1, (const int64_t[]){3}, (const double[]){1, 2, 3});
    stk_coo coo, sorted;
    stk_error err;

    (void)unused;
    assert_ok(stk_coo_create(&indices, &values, 2, shape, &coo, &err));
    assert_ok(stk_coo_coalesce(&coo, &sorted, &err));
    assert_true(element(&sorted.indices, 0) == 5 && element(&sorted.indices, 1) == 0x1p30);
    assert_true(element(&sorted.indices, 4) == 9 && element(&sorted.indices, 5) == 0x1p35);
    assert_true(element(&sorted.values, 0) == 2 && element(&sorted.values, 1) == 3 && element(&sorted.values, 2) == 1);
    assert_status(stk_coo_to_dense(&coo, &dense, &err), STK_E_BAD_SHAPE);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    stk_tensor_release(&values);
    stk_tensor_release(&indices);
}

/* ---- rejected arguments ---- */

static void test_refused_coo(void **unused)
{
    stk_tensor indices = tensor_of(STK_I64, 2, (const int64_t[]){2, 2}, (const double[]){0, 2, 1, 0}), other, dense;
    stk_tensor values = tensor_of(STK_F32, 1, (const int64_t[]){2}, (const double[]){1, 2});
    const int64_t shape[] = {3, 2}, small[] = {2, 2}, negative[] = {3, -1};
    stk_coo coo;
    stk_csr csr;
    stk_error err;

    (void)unused;
    assert_status(stk_coo_create(&indices, &values, 2, small, &coo, &err), STK_E_BAD_INDEX);
    assert_says("entry 1");
    assert_status(stk_coo_create(&indices, &values, 2, negative, &coo, &err), STK_E_BAD_SHAPE);
    assert_status(stk_coo_create(&indices, &values, 1, shape, &coo, &err), STK_E_BAD_SHAPE);
    assert_status(stk_coo_create(&indices, &values, 33, shape, &coo, &err), STK_E_BAD_SHAPE);
    assert_status(stk_coo_create(&values, &values, 1, shape, &coo, &err), STK_E_BAD_SHAPE);
    assert_ok(stk_tensor_to(&indices, STK_F32, &other, &err));
    assert_status(stk_coo_create(&other, &values, 2, shape, &coo, &err), STK_E_BAD_DTYPE);
    assert_status(stk_coo_from_dense(&other, STK_F32, &coo, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&other);
    assert_status(stk_csr_from_dense(&values, STK_I32, &csr, &err), STK_E_BAD_DIM);
    assert_ok(stk_coo_create(&indices, &values, 2, shape, &coo, &err));
    ((int64_t *)indices.data)[1] = 3; /* modified after it was checked */
    assert_status(stk_coo_coalesce(&coo, &coo, &err), STK_E_BAD_INDEX);
    assert_status(stk_coo_to_dense(&coo, &dense, &err), STK_E_BAD_INDEX);
    assert_status(stk_csr_from_coo(&coo, &csr, &err), STK_E_BAD_INDEX);
    coo.coalesced = true;
    assert_status(stk_coo_to_dense(&coo, &dense, &err), STK_E_BAD_INDEX);
    assert_status(stk_csr_from_coo(&coo, &csr, &err), STK_E_BAD_INDEX);
    coo.ndim = 1;
    assert_status(stk_csr_from_coo(&coo, &csr, &err), STK_E_BAD_DIM);
    stk_coo_release(&coo);
    stk_coo_release(&coo);
    stk_coo_release(NULL);
    assert_ok(stk_tensor_empty(STK_F32, 1, (const int64_t[]){2}, stki_device_test(), &other, &err));
    assert_status(stk_coo_from_dense(&other, STK_I64, &coo, &err), STK_E_UNSUPPORTED);
    stk_tensor_release(&other);
    stk_tensor_release(&values);
    stk_tensor_release(&indices);
}

static void refuse_csr(stk_status expected, int rows, const double *starts, int entries, const double *columns)
{
    const double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    stk_tensor row_starts = tensor_of(STK_I32, 1, (const int64_t[]){rows + 1}, starts);
    stk_tensor column_tensor = tensor_of(STK_I32, 1, (const int64_t[]){entries}, columns);
    stk_tensor values = tensor_of(STK_F32, 1, (const int64_t[]){3}, ones);
    stk_csr csr;
    stk_error err;

    assert_status(stk_csr_create(&row_starts, &column_tensor, &values, 3, 3, &csr, &err), expected);
    stk_tensor_release(&values);
    stk_tensor_release(&column_tensor);
    stk_tensor_release(&row_starts);
}

static void test_refused_csr(void **unused)
{
    const double good[] = {0, 2, 2, 3}, columns[] = {0, 2, 1};
    stk_tensor starts = tensor_of(STK_I32, 1, (const int64_t[]){4}, good), wide, vector, dense;
    stk_tensor column_tensor = tensor_of(STK_I32, 1, (const int64_t[]){3}, columns);
    stk_tensor values = tensor_of(STK_F32, 1, (const int64_t[]){3}, columns);
    stk_csr csr;
    stk_error err;

    (void)unused;
    refuse_csr(STK_E_BAD_ARG, 3, (const double[]){1, 2, 2, 3}, 3, columns);
    refuse_csr(STK_E_BAD_ARG, 3, (const double[]){0, 2, 2, 2}, 3, columns);
    refuse_csr(STK_E_BAD_ARG, 3, (const double[]){0, 3, 2, 3}, 3, columns);
    refuse_csr(STK_E_BAD_ARG, 3, (const double[]){0, 4, 2, 3}, 3, columns);
    refuse_csr(STK_E_BAD_ARG, 3, (const double[]){0, -1, 2, 3}, 3, columns);
    refuse_csr(STK_E_BAD_SHAPE, 2, (const double[]){0, 2, 3}, 3, columns);
    refuse_csr(STK_E_BAD_SHAPE, 3, good, 2, columns);
    refuse_csr(STK_E_BAD_INDEX, 3, good, 3, (const double[]){0, 3, 1});
    refuse_csr(STK_E_BAD_INDEX, 3, good, 3, (const double[]){-1, 2, 1});
    refuse_csr(STK_E_BAD_ARG, 3, good, 3, (const double[]){2, 0, 1});
    refuse_csr(STK_E_BAD_ARG, 3, good, 3, (const double[]){1, 1, 1});
    assert_status(stk_csr_create(&starts, &column_tensor, &values, 3, -1, &csr, &err), STK_E_BAD_SHAPE);
    assert_ok(stk_tensor_to(&starts, STK_I64, &wide, &err));
    assert_status(stk_csr_create(&wide, &column_tensor, &values, 3, 3, &csr, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&wide);
    assert_ok(stk_csr_create(&starts, &column_tensor, &values, 3, 3, &csr, &err));
    vector = tensor_of(STK_F64, 1, (const int64_t[]){3}, columns);
    assert_status(stk_csr_matmul(&csr, &vector, &dense, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&vector);
    vector = tensor_of(STK_F32, 1, (const int64_t[]){2}, columns);
    assert_status(stk_csr_matmul(&csr, &vector, &dense, &err), STK_E_BAD_SHAPE);
    stk_tensor_release(&vector);
    vector = tensor_of(STK_F32, 3, (const int64_t[]){3, 1, 1}, columns);
    assert_status(stk_csr_matmul(&csr, &vector, &dense, &err), STK_E_BAD_DIM);
    stk_tensor_release(&vector);
    vector = tensor_of(STK_F32, 1, (const int64_t[]){3}, columns);
    ((int32_t *)csr.columns.data)[1] = 3;
    assert_status(stk_csr_matmul(&csr, &vector, &dense, &err), STK_E_BAD_INDEX);
    assert_status(stk_csr_to_dense(&csr, &dense, &err), STK_E_BAD_INDEX);
    stk_tensor_release(&vector);
    stk_csr_release(&csr);
    stk_csr_release(&csr);
    stk_csr_release(NULL);
    stk_tensor_release(&values);
    stk_tensor_release(&column_tensor);
    stk_tensor_release(&starts);
}

/* Indices that do not fit in i32 are rejected and do not wrap. */
static void test_index_too_large(void **unused)
{
    const int64_t large[] = {0, INT64_C(1) << 31}, fine[] = {0, INT32_MAX};
    stk_tensor tensor;
    stk_error err;

    (void)unused;
    assert_status(stki_indices_store(large, 1, (const int64_t[]){2}, STK_I32, &tensor, &err), STK_E_BAD_VALUE);
    assert_ok(stki_indices_store(large, 1, (const int64_t[]){2}, STK_I64, &tensor, &err));
    stk_tensor_release(&tensor);
    assert_ok(stki_indices_store(fine, 1, (const int64_t[]){2}, STK_I32, &tensor, &err));
    assert_true(element(&tensor, 1) == INT32_MAX);
    stk_tensor_release(&tensor);
}

static stk_status everything(const stk_tensor *dense, stk_error *err)
{
    stk_coo coo = {0}, sorted = {0};
    stk_csr csr = {0};
    stk_tensor back = {0}, product = {0}, transposed = {0};
    stk_status status = stk_coo_from_dense(dense, STK_I32, &coo, err);

    coo.coalesced = false;
    status = status ? status : stk_coo_coalesce(&coo, &sorted, err);
    status = status ? status : stk_coo_to_dense(&coo, &back, err);
    status = status ? status : stk_csr_from_coo(&coo, &csr, err);
    stk_coo_release(&coo);
    status = status ? status : stk_coo_from_csr(&csr, &coo, err);
    status = status ? status : stk_tensor_transpose(&back, 0, 1, &transposed, err);
    status = status ? status : stk_csr_matmul(&csr, &transposed, &product, err);
    stk_tensor_release(&transposed);
    stk_tensor_release(&product);
    stk_tensor_release(&back);
    stk_csr_release(&csr);
    stk_coo_release(&sorted);
    stk_coo_release(&coo);
    return status;
}

static void test_failing_allocations(void **unused)
{
    stk_tensor dense = tensor_of(STK_F16, 2, (const int64_t[]){2, 3}, (const double[]){1, 0, 2, 0, 0, 3});
    stki_memory_stats before, after;
    stk_status status = STK_E_MEMORY;
    stk_error err;
    int64_t n = 0;

    (void)unused;
    stk_memory_record_stop(); /* otherwise the recorder's own allocations would fail */
    stki_memory_read(STKI_MEM_HOST, &before);
    while (status) {
        stki_memory_fail_at(++n);
        status = everything(&dense, &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    assert_true(n > 30);
    stk_tensor_release(&dense);
    stk_memory_record_start();
}

/* ---- sizes ---- */

static void test_worth(void **unused)
{
    (void)unused;
    for (int64_t rows = 0; rows < 12; rows++)
        for (int64_t columns = 0; columns < 12; columns++)
            for (int wide = 0; wide < 2; wide++) {
                const int64_t index = wide ? 8 : 4, dense = rows * columns * 4;
                int64_t coo = stk_coo_worth(2, rows * columns, wide ? STK_I64 : STK_I32, STK_F32);
                int64_t csr = stk_csr_worth(rows, columns, wide ? STK_I64 : STK_I32, STK_F32);
                assert_true(coo == 0 || coo * (2 * index + 4) < dense);
                assert_true((coo + 1) * (2 * index + 4) >= dense);
                assert_true(csr == 0 || (rows + 1) * index + csr * (index + 4) < dense);
                assert_true((rows + 1) * index + (csr + 1) * (index + 4) >= dense);
            }
    assert_int_equal(stk_coo_worth(2, INT64_MAX, STK_I64, STK_F32), 0);
    assert_int_equal(stk_csr_worth(INT64_MAX, 2, STK_I64, STK_F32), 0);
    assert_int_equal(stk_coo_worth(-1, 5, STK_I64, STK_F32), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coo),
        cmocka_unit_test(test_csr),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_no_axes_and_no_elements),
        cmocka_unit_test(test_huge_shape),
        cmocka_unit_test(test_refused_coo),
        cmocka_unit_test(test_refused_csr),
        cmocka_unit_test(test_index_too_large),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_worth),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
