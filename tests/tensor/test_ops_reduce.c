/* Tests of sums, means, extremes and their positions over random dimensions of random strided tensors, against loops
 * over single elements; of the loops of all variants against each other; with long sums, special numbers and no
 * elements. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "ops_extreme_loops.h"
#include "ops_sum_loops.h"
#include "ops_test.h"
#include "test_device.h"

static uint64_t state = 1;

/* ---- reference: all elements of one result, in row-major order ---- */

enum { MOST = 1 << 16 };

static struct {
    int64_t count;
    const char *at[MOST];
} group;

struct reduction {
    int dim_count, dims[STK_MAX_DIMS];
    const int *list; /* NULL: all dimensions */
    bool reduced[STK_MAX_DIMS], keep;
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* of the result */
};

static void random_reduction(const stk_tensor *tensor, struct reduction *r)
{
    *r = (struct reduction){.keep = stkt_random_in(&state, 0, 1)};
    for (int i = 0; i < tensor->ndim; i++)
        if (stkt_random_in(&state, 0, 1)) {
            r->reduced[i] = true;
            r->dims[r->dim_count++] = stkt_random_in(&state, 0, 1) ? i : i - tensor->ndim;
        }
    r->list = r->dims;
    if (stkt_random_in(&state, 0, 4) == 0) {
        r->list = NULL;
        for (int i = 0; i < tensor->ndim; i++)
            r->reduced[i] = true;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        if (!r->reduced[i])
            r->shape[r->ndim++] = tensor->shape[i];
        else if (r->keep)
            r->shape[r->ndim++] = 1;
    }
}

/* Collects the elements of the n-th result. */
static void collect(const stk_tensor *tensor, const struct reduction *r, int64_t n)
{
    int64_t wanted[STK_MAX_DIMS], index[STK_MAX_DIMS];

    stkt_unravel(r->ndim, r->shape, n, wanted);
    group.count = 0;
    for (int64_t m = 0; m < stk_tensor_numel(tensor); m++) {
        bool belongs = true;
        stkt_unravel(tensor->ndim, tensor->shape, m, index);
        for (int i = 0, at = 0; i < tensor->ndim; i++) {
            if (!r->reduced[i])
                belongs = belongs && index[i] == wanted[at++];
            else if (r->keep)
                at++;
        }
        if (belongs)
            group.at[group.count++] = stkt_element(tensor, m);
    }
}

static void check_shape(const stk_tensor *out, const struct reduction *r)
{
    assert_int_equal(out->ndim, r->ndim);
    for (int i = 0; i < r->ndim; i++)
        assert_int_equal(out->shape[i], r->shape[i]);
}

/* ---- sums ---- */

/* Compares with a sum in long double: within four units in the last place of the sum of magnitudes. */
static void check_real_sum(stk_dtype in, stk_dtype via, const char *found, bool mean)
{
    long double sum = 0, magnitudes = 0;
    double unit = via == STK_F64 ? 0x1p-53 : via == STK_F32 ? 0x1p-24 : via == STK_F16 ? 0x1p-11 : 0x1p-8;
    double got = stkt_as_double(via, found);
    char rounded[16];

    for (int64_t i = 0; i < group.count; i++) {
        char element[16];
        stkt_cast(via, element, in, group.at[i]);
        long double x = (long double)stkt_as_double(via, element);
        sum += x;
        magnitudes += fabsl(x);
    }
    if (mean)
        sum /= (long double)group.count, magnitudes /= (long double)group.count;
    double rounded_sum = (double)sum;
    stkt_cast(via, rounded, STK_F64, &rounded_sum);
    if (stkt_same(via, rounded, found))
        return;
    if (isnan((double)sum) && isnan(got))
        return;
    if (!(fabs(got - (double)sum) <= 4 * unit * (double)magnitudes))
        fail_msg("%s as %s: sum of %d is %.17g, expected %.17Lg", stk_dtype_name(in), stk_dtype_name(via),
                 (int)group.count, got, sum);
}

static void check_whole_sum(stk_dtype in, stk_dtype via, const char *found)
{
    uint64_t sum = 0;
    char expected[16];

    for (int64_t i = 0; i < group.count; i++) {
        char element[16];
        int64_t x;
        stkt_cast(via, element, in, group.at[i]);
        stkt_cast(STK_I64, &x, via, element);
        sum += (uint64_t)x;
    }
    stkt_cast(via, expected, STK_I64, &sum);
    if (memcmp(expected, found, (size_t)stk_dtype_size(via)) != 0)
        fail_msg("%s as %s: sum of %d is wrong", stk_dtype_name(in), stk_dtype_name(via), (int)group.count);
}

static void random_input(stk_dtype dtype, stk_tensor *base, stk_tensor *view)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim;

    do
        ndim = stkt_random_shape(&state, shape);
    while (stkt_count(ndim, shape) > 9000);
    stkt_strided_view(&state, dtype, ndim, shape, base, view);
    stkt_fill_random(&state, base);
}

static void random_sum(void)
{
    stk_dtype in = stkt_dtypes[stkt_random_in(&state, 0, STKT_DTYPES - 1)], via = in, wanted = STK_DTYPE_NONE;
    bool real = stki_dtype_category(in) == STKI_CATEGORY_REAL;
    stk_tensor base, view, out, into;
    struct reduction r;
    stk_error err;

    random_input(in, &base, &view);
    random_reduction(&view, &r);
    via = real ? in : STK_I64;
    if (stkt_random_in(&state, 0, 2) ==
        /* into another dtype; reals only into reals, because these casts are fully specified */
        0) {
        via = wanted = stkt_dtypes[stkt_random_in(&state, 0, STKT_DTYPES - 1)];
        if (real && stki_dtype_category(via) != STKI_CATEGORY_REAL)
            via = wanted = STK_F32;
    }
    bool mean = stki_dtype_category(via) == STKI_CATEGORY_REAL && stkt_random_in(&state, 0, 1);
    assert_ok((mean ? stk_tensor_mean : stk_tensor_sum)(&view, r.dim_count, r.list, r.keep, wanted, &out, &err));
    check_shape(&out, &r);
    assert_int_equal(out.dtype, via);
    if (!mean) {
        stk_tensor place;
        stkt_strided_view(&state, via, r.ndim, r.shape, &place, &into);
        assert_ok(stk_tensor_sum_into(&view, r.dim_count, r.list, r.keep, &into, &err));
        for (int64_t n = 0; n < stk_tensor_numel(&out); n++)
            assert_true(stkt_same(via, stkt_element(&into, n), stkt_element(&out, n)));
        stk_tensor_release(&into);
        stk_tensor_release(&place);
    }
    int64_t results = stk_tensor_numel(&out), checked = results < 20 ? results : 20;
    for (int64_t k = 0; k < checked; k++) {
        int64_t n = results <= 20 ? k : stkt_random_in(&state, 0, results - 1);
        collect(&view, &r, n);
        if (stki_dtype_category(via) == STKI_CATEGORY_REAL)
            check_real_sum(in, via, stkt_element(&out, n), mean);
        else
            check_whole_sum(in, via, stkt_element(&out, n));
    }
    stk_tensor_release(&out);
    stk_tensor_release(&view);
    stk_tensor_release(&base);
}

static void test_random_sums(void **unused)
{
    (void)unused;
    for (int i = 0; i < 3000; i++)
        random_sum();
}

/* Sums whose exact value is known. Adding 0.1f n times in f32 would give a wrong third digit. */
static void test_long_sums(void **unused)
{
    static const int64_t shapes[][3] = {
        {1, 1, 3000000}, {3000000, 1, 1}, {1, 1000000, 3}, {1000, 1000, 3}, {7, 150000, 3}};
    stk_error err;

    (void)unused;
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int kept = 0; kept < 3; kept++) {
            int dims[2] = {(kept + 1) % 3, (kept + 2) % 3};
            stk_tensor ones, out;
            assert_ok(stk_tensor_full(STK_F32, 3, shapes[k], stk_real(0.1), NULL, &ones, &err));
            assert_ok(stk_tensor_sum(&ones, 2, dims, false, STK_DTYPE_NONE, &out, &err));
            double expected = (double)0.1f * (double)(shapes[k][dims[0]] * shapes[k][dims[1]]);
            for (int64_t n = 0; n < out.shape[0]; n++)
                assert_true(((float *)out.data)[n] == (float)expected);
            stk_tensor_release(&out);
            stk_tensor_release(&ones);
        }
}

/* In f64 sums that are longer than a run summed without compensation, the rounding error of each run is not lost. */
static void test_compensation(void **unused)
{
    enum { RUN = 4096 };
    double *values = calloc(3 * RUN, sizeof *values);
    const int64_t shapes[2][2] = {{1, 3 * RUN}, {3 * RUN, 1}};
    stk_tensor tensor, out;
    stk_error err;

    (void)unused;
    assert_non_null(values);
    values[0] = 0x1p60;
    values[RUN] = 1;
    values[2 * RUN] = -0x1p60;
    for (int k = 0; k < 2; k++) {
        assert_ok(stk_tensor_borrow(values, STK_F64, 2, shapes[k], NULL, &tensor, &err));
        assert_ok(stk_tensor_sum(&tensor, 0, NULL, false, STK_DTYPE_NONE, &out, &err));
        assert_true(*(double *)out.data == 1);
        stk_tensor_release(&out);
    }
    values[1] = INFINITY;
    values[RUN + 1] = 0x1p1000;
    assert_ok(stk_tensor_sum(&tensor, 0, NULL, false, STK_DTYPE_NONE, &out, &err));
    assert_true(*(double *)out.data == INFINITY);
    stk_tensor_release(&out);
    free(values);
}

/* ---- the loops of sums ---- */

/* The order of additions that the header promises. */
static double row_by_hand(const double *x, int64_t n)
{
    double lane[STKI_SUM_LANES] = {0};

    for (int64_t i = 0; i < n; i++)
        lane[i % STKI_SUM_LANES] += x[i];
    for (int half = STKI_SUM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static void columns_by_hand(double *acc, const double *x, int64_t step, int64_t rows, int64_t columns)
{
    int64_t r = 0;

    for (; r + 8 <= rows; r += 8)
        for (int64_t j = 0; j < columns; j++) {
            const double *y = x + r * step + j;
            acc[j] += ((y[0] + y[step]) + (y[2 * step] + y[3 * step])) +
                      ((y[4 * step] + y[5 * step]) + (y[6 * step] + y[7 * step]));
        }
    for (; r < rows; r++)
        for (int64_t j = 0; j < columns; j++)
            acc[j] += x[r * step + j];
}

static void test_sum_loops(void **unused)
{
    enum { LENGTH = 4000 };
    static char narrow[4 * LENGTH + 8], wide[8 * LENGTH + 8];
    static double values[LENGTH];

    (void)unused;
    for (int64_t i = 0; i < LENGTH; i++)
        values[i] = (double)((float)stkt_random_in(&state, -1000000, 1000000) * 1.1f);
    for (int isa = STKI_ISA_REF; isa <= STKI_ISA_NEON; isa++) {
        const stki_sum_loops loops = stki_sum_loops_of((enum stki_isa)isa);
        if (!stki_isa_usable((enum stki_isa)isa))
            continue;
        for (int shift = 0; shift < 8; shift += 3) {
            for (int64_t i = 0; i < LENGTH; i++) {
                memcpy(narrow + shift + 4 * i, &(float){(float)values[i]}, 4);
                memcpy(wide + shift + 8 * i, &values[i], 8);
            }
            for (int64_t n = 0; n < 150; n++) {
                double sum = row_by_hand(values, n);
                assert_true(loops.row_f32(narrow + shift, n) == sum);
                assert_true(loops.row_f64(wide + shift, n) == sum);
            }
            for (int64_t columns = 0; columns < 70; columns++)
                for (int64_t rows = 0; rows < 26; rows += 5) {
                    double expected[72] = {1, 2, 3}, found_f32[72] = {1, 2, 3}, found_f64[72] = {1, 2, 3};
                    columns_by_hand(expected, values, 71, rows, columns);
                    loops.columns_f32(found_f32, narrow + shift, 4 * 71, rows, columns);
                    loops.columns_f64(found_f64, wide + shift, 8 * 71, rows, columns);
                    assert_memory_equal(found_f32, expected, sizeof expected);
                    assert_memory_equal(found_f64, expected, sizeof expected);
                }
        }
    }
}

/* ---- extremes ---- */

/* Returns whether x takes precedence over best: the first NaN if there is one, otherwise the first of the extremes. */
static bool wins(stk_dtype dtype, const char *x, const char *best, bool largest)
{
    if (stki_dtype_category(dtype) == STKI_CATEGORY_REAL) {
        double p = stkt_as_double(dtype, x), q = stkt_as_double(dtype, best);
        return !isnan(q) && (isnan(p) || (largest ? p > q : p < q));
    }
    if (dtype == STK_U64) {
        uint64_t p, q;
        stkt_cast(STK_U64, &p, dtype, x);
        stkt_cast(STK_U64, &q, dtype, best);
        return largest ? p > q : p < q;
    }
    int64_t p, q;
    stkt_cast(STK_I64, &p, dtype, x);
    stkt_cast(STK_I64, &q, dtype, best);
    return largest ? p > q : p < q;
}

static int64_t best_of_group(stk_dtype dtype, bool largest)
{
    int64_t best = 0;

    for (int64_t i = 1; i < group.count; i++)
        if (wins(dtype, group.at[i], group.at[best], largest))
            best = i;
    return best;
}

/* Compares two elements as numbers, because either of two zeros may be the smallest. */
static bool equal(stk_dtype dtype, const char *a, const char *b)
{
    return !wins(dtype, a, b, true) && !wins(dtype, b, a, true);
}

static void random_extreme(void)
{
    stk_dtype dtype = stkt_dtypes[stkt_random_in(&state, 0, STKT_DTYPES - 1)];
    bool largest = stkt_random_in(&state, 0, 1);
    stk_tensor base, view, out = {0}, values = {0}, indices = {0};
    struct reduction r;
    stk_error err;

    random_input(dtype, &base, &view);
    random_reduction(&view, &r);
    stk_status status = (largest ? stk_tensor_amax : stk_tensor_amin)(&view, r.dim_count, r.list, r.keep, &out, &err);
    bool empty = false;
    for (int i = 0; i < view.ndim; i++)
        empty = empty || (r.reduced[i] && view.shape[i] == 0);
    assert_int_equal(status, empty ? STK_E_EMPTY_REDUCE : STK_OK);
    for (int64_t n = 0; !empty && n < stk_tensor_numel(&out); n += 1 + stk_tensor_numel(&out) / 20) {
        collect(&view, &r, n);
        int64_t best = best_of_group(dtype, largest);
        assert_true(equal(dtype, stkt_element(&out, n), group.at[best]));
    }
    stk_tensor_release(&out);

    int dim = view.ndim ? (int)stkt_random_in(&state, 0, view.ndim - 1) : 0;
    bool all = stkt_random_in(&state, 0, 3) == 0;
    r = (struct reduction){.keep = r.keep};
    for (int i = 0; i < view.ndim; i++) {
        r.reduced[i] = all || i == dim;
        if (!r.reduced[i] || r.keep)
            r.shape[r.ndim++] = r.reduced[i] ? 1 : view.shape[i];
    }
    empty = view.ndim && (all ? stk_tensor_numel(&view) == 0 : view.shape[dim] == 0);
    if (all)
        status = (largest ? stk_tensor_argmax : stk_tensor_argmin)(&view, STK_ALL_DIMS, r.keep, &indices, &err);
    else
        status = (largest ? stk_tensor_max : stk_tensor_min)(&view, dim, r.keep, &values, &indices, &err);
    assert_int_equal(status, empty ? STK_E_EMPTY_REDUCE : STK_OK);
    for (int64_t n = 0; !empty && n < stk_tensor_numel(&indices); n += 1 + stk_tensor_numel(&indices) / 20) {
        int64_t found;
        check_shape(&indices, &r);
        collect(&view, &r, n);
        int64_t best = best_of_group(dtype, largest);
        memcpy(&found, stkt_element(&indices, n), 8);
        assert_int_equal(found, best);
        if (!all)
            assert_true(equal(dtype, stkt_element(&values, n), group.at[best]));
    }
    stk_tensor_release(&values);
    stk_tensor_release(&indices);
    stk_tensor_release(&view);
    stk_tensor_release(&base);
}

static void test_random_extremes(void **unused)
{
    (void)unused;
    for (int i = 0; i < 3000; i++)
        random_extreme();
}

/* The loops of every variant with all lengths around their vector sizes, unaligned. */
static void test_extreme_loops(void **unused)
{
    enum { LENGTH = 300 };
    static char x[8 * LENGTH + 8];

    (void)unused;
    for (int isa = STKI_ISA_AVX2; isa <= STKI_ISA_NEON; isa++)
        for (int d = 0; d < STKT_DTYPES; d++)
            for (int largest = 0; largest < 2; largest++) {
                stk_dtype dtype = stkt_dtypes[d];
                int64_t size = stk_dtype_size(dtype);
                const stki_extreme_loops *plain = stki_extreme_loops_of(STKI_ISA_REF, dtype, largest),
                                         *quick = stki_extreme_loops_of((enum stki_isa)isa, dtype, largest);
                if (!stki_isa_usable((enum stki_isa)isa) || !plain->row)
                    continue;
                for (int64_t n = 0; n < LENGTH; n += n < 80 ? 1 : 37) {
                    int64_t shift = n % 8;
                    char best[2][8], many[2][8 * LENGTH];
                    int64_t index[2][LENGTH] = {{0}};
                    for (int64_t i = 0; i < n; i++)
                        stkt_random_element(&state, dtype, x + shift + i * size);
                    for (int k = 0; k < 2; k++) {
                        const stki_extreme_loops *loops = k ? quick : plain;
                        stki_extreme_fill(best[k], dtype, largest, 1);
                        stki_extreme_fill(many[k], dtype, largest, LENGTH);
                        loops->row(best[k], x + shift, n);
                        loops->columns(many[k], x + shift, n);
                        loops->columns_at(many[k], index[k], x + shift, n, 7);
                        loops->columns_at(many[k], index[k], x + shift + (n ? size : 0), n ? n - 1 : 0, 8);
                    }
                    assert_true(equal(dtype, best[0], best[1]));
                    assert_int_equal(plain->find(best[0], x + shift, n), quick->find(best[1], x + shift, n));
                    assert_memory_equal(many[0], many[1], (size_t)(n * size));
                    assert_memory_equal(index[0], index[1], sizeof index[0]);
                }
            }
}

/* ---- rejected arguments, overlap and failing allocations ---- */

static void test_refusals(void **unused)
{
    stk_tensor tensor, view, out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_arange(STK_I32, stk_int(0), stk_int(12), stk_int(1), NULL, &tensor, &err));
    assert_ok(stk_tensor_view(&tensor, 2, (const int64_t[]){3, 4}, &view, &err));
    assert_status(stk_tensor_sum(&view, 2, (const int[]){1, -1}, false, STK_DTYPE_NONE, &out, &err), STK_E_BAD_DIM);
    assert_status(stk_tensor_sum(&view, 1, (const int[]){2}, false, STK_DTYPE_NONE, &out, &err), STK_E_BAD_DIM);
    assert_status(stk_tensor_mean(&view, 0, NULL, false, STK_DTYPE_NONE, &out, &err), STK_E_BAD_DTYPE);
    assert_status(stk_tensor_min(&view, STK_ALL_DIMS, false, &out, NULL, &err), STK_E_BAD_DIM);
    assert_status(stk_tensor_argmax(&view, 5, false, &out, &err), STK_E_BAD_DIM);
    assert_status(stk_tensor_sum_into(&view, 1, (const int[]){0}, false, &tensor, &err), STK_E_BAD_BROADCAST);
    stk_tensor_release(&view);
    stk_tensor_release(&tensor);
}

/* A sum into its own input, through a view with gaps: the first results would overwrite elements that later ones
 * need. */
static void test_sum_into_itself(void **unused)
{
    stk_tensor base, in, out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_arange(STK_I64, stk_int(0), stk_int(24), stk_int(1), NULL, &base, &err));
    assert_ok(stk_tensor_view(&base, 3, (const int64_t[]){2, 3, 4}, &in, &err));
    assert_ok(
        stk_tensor_as_strided(&base, 2, (const int64_t[]){2, 3}, (const int64_t[]){5 * 8, 2 * 8}, 13 * 8, &out, &err));
    assert_ok(stk_tensor_sum_into(&in, 1, (const int[]){2}, false, &out, &err));
    for (int64_t n = 0; n < 6; n++) {
        int64_t found;
        memcpy(&found, stkt_element(&out, n), sizeof found);
        assert_int_equal(found, 16 * n + 6);
    }
    stk_tensor_release(&out);
    stk_tensor_release(&in);
    stk_tensor_release(&base);
}

static void test_allocation(void **unused)
{
    stk_tensor wide, other, out, indices;
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_ones(STK_F32, 2, (const int64_t[]){3, 5000}, NULL, &wide, &err));
    assert_ok(stk_tensor_to_device(&wide, stki_device_test(), &other, &err));
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int which = 0; which < 3; which++)
        for (int64_t n = 1;; n++) {
            stk_status status;
            indices = (stk_tensor){0};
            stki_memory_fail_at(n);
            if (which == 0)
                status = stk_tensor_sum(&wide, 1, (const int[]){0}, false, STK_DTYPE_NONE, &out, &err);
            else if (which == 1)
                status = stk_tensor_amax(&other, 1, (const int[]){0}, false, &out, &err);
            else
                status = stk_tensor_max(&other, 0, false, &out, &indices, &err);
            stki_memory_fail_at(0);
            if (status == STK_OK) {
                assert_true(n > 3);
                stk_tensor_release(&out);
                stk_tensor_release(&indices);
                break;
            }
            assert_int_equal(status, STK_E_MEMORY);
            stki_memory_read(STKI_MEM_HOST, &after);
            assert_int_equal(after.bytes, before.bytes);
        }
    stk_tensor_release(&other);
    stk_tensor_release(&wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sums),     cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_compensation),    cmocka_unit_test(test_sum_loops),
        cmocka_unit_test(test_random_extremes), cmocka_unit_test(test_extreme_loops),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_sum_into_itself),
        cmocka_unit_test(test_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
