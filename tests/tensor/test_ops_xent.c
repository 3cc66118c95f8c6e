/* Tests of log-softmax and cross entropy of random strided tensors against sums in long double, with special numbers,
 * options and rejected arguments. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "ops_test.h"
#include "test_device.h"

static uint64_t state = 1;

static void random_reals(stk_dtype dtype, int ndim, const int64_t *shape, double low, double high, stk_tensor *base,
                         stk_tensor *view)
{
    stkt_strided_view(&state, dtype, ndim, shape, base, view);
    for (int64_t i = 0; i < stk_tensor_numel(base); i++) {
        double x = low + (high - low) * (double)stkt_random_in(&state, 0, 1000) / 1000;
        stkt_cast(dtype, (char *)base->data + i * stk_dtype_size(dtype), STK_F64, &x);
    }
}

static long double log_sum(stk_dtype dtype, const char *x, int64_t step, int64_t classes)
{
    long double sum = 0;

    for (int64_t c = 0; c < classes; c++)
        sum += expl((long double)stkt_as_double(dtype, x + c * step));
    return logl(sum);
}

/* Within two units in the dtype's last place, plus rounding errors of f64. */
static void check_close(stk_dtype dtype, const char *found, long double expected)
{
    double unit = dtype == STK_F64 ? 0x1p-46 : dtype == STK_F32 ? 0x1p-23 : dtype == STK_F16 ? 0x1p-10 : 0x1p-7;
    double got = stkt_as_double(dtype, found);

    if (isnan((double)expected) ? !isnan(got)
                                : !(fabsl((long double)got - expected) <=
                                    (long double)unit * fabsl(expected) + (dtype == STK_F16 ? 0x1p-24L : 1e-12L)))
        fail_msg("%s: %.17g, expected %.17Lg", stk_dtype_name(dtype), got, expected);
}

static const stk_dtype reals[] = {STK_F16, STK_BF16, STK_F32, STK_F64};

/* ---- log-softmax ---- */

static void test_log_softmax(void **unused)
{
    (void)unused;
    for (int round = 0; round < 400; round++) {
        stk_dtype dtype = reals[stkt_random_in(&state, 0, 3)];
        int64_t shape[STK_MAX_DIMS];
        int ndim = stkt_random_shape(&state, shape);
        int dim = ndim ? (int)stkt_random_in(&state, 0, ndim - 1) : -1;
        stk_tensor base, view, out;
        stk_error err;
        if (round == 0 || ndim == 0)
            shape[0] = 700, ndim = 1, dim = 0; /* longer than a block */
        random_reals(dtype, ndim, shape, -20, 20, &base, &view);
        assert_ok(stk_tensor_log_softmax(&view, stkt_random_in(&state, 0, 1) ? dim : dim - ndim, &out, &err));
        for (int64_t n = 0; n < stk_tensor_numel(&view); n += 1 + stk_tensor_numel(&view) / 50) {
            int64_t index[STK_MAX_DIMS];
            stkt_unravel(ndim, shape, n, index);
            const char *x = stkt_element(&view, n), *first = x - index[dim] * view.strides[dim];
            long double expected =
                (long double)stkt_as_double(dtype, x) - log_sum(dtype, first, view.strides[dim], shape[dim]);
            check_close(dtype, stkt_element(&out, n), expected);
        }
        stk_tensor_release(&out);
        stk_tensor_release(&view);
        stk_tensor_release(&base);
    }
}

static void test_log_softmax_specials(void **unused)
{
    static const struct {
        float in[3], out[3];
    } rows[] = {{{1000, 1000, -INFINITY}, {-0.69314718f, -0.69314718f, -INFINITY}},
                {{INFINITY, 0, 0}, {NAN, NAN, NAN}},
                {{-INFINITY, -INFINITY, -INFINITY}, {NAN, NAN, NAN}},
                {{NAN, 0, 0}, {NAN, NAN, NAN}}};
    const int64_t shape[1] = {3};
    stk_tensor in, out;
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_ok(stk_tensor_from_array(STK_F32, rows[i].in, 12, 1, shape, NULL, &in, &err));
        assert_ok(stk_tensor_log_softmax(&in, 0, &out, &err));
        for (int k = 0; k < 3; k++)
            assert_true(stkt_same(STK_F32, &((float *)out.data)[k], &rows[i].out[k]));
        stk_tensor_release(&in);
        stk_tensor_release(&out);
    }
    assert_ok(stk_tensor_ones(STK_I32, 1, shape, NULL, &in, &err));
    assert_status(stk_tensor_log_softmax(&in, 0, &out, &err), STK_E_BAD_DTYPE);
    assert_status(stk_tensor_log_softmax(&in, 1, &out, &err), STK_E_BAD_DIM);
    stk_tensor_release(&in);
}

/* ---- cross entropy ---- */

struct problem {
    stk_dtype dtype;
    int64_t samples, classes, positions; /* positions 0: the axis does not exist */
    bool probabilities, weighted;
    double smoothing;
    stk_tensor logits_base, logits, target_base, target, weight_base, weight;
};

static void make_problem(struct problem *p)
{
    int64_t logit_shape[3], target_shape[3];
    int ndim = 2;

    *p = (struct problem){.dtype = reals[stkt_random_in(&state, 0, 3)],
                          .samples = stkt_random_in(&state, 1, 9),
                          .classes = stkt_random_in(&state, 0, 4) ? stkt_random_in(&state, 1, 12) : 600,
                          .positions = stkt_random_in(&state, 0, 1) ? 0 : stkt_random_in(&state, 1, 4),
                          .probabilities = stkt_random_in(&state, 0, 2) == 0,
                          .weighted = stkt_random_in(&state, 0, 1),
                          .smoothing = stkt_random_in(&state, 0, 1) ? 0 : (double)stkt_random_in(&state, 0, 4) / 4};
    logit_shape[0] = target_shape[0] = p->samples;
    logit_shape[1] = p->classes;
    if (p->positions)
        logit_shape[ndim++] = target_shape[1] = p->positions;
    random_reals(p->dtype, ndim, logit_shape, -6, 6, &p->logits_base, &p->logits);
    random_reals(p->dtype, 1, &p->classes, 0, 2, &p->weight_base, &p->weight);
    if (p->probabilities) {
        random_reals(p->dtype, ndim, logit_shape, 0, 1, &p->target_base, &p->target);
        return;
    }
    stkt_strided_view(&state, STK_I64, ndim - 1, target_shape, &p->target_base, &p->target);
    for (int64_t i = 0; i < stk_tensor_numel(&p->target_base); i++)
        ((int64_t *)p->target_base.data)[i] =
            stkt_random_in(&state, 0, 5) ? stkt_random_in(&state, 0, p->classes - 1) : -1; /* -1 is ignored below */
}

static void release_problem(struct problem *p)
{
    stk_tensor_release(&p->logits);
    stk_tensor_release(&p->logits_base);
    stk_tensor_release(&p->target);
    stk_tensor_release(&p->target_base);
    stk_tensor_release(&p->weight);
    stk_tensor_release(&p->weight_base);
}

static long double weight_of(const struct problem *p, int64_t c)
{
    return p->weighted ? (long double)stkt_as_double(p->dtype, stkt_element(&p->weight, c)) : 1;
}

/* The loss of a sample, and its contribution to the divisor of the mean. */
static long double loss_by_hand(const struct problem *p, int64_t sample, int64_t position, long double *divisor)
{
    int64_t step = p->logits.strides[1];
    const char *x =
        (char *)p->logits.data + sample * p->logits.strides[0] + (p->positions ? position * p->logits.strides[2] : 0);
    long double lse = log_sum(p->dtype, x, step, p->classes), e = (long double)p->smoothing, loss = 0;
    int64_t target = 0;

    if (!p->probabilities)
        memcpy(&target,
               (char *)p->target.data + sample * p->target.strides[0] +
                   (p->positions ? position * p->target.strides[1] : 0),
               8);
    if (target == -1)
        return 0;
    *divisor += p->probabilities ? 1 : weight_of(p, target);
    for (int64_t c = 0; c < p->classes; c++) {
        long double lp = (long double)stkt_as_double(p->dtype, x + c * step) - lse;
        long double q = c == target;
        if (p->probabilities)
            q = (long double)stkt_as_double(p->dtype, (char *)p->target.data + sample * p->target.strides[0] +
                                                          c * p->target.strides[1] +
                                                          (p->positions ? position * p->target.strides[2] : 0));
        loss -= weight_of(p, c) * ((1 - e) * q + e / (long double)p->classes) * lp;
    }
    return loss;
}

static void check_problem(const struct problem *p)
{
    stk_cross_entropy_opts opts = STK_CROSS_ENTROPY_OPTS_INIT;
    int64_t positions = p->positions ? p->positions : 1;
    long double sum = 0, divisor = 0;
    stk_tensor none, total, mean;
    stk_error err;

    opts.weight = p->weighted ? &p->weight : NULL;
    opts.has_ignore_index = true;
    opts.ignore_index = -1;
    opts.label_smoothing = p->smoothing;
    opts.reduction = STK_REDUCTION_NONE;
    assert_ok(stk_tensor_cross_entropy(&p->logits, &p->target, &opts, &none, &err));
    opts.reduction = STK_REDUCTION_SUM;
    assert_ok(stk_tensor_cross_entropy(&p->logits, &p->target, &opts, &total, &err));
    opts.reduction = STK_REDUCTION_MEAN;
    assert_ok(stk_tensor_cross_entropy(&p->logits, &p->target, &opts, &mean, &err));
    assert_int_equal(none.ndim, p->logits.ndim - 1);
    assert_int_equal(total.ndim, 0);
    for (int64_t n = 0; n < p->samples * positions; n++) {
        long double loss = loss_by_hand(p, n / positions, n % positions, &divisor);
        check_close(p->dtype, stkt_element(&none, n), loss);
        sum += loss;
    }
    check_close(p->dtype, total.data, sum);
    check_close(p->dtype, mean.data, sum / divisor);
    stk_tensor_release(&none);
    stk_tensor_release(&total);
    stk_tensor_release(&mean);
}

static void test_cross_entropy(void **unused)
{
    (void)unused;
    for (int i = 0; i < 400; i++) {
        struct problem p;
        make_problem(&p);
        check_problem(&p);
        release_problem(&p);
    }
}

static void test_options(void **unused)
{
    const float scores[6] = {1, 2, 3, 1, 1, 1};
    stk_cross_entropy_opts opts = STK_CROSS_ENTROPY_OPTS_INIT;
    stk_tensor logits, target, weight, out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_from_array(STK_F32, scores, 24, 2, (const int64_t[]){2, 3}, NULL, &logits, &err));
    assert_ok(
        stk_tensor_from_array(STK_I64, (const int64_t[]){2, -100}, 16, 1, (const int64_t[]){2}, NULL, &target, &err));
    assert_ok(stk_tensor_cross_entropy(&logits, &target, NULL, &out, &err)); /* -100 is ignored by default */
    check_close(STK_F32, out.data, 0.40760596444438L);
    stk_tensor_release(&out);
    opts.has_ignore_index = true; /* the ignored index is now 0 */
    assert_status(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err), STK_E_BAD_INDEX);
    assert_says("-100");
    opts = (stk_cross_entropy_opts)STK_CROSS_ENTROPY_OPTS_INIT;
    opts.label_smoothing = 1.5;
    assert_status(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err), STK_E_BAD_ARG);
    opts.struct_size = 0;
    assert_status(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err), STK_E_BAD_ARG);
    opts.struct_size = 8; /* a caller built against an older, shorter struct */
    assert_ok(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err));
    stk_tensor_release(&out);
    opts = (stk_cross_entropy_opts)STK_CROSS_ENTROPY_OPTS_INIT;
    opts.reduction = (stk_reduction)7;
    assert_status(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err), STK_E_BAD_ARG);
    opts.reduction = STK_REDUCTION_SUM;
    assert_ok(stk_tensor_ones(STK_F32, 1, (const int64_t[]){2}, NULL, &weight, &err));
    opts.weight = &weight;
    assert_status(stk_tensor_cross_entropy(&logits, &target, &opts, &out, &err), STK_E_BAD_SHAPE);
    stk_tensor_release(&weight);
    stk_tensor_release(&target);
    assert_ok(stk_tensor_ones(STK_I32, 1, (const int64_t[]){2}, NULL, &target, &err));
    assert_status(stk_tensor_cross_entropy(&logits, &target, NULL, &out, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&target);
    stk_tensor_release(&logits);
}

static void test_allocation(void **unused)
{
    stk_tensor logits, target, other_logits, other_target, out;
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_ones(STK_F32, 2, (const int64_t[]){4, 3}, NULL, &logits, &err));
    assert_ok(stk_tensor_zeros(STK_I64, 1, (const int64_t[]){4}, NULL, &target, &err));
    assert_ok(stk_tensor_to_device(&logits, stki_device_test(), &other_logits, &err));
    assert_ok(stk_tensor_to_device(&target, stki_device_test(), &other_target, &err));
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stki_memory_fail_at(n);
        stk_status status = stk_tensor_cross_entropy(&other_logits, &other_target, NULL, &out, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) {
            assert_true(n > 4);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.bytes, before.bytes);
    }
    assert_ptr_equal(out.device, stki_device_test());
    stk_tensor_release(&out);
    stk_tensor_release(&other_logits);
    stk_tensor_release(&other_target);
    stk_tensor_release(&logits);
    stk_tensor_release(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_softmax),   cmocka_unit_test(test_log_softmax_specials),
        cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_options),
        cmocka_unit_test(test_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
