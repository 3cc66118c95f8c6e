/* loadbench_values.c: values are Philox random numbers, indexed by element position. Numbers are generated as i64 or
 * f64 and cast to the dtype by the tensor library. */
#include "loadbench_values.h"
#include "error.h"
#include "philox.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* A random stream for each kind of values, so that the kinds are independent even with the same seed. */
enum { STREAM_BYTES = 1, STREAM_UNIFORM, STREAM_NORMAL, STREAM_SPREAD, STREAM_LABEL, STREAM_GRID, STREAM_NOISE };

enum {
    ZIPF_CLASSES = 100000, /* limit, because generating a label takes time proportional to the number of classes */
    GRID = 32              /* distance in pixels between the random points of a picture */
};
#define ZERO_BLOCK INT64_C(4096)

static bool is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

static bool is_whole(stk_dtype dtype)
{
    return dtype >= STK_U8 && dtype <= STK_I64;
}

/* Numbers in a specification are doubles, which cannot represent every integer above this. */
#define EXACT 0x1p53

/* Sets the allowed range: that of the dtype, limited to the integers that doubles represent exactly. */
static void range_of(stk_dtype dtype, double *low, double *high)
{
    const bool has_sign = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    const int bits = dtype == STK_BOOL ? 1 : (int)(8 * stk_dtype_size(dtype));

    if (is_real(dtype)) {
        *high = dtype == STK_F16 ? 65504 : dtype == STK_BF16 ? 0x1.fep127 : dtype == STK_F32 ? FLT_MAX : DBL_MAX;
        *low = -*high;
        return;
    }
    *high = bits == 64 ? EXACT : ldexp(1, has_sign ? bits - 1 : bits) - 1;
    *low = !has_sign ? 0 : bits == 64 ? -EXACT : -ldexp(1, bits - 1);
}

static stk_status fail_range(const struct lb_values_ask *ask, const char *key, double found, double low, double high,
                             stk_error *err)
{
    return stki_fail(err, STK_E_RANGE, "%s: found %.16g, expected %.16g to %.16g%s for %s", key, found, low, high,
                     fabs(high) == EXACT ? ", the range in which numbers of a config are exact," : "",
                     stk_dtype_name(ask->dtype));
}

/* Checks that a number is between `low` and `high`, and an integer unless the dtype is real. */
static stk_status check_number(const struct lb_values_ask *ask, const char *key, double found, double low, double high,
                               stk_error *err)
{
    if (found < low || found > high)
        return fail_range(ask, key, found, low, high, err);
    if (!is_real(ask->dtype) && found != floor(found))
        return stki_fail(err, STK_E_RANGE, "%s: found %.16g, expected an integer for %s", key, found,
                         stk_dtype_name(ask->dtype));
    return STK_OK;
}

static stk_status check_uniform(const struct lb_values_ask *ask, double least, double most, stk_error *err)
{
    const double above = is_real(ask->dtype) || most == EXACT ? most : most + 1; /* `high` is exclusive */
    stk_status status = check_number(ask, "low", ask->low, least, most, err);

    if (status == STK_OK)
        status = check_number(ask, "high", ask->high, least, above, err);
    if (status == STK_OK && !(ask->low < ask->high))
        return stki_fail(err, STK_E_RANGE, "values: uniform: low %g is not below high %g", ask->low, ask->high);
    return status;
}

/* Out-of-range integers are clamped, as in a sensor. Floats must not become infinite, so `std` is limited for them. */
static stk_status check_normal(const struct lb_values_ask *ask, double least, double most, stk_error *err)
{
    if (ask->mean < least || ask->mean > most)
        return fail_range(ask, "mean", ask->mean, least, most, err);
    if (is_real(ask->dtype) && ask->std > (most - fabs(ask->mean)) / LB_NORMAL_REACH)
        return fail_range(ask, "std", ask->std, 0, (most - fabs(ask->mean)) / LB_NORMAL_REACH, err);
    return STK_OK;
}

static stk_status check_range(const struct lb_values_ask *ask, stk_error *err)
{
    double least, most;

    range_of(ask->dtype, &least, &most);
    switch (ask->kind) {
    case LB_VALUES_UNIFORM:
        return check_uniform(ask, least, most, err);
    case LB_VALUES_NORMAL:
        return check_normal(ask, least, most, err);
    case LB_VALUES_CONSTANT:
        return check_number(ask, "value", ask->value, least, most, err);
    case LB_VALUES_LABELS:
        return (double)ask->classes - 1 > most ? fail_range(ask, "classes", (double)ask->classes, 1, most + 1, err)
                                               : STK_OK;
    case LB_VALUES_BYTES:
    case LB_VALUES_PICTURES:
        break;
    }
    return STK_OK;
}

stk_status lb_values_check(const struct lb_values_ask *ask, stk_error *err)
{
    const char *name = stk_dtype_name(ask->dtype);
    const bool real = is_real(ask->dtype), whole = is_whole(ask->dtype);

    if (ask->kind == LB_VALUES_BYTES && !whole)
        return stki_fail(err, STK_E_BAD_DTYPE, "values: bytes needs an integer dtype, not %s; use uniform or normal",
                         name);
    if (ask->kind == LB_VALUES_LABELS && ask->draw == LB_DRAW_ZIPF && ask->classes > ZIPF_CLASSES)
        return stki_fail(err, STK_E_RANGE, "classes: found %lld, expected 1 to %d with draw: zipf",
                         (long long)ask->classes, ZIPF_CLASSES);
    if (ask->kind == LB_VALUES_LABELS && !whole)
        return stki_fail(err, STK_E_BAD_DTYPE, "values: labels need an integer dtype, not %s", name);
    if (!real && !whole && ask->dtype != STK_BOOL)
        return stki_fail(err, STK_E_BAD_DTYPE, "values cannot be generated for %s", name);
    return check_range(ask, err);
}

/* Zeroes the middle of every 4 KiB block of the field. The ends of a block stay random, so that short rows still
 * differ. */
static void leave_zeros(const struct lb_values_ask *ask, int64_t first_byte, int64_t bytes, char *out)
{
    const int64_t zeros = (int64_t)(ask->compressibility * ZERO_BLOCK), begin = (ZERO_BLOCK - zeros) / 2;

    for (int64_t block = first_byte / ZERO_BLOCK * ZERO_BLOCK; zeros > 0 && block < first_byte + bytes;
         block += ZERO_BLOCK) {
        int64_t from = block + begin - first_byte, to = from + zeros;
        from = from < 0 ? 0 : from;
        to = to > bytes ? bytes : to;
        if (to > from)
            memset(out + from, 0, (size_t)(to - from));
    }
}

static void fill_bytes(const struct lb_values_ask *ask, int64_t first_byte, int64_t bytes, char *out)
{
    for (int64_t at = 0; at < bytes;) { /* 16 bytes per draw; `first_byte` may be in the middle of a draw */
        const int64_t position = first_byte + at, within = position & 15;
        const stki_philox draw = stki_philox_draw((uint64_t)ask->seed, STREAM_BYTES, (uint64_t)(position >> 4));
        const int64_t n = bytes - at < 16 - within ? bytes - at : 16 - within;
        memcpy(out + at, (const char *)&draw + within, (size_t)n);
        at += n;
    }
    leave_zeros(ask, first_byte, bytes, out);
}

/* Returns 53 random bits as a number in [0, 1). */
static double unit(const struct lb_values_ask *ask, int64_t position)
{
    const stki_philox draw = stki_philox_draw((uint64_t)ask->seed, STREAM_UNIFORM, (uint64_t)position);
    const uint64_t bits = (uint64_t)draw.word[0] << 32 | draw.word[1];
    return (double)(bits >> 11) * 0x1p-53;
}

static double bell(int64_t seed, uint64_t stream, int64_t position)
{
    const stki_philox draw = stki_philox_draw((uint64_t)seed, stream, (uint64_t)position);
    int64_t sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (draw.word[i] & 0xffff) + (draw.word[i] >> 16);
    /* sum of eight numbers in [0, 65535]: mean 4 * 65535, variance 8 (65536^2 - 1) / 12 */
    return (double)(sum - 4 * 65535) * (1 / 53509.92);
}

static double normal(const struct lb_values_ask *ask, int64_t position)
{
    return bell(ask->seed, STREAM_NORMAL, position);
}

double lb_values_spread(int64_t seed, int64_t row, double spread)
{
    const double factor = 1 + spread * bell(seed, STREAM_SPREAD, row);

    return factor < 0.05 ? 0.05 : factor > 4 ? 4 : factor;
}

/* Returns the first class whose cumulative share exceeds the draw. Uses only sums and quotients, which are the same on
 * all machines. */
static int64_t zipf(const struct lb_values_ask *ask, int64_t row)
{
    const stki_philox draw = stki_philox_draw((uint64_t)ask->seed, STREAM_LABEL, (uint64_t)row);
    double whole = 0, left;
    int64_t class = 0;

    for (int64_t k = 0; k < ask->classes; k++)
        whole += 1 / (double)(k + 1);
    left = whole * (double)draw.word[0] * 0x1p-32;
    for (; class < ask->classes - 1 && left >= 1 / (double)(class + 1); class ++)
        left -= 1 / (double)(class + 1);
    return class;
}

int64_t lb_values_class(const struct lb_values_ask *ask, int64_t row)
{
    if (ask->draw == LB_DRAW_UNIFORM)
        return (int64_t)stki_philox_below((uint64_t)ask->seed, STREAM_LABEL, (uint64_t)row, (uint64_t)ask->classes);
    return ask->draw == LB_DRAW_ZIPF ? zipf(ask, row) : row % ask->classes;
}

/* Returns a random value from 0 to 255 for a grid point. */
static int corner(const struct lb_values_ask *ask, int64_t row, int64_t y, int64_t x, int64_t channel)
{
    const uint64_t place = (uint64_t)(y * 4099 + x) * 4 + (uint64_t)channel;
    return (
        int)(stki_philox_draw((uint64_t)ask->seed + (uint64_t)row * UINT64_C(0x9e3779b97f4a7c15), STREAM_GRID, place)
                 .word[0] >>
             24);
}

/* Interpolates linearly between the random values of grid points that are GRID pixels apart, and adds noise. Uses only
 * integer arithmetic, so that every machine generates the same picture. */
void lb_picture_fill(const struct lb_values_ask *ask, int64_t row, int64_t height, int64_t width, int64_t channels,
                     uint8_t *out)
{
    const int amplitude = (int)(ask->detail * 256);
    const uint64_t seed = (uint64_t)ask->seed ^ (uint64_t)(row + 1) * UINT64_C(0xd1342543de82ef95);

    for (int64_t gy = 0; gy * GRID < height; gy++)
        for (int64_t gx = 0; gx * GRID < width; gx++)
            for (int64_t c = 0; c < channels; c++) {
                const int a = corner(ask, row, gy, gx, c), b = corner(ask, row, gy, gx + 1, c);
                const int d = corner(ask, row, gy + 1, gx, c), e = corner(ask, row, gy + 1, gx + 1, c);
                for (int64_t y = 0; y < GRID && gy * GRID + y < height; y++)
                    for (int64_t x = 0; x < GRID && gx * GRID + x < width; x++) {
                        const int64_t v = (a * (GRID - x) + b * x) * (GRID - y) + (d * (GRID - x) + e * x) * y;
                        out[((gy * GRID + y) * width + gx * GRID + x) * channels + c] = (uint8_t)(v / (GRID * GRID));
                    }
            }
    for (int64_t at = 0; amplitude > 0 && at < height * width * channels; at += 16) {
        const stki_philox draw = stki_philox_draw(seed, STREAM_NOISE, (uint64_t)(at >> 4));
        for (int64_t i = 0; i < 16 && at + i < height * width * channels; i++) {
            const int noise = ((const uint8_t *)&draw)[i] - 128, v = out[at + i] + noise * amplitude / 256;
            out[at + i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        }
    }
}

static double real_value(const struct lb_values_ask *ask, int64_t position)
{
    if (ask->kind == LB_VALUES_UNIFORM)
        return ask->low + (ask->high - ask->low) * unit(ask, position);
    if (ask->kind == LB_VALUES_NORMAL)
        return ask->mean + ask->std * normal(ask, position);
    return ask->value;
}

/* Clamps the value to the range of the dtype and of i64. */
static int64_t within(stk_dtype dtype, double value)
{
    const bool has_sign = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    const int bits = dtype == STK_BOOL ? 1 : (int)(8 * stk_dtype_size(dtype));
    const double low = has_sign ? -ldexp(1, bits - 1) : 0,
                 high = ldexp(1, has_sign || bits == 64 ? bits - 1 : bits) - 1;

    if (value >= 0x1p63)
        return bits == 64 ? INT64_MAX : (int64_t)high;
    return value < low ? (int64_t)low : value > high ? (int64_t)high : (int64_t)value;
}

static int64_t whole_value(const struct lb_values_ask *ask, int64_t row, int64_t position)
{
    if (ask->kind == LB_VALUES_LABELS)
        return lb_values_class(ask, row);
    const double value = real_value(ask, position);
    return within(ask->dtype, ask->kind == LB_VALUES_NORMAL ? rint(value) : floor(value));
}

stk_status lb_values_fill(const struct lb_values_ask *ask, int64_t first, int64_t count, int64_t row_elements,
                          void *scratch, void *out, stk_error *err)
{
    const int64_t elements = count * row_elements, size = stk_dtype_size(ask->dtype);
    const bool real = is_real(ask->dtype);
    stk_tensor made, cast;

    if (ask->kind == LB_VALUES_BYTES) {
        fill_bytes(ask, first * row_elements * size, elements * size, out);
        return STK_OK;
    }
    for (int64_t i = 0; i < count && ask->kind == LB_VALUES_PICTURES; i++)
        lb_picture_fill(ask, first + i, ask->height, ask->width, ask->channels, (uint8_t *)out + i * row_elements);
    if (ask->kind == LB_VALUES_PICTURES)
        return STK_OK;
    for (int64_t i = 0; i < elements; i++)
        if (real)
            ((double *)scratch)[i] = real_value(ask, first * row_elements + i);
        else
            ((int64_t *)scratch)[i] = whole_value(ask, first + i / row_elements, first * row_elements + i);
    stk_status status = stk_tensor_borrow(scratch, real ? STK_F64 : STK_I64, 1, &elements, NULL, &made, err);
    if (status == STK_OK)
        status = stk_tensor_borrow(out, ask->dtype, 1, &elements, NULL, &cast, err);
    return status == STK_OK ? stk_tensor_copy(&cast, &made, err) : status;
}
