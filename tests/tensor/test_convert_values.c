/* Tests of conversions against results given as numbers: rows Q02 to Q11, ties, limits, and independence of the
 * program's rounding mode. Each value is repeated, so that it occurs both in whole vectors and in the remainder. */
#include "convert.h"
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cmocka.h>

enum { N = 77 };
static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};

struct levels {
    int32_t zero_point, low, high;
};

/* Converts N copies of the value with every variant. All N results must have the same `size` bytes, which are
 * returned. */
static uint64_t convert_one(stk_dtype src, const void *value, float a, float b, stk_dtype dst,
                            const struct levels *levels)
{
    const int64_t src_size = stk_dtype_size(src), dst_size = stk_dtype_size(dst);
    uint64_t first = 0;
    bool have = false;

    for (int i = 0; i < (int)(sizeof isas / sizeof isas[0]); i++) {
        uint8_t from[N * 8], to[N * 4 + 1];
        stki_convert *convert;
        stki_convert_desc desc = {.src_dtype = src,
                                  .dst_dtype = dst,
                                  .ndim = 1,
                                  .shape = {N},
                                  .src_strides = {src_size},
                                  .dst_strides = {dst_size},
                                  .affine = true,
                                  .channel_axis = -1,
                                  .channels = 1,
                                  .a = &a,
                                  .b = &b};
        if (levels) {
            desc.quantized = true;
            desc.zero_point = levels->zero_point;
            desc.qmin = levels->low;
            desc.qmax = levels->high;
        }
        if (!stki_isa_usable(isas[i]))
            continue;
        assert_int_equal(stki_convert_create_isa(&desc, isas[i], &convert, NULL), STK_OK);
        for (int k = 0; k < N; k++)
            memcpy(from + k * src_size, value, (size_t)src_size);
        stki_convert_run(convert, to + 1, from); /* at an odd address */
        for (int k = 0; k < N; k++) {
            uint64_t bits = 0;
            memcpy(&bits, to + 1 + k * dst_size, (size_t)dst_size);
            if (have && bits != first)
                fail_msg("%s, element %d: %llx, before %llx", stki_convert_name(convert), k, (unsigned long long)bits,
                         (unsigned long long)first);
            first = bits;
            have = true;
        }
        stki_convert_destroy(convert);
    }
    return first;
}

static int32_t to_level(float x, stk_dtype dst, const struct levels *levels)
{
    uint64_t bits = convert_one(STK_F32, &x, 1.0f, 0.0f, dst, levels);

    return dst == STK_U8 ? (uint8_t)bits : dst == STK_I8 ? (int8_t)(uint8_t)bits : (int32_t)(uint32_t)bits;
}

static uint32_t bits_to(uint32_t bits, stk_dtype dst) /* an f32 given by its bits, times 1 plus -0 */
{
    return (uint32_t)convert_one(STK_F32, &bits, 1.0f, -0.0f, dst, NULL);
}

/* apache/tvm#9558: the cast came before the clamp. */
static void test_q02_values_beyond_the_integers(void **unused)
{
    static const struct levels shifted = {-14, -128, 127}, narrow = {3, -7, 9};

    (void)unused;
    assert_int_equal(to_level(INFINITY, STK_I8, NULL), 127);
    assert_int_equal(to_level(-INFINITY, STK_I8, NULL), -128);
    assert_int_equal(to_level(1e20f, STK_I8, NULL), 127);
    assert_int_equal(to_level(-1e20f, STK_I8, NULL), -128);
    assert_int_equal(to_level(NAN, STK_I8, NULL), 0);
    assert_int_equal(to_level(INFINITY, STK_U8, NULL), 255);
    assert_int_equal(to_level(-1e20f, STK_U8, NULL), 0);
    assert_int_equal(to_level(NAN, STK_U8, NULL), 0);
    assert_int_equal(to_level(NAN, STK_I8, &shifted), -14);
    assert_int_equal(to_level(1e20f, STK_I8, &shifted), 127);
    assert_int_equal(to_level(NAN, STK_I8, &narrow), 3);
    assert_int_equal(to_level(50.0f, STK_I8, &narrow), 9);
    assert_int_equal(to_level(-50.0f, STK_I8, &narrow), -7);
    assert_int_equal(to_level(NAN, STK_I8, &(struct levels){20, -7, 9}), 9); /* the zero point is also clamped */
}

/* ROCm/aiter#4637: values wrapped, and one path truncated. */
static void test_q03_ties_and_limits(void **unused)
{
    static const struct levels symmetric = {0, -127, 127};

    (void)unused;
    assert_int_equal(to_level(127.6f, STK_I8, NULL), 127);
    assert_int_equal(to_level(-128.6f, STK_I8, NULL), -128);
    assert_int_equal(to_level(-128.6f, STK_I8, &symmetric), -127);
    assert_int_equal(to_level(0.5f, STK_I8, NULL), 0);
    assert_int_equal(to_level(1.5f, STK_I8, NULL), 2);
    assert_int_equal(to_level(2.5f, STK_I8, NULL), 2);
    assert_int_equal(to_level(-0.5f, STK_I8, NULL), 0);
    assert_int_equal(to_level(-1.5f, STK_I8, NULL), -2);
    assert_int_equal(to_level(254.5f, STK_U8, NULL), 254);
    assert_int_equal(to_level(255.5f, STK_U8, NULL), 255);
    assert_int_equal(to_level(0.5f, STK_I8, &(struct levels){1, -128, 127}), 1); /* rounded before 1 is added */
    assert_int_equal(to_level(0.5f, STK_I32, NULL), 0);
    assert_int_equal(to_level(-3.5f, STK_I32, NULL), -4);
}

static void test_i32_limits(void **unused)
{
    (void)unused;
    assert_int_equal(to_level(0x1p31f, STK_I32, NULL), INT32_MAX);
    assert_int_equal(to_level(INFINITY, STK_I32, NULL), INT32_MAX);
    assert_int_equal(to_level(2147483520.0f, STK_I32, NULL), 2147483520);
    assert_int_equal(to_level(-0x1p31f, STK_I32, NULL), INT32_MIN);
    assert_int_equal(to_level(-2147483904.0f, STK_I32, NULL), INT32_MIN);
    assert_int_equal(to_level(-INFINITY, STK_I32, NULL), INT32_MIN);
    assert_int_equal(to_level(NAN, STK_I32, NULL), 0);
    /* A limit that is not an f32 is never exceeded, even if the nearest f32 is beyond it. */
    assert_int_equal(to_level(1e20f, STK_I32, &(struct levels){0, -5, 2147483600}), 2147483520);
    assert_int_equal(to_level(1e20f, STK_I32, &(struct levels){0, -5, 16777217}), 16777216);
    assert_int_equal(to_level(1e20f, STK_I32, &(struct levels){0, -5, 16777219}), 16777218);
    assert_int_equal(to_level(-1e20f, STK_I32, &(struct levels){0, -16777219, 5}), -16777218);
}

/* Quantizing multiplies by the f32 reciprocal of the scale and does not divide: 0.273939937 at scale 0.00214854861 is
 * 128. */
static void test_a_lone_quantize_step(void **unused)
{
    float x = 0.273939937f, a = 1.0f / 0.00214854861f;
    static const struct levels all = {0, 0, 255};

    (void)unused;
    assert_int_equal(convert_one(STK_F32, &x, a, 0.0f, STK_U8, &all), 128);
}

/* stillwater-sc/universal#1133: values were truncated. */
static void test_q06_bf16_rounds_to_nearest(void **unused)
{
    (void)unused;
    assert_int_equal(bits_to(0x3e89ccd5, STK_BF16), 0x3e8a);
    assert_int_equal(bits_to(0x3f808000, STK_BF16), 0x3f80); /* ties to even */
    assert_int_equal(bits_to(0x3f818000, STK_BF16), 0x3f82);
    assert_int_equal(bits_to(0x3f808001, STK_BF16), 0x3f81);
    assert_int_equal(bits_to(0x7f7fffff, STK_BF16), 0x7f80); /* the largest f32 overflows */
    assert_int_equal(bits_to(0x7f7f7fff, STK_BF16), 0x7f7f);
    assert_int_equal(bits_to(0x80000000, STK_BF16), 0x8000);
}

static void is_nan_of(uint32_t half, uint32_t exponent, uint32_t sign)
{
    assert_int_equal(half & exponent, exponent);
    assert_true((half & ~(exponent | 0x8000) & 0xffff) != 0);
    assert_int_equal(half & 0x8000, sign);
}

/* dotnet/runtime#130583: a NaN with a low payload became infinity. */
static void test_q07_nan_stays_nan(void **unused)
{
    (void)unused;
    is_nan_of(bits_to(0x7f800001, STK_BF16), 0x7f80, 0);
    is_nan_of(bits_to(0xff800001, STK_BF16), 0x7f80, 0x8000);
    is_nan_of(bits_to(0x7fffffff, STK_BF16), 0x7f80, 0);
    is_nan_of(bits_to(0x7f800001, STK_F16), 0x7c00, 0);
    is_nan_of(bits_to(0xff800001, STK_F16), 0x7c00, 0x8000);
}

/* JuliaMath/BFloat16s.jl#125: the instruction treated subnormals as zero. */
static void test_q08_subnormals_are_kept(void **unused)
{
    (void)unused;
    assert_int_equal(bits_to(0x00400000, STK_BF16), 0x0040); /* 2^-127 */
    assert_int_equal(bits_to(0x00010000, STK_BF16), 0x0001); /* 2^-133 */
    assert_int_equal(bits_to(0x80018000, STK_BF16), 0x8002);
    assert_int_equal(bits_to(0x007fffff, STK_BF16), 0x0080); /* rounds up to the smallest normal number */
    assert_int_equal(bits_to(0x00000001, STK_F32), 0x00000001);
    assert_int_equal(bits_to(0x33000000, STK_F16), 0x0000); /* 2^-25, a tie between 0 and the smallest subnormal */
    assert_int_equal(bits_to(0x33000001, STK_F16), 0x0001);
    assert_int_equal(bits_to(0x387fe000, STK_F16), 0x0400); /* a tie, rounded up to the smallest normal number */
    assert_int_equal(bits_to(0x477fefff, STK_F16), 0x7bff); /* just below 65520 */
    assert_int_equal(bits_to(0x477ff000, STK_F16), 0x7c00); /* 65520 overflows */
    float x = 0x1p-60f;                                     /* a subnormal result of normal operands */
    assert_int_equal(convert_one(STK_F32, &x, 0x1p-73f, 0.0f, STK_BF16, NULL), 0x0001);
}

/* riscv-software-src/riscv-isa-sim#1902 and JuliaLang/julia#50642: wide sources are converted through f32, so they are
 * rounded twice. */
static void test_q09_q11_two_roundings(void **unused)
{
    int32_t whole = 0x01010001, less = 0x0100ffff;
    double wide = 1.0 + 0x1p-11 + 0x1p-40; /* just above the f16 midpoint; f32 rounds to it */

    (void)unused;
    assert_int_equal(convert_one(STK_I32, &whole, 1.0f, -0.0f, STK_BF16, NULL), 0x4b80); /* f32 0x4b808000, a tie */
    assert_int_equal(convert_one(STK_I32, &less, 1.0f, -0.0f, STK_BF16, NULL), 0x4b80);
    assert_int_equal(convert_one(STK_F64, &wide, 1.0f, -0.0f, STK_F16, NULL), 0x3c00);
    int64_t large = (INT64_C(1) << 53) + 1, odd = (INT64_C(1) << 40) + (1 << 16) + 1; /* one rounding to f32 */
    assert_int_equal(convert_one(STK_I64, &large, 1.0f, -0.0f, STK_F32, NULL), 0x5a000000);
    assert_int_equal(convert_one(STK_I64, &odd, 1.0f, -0.0f, STK_F32, NULL), 0x53800001);
}

/* The multiply-add is fused: the product is not rounded before the sum. */
static void test_multiply_add_is_fused(void **unused)
{
    float x = 1.0f + 0x1p-12f, a = 1.0f - 0x1p-12f, b = -1.0f, y;

    (void)unused;
    uint32_t bits = (uint32_t)convert_one(STK_F32, &x, a, b, STK_F32, NULL);
    memcpy(&y, &bits, sizeof y);
    assert_true(y == -0x1p-24f);
    uint8_t pixel = 255; /* the usual normalization (255/255 - mean) / std as one multiply-add */
    bits = (uint32_t)convert_one(STK_U8, &pixel, 0.017124754f, -2.1179039f, STK_F32, NULL);
    memcpy(&y, &bits, sizeof y);
    assert_true(y == fmaf(255.0f, 0.017124754f, -2.1179039f));
}

/* With another rounding mode and with subnormals flushed to zero, which is the state in which libraries built with
 * -ffast-math leave a thread. */
static void test_the_callers_control_word(void **unused)
{
    (void)unused;
    assert_int_equal(fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
    unsigned before = _mm_getcsr() | 0x8040;
    _mm_setcsr(before);
#endif
    uint32_t tie = bits_to(0x3f808000, STK_BF16), half = bits_to(0x33000000, STK_F16), small = bits_to(1, STK_F32);
    int32_t level = to_level(2.5f, STK_I8, NULL);
    uint8_t byte = 5; /* for 8 bits to 8 bits, a table is computed when the conversion is created */
    uint64_t halved = convert_one(STK_U8, &byte, 0.5f, 0.0f, STK_U8, NULL);
    int mode = fegetround();
#if defined(__x86_64__)
    unsigned after = _mm_getcsr();
    _mm_setcsr(0x1f80);
    assert_int_equal(after & 0xffc0, before & 0xffc0);
#endif
    fesetround(FE_TONEAREST);
    assert_int_equal(mode, FE_UPWARD);
    assert_int_equal(tie, 0x3f80);
    assert_int_equal(half, 0);
    assert_int_equal(small, 1);
    assert_int_equal(level, 2);
    assert_int_equal(halved, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_q02_values_beyond_the_integers),
        cmocka_unit_test(test_q03_ties_and_limits),
        cmocka_unit_test(test_i32_limits),
        cmocka_unit_test(test_a_lone_quantize_step),
        cmocka_unit_test(test_q06_bf16_rounds_to_nearest),
        cmocka_unit_test(test_q07_nan_stays_nan),
        cmocka_unit_test(test_q08_subnormals_are_kept),
        cmocka_unit_test(test_q09_q11_two_roundings),
        cmocka_unit_test(test_multiply_add_is_fused),
        cmocka_unit_test(test_the_callers_control_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
