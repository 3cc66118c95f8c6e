/* Tests of casts of single values and rows. The reference for small floats is a sorted table of all their values; for
 * other dtypes it is arithmetic in long double and 128-bit integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cast.h"
#include "dtype.h"
#include "small_float.h"
#include "tensor_internal.h"
#include "test_random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- small floats: values computed from the parameters of the format ---- */

struct format {
    int exponent_bits, fraction_bits;
    bool has_infinity;
};

static const struct format f16 = {5, 10, true}, bf16 = {8, 7, true}, e5m2 = {5, 2, true}, e4m3fn = {4, 3, false};

/* The value of a positive code, which may be NAN or INFINITY. */
static double value_of(struct format f, int code)
{
    int fraction = code & ((1 << f.fraction_bits) - 1), exponent = code >> f.fraction_bits;
    int bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;

    if (f.has_infinity && exponent == top)
        return fraction ? NAN : INFINITY;
    if (!f.has_infinity && exponent == top && fraction == (1 << f.fraction_bits) - 1)
        return NAN;
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - f.fraction_bits);
    return ldexp(fraction + (1 << f.fraction_bits), exponent - bias - f.fraction_bits);
}

/* The code nearest to x >= 0, ties to the even code. Beyond the last finite value, x is compared with the value that
 * would follow it. */
static int nearest_code(struct format f, double x)
{
    int magnitude_bits = f.exponent_bits + f.fraction_bits, low = 0, high = (1 << magnitude_bits) - 1, last;
    double next;

    while (!isfinite(value_of(f, high)))
        high--;
    last = high;
    next = 2 * value_of(f, last) - value_of(f, last - 1);
    if (x >= next)
        return last + 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (value_of(f, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    if (x >= value_of(f, high)) {
        low = high;
        high++;
    }
    {
        double below = x - value_of(f, low), above = (high > last ? next : value_of(f, high)) - x;
        if (below == above)
            return low & 1 ? high : low;
        return below < above ? low : high;
    }
}

static float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void decodes_as_defined(void **state)
{
    (void)state;
    for (int code = 0; code < 0x8000; code++) {
        double h = value_of(f16, code), b = value_of(bf16, code);
        float got_h = stki_f16_to_f32((uint16_t)code), got_b = stki_bf16_to_f32((uint16_t)code);
        assert_true(isnan(h) ? isnan(got_h) : got_h == (float)h && !signbit(got_h));
        assert_true(isnan(b) ? isnan(got_b) : got_b == (float)b);
        assert_true(signbit(stki_f16_to_f32((uint16_t)(code | 0x8000))));
        assert_true(isnan(h) || stki_f16_to_f32((uint16_t)(code | 0x8000)) == -(float)h);
        assert_true(isnan(b) || stki_bf16_to_f32((uint16_t)(code | 0x8000)) == -(float)b);
        if (code < 0x80) {
            double x = value_of(e4m3fn, code), y = value_of(e5m2, code);
            assert_true(isnan(x) ? isnan(stki_f8_e4m3fn_decode((uint8_t)code))
                                 : stki_f8_e4m3fn_decode((uint8_t)code) == (float)x);
            assert_true(isnan(y) ? isnan(stki_f8_e5m2_decode((uint8_t)code))
                                 : stki_f8_e5m2_decode((uint8_t)code) == (float)y);
        }
    }
}

static void check_encode(uint32_t bits)
{
    float x = float_of_bits(bits & 0x7fffffff);
    uint32_t sign = bits >> 31;
    float signed_x = float_of_bits(bits);

    if (isnan(x)) {
        assert_true(isnan(stki_f16_to_f32(stki_f32_to_f16(signed_x))));
        assert_true(isnan(stki_bf16_to_f32(stki_f32_to_bf16(signed_x))));
        assert_true(isnan(stki_f8_e4m3fn_decode(stki_f8_e4m3fn_encode(signed_x))));
        assert_true(isnan(stki_f8_e5m2_decode(stki_f8_e5m2_encode(signed_x))));
        assert_int_equal(stki_f32_to_f16(signed_x) >> 15, sign);
        assert_int_equal(stki_f32_to_bf16(signed_x) >> 15, sign);
        return;
    }
    assert_int_equal(stki_f32_to_f16(signed_x), nearest_code(f16, x) | (int)(sign << 15));
    assert_int_equal(stki_f32_to_bf16(signed_x), nearest_code(bf16, x) | (int)(sign << 15));
    assert_int_equal(stki_f8_e4m3fn_encode(signed_x), nearest_code(e4m3fn, x) | (int)(sign << 7));
    assert_int_equal(stki_f8_e5m2_encode(signed_x), nearest_code(e5m2, x) | (int)(sign << 7));
}

/* Every value of every small format, the midpoints to its neighbors, values next to these, and random bits. */
static void encodes_to_nearest_even(void **state)
{
    static const struct format formats[] = {{5, 10, true}, {8, 7, true}, {5, 2, true}, {4, 3, false}};
    uint64_t random = 1;

    (void)state;
    for (int k = 0; k < 4; k++) {
        int codes = 1 << (formats[k].exponent_bits + formats[k].fraction_bits);
        for (int code = 0; code<codes; code += codes> 256 ? 7 : 1) {
            double here = value_of(formats[k], code), next = value_of(formats[k], code + 1);
            float middle = (float)((here + next) / 2);
            uint32_t bits = stki_f32_bits(isfinite(middle) ? middle : (float)here);
            for (uint32_t d = 0; d < 5; d++)
                check_encode(bits + d - 2);
            check_encode(stki_f32_bits((float)here));
            check_encode(stki_f32_bits(-(float)here));
        }
    }
    for (int i = 0; i < 100000; i++)
        check_encode((uint32_t)stkt_random(&random));
}

/* Rows Q06, Q07, Q08, Q09, Q11. */
static void known_faults(void **state)
{
    int32_t twice = 0x01010001;
    double half_twice;
    uint16_t out;
    stki_cast cast;

    (void)state;
    assert_int_equal(stki_f32_to_bf16(float_of_bits(0x3E89CCD5)), 0x3E8A); /* 0.26953125, not truncated to 0x3E89 */
    assert_int_equal(stki_f32_to_bf16(float_of_bits(0x7F800001)), 0x7FC0);
    assert_int_equal(stki_f32_to_bf16(float_of_bits(0xFF800001)), 0xFFC0);
    assert_int_equal(stki_f32_to_bf16(float_of_bits(0x7FFFFFFF)), 0x7FFF);
    assert_int_equal(stki_f32_to_bf16(0x1p-127f), 0x0040);
    assert_int_equal(stki_f32_to_bf16(0x1p-133f), 0x0001);
    assert_int_equal(stki_f32_to_bf16(70000.0f), stki_f32_to_bf16(70144.0f));
    /* Through f32: 2^24 + 2^16 + 1 loses its last bit, and the resulting tie is rounded down to even. */
    stki_cast_init(&cast, STK_BF16, STK_I32, false);
    stki_cast_row(&cast, &out, 2, &twice, 4, 1);
    assert_int_equal(out, 0x4B80);
    /* Just above the midpoint 1 + 2^-11: f32 rounds to the midpoint, and the resulting tie is rounded to even. */
    half_twice = 1 + 0x1p-11 + 0x1p-40;
    stki_cast_init(&cast, STK_F16, STK_F64, false);
    stki_cast_row(&cast, &out, 2, &half_twice, 8, 1);
    assert_int_equal(out, 0x3C00);
}

/* ---- every pair of dtypes against exact arithmetic ---- */

/* An element as a number: integers in 128 bits, others in long double, whose 64 bits of precision suffice. */
struct number {
    bool whole;
    __int128 i;
    long double f, imag;
};

static struct number read_number(stk_dtype dtype, const void *at)
{
    struct number n = {.whole = stki_dtype_category(dtype) <= STKI_CATEGORY_WHOLE};
#define READ(type, field)         \
    {                             \
        type x;                   \
        memcpy(&x, at, sizeof x); \
        n.field = x;              \
        break;                    \
    }
    switch (dtype) {
    case STK_BOOL:
        n.i = *(const uint8_t *)at != 0;
        break;
    case STK_U8:
        READ(uint8_t, i)
    case STK_I8:
        READ(int8_t, i)
    case STK_U16:
        READ(uint16_t, i)
    case STK_I16:
        READ(int16_t, i)
    case STK_U32:
        READ(uint32_t, i)
    case STK_I32:
        READ(int32_t, i)
    case STK_U64:
        READ(uint64_t, i)
    case STK_I64:
        READ(int64_t, i)
    case STK_F32:
        READ(float, f)
    case STK_F64:
        READ(double, f)
    case STK_C64: {
        float parts[2];
        memcpy(parts, at, sizeof parts);
        n.f = parts[0];
        n.imag = parts[1];
        break;
    }
    case STK_C128: {
        double parts[2];
        memcpy(parts, at, sizeof parts);
        n.f = parts[0];
        n.imag = parts[1];
        break;
    }
    case STK_F16:
    case STK_BF16: {
        uint16_t code;
        memcpy(&code, at, sizeof code);
        n.f = (long double)value_of(dtype == STK_F16 ? f16 : bf16, code & 0x7fff) * (code & 0x8000 ? -1 : 1);
        break;
    }
    default: {
        uint8_t code = *(const uint8_t *)at;
        n.f = (long double)value_of(dtype == STK_F8_E5M2 ? e5m2 : e4m3fn, code & 0x7f) * (code & 0x80 ? -1 : 1);
    }
    }
    return n;
}

static void whole_limits(stk_dtype dtype, __int128 *low, __int128 *high)
{
    int bits = 8 * (int)stk_dtype_size(dtype);

    *low = stki_dtype_signed(dtype) ? -((__int128)1 << (bits - 1)) : 0;
    *high = ((__int128)1 << (stki_dtype_signed(dtype) ? bits - 1 : bits)) - 1;
}

static __int128 expected_whole(stk_dtype dtype, struct number n)
{
    __int128 low, high, range;

    whole_limits(dtype, &low, &high);
    range = high - low + 1;
    if (n.whole) {
        __int128 wrapped = ((n.i - low) % range + range) % range + low;
        return wrapped;
    }
    if (isnan(n.f))
        return 0;
    if (n.f <= (long double)low)
        return low;
    if (n.f >= (long double)high)
        return high;
    return (__int128)truncl(n.f);
}

static int expected_small(struct format f, int bits, float x)
{
    int sign = signbit(x) ? 1 << (bits - 1) : 0;
    return nearest_code(f, fabs((double)x)) | sign;
}

static void check_element(stk_dtype to, stk_dtype from, const void *out, const void *in)
{
    struct number n = read_number(from, in), got = read_number(to, out);
    long double x = n.whole ? (long double)n.i : n.f;

    if (to == STK_BOOL) {
        bool expected = n.whole ? n.i != 0 : n.f != 0 || n.imag != 0;
        assert_int_equal(*(const uint8_t *)out, expected);
    } else if (stki_dtype_category(to) == STKI_CATEGORY_WHOLE) {
        assert_true(got.i == expected_whole(to, n));
    } else if (isnan(x)) {
        assert_true(isnan(got.f));
    } else if (to == STK_F32 || to == STK_C64) {
        assert_true(got.f == (long double)(float)x && signbit(got.f) == signbit(x));
    } else if (to == STK_F64 || to == STK_C128) {
        assert_true(got.f == (long double)(double)x && signbit(got.f) == signbit(x));
    } else if (stk_dtype_size(to) == 2) {
        uint16_t code;
        memcpy(&code, out, sizeof code);
        assert_int_equal(code, expected_small(to == STK_F16 ? f16 : bf16, 16, (float)x));
    } else {
        assert_int_equal(*(const uint8_t *)out, expected_small(to == STK_F8_E5M2 ? e5m2 : e4m3fn, 8, (float)x));
    }
    if (stki_dtype_category(to) == STKI_CATEGORY_COMPLEX) {
        long double imag = to == STK_C64 ? (long double)(float)n.imag : (long double)(double)n.imag;
        assert_true(isnan(imag) ? isnan(got.imag) : got.imag == imag);
    }
}

/* Random bits, mixed with special values and small numbers. */
static void random_element(uint64_t *state, stk_dtype dtype, void *at)
{
    static const double special[] = {
        0.0,          -0.0,         1.0,           -1.0,         0.5,          -0.5,   INFINITY, -INFINITY, NAN,
        127.9,        128.0,        -128.9,        -129.0,       255.9,        256.0,  65504.0,  65520.0,   1e-7,
        2147483647.0, 2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 0x1p63, -0x1p63,  0x1p64,    1e300,
        -1e300,       448.0,        464.0,         465.0,        57344.0,      61440.0};
    uint64_t bits = stkt_random(state), more = stkt_random(state);
    char bytes[16];

    memcpy(bytes, &bits, 8);
    memcpy(bytes + 8, &more, 8);
    if (dtype == STK_BOOL)
        bytes[0] &= 1;
    if (more % 3 == 0 && stki_dtype_part(dtype) == STK_F64) {
        double x = special[more / 3 % (sizeof special / sizeof *special)];
        memcpy(bytes, &x, sizeof x);
    } else if (more % 3 == 0 && stki_dtype_part(dtype) == STK_F32) {
        float x = (float)special[more / 3 % (sizeof special / sizeof *special)];
        memcpy(bytes, &x, sizeof x);
    } else if (more % 3 == 1) {
        memset(bytes, 0, 8); /* a small integer or a subnormal */
        bytes[0] = (char)(bits & (dtype == STK_BOOL ? 1 : 3));
    }
    memcpy(at, bytes, (size_t)stk_dtype_size(dtype));
}

static void reverse_parts(stk_dtype dtype, char *at)
{
    int64_t part = stk_dtype_size(stki_dtype_part(dtype));

    for (char *p = at; p < at + stk_dtype_size(dtype); p += part)
        for (int64_t i = 0; i < part / 2; i++) {
            char byte = p[i];
            p[i] = p[part - 1 - i];
            p[part - 1 - i] = byte;
        }
}

enum { ROW = 600, GUARD = 64 };

/* Casts a row with unaligned addresses and any steps; bytes between and around the outputs must not change. */
static void check_row(uint64_t *state, stk_dtype to, stk_dtype from, bool swapped)
{
    static char in[ROW * 64 + 256], out[ROW * 64 + 256], before[sizeof out];
    int64_t in_size = stk_dtype_size(from), out_size = stk_dtype_size(to), count = stkt_random_in(state, 0, ROW);
    int64_t in_step = stkt_random_in(state, 0, 2) ? in_size : stkt_random_in(state, 0, 48);
    int64_t out_step = stkt_random_in(state, 0, 2) ? out_size : out_size + stkt_random_in(state, 0, 30);
    char *src = in + GUARD + stkt_random_in(state, 0, 7), *dst = out + GUARD + stkt_random_in(state, 0, 7);
    char native[16];
    stki_cast cast;

    if (in_step < in_size)
        in_step = 0;
    for (int64_t i = 0; i < (in_step ? count : 1); i++)
        random_element(state, from, src + i * in_step);
    if (in_step && stkt_random_in(state, 0, 3) == 0 && count) { /* negative step */
        src += in_step * (count - 1);
        in_step = -in_step;
    }
    if (stkt_random_in(state, 0, 3) == 0 && count) {
        dst += out_step * (count - 1);
        out_step = -out_step;
    }
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (char)stkt_random(state);
    memcpy(before, out, sizeof out);
    stki_cast_init(&cast, to, from, swapped);
    stki_cast_row(&cast, dst, out_step, src, in_step, count);
    for (int64_t i = 0; i < count; i++) {
        memcpy(native, src + i * in_step, (size_t)in_size);
        if (swapped)
            reverse_parts(from, native);
        if (to == from)
            assert_memory_equal(dst + i * out_step, native, (size_t)in_size);
        else
            check_element(to, from, dst + i * out_step, native);
        memcpy(dst + i * out_step, before + (dst - out) + i * out_step, (size_t)out_size);
    }
    assert_memory_equal(out, before, sizeof out);
}

static void every_pair_of_dtypes(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int to = STK_DTYPE_NONE + 1; to < STK_DTYPE_END; to++)
        for (int from = STK_DTYPE_NONE + 1; from < STK_DTYPE_END; from++)
            for (int i = 0; i < 6; i++)
                check_row(&random, (stk_dtype)to, (stk_dtype)from, i % 2 != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_as_defined),
        cmocka_unit_test(encodes_to_nearest_even),
        cmocka_unit_test(known_faults),
        cmocka_unit_test(every_pair_of_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
