/* Tests of element-wise operations with random strided, broadcast and casting operands, with every variant and both
 * kinds of stores, against a loop over single elements. Nothing else in the output's memory may change. */
#include "convert.h"
#include "ops_elementwise.h"
#include "ops_promote.h"
#include "ops_test.h"

static uint64_t state = 1;

/* ---- reference for one element ---- */

struct whole {
    uint64_t bits; /* sign-extended to 64 bits */
    bool is_signed;
};

static struct whole as_whole(stk_dtype dtype, const void *src)
{
    struct whole x = {0, stki_dtype_signed(dtype)};

    stkt_cast(dtype == STK_U64 ? STK_U64 : STK_I64, &x.bits, dtype, src);
    return x;
}

static bool whole_less(struct whole a, struct whole b)
{
    return a.is_signed ? (int64_t)a.bits < (int64_t)b.bits : a.bits < b.bits;
}

static uint64_t whole_divide(enum stki_loop loop, struct whole a, struct whole b)
{
    if (!a.is_signed)
        return a.bits / b.bits;
    if ((int64_t)b.bits == -1)
        return 0 - a.bits;
    int64_t p = (int64_t)a.bits, q = (int64_t)b.bits, quotient = p / q;
    if (loop == STKI_LOOP_FLOOR_DIV && quotient * q != p && (p < 0) != (q < 0))
        quotient--;
    return (uint64_t)quotient;
}

static uint64_t whole_result(enum stki_loop loop, struct whole a, struct whole b)
{
    switch ((int)loop) {
    case STKI_LOOP_ADD:
        return a.bits + b.bits;
    case STKI_LOOP_SUB:
        return a.bits - b.bits;
    case STKI_LOOP_MUL:
        return a.bits * b.bits;
    case STKI_LOOP_EQ:
        return a.bits == b.bits;
    case STKI_LOOP_NE:
        return a.bits != b.bits;
    case STKI_LOOP_LT:
        return whole_less(a, b);
    case STKI_LOOP_LE:
        return !whole_less(b, a);
    default:
        return whole_divide(loop, a, b);
    }
}

/* The quotient rounded towards minus infinity, in long double, which represents the operands exactly. */
static double floored(long double p, long double q)
{
    if (q == 0 || isnan(p) || isnan(q) || isinf(p))
        return (double)(q == 0 ? p / q : NAN);
    if (isinf(q))
        return p == 0 ? (double)copysignl(0, p / q) : (p < 0) != (q < 0) ? -1 : 0;
    long double quotient = floorl(p / q);
    return (double)(quotient == 0 ? copysignl(0, p / q) : quotient);
}

#define REAL_RESULT(type)                                            \
    static double result_##type(enum stki_loop loop, type a, type b) \
    {                                                                \
        volatile type result;                                        \
        switch ((int)loop) {                                         \
        case STKI_LOOP_ADD:                                          \
            result = a + b;                                          \
            return (double)result;                                   \
        case STKI_LOOP_SUB:                                          \
            result = a - b;                                          \
            return (double)result;                                   \
        case STKI_LOOP_MUL:                                          \
            result = a * b;                                          \
            return (double)result;                                   \
        case STKI_LOOP_DIV:                                          \
            result = a / b;                                          \
            return (double)result;                                   \
        case STKI_LOOP_TRUNC_DIV:                                    \
            result = a / b;                                          \
            return trunc((double)result);                            \
        case STKI_LOOP_FLOOR_DIV:                                    \
            return floored((long double)a, (long double)b);          \
        case STKI_LOOP_EQ:                                           \
            return a == b;                                           \
        case STKI_LOOP_NE:                                           \
            return a != b;                                           \
        case STKI_LOOP_LT:                                           \
            return a < b;                                            \
        default:                                                     \
            return a <= b;                                           \
        }                                                            \
    }
REAL_RESULT(float)
REAL_RESULT(double)

static bool compares(enum stki_loop loop)
{
    return loop >= STKI_LOOP_EQ && loop <= STKI_LOOP_LE;
}

/* Computes a op b as an element of `out`; a and b have the common dtype. */
static void expected_element(enum stki_loop loop, stk_dtype common, const void *a, const void *b, stk_dtype out,
                             void *dst)
{
    stk_dtype result = compares(loop) ? STK_BOOL : common;
    char rounded[16];

    if (stki_dtype_category(common) == STKI_CATEGORY_REAL) {
        double x = stkt_as_double(common, a), y = stkt_as_double(common, b);
        double z = common == STK_F64 ? result_double(loop, x, y) : result_float(loop, (float)x, (float)y);
        stkt_cast(result, rounded, STK_F64, &z);
    } else {
        uint64_t z = whole_result(loop, as_whole(common, a), as_whole(common, b));
        stkt_cast(result, rounded, common == STK_BOOL ? STK_I64 : STK_U64, &z);
    }
    stkt_cast(out, dst, result, rounded);
}

/* ---- random cases ---- */

struct operand {
    stk_tensor base, view;
};

/* A tensor that broadcasts to this shape: fewer axes, axes of length 1, and axes that are already repeated. */
static void random_operand(stk_dtype dtype, int ndim, const int64_t *shape, struct operand *out)
{
    int64_t own[STK_MAX_DIMS];
    int lead = stkt_random_in(&state, 0, 4) ? 0 : (int)stkt_random_in(&state, 0, ndim);
    bool expand = stkt_random_in(&state, 0, 9) == 0;
    stk_tensor wide;
    stk_error err;

    for (int i = lead; i < ndim; i++)
        own[i - lead] = stkt_random_in(&state, 0, 4) ? shape[i] : 1;
    stkt_strided_view(&state, dtype, ndim - lead, own, &out->base, &out->view);
    stkt_fill_random(&state, &out->base);
    if (expand) {
        assert_ok(stk_tensor_expand(&out->view, ndim, shape, &wide, &err));
        stkt_replace(&out->view, wide);
    }
}

static void release(struct operand *operand)
{
    stk_tensor_release(&operand->view);
    stk_tensor_release(&operand->base);
}

/* Finds the element of an operand for the n-th element of the output and casts it to the common dtype. */
static void operand_element(const stk_tensor *tensor, const stk_tensor *out, int64_t n, stk_dtype common, void *dst)
{
    int64_t index[STK_MAX_DIMS], offset = 0;
    int lead = out->ndim - tensor->ndim;

    stkt_unravel(out->ndim, out->shape, n, index);
    for (int i = 0; i < tensor->ndim; i++)
        offset += tensor->shape[i] == 1 ? 0 : index[i + lead] * tensor->strides[i];
    stkt_cast(common, dst, tensor->dtype, (char *)tensor->data + offset);
}

/* All elements must be correct, and once the old elements are restored, the whole memory must be unchanged. */
static void check_output(const stki_elementwise *op, const struct operand *out, const stk_tensor *before,
                         const stk_tensor *a, const stk_tensor *b)
{
    int64_t size = stk_dtype_size(out->view.dtype);

    for (int64_t n = 0; n < stk_tensor_numel(&out->view); n++) {
        char x[16], y[16], expected[16], *at = stkt_element(&out->view, n);
        operand_element(a, &out->view, n, op->common, x);
        operand_element(b, &out->view, n, op->common, y);
        expected_element(op->loop, op->common, x, y, out->view.dtype, expected);
        if (!stkt_same(out->view.dtype, at, expected))
            fail_msg("loop %d, %s and %s in %s into %s, %s, stores %d: element %d is %.17g, expected %.17g",
                     (int)op->loop, stk_dtype_name(a->dtype), stk_dtype_name(b->dtype), stk_dtype_name(op->common),
                     stk_dtype_name(out->view.dtype), stki_isa_name(op->isa), (int)op->stores, (int)n,
                     stkt_as_double(out->view.dtype, at), stkt_as_double(out->view.dtype, expected));
        memcpy(at, (char *)before->data + (at - (char *)out->base.data), (size_t)size);
    }
    assert_memory_equal(out->base.data, before->data, (size_t)stk_tensor_nbytes(before));
}

static stk_dtype random_dtype(void)
{
    return stkt_dtypes[stkt_random_in(&state, 0, STKT_DTYPES - 1)];
}

/* Replaces zeros among integer divisors. */
static void remove_zeros(const stk_tensor *base, stk_dtype common)
{
    int64_t size = stk_dtype_size(base->dtype), one = 1;
    char element[16], zero[16] = {0};

    for (int64_t i = 0; i < stk_tensor_numel(base); i++) {
        char *at = (char *)base->data + i * size;
        stkt_cast(common, element, base->dtype, at);
        if (!memcmp(element, zero, (size_t)stk_dtype_size(common))) {
            stkt_cast(base->dtype, element, STK_I64, &one);
            memcpy(at, element, (size_t)size);
        }
    }
}

static void random_case(void)
{
    stki_elementwise op = {.loop = (enum stki_loop)stkt_random_in(&state, 0, STKI_LOOP_LE), .common = random_dtype()};
    int64_t shape[STK_MAX_DIMS];
    int ndim = stkt_random_shape(&state, shape);
    bool whole = stki_dtype_category(op.common) == STKI_CATEGORY_WHOLE;
    stk_dtype out_dtype = random_dtype();
    struct operand a, b, out;
    stk_tensor before;
    stk_error err;

    op.compute = stki_compute_dtype(op.common);
    op.writes = compares(op.loop) ? STK_BOOL : op.compute;
    op.result = compares(op.loop) ? STK_BOOL : op.common;
    if (!stki_loops_find(STKI_ISA_REF, op.loop, op.compute))
        return;
    if (stkt_random_in(&state, 0, 1) || !stki_can_store(op.result, out_dtype))
        out_dtype = op.result;
    /* integers only from integers, because other casts are not fully specified */
    random_operand(stkt_random_in(&state, 0, 2) ? op.common : whole ? STK_U8 : random_dtype(), ndim, shape, &a);
    random_operand(stkt_random_in(&state, 0, 2) ? op.common : whole ? STK_I16 : random_dtype(), ndim, shape, &b);
    if (whole && (op.loop == STKI_LOOP_FLOOR_DIV || op.loop == STKI_LOOP_TRUNC_DIV))
        remove_zeros(&b.base, op.common);
    stkt_strided_view(&state, out_dtype, ndim, shape, &out.base, &out.view);
    memset(out.base.data, 0x5a, (size_t)stk_tensor_nbytes(&out.base));
    assert_ok(stk_tensor_clone(&out.base, &before, &err));
    memcpy(before.data, out.base.data, (size_t)stk_tensor_nbytes(&out.base)); /* includes invalid bools */
    for (int isa = STKI_ISA_REF; isa <= STKI_ISA_NEON; isa++)
        for (int stores = STKI_STORES_CACHED; stores <= STKI_STORES_STREAMING; stores++) {
            if (!stki_isa_usable((enum stki_isa)isa))
                continue;
            op.isa = (enum stki_isa)isa;
            op.stores = (enum stki_stores)stores;
            stki_elementwise_run(&op, &out.view, (stki_input){.tensor = &a.view}, (stki_input){.tensor = &b.view});
            check_output(&op, &out, &before, &a.view, &b.view);
        }
    stk_tensor_release(&before);
    release(&a);
    release(&b);
    release(&out);
}

static void test_random(void **unused)
{
    (void)unused;
    for (int i = 0; i < 3000; i++)
        random_case();
}

/* ---- long rows and tiles ---- */

/* f32 additions of rows that are longer than any block, with every alignment of output and inputs. */
static void test_long_rows(void **unused)
{
    enum { LENGTH = 5000, SHIFTS = 17 };
    static char memory[3][4 * LENGTH + 64];
    stki_elementwise op = {
        .loop = STKI_LOOP_ADD, .common = STK_F32, .compute = STK_F32, .writes = STK_F32, .result = STK_F32};
    (void)unused;
    for (int64_t shift = 0; shift < SHIFTS; shift++)
        for (int isa = STKI_ISA_REF; isa <= STKI_ISA_NEON; isa++)
            for (int stores = STKI_STORES_CACHED; stores <= STKI_STORES_STREAMING; stores++) {
                int64_t shape[1] = {LENGTH - shift * 3};
                stk_tensor a, b, out;
                stk_error err;
                if (!stki_isa_usable((enum stki_isa)isa))
                    continue;
                assert_ok(stk_tensor_borrow(memory[0] + shift, STK_F32, 1, shape, NULL, &out, &err));
                assert_ok(stk_tensor_borrow(memory[1] + shift / 2, STK_F32, 1, shape, NULL, &a, &err));
                assert_ok(stk_tensor_borrow(memory[2] + shift * 3 % 8, STK_F32, 1, shape, NULL, &b, &err));
                memset(memory[0], 0x5a, sizeof memory[0]);
                for (int64_t i = 0; i < shape[0]; i++) {
                    memcpy((char *)a.data + 4 * i, &(float){(float)i}, 4);
                    memcpy((char *)b.data + 4 * i, &(float){(float)(i * i)}, 4);
                }
                op.isa = (enum stki_isa)isa;
                op.stores = (enum stki_stores)stores;
                stki_elementwise_run(&op, &out, (stki_input){.tensor = &a}, (stki_input){.tensor = &b});
                for (int64_t i = 0; i < shape[0]; i++) {
                    float found;
                    memcpy(&found, (char *)out.data + 4 * i, 4);
                    assert_true(found == (float)i + (float)(i * i));
                }
                for (int64_t i = 0; i < (int64_t)sizeof memory[0]; i++)
                    if (i < shift || i >= shift + 4 * shape[0])
                        assert_int_equal(memory[0][i], 0x5a);
            }
}

/* A tensor of this shape with random elements, contiguous along the first axis if `turned`. */
static stk_tensor random_matrix(stk_dtype dtype, int64_t rows, int64_t columns, bool turned)
{
    const int64_t shape[2] = {turned ? columns : rows, turned ? rows : columns};
    stk_tensor base, view;
    stk_error err;

    assert_ok(stk_tensor_empty(dtype, 2, shape, NULL, &base, &err));
    stkt_fill_random(&state, &base);
    if (!turned)
        return base;
    assert_ok(stk_tensor_transpose(&base, 0, 1, &view, &err));
    stk_tensor_release(&base);
    return view;
}

/* Larger than a tile in both directions, for every element size, with one or both operands transposed. */
static void test_large_tiles(void **unused)
{
    static const stk_dtype dtypes[] = {STK_U8, STK_BF16, STK_F32, STK_F64, STK_I64};
    enum { ROWS = 133, COLUMNS = 150 };

    (void)unused;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (int which = 0; which < 8; which++) {
            stk_tensor a = random_matrix(dtypes[d], ROWS, COLUMNS, which & 1),
                       b = random_matrix(dtypes[d], ROWS, COLUMNS, which & 2),
                       out = random_matrix(dtypes[d], ROWS, COLUMNS, which & 4);
            stk_error err;
            assert_ok(stk_tensor_sub_into(&a, &b, &out, &err));
            for (int64_t n = 0; n < ROWS * COLUMNS; n++) {
                char expected[16];
                expected_element(STKI_LOOP_SUB, dtypes[d], stkt_element(&a, n), stkt_element(&b, n), dtypes[d],
                                 expected);
                assert_true(stkt_same(dtypes[d], stkt_element(&out, n), expected));
            }
            stk_tensor_release(&a);
            stk_tensor_release(&b);
            stk_tensor_release(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_long_rows),
                                       cmocka_unit_test(test_large_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
