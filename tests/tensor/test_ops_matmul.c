/* Tests of matrix products of random strided and broadcast tensors of every dtype against sums computed per element; of
 * the loops of every variant bit by bit; with and without a CBLAS. Memory around the outputs may not change. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "ops_cblas.h"
#include "ops_gemm.h"
#include "ops_test.h"
#include "test_device.h"

static uint64_t state = 1;

/* ---- one element ---- */

/* Checks one element: the sum over k of a's row times b's column, with steps in bytes. */
static void check_element(stk_dtype dtype, const char *found, const char *a, int64_t a_step, const char *b,
                          int64_t b_step, int64_t depth)
{
    long double sum = 0, magnitudes = 0;
    uint64_t whole = 0;
    char expected[16];

    for (int64_t k = 0; k < depth; k++) {
        if (stki_dtype_category(dtype) == STKI_CATEGORY_REAL) {
            long double product =
                (long double)stkt_as_double(dtype, a + k * a_step) * (long double)stkt_as_double(dtype, b + k * b_step);
            sum += product;
            magnitudes += fabsl(product);
        } else {
            uint64_t x, y;
            stkt_cast(STK_I64, &x, dtype, a + k * a_step);
            stkt_cast(STK_I64, &y, dtype, b + k * b_step);
            whole += x * y;
        }
    }
    if (stki_dtype_category(dtype) != STKI_CATEGORY_REAL) {
        stkt_cast(dtype, expected, STK_I64, &whole);
        assert_memory_equal(found, expected, (size_t)stk_dtype_size(dtype));
        return;
    }
    double got = stkt_as_double(dtype, found), unit = dtype == STK_F64 ? 0x1p-53 : 0x1p-24, rounded = (double)sum;
    double half = dtype == STK_F16 ? 0x1p-11 : dtype == STK_BF16 ? 0x1p-8 : 0;
    stkt_cast(dtype, expected, STK_F64, &rounded);
    if (stkt_same(dtype, found, expected))
        return;
    if (!(fabs(got - rounded) <= 8 * unit * (double)magnitudes + 2 * half * fabs(rounded)))
        fail_msg("%s, depth %d: %.17g, expected %.17g", stk_dtype_name(dtype), (int)depth, got, rounded);
}

/* ---- random products ---- */

/* Only finite numbers: products of NaN and infinity are covered by the oracle's cases. */
static void fill_finite(const stk_tensor *base)
{
    int64_t size = stk_dtype_size(base->dtype);

    for (int64_t i = 0; i < stk_tensor_numel(base); i++) {
        char element[16];
        do
            stkt_random_element(&state, base->dtype, element);
        while (stki_dtype_category(base->dtype) == STKI_CATEGORY_REAL &&
               !(fabs(stkt_as_double(base->dtype, element)) < 100));
        memcpy((char *)base->data + i * size, element, (size_t)size);
    }
}

struct random_tensor {
    stk_tensor base, view;
};

static void random_tensor(stk_dtype dtype, int ndim, const int64_t *shape, struct random_tensor *out)
{
    stkt_strided_view(&state, dtype, ndim, shape, &out->base, &out->view);
    fill_finite(&out->base);
}

static void release(struct random_tensor *tensor)
{
    stk_tensor_release(&tensor->view);
    stk_tensor_release(&tensor->base);
}

static int64_t random_size(void)
{
    static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 31, 33, 65};

    return stkt_random_in(&state, 0, 30) ? sizes[stkt_random_in(&state, 0, 15)] : 0;
}

/* The stride in `tensor` for axis `axis` of a result with `ndim` axes; 0 if it is repeated. */
static int64_t batch_stride(const stk_tensor *tensor, int matrix_axes, int axis, int batch_ndim)
{
    int own = axis - (batch_ndim - (tensor->ndim - matrix_axes));

    return own < 0 || tensor->shape[own] == 1 ? 0 : tensor->strides[own];
}

static void check_product(const stk_tensor *out, const stk_tensor *a, const stk_tensor *b)
{
    int a_axes = a->ndim > 1 ? 2 : 1, b_axes = b->ndim > 1 ? 2 : 1;
    int batch_ndim = out->ndim - (a_axes - 1) - (b_axes - 1);
    int64_t depth = a->shape[a->ndim - 1], numel = stk_tensor_numel(out);

    for (int64_t n = 0; n < numel; n += 1 + numel / 200) {
        int64_t index[STK_MAX_DIMS], a_offset = 0, b_offset = 0;
        stkt_unravel(out->ndim, out->shape, n, index);
        for (int i = 0; i < batch_ndim; i++) {
            a_offset += index[i] * batch_stride(a, a_axes, i, batch_ndim);
            b_offset += index[i] * batch_stride(b, b_axes, i, batch_ndim);
        }
        if (a_axes == 2)
            a_offset += index[batch_ndim] * a->strides[a->ndim - 2];
        if (b_axes == 2)
            b_offset += index[out->ndim - 1] * b->strides[b->ndim - 1];
        check_element(a->dtype, stkt_element(out, n), (char *)a->data + a_offset, a->strides[a->ndim - 1],
                      (char *)b->data + b_offset, b->strides[b->ndim > 1 ? b->ndim - 2 : 0], depth);
    }
}

static void random_product(void)
{
    stk_dtype dtype = stkt_dtypes[stkt_random_in(&state, 0, STKT_DTYPES - 1)];
    int64_t batch[2] = {stkt_random_in(&state, 1, 3), stkt_random_in(&state, 1, 2)};
    int64_t rows = random_size(), depth = random_size(), columns = random_size();
    int batch_ndim = stkt_random_in(&state, 0, 2) ? 0 : (int)stkt_random_in(&state, 1, 2);
    int64_t a_shape[4], b_shape[4];
    struct random_tensor a, b, place;
    stk_tensor out, before;
    int a_ndim = 0, b_ndim = 0;
    stk_error err;

    for (int i = 2 - batch_ndim; i < 2; i++) {
        a_shape[a_ndim++] = stkt_random_in(&state, 0, 2) ? batch[i] : 1;
        if (b_ndim || stkt_random_in(&state, 0, 1))
            b_shape[b_ndim++] = stkt_random_in(&state, 0, 2) ? batch[i] : 1;
    }
    if (a_ndim || stkt_random_in(&state, 0, 5))
        a_shape[a_ndim++] = rows;
    a_shape[a_ndim++] = depth;
    b_shape[b_ndim++] = depth;
    if (b_ndim > 1 || stkt_random_in(&state, 0, 5))
        b_shape[b_ndim++] = columns;
    random_tensor(dtype, a_ndim, a_shape, &a);
    random_tensor(dtype, b_ndim, b_shape, &b);
    assert_ok(stk_tensor_matmul(&a.view, &b.view, &out, &err));
    check_product(&out, &a.view, &b.view);

    stkt_strided_view(&state, dtype, out.ndim, out.shape, &place.base, &place.view);
    memset(place.base.data, 0x5a, (size_t)stk_tensor_nbytes(&place.base));
    assert_ok(stk_tensor_clone(&place.base, &before, &err));
    memcpy(before.data, place.base.data, (size_t)stk_tensor_nbytes(&place.base));
    assert_ok(stk_tensor_matmul_into(&a.view, &b.view, &place.view, &err));
    check_product(&place.view, &a.view, &b.view);
    for (int64_t n = 0; n < stk_tensor_numel(&place.view); n++) {
        char *at = stkt_element(&place.view, n);
        memcpy(at, (char *)before.data + (at - (char *)place.base.data), (size_t)stk_dtype_size(dtype));
    }
    assert_memory_equal(before.data, place.base.data, (size_t)stk_tensor_nbytes(&before));
    stk_tensor_release(&before);
    stk_tensor_release(&out);
    release(&place);
    release(&a);
    release(&b);
}

static void test_random(void **unused)
{
    (void)unused;
    for (int i = 0; i < 1500; i++)
        random_product();
}

/* ---- large enough for several blocks and for a CBLAS ---- */

static void large_product(stk_dtype dtype, int64_t rows, int64_t depth, int64_t columns, int layout, bool no_cblas)
{
    const int64_t a_shape[2] = {rows, depth}, b_shape[2] = {depth, columns}, c_shape[2] = {rows, columns};
    stki_gemm gemm = {.dtype = dtype, .rows = rows, .columns = columns, .depth = depth, .no_cblas = no_cblas};
    stk_tensor tensors[3];
    stki_matrix matrices[3];
    stk_error err;

    for (int i = 0; i < 3; i++) {
        const int64_t *shape = i == 0 ? c_shape : i == 1 ? a_shape : b_shape;
        assert_ok(stk_tensor_empty_as(dtype, 2, shape, layout >> i & 1 ? STK_LAYOUT_COLUMN_MAJOR : STK_LAYOUT_ROW_MAJOR,
                                      NULL, &tensors[i], &err));
        fill_finite(&tensors[i]);
        matrices[i] = (stki_matrix){tensors[i].data, tensors[i].strides[0], tensors[i].strides[1]};
    }
    assert_ok(stki_gemm_begin(&gemm, &err));
    stki_gemm_run(&gemm, matrices[0], matrices[1], matrices[2]);
    stki_gemm_end(&gemm);
    check_product(&tensors[0], &tensors[1], &tensors[2]);
    for (int i = 0; i < 3; i++)
        stk_tensor_release(&tensors[i]);
}

static void test_large(void **unused)
{
    static const stk_dtype dtypes[] = {STK_F32, STK_F64, STK_I32, STK_U8, STK_I64, STK_BF16};

    (void)unused;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (int layout = 0; layout < 8; layout++)
            large_product(dtypes[d], 197, 259, 37, layout, true);
    for (int layout = 0; layout < 8; layout++) {
        large_product(STK_F32, 5, 300, 520, layout, true);
        large_product(STK_F32, 97, 65, 101, layout, false);
        large_product(STK_F64, 97, 65, 101, layout, false);
        large_product(STK_F32, 2500, 70, 3, layout, true); /* few columns */
        large_product(STK_F16, 2, 1100, 130, layout, true);
    }
}

/* Operands that a CBLAS does not accept are packed: steps, reversed axes, odd addresses, repeated rows. */
static void test_cblas(void **unused)
{
    enum { N = 40 };
    static char memory[3][8 * 4 * N * N + 64];
    const int64_t forms[][2] = {{4 * N, 4}, {4, 4 * N}, {8 * N, 8}, {4 * N, -4}, {0, 4}, {4 * N + 2, 4}, {8, 12 * N}};
    enum { FORMS = sizeof forms / sizeof forms[0] };

    (void)unused;
    if (!stki_cblas_name())
        print_message("no CBLAS is installed: only the library's own loops are tested\n");
    for (int a_form = 0; a_form < FORMS; a_form++)
        for (int b_form = 0; b_form < FORMS; b_form++)
            for (int c_form = 0; c_form < FORMS; c_form++) {
                stki_gemm gemm = {.dtype = STK_F32, .rows = N, .columns = N, .depth = N};
                stki_matrix m[3];
                const int which[3] = {c_form, a_form, b_form};
                stk_error err;
                if (forms[c_form][0] == 0)
                    continue;
                for (int i = 0; i < 3; i++) {
                    m[i] = (stki_matrix){memory[i] + 400, forms[which[i]][0], forms[which[i]][1]};
                    for (int64_t r = 0; r < N; r++)
                        for (int64_t c = 0; c < N; c++)
                            memcpy(m[i].data + r * m[i].row_stride + c * m[i].column_stride,
                                   &(float){(float)stkt_random_in(&state, -8, 8)}, 4);
                }
                assert_ok(stki_gemm_begin(&gemm, &err));
                stki_gemm_run(&gemm, m[0], m[1], m[2]);
                stki_gemm_end(&gemm);
                for (int k = 0; k < 50; k++) {
                    int64_t r = stkt_random_in(&state, 0, N - 1), c = stkt_random_in(&state, 0, N - 1);
                    check_element(STK_F32, m[0].data + r * m[0].row_stride + c * m[0].column_stride,
                                  m[1].data + r * m[1].row_stride, m[1].column_stride,
                                  m[2].data + c * m[2].column_stride, m[2].row_stride, N);
                }
            }
}

/* ---- the loops ---- */

#define BY_HAND(name, type)                                                                                     \
    static void tile_by_hand_##name(type *c, int64_t step, const type *a, int rows, const type *b, int columns, \
                                    int64_t depth)                                                              \
    {                                                                                                           \
        for (int i = 0; i < rows; i++)                                                                          \
            for (int j = 0; j < columns; j++) {                                                                 \
                volatile type sum = 0, product;                                                                 \
                for (int64_t k = 0; k < depth; k++) {                                                           \
                    product = a[k * rows + i] * b[k * columns + j];                                             \
                    sum = sum + product;                                                                        \
                }                                                                                               \
                c[i * step + j] += sum;                                                                         \
            }                                                                                                   \
    }                                                                                                           \
    static void check_loops_##name(const stki_gemm_loops *loops, const stki_gemm_loops *plain)                  \
    {                                                                                                           \
        enum { STEP = 70, DEPTH = 20, LENGTH = 100 };                                                           \
        static type a[32 * DEPTH], b[64 * DEPTH], c[2][32 * STEP];                                              \
        for (size_t i = 0; i < 64 * DEPTH; i++) {                                                               \
            if (i < 32 * DEPTH)                                                                                 \
                a[i] = (type)stkt_random_in(&state, -100000, 100000) / 3;                                       \
            b[i] = (type)stkt_random_in(&state, -100000, 100000) / 7;                                           \
        }                                                                                                       \
        for (size_t i = 0; i < 32 * STEP; i++)                                                                  \
            c[0][i] = c[1][i] = (type)i;                                                                        \
        loops->tile(c[0], STEP, a, b, DEPTH);                                                                   \
        tile_by_hand_##name(c[1], STEP, a, loops->tile_rows, b, loops->tile_columns, DEPTH);                    \
        assert_memory_equal(c[0], c[1], sizeof c[0]);                                                           \
        for (int64_t n = 0; n < LENGTH; n++) {                                                                  \
            type x[2] = {1, 1};                                                                                 \
            loops->dot(&x[0], a + 1, b, n);                                                                     \
            plain->dot(&x[1], a + 1, b, n);                                                                     \
            assert_memory_equal(&x[0], &x[1], sizeof x[0]);                                                     \
            loops->scale_add(c[0], b, a, n);                                                                    \
            plain->scale_add(c[1], b, a, n);                                                                    \
            assert_memory_equal(c[0], c[1], sizeof c[0]);                                                       \
        }                                                                                                       \
    }
BY_HAND(f32, float)
BY_HAND(f64, double)
BY_HAND(u32, uint32_t)
BY_HAND(u64, uint64_t)

static void test_loops(void **unused)
{
    (void)unused;
    for (int isa = STKI_ISA_REF; isa <= STKI_ISA_NEON; isa++) {
        enum stki_isa which = (enum stki_isa)isa;
        if (!stki_isa_usable(which))
            continue;
        check_loops_f32(stki_gemm_loops_of(which, STKI_GEMM_F32), stki_gemm_loops_of(STKI_ISA_REF, STKI_GEMM_F32));
        check_loops_f64(stki_gemm_loops_of(which, STKI_GEMM_F64), stki_gemm_loops_of(STKI_ISA_REF, STKI_GEMM_F64));
        check_loops_u32(stki_gemm_loops_of(which, STKI_GEMM_U32), stki_gemm_loops_of(STKI_ISA_REF, STKI_GEMM_U32));
        check_loops_u64(stki_gemm_loops_of(which, STKI_GEMM_U64), stki_gemm_loops_of(STKI_ISA_REF, STKI_GEMM_U64));
    }
}

/* ---- rejected arguments and failing allocations ---- */

static void test_refusals(void **unused)
{
    stk_tensor a, b, c, out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_ones(STK_F32, 2, (const int64_t[]){4, 4}, NULL, &a, &err));
    assert_ok(stk_tensor_ones(STK_F64, 2, (const int64_t[]){4, 4}, NULL, &b, &err));
    assert_ok(stk_tensor_zeros(STK_F32, 2, (const int64_t[]){4, 4}, NULL, &c, &err));
    assert_status(stk_tensor_matmul(&a, &b, &out, &err), STK_E_BAD_DTYPE);
    assert_status(stk_tensor_matmul_into(&a, &a, &b, &err), STK_E_BAD_DTYPE);
    assert_status(stk_tensor_matmul_into(&a, &a, &a, &err), STK_E_BAD_OVERLAP);
    c.flags |= STK_TENSOR_READONLY;
    assert_status(stk_tensor_matmul_into(&a, &a, &c, &err), STK_E_BAD_ARG);
    c.flags = 0;
    c.strides[0] = 0;
    assert_status(stk_tensor_matmul_into(&a, &a, &c, &err), STK_E_BAD_OVERLAP);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    stk_tensor_release(&c);
}

static void test_allocation(void **unused)
{
    stk_tensor a, b, other_a, other_b, out;
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_ones(STK_F32, 2, (const int64_t[]){50, 40}, NULL, &a, &err));
    assert_ok(stk_tensor_ones(STK_F32, 2, (const int64_t[]){80, 60}, NULL, &b, &err));
    assert_ok(stk_tensor_slice(&b, 0, 0, 80, 2, &out, &err));
    stkt_replace(&b, out);
    assert_ok(stk_tensor_slice(&b, 1, 0, 60, 2, &out, &err)); /* a step that a CBLAS does not accept */
    stkt_replace(&b, out);
    assert_ok(stk_tensor_to_device(&a, stki_device_test(), &other_a, &err));
    assert_ok(stk_tensor_to_device(&b, stki_device_test(), &other_b, &err));
    (void)stki_cblas_name(); /* loads it before memory is counted */
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stki_memory_fail_at(n);
        stk_status status = stk_tensor_matmul(&other_a, &other_b, &out, &err);
        stki_memory_fail_at(0);
        /* also if the packed copy for the CBLAS fails, because the product is then computed without one */
        if (status == STK_OK) {
            stk_scalar element;
            assert_ok(stk_tensor_get(&out, 2, (const int64_t[]){49, 29}, &element, &err));
            assert_true(element.as.f == 40);
            stk_tensor_release(&out);
            if (n > 8)
                break;
            continue;
        }
        assert_int_equal(status, STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.bytes, before.bytes);
    }
    stk_tensor_release(&other_a);
    stk_tensor_release(&other_b);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_large),    cmocka_unit_test(test_cblas),
        cmocka_unit_test(test_loops),  cmocka_unit_test(test_refusals), cmocka_unit_test(test_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
