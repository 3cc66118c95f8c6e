/* random.c: uniform and normal random numbers. Element n is computed from Philox block n / k (k elements per block), so
 * that it depends only on seed, n and dtype. The computation uses only additions, multiplications, divisions and square
 * roots, whose results IEEE 754 defines exactly; the logarithm is therefore implemented here.
 *
 *   f64               two words: 53 bits      counter (stream, n / 2)
 *   all other floats  one word: 32 bits       counter (stream, n / 4)
 *
 * Uniform: as many random bits as the precision of the dtype, scaled to [0, 1), so that rounding never gives 1. Normal:
 * the quantile function of the normal distribution at the midpoint of the interval that the bits select, then cast. */
#include "dtype.h"
#include "error.h"
#include "philox.h"
#include "profile_scope.h"
#include "tensor_internal.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stoker/create.h>
#include <string.h>

static const uint64_t uniform_stream = UINT64_C(0x73746b2e72616e64), normal_stream = UINT64_C(0x73746b2e6e6f726d);

/* ---- the normal distribution ---- */

/* ln x for x in (0, 1): ln(m 2^e) with m in [sqrt(1/2), sqrt(2)), where ln m = 2 atanh((m - 1) / (m + 1)) is computed
 * by 15 terms of the series of atanh. */
static double natural_log(double x)
{
    int exponent;
    double m = frexp(x, &exponent), t, square, term, sum = 0;

    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    t = (m - 1) / (m + 1);
    square = t * t;
    term = t;
    for (int k = 1; k < 30; k += 2) {
        sum += term / k;
        term *= square;
    }
    return 2 * sum + exponent * 0.69314718055994530942;
}

static double polynomial(double x, const double *from_highest, int count)
{
    double sum = from_highest[0];

    for (int i = 1; i < count; i++)
        sum = sum * x + from_highest[i];
    return sum;
}

/* The quantile of the normal distribution by Wichura's algorithm AS 241 (PPND16), with a relative error of about 1e-16.
 * p must be in (0, 1). */
static double normal_quantile(double p)
{
    static const double central_a[] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                                       45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                                       133.14166789178437745, 3.387132872796366608};
    static const double central_b[] = {
        5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
    static const double middle_a[] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                      1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
                                      4.6303378461565452959,    1.42343711074968357734};
    static const double middle_b[] = {
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
        0.68976733498510000455,    1.6763848301838038494,   2.05319162663775882187,   1.0};
    static const double tail_a[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                    0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
                                    5.4637849111641143699,     6.6579046435011037772};
    static const double tail_b[] = {
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
        0.0148753612908506148525,   0.13692988092273580531,   0.59983220655588793769,   1.0};
    double q = p - 0.5, r, z;

    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        return q * polynomial(r, central_a, 8) / polynomial(r, central_b, 8);
    }
    r = sqrt(-natural_log(q < 0 ? p : 1 - p));
    if (r <= 5)
        z = polynomial(r - 1.6, middle_a, 8) / polynomial(r - 1.6, middle_b, 8);
    else
        z = polynomial(r - 5, tail_a, 8) / polynomial(r - 5, tail_b, 8);
    return q < 0 ? -z : z;
}

/* ---- blocks of elements ---- */

struct generator {
    uint64_t seed, stream;
    bool normal;
    int bits;  /* number of bits of a uniform number: the precision of the dtype */
    int words; /* number of random words per element: 1 or 2 */
};

/* Significand bits of the dtype, including the implicit one. */
static int precision(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F64:
        return 53;
    case STK_F32:
        return 24;
    case STK_F16:
        return 11;
    case STK_BF16:
        return 8;
    case STK_F8_E4M3FN:
        return 4;
    default:
        return 3;
    }
}

static double draw(const struct generator *generator, const stki_philox *block, int at)
{
    uint64_t word = block->word[at * generator->words];
    int width = 32;

    if (generator->words == 2) {
        word = (uint64_t)block->word[at * 2 + 1] << 32 | word;
        width = 64;
    }
    if (!generator->normal)
        return ldexp((double)(word >> (width - generator->bits)), -generator->bits);
    if (width == 64)
        return normal_quantile(((double)(word >> 12) + 0.5) * 0x1p-52);
    return normal_quantile(((double)word + 0.5) * 0x1p-32);
}

/* Computes elements [first, first + count). `first` is a multiple of 4, so that it is the first element of a Philox
 * block. */
static void draw_block(const void *context, int64_t first, int64_t count, void *out)
{
    const struct generator *generator = context;
    double *values = out;
    int each = 4 / generator->words;

    assert(first % 4 == 0);
    for (int64_t i = 0; i < count; i += each) {
        stki_philox block = stki_philox_draw(generator->seed, generator->stream, (uint64_t)((first + i) / each));
        for (int k = 0; k < each && i + k < count; k++)
            values[i + k] = draw(generator, &block, k);
    }
}

static stk_status random_tensor(stk_dtype dtype, int ndim, const int64_t *shape, uint64_t seed, bool normal,
                                stk_device *device, stk_tensor *out, stk_error *err)
{
    struct generator generator = {.seed = seed,
                                  .stream = normal ? normal_stream : uniform_stream,
                                  .normal = normal,
                                  .bits = precision(dtype),
                                  .words = dtype == STK_F64 ? 2 : 1};
    stk_status status = stki_dtype_check(dtype, err);

    if (status == STK_OK && stki_dtype_category(dtype) != STKI_CATEGORY_REAL)
        status = stki_fail(err, STK_E_BAD_DTYPE, "random numbers are not available for %s", stk_dtype_name(dtype));
    return status != STK_OK
               ? status
               : stki_tensor_of_sequence(dtype, ndim, shape, STK_F64, draw_block, &generator, device, out, err);
}

stk_status stk_tensor_rand(stk_dtype dtype, int ndim, const int64_t *shape, uint64_t seed, stk_device *device,
                           stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("rand");
    return random_tensor(dtype, ndim, shape, seed, false, device, out, err);
}

stk_status stk_tensor_randn(stk_dtype dtype, int ndim, const int64_t *shape, uint64_t seed, stk_device *device,
                            stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("randn");
    return random_tensor(dtype, ndim, shape, seed, true, device, out, err);
}
