/* Tests of stki_copy_strided against a loop that casts one element at a time: every variant that this machine supports,
 * cached and streaming, all pairs of dtypes, and shapes, strides and alignments at the limits of each pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cast.h"
#include "fast.h"
#include "tensor_internal.h"
#include "test_random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA = 1 << 20, GUARD = 256 };

static unsigned char source[ARENA], expected[ARENA], got[ARENA];

/* A copy to check. Positions in the arenas and strides are in bytes. */
struct copy {
    stk_dtype dst, src;
    bool swapped;
    int ndim;
    int64_t shape[8], dst_strides[8], src_strides[8];
    int64_t dst_at, src_at;
};

static void run(const struct copy *copy, enum stki_isa isa, enum stki_stores stores, unsigned char *out)
{
    stki_copy_strided_as(isa, stores, out + copy->dst_at, copy->dst, copy->dst_strides, source + copy->src_at,
                         copy->src, copy->src_strides, copy->swapped, copy->ndim, copy->shape);
}

static void run_slowly(const struct copy *copy, unsigned char *out)
{
    int64_t index[8], count = 1;
    stki_cast cast;

    stki_cast_init(&cast, copy->dst, copy->src, copy->swapped);
    for (int i = 0; i < copy->ndim; i++)
        count *= copy->shape[i];
    for (int64_t n = 0; n < count; n++) {
        int64_t to = copy->dst_at, from = copy->src_at, rest = n;
        for (int i = copy->ndim - 1; i >= 0; i--) {
            index[i] = rest % copy->shape[i];
            rest /= copy->shape[i];
            to += index[i] * copy->dst_strides[i];
            from += index[i] * copy->src_strides[i];
        }
        stki_cast_row(&cast, out + to, 0, source + from, 0, 1);
    }
}

static void describe(const struct copy *copy, enum stki_isa isa, enum stki_stores stores, int64_t at)
{
    fprintf(stderr, "%s %s stores %d, %s to %s, swapped %d: byte %lld is %02x, not %02x\n", stki_isa_name(isa), "copy",
            (int)stores, stk_dtype_name(copy->src), stk_dtype_name(copy->dst), copy->swapped,
            (long long)(at - copy->dst_at), got[at], expected[at]);
    for (int i = 0; i < copy->ndim; i++)
        fprintf(stderr, "  axis %d: %lld, strides %lld <- %lld\n", i, (long long)copy->shape[i],
                (long long)copy->dst_strides[i], (long long)copy->src_strides[i]);
}

static void check(const struct copy *copy)
{
    static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};
    static const enum stki_stores stores[] = {STKI_STORES_CACHED, STKI_STORES_STREAMING};
    static unsigned char before[ARENA];
    static bool filled;

    if (!filled) {
        uint64_t random = 99;
        for (int i = 0; i < ARENA; i++)
            before[i] = (unsigned char)stkt_random(&random);
        filled = true;
    }
    memcpy(expected, before, ARENA);
    run_slowly(copy, expected);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            if (!stki_isa_usable(isas[i]))
                continue;
            memcpy(got, before, ARENA);
            run(copy, isas[i], stores[k], got);
            if (!memcmp(got, expected, ARENA))
                continue;
            for (int64_t at = 0; at < ARENA; at++)
                if (got[at] != expected[at]) {
                    describe(copy, isas[i], stores[k], at);
                    fail();
                }
        }
    }
}

/* Row-major strides for the axes in the order `order` (innermost last), with padding after some axes and random
 * directions. Sets *at to the position of index 0 such that all bytes are after GUARD. Returns false if the arena is
 * too small. */
static bool lay_out(uint64_t *random, const struct copy *copy, const int *order, int64_t size, int padding,
                    bool negative, int64_t *strides, int64_t *at)
{
    int64_t step = size, low = 0;

    for (int k = copy->ndim - 1; k >= 0; k--) {
        int axis = order[k];
        strides[axis] = step;
        step *= copy->shape[axis] ? copy->shape[axis] : 1;
        if (padding && stkt_random_in(random, 0, padding) == 0)
            step += size * stkt_random_in(random, 1, 3);
        if (step > ARENA - 4 * GUARD)
            return false;
    }
    for (int i = 0; i < copy->ndim && negative; i++) {
        if (stkt_random_in(random, 0, 4) != 0 || copy->shape[i] == 0)
            continue;
        low += strides[i] * (copy->shape[i] - 1);
        strides[i] = -strides[i];
    }
    *at = GUARD + stkt_random_in(random, 0, 70) + low;
    return true;
}

static void shuffle_order(uint64_t *random, int ndim, int *order)
{
    for (int i = 0; i < ndim; i++) {
        int j = (int)stkt_random_in(random, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

static int64_t awkward(uint64_t *random, int64_t largest)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300, 1025};
    int64_t size;

    do
        size = sizes[stkt_random(random) % (sizeof sizes / sizeof *sizes)];
    while (size > largest);
    return size;
}

static stk_dtype any_dtype(uint64_t *random)
{
    return (stk_dtype)stkt_random_in(random, STK_DTYPE_NONE + 1, STK_DTYPE_END - 1);
}

/* All pairs of dtypes along one axis: adjacent, every k-th, backwards, and repeated. */
static void runs_of_every_pair(void **state)
{
    uint64_t random = 1;

    (void)state;
    for (int dst = STK_DTYPE_NONE + 1; dst < STK_DTYPE_END; dst++)
        for (int src = STK_DTYPE_NONE + 1; src < STK_DTYPE_END; src++)
            for (int i = 0; i < 8; i++) {
                struct copy copy = {.dst = (stk_dtype)dst, .src = (stk_dtype)src, .ndim = 1};
                int64_t step = i < 3 ? 1 : stkt_random_in(&random, -10, 10);
                copy.shape[0] = awkward(&random, 1025);
                copy.swapped = i == 2;
                copy.dst_strides[0] = stk_dtype_size(copy.dst) * (i == 7 ? 2 : 1);
                copy.src_strides[0] = stk_dtype_size(copy.src) * step;
                copy.dst_at = GUARD + stkt_random_in(&random, 0, 70);
                copy.src_at = GUARD + stkt_random_in(&random, 0, 70) +
                              (step < 0 ? -copy.src_strides[0] * (copy.shape[0] - 1) : 0);
                check(&copy);
            }
}

/* Pixels to planes and back, from 1 to 10 channels, with gaps between rows, images and planes. */
static void pixels_and_planes(void **state)
{
    uint64_t random = 2;

    (void)state;
    for (int i = 0; i < 2500;) {
        static const int chw[4] = {0, 1, 2, 3}, hwc[4] = {0, 2, 3, 1};
        struct copy copy = {.dst = any_dtype(&random), .src = any_dtype(&random), .ndim = 4};
        bool to_planes = stkt_random_in(&random, 0, 1);
        if (stkt_random_in(&random, 0, 2))
            copy.dst = copy.src;
        copy.shape[0] = stkt_random_in(&random, 1, 2);
        copy.shape[1] = stkt_random_in(&random, 1, 10);
        copy.shape[2] = awkward(&random, 17);
        copy.shape[3] = awkward(&random, 300);
        copy.swapped = stkt_random_in(&random, 0, 7) == 0;
        if (!lay_out(&random, &copy, to_planes ? chw : hwc, stk_dtype_size(copy.dst), 9, false, copy.dst_strides,
                     &copy.dst_at) ||
            !lay_out(&random, &copy, to_planes ? hwc : chw, stk_dtype_size(copy.src), 9, i % 4 == 0, copy.src_strides,
                     &copy.src_at))
            continue;
        check(&copy);
        i++;
    }
}

/* Any order of axes on both sides, which is copied in tiles, in short rows or element by element. */
static void any_strides(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int i = 0; i < 4000;) {
        struct copy copy = {.dst = any_dtype(&random), .src = any_dtype(&random)};
        int order[8] = {0};
        if (stkt_random_in(&random, 0, 2))
            copy.dst = copy.src;
        copy.ndim = (int)stkt_random_in(&random, 0, 4);
        for (int k = 0; k < copy.ndim; k++)
            copy.shape[k] = stkt_random_in(&random, 0, 30) ? awkward(&random, copy.ndim < 3 ? 300 : 33) : 0;
        copy.swapped = stkt_random_in(&random, 0, 7) == 0;
        shuffle_order(&random, copy.ndim, order);
        if (!lay_out(&random, &copy, order, stk_dtype_size(copy.dst), 5, true, copy.dst_strides, &copy.dst_at))
            continue;
        shuffle_order(&random, copy.ndim, order);
        if (!lay_out(&random, &copy, order, stk_dtype_size(copy.src), 5, true, copy.src_strides, &copy.src_at))
            continue;
        for (int k = 0; k < copy.ndim; k++)
            if (stkt_random_in(&random, 0, 12) == 0)
                copy.src_strides[k] = 0;
        check(&copy);
        i++;
    }
}

/* All 2^16 codes of the 16-bit floats, cast to f32, f64 and each other. */
static void every_small_code(void **state)
{
    static const stk_dtype small[] = {STK_F16, STK_BF16}, wide[] = {STK_F32, STK_F64, STK_F16, STK_BF16};
    static unsigned char kept[65536 * 2];

    (void)state;
    memcpy(kept, source, sizeof kept);
    for (int code = 0; code < 65536; code++)
        memcpy(source + 2 * code, &(uint16_t){(uint16_t)code}, 2);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            struct copy copy = {.dst = wide[k], .src = small[i], .ndim = 1, .shape = {65536}, .src_strides = {2}};
            copy.dst_strides[0] = stk_dtype_size(wide[k]);
            check(&copy);
        }
    memcpy(source, kept, sizeof kept);
}

/* A cast keeps subnormals, whatever the floating-point mode of the caller's thread. */
static void control_of_the_caller(void **state)
{
#if defined(__x86_64__)
    float tiny = 0x1p-130f, out_f32;
    double wide, small = 0x1p-130;
    unsigned char truth;
    const int64_t stride = 0, length = 1;
    unsigned control = __builtin_ia32_stmxcsr(), after;

    (void)state;
    __builtin_ia32_ldmxcsr(control | 0x8040); /* flush results to zero, treat operands as zero */
    stki_copy_strided(&wide, STK_F64, &stride, &tiny, STK_F32, &stride, false, 1, &length);
    stki_copy_strided(&out_f32, STK_F32, &stride, &small, STK_F64, &stride, false, 1, &length);
    stki_copy_strided(&truth, STK_BOOL, &stride, &tiny, STK_F32, &stride, false, 1, &length);
    after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(control);
    assert_true(wide == 0x1p-130 && out_f32 == 0x1p-130f && truth == 1);
    assert_int_equal(after & 0xffc0, (control | 0x8040) & 0xffc0);
#else
    (void)state;
    skip();
#endif
}

/* Random bytes, with values at the limits of the dtypes at random addresses. */
static int fill_source(void **state)
{
    static const double edges[] = {0x1p31, -0x1p31, 0x1p32,   0x1p63,    -0x1p63, 0x1p64, 127.5,
                                   -128.5, 255.5,   256,      32767.5,   65535.5, 65520,  65519.9,
                                   448,    464,     INFINITY, -INFINITY, NAN,     -0.0};
    uint64_t random = 4;

    (void)state;
    for (int i = 0; i < ARENA; i++)
        source[i] = (unsigned char)(stkt_random(&random) >> 3);
    for (int i = 0; i < ARENA - 64; i += (int)stkt_random_in(&random, 8, 40)) {
        double wide = edges[stkt_random(&random) % (sizeof edges / sizeof *edges)];
        float narrow = (float)wide;
        if (stkt_random_in(&random, 0, 2))
            memcpy(source + i, &narrow, sizeof narrow);
        else
            memcpy(source + i, &wide, sizeof wide);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_of_every_pair), cmocka_unit_test(pixels_and_planes),     cmocka_unit_test(any_strides),
        cmocka_unit_test(every_small_code),   cmocka_unit_test(control_of_the_caller),
    };
    return cmocka_run_group_tests(tests, fill_source, NULL);
}
