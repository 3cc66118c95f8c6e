/* stki-long: casts of all 2^32 f32 inputs to f16 and bf16, with every variant that this machine supports.
 *
 * The reference does not round. The values of the small format are listed as doubles, and each is the result for all
 * f32 values between the midpoints to its neighbors (a midpoint belongs to the even code). Values increase with their
 * f32 bits, so the inputs of one code are consecutive bit patterns, and a whole block of outputs can be compared at
 * once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fast.h"
#include "tensor_internal.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 };

struct format {
    stk_dtype dtype;
    int fraction_bits, bias, codes; /* codes: number of finite values; the code after them is infinity */
};

static const struct format formats[2] = {{STK_F16, 10, 15, 0x7c00}, {STK_BF16, 7, 127, 0x7f80}};

static double value_of(const struct format *format, int code)
{
    int exponent = code >> format->fraction_bits, fraction = code & ((1 << format->fraction_bits) - 1);

    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->fraction_bits);
    return ldexp(fraction + (1 << format->fraction_bits), exponent - format->bias - format->fraction_bits);
}

/* The largest f32 bits whose nearest code is `code`. `code` is at most that of infinity, to which all remaining bits
 * belong. */
static uint32_t last_of(const struct format *format, int code)
{
    double middle;
    float nearest;
    uint32_t bits;

    if (code >= format->codes)
        return 0x7f800000;
    middle = (value_of(format, code) + value_of(format, code + 1)) / 2; /* the code of infinity counts as 2^n here */
    nearest = (float)middle;
    memcpy(&bits, &nearest, sizeof bits);
    if ((double)nearest > middle || ((double)nearest == middle && code & 1))
        bits--;
    return bits;
}

static uint32_t input[BLOCK];
static uint16_t output[BLOCK];

static void convert(enum stki_isa isa, stk_dtype dtype)
{
    const int64_t to = 2, from = 4, count = BLOCK;

    stki_copy_strided_as(isa, STKI_STORES_CACHED, output, dtype, &to, input, STK_F32, &from, false, 1, &count);
}

/* Outputs [first, last] must all be `code`. */
static void check_run(uint32_t first, uint32_t last, uint16_t code)
{
    uint32_t n = last - first + 1;

    assert_int_equal(output[first], code);
    if (n > 1 && memcmp(output + first, output + first + 1, (n - 1) * sizeof *output) != 0)
        fail_msg("inputs %08x to %08x do not all give %04x", (unsigned)input[first], (unsigned)input[last],
                 (unsigned)code);
}

/* Checks one sign: `start` is 0 or the sign bit. */
static void check_sign(enum stki_isa isa, const struct format *format, uint32_t start)
{
    uint16_t sign = (uint16_t)(start >> 16);
    int code = 0;
    uint32_t last = last_of(format, 0);

    for (uint32_t block = 0; block < 0x80000000u; block += BLOCK) {
        uint32_t i = 0;
        for (uint32_t k = 0; k < BLOCK; k++)
            input[k] = (start | block) + k;
        convert(isa, format->dtype);
        while (i < BLOCK && block + i <= 0x7f800000) {
            uint32_t end = last - block < BLOCK - 1 ? last - block : BLOCK - 1;
            check_run(i, end, (uint16_t)(sign | code));
            i = end + 1;
            if (block + end == last && code < format->codes)
                last = last_of(format, ++code);
            else
                break;
        }
        for (i = block > 0x7f800000 ? 0 : block + BLOCK > 0x7f800001 ? 0x7f800001 - block : BLOCK; i < BLOCK; i++)
            assert_true((output[i] & 0x7fff) > format->codes && (output[i] & 0x8000) == sign); /* NaN with its sign */
    }
    assert_int_equal(code, format->codes);
}

static void all_inputs(void **state)
{
    static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2 && stki_isa_usable(isas[i]); k++) {
            check_sign(isas[i], &formats[k], 0);
            check_sign(isas[i], &formats[k], 0x80000000);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
