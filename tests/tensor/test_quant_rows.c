/* Tests of the vector loops of quantizing against the plain ones: all lengths and offsets around the vector widths,
 * unaligned, with special numbers and guard bytes after each output. */
#include "leak_check.h"
#include "quant_internal.h"
#include "stk_test.h"
#include "test_random.h"
#include <math.h>

enum { MOST = 300, GUARD = 64, MAX_PERIOD = 100 };

static const enum stki_isa fast[] = {STKI_ISA_AVX2, STKI_ISA_AVX512};
static const int64_t periods[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100};

static uint64_t state = 1;

static float any_float(void)
{
    static const float special[] = {0.0f,       -0.0f,    NAN,     -NAN,      INFINITY, -INFINITY,     1e20f,
                                    -1e20f,     0.5f,     1.5f,    2.5f,      -0.5f,    127.6f,        -128.6f,
                                    0x1p31f,    -0x1p31f, 0x1p32f, 0x1p-140f, 3.4e38f,  2147483520.0f, -2147483904.0f,
                                    16777217.0f};
    uint32_t bits = (uint32_t)stkt_random(&state);
    float x;

    switch (stkt_random_in(&state, 0, 4)) {
    case 0:
        return special[stkt_random_in(&state, 0, (int64_t)(sizeof special / sizeof special[0]) - 1)];
    case 1:
        memcpy(&x, &bits, sizeof x);
        return x;
    case 2: /* ties */
        return (float)stkt_random_in(&state, -600, 600) * 0.25f;
    default:
        return (float)stkt_random_in(&state, -4000, 4000) / 17.0f;
    }
}

static stk_quant *parameters(stk_qdtype qdtype, int64_t period, bool channels)
{
    double scales[MAX_PERIOD];
    int64_t zeros[MAX_PERIOD], count = period ? period : 7, floats = stkt_random_in(&state, 0, 1);
    stk_quant *quant = NULL;
    stk_error err;

    for (int64_t i = 0; i < count; i++) {
        scales[i] = stkt_random_in(&state, 0, 3) ? (double)stkt_random_in(&state, 1, 1000) / 300.0 : 1.0;
        scales[i] = floats ? (double)(float)scales[i] : scales[i];
        zeros[i] = qdtype == STK_QINT32 && stkt_random_in(&state, 0, 1) ? 0
                   : qdtype == STK_QINT32                               ? stkt_random_in(&state, -INT32_MAX, INT32_MAX)
                                          : stkt_random_in(&state, stki_quant_min(qdtype), stki_quant_max(qdtype));
    }
    assert_ok(stk_quant_create(qdtype, channels ? 0 : -1, channels ? count : 1, scales, zeros, &quant, &err));
    return quant;
}

/* Runs both and compares all bytes, including those after the output. */
static void compare(stki_quant_fn plain, stki_quant_fn quick, const stki_quant_lane *lane, const void *src,
                    int64_t src_size, int64_t dst_size, int64_t n, int64_t channel)
{
    static _Alignas(64) char expected[4 * MOST + 3 * GUARD], found[4 * MOST + 3 * GUARD];
    int64_t shift = stkt_random_in(&state, 0, 1) ? 4 * stkt_random_in(&state, 0, 15) : stkt_random_in(&state, 0, 63);
    int64_t bytes = n * dst_size;

    (void)src_size;
    memset(expected, 0x5a, sizeof expected);
    memset(found, 0x5a, sizeof found);
    plain(lane, expected + GUARD + shift, src, n, channel);
    quick(lane, found + GUARD + shift, src, n, channel);
    stki_store_fence();
    if (memcmp(expected, found, sizeof found) == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        if (memcmp(expected + GUARD + shift + i * dst_size, found + GUARD + shift + i * dst_size, (size_t)dst_size))
            fail_msg("element %lld of %lld differs (period %lld, channel %lld)", (long long)i, (long long)n,
                     (long long)lane->period, (long long)channel);
    fail_msg("written outside the output (%lld bytes at shift %lld)", (long long)bytes, (long long)shift);
}

static void one_round(const stki_quant_kernels *kernels, stk_qdtype qdtype, int64_t period, int64_t n)
{
    static _Alignas(64) char memory[4 * MOST + 64];
    bool channels = period > 0 || stkt_random_in(&state, 0, 1);
    stk_quant *quant = parameters(qdtype, period, channels);
    stki_quant_lane lane = quant->lane;
    int64_t channel = channels ? stkt_random_in(&state, 0, quant->count - 1) : 0, size = qdtype == STK_QINT32 ? 4 : 1;
    char *src = memory + stkt_random_in(&state, 0, 63);

    lane.period = period;
    lane.streaming = stkt_random_in(&state, 0, 1);
    for (int64_t i = 0; i < n; i++) {
        float x = any_float();
        memcpy(src + 4 * i, &x, sizeof x);
    }
    compare(stki_quant_ref.quantize[qdtype], kernels->quantize[qdtype], &lane, src, 4, size, n, channel);
    for (int64_t i = 0; i < n * size; i++)
        src[i] = (char)stkt_random(&state);
    compare(stki_quant_ref.dequantize[qdtype], kernels->dequantize[qdtype], &lane, src, size, 4, n, channel);
    stk_quant_release(quant);
}

static void test_fast_rows_are_the_plain_ones(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof fast / sizeof fast[0]; k++) {
        const stki_quant_kernels *kernels = stki_quant_kernels_of(fast[k]);
        if (!stki_isa_usable(fast[k])) {
            print_message("%s: not on this processor\n", stki_isa_name(fast[k]));
            continue;
        }
        assert_ptr_not_equal(kernels, &stki_quant_ref);
        for (stk_qdtype qdtype = STK_QINT8; qdtype <= STK_QINT32; qdtype++)
            for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++)
                for (int64_t n = 0; n <= MOST; n += n < 140 ? 1 : 37)
                    one_round(kernels, qdtype, periods[p], n);
    }
}

/* Compares the plain loop with the rule computed in long double. */
static void test_plain_rows_follow_the_rule(void **unused)
{
    (void)unused;
    for (stk_qdtype qdtype = STK_QINT8; qdtype <= STK_QINT32; qdtype++)
        for (int round = 0; round < 20000; round++) {
            stk_quant *quant = parameters(qdtype, 0, false);
            const float inverse = 1.0f / (float)stk_quant_scale(quant, 0);
            const long double zero = (float)stk_quant_zero_point(quant, 0);
            float x = any_float(), y = x * inverse;
            int32_t q = 0;
            int64_t expected;
            uint8_t u = 0;
            int8_t i = 0;

            if (qdtype == STK_QINT8) {
                stki_quant_ref.quantize[qdtype](&quant->lane, &i, &x, 1, 0);
                q = i;
            } else if (qdtype == STK_QUINT8) {
                stki_quant_ref.quantize[qdtype](&quant->lane, &u, &x, 1, 0);
                q = u;
            } else {
                stki_quant_ref.quantize[qdtype](&quant->lane, &q, &x, 1, 0);
            }
            if (isnan(y)) {
                expected = (int64_t)fminl(zero, (long double)stki_quant_max(qdtype));
            } else if (isinf(y)) {
                expected = y > 0 ? stki_quant_max(qdtype) : stki_quant_min(qdtype);
            } else { /* round to nearest, ties to even, then add in f32 */
                long double down = floorl((long double)y), rest = (long double)y - down;
                long double whole = rest > 0.5L || (rest == 0.5L && fmodl(down, 2) != 0) ? down + 1 : down;
                long double sum = (long double)(float)(whole + zero);
                long double low = (long double)stki_quant_min(qdtype), high = (long double)stki_quant_max(qdtype);
                expected = (int64_t)(sum < low ? low : sum > high ? high : sum);
            }
            assert_int_equal(q, expected);
            stk_quant_release(quant);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_rows_are_the_plain_ones),
        cmocka_unit_test(test_plain_rows_follow_the_rule),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
