/* stats_moments.c: see stats_moments.h. */
#include "stats_moments.h"
#include "ops_unaligned.h"
#include <math.h>
#include <string.h>

/* Squares of f64 beyond these would overflow or underflow; such runs are scaled by 2^-600 or 2^600. */
static const double too_large = 0x1p500, too_small = 0x1p-400;
enum { RESCALE = 600, PIVOT_ELEMENTS = 16 };

static void widen(stki_moments *moments, double min, double max)
{
    moments->min = moments->count && moments->min < min ? moments->min : min;
    moments->max = moments->count && moments->max > max ? moments->max : max;
}

static void widen_whole(stki_moments *moments, stki_i128 least, stki_i128 most)
{
    moments->least = moments->count && moments->least < least ? moments->least : least;
    moments->most = moments->count && moments->most > most ? moments->most : most;
}

/* ---- floats ---- */

/* Copies the finite elements to contiguous memory and counts the others. */
#define KEEP_FINITE(type)                       \
    do {                                        \
        const stki_##type *at = x;              \
        stki_##type *to = (void *)room->value;  \
        for (int64_t i = 0; i < n; i++) {       \
            const double value = (double)at[i]; \
            if (isfinite(value))                \
                to[kept++] = at[i];             \
            else if (isnan(value))              \
                moments->nan++;                 \
            else                                \
                moments->infinite[value > 0]++; \
        }                                       \
    } while (0)

static int64_t keep_finite(stki_moments *moments, stk_dtype dtype, const void *x, int64_t n, stki_run_room *room)
{
    int64_t kept = 0;

    if (dtype == STK_F32)
        KEEP_FINITE(f32);
    else
        KEEP_FINITE(f64);
    return kept;
}

/* Adds a run of finite elements near `pivot` * 2^exponent; `look` contains the sum and the sum of squares of their
 * deviations from it. */
static void add_run(stki_moments *moments, int64_t n, double pivot, const stki_run_look *look, int exponent)
{
    int place, sum_place;
    const int64_t whole = stki_exact_split(pivot, &place), off = stki_exact_split(look->sum, &sum_place);

    stki_exact_add_whole(&moments->sum, (stki_i128)whole * n, place + exponent);
    stki_exact_add(&moments->sum, look->sum, exponent);
    stki_exact_add_whole(&moments->squares, (stki_i128)whole * whole * n, 2 * (place + exponent));
    stki_exact_add_whole(&moments->squares, (stki_i128)whole * off, place + sum_place + 2 * exponent + 1);
    stki_exact_add(&moments->squares, look->square, 2 * exponent);
}

/* Returns a value near the elements: the mean of the first few. */
static double pivot_of(stk_dtype dtype, const void *x, int64_t n, double scale)
{
    const stki_f32 *singles = x;
    const stki_f64 *doubles = x;
    const int64_t few = n < PIVOT_ELEMENTS ? n : PIVOT_ELEMENTS;
    double sum = 0;

    for (int64_t i = 0; i < few; i++)
        sum += dtype == STK_F32 ? (double)singles[i] : doubles[i] * scale;
    sum /= (double)few;
    return isfinite(sum) ? sum : 0;
}

/* Computes `look` around a pivot, which is returned. */
static double look_at(const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n, double scale,
                      stki_run_look *look)
{
    const double pivot = pivot_of(dtype, x, n, scale);

    if (dtype == STK_F32)
        loops->look_f32(x, n, pivot, look);
    else
        loops->look_f64(x, n, scale, pivot, look);
    return pivot;
}

static void add_floats(stki_moments *moments, const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n,
                       stki_run_room *room, const void **finite, int64_t *finite_count)
{
    stki_run_look look;
    double pivot = look_at(loops, dtype, x, n, 1, &look), largest;
    int exponent = 0;

    if (look.strange) {
        n = keep_finite(moments, dtype, x, n, room);
        x = room->value;
        pivot = n > 0 ? look_at(loops, dtype, x, n, 1, &look) : 0;
    }
    *finite = x;
    *finite_count = n;
    if (n == 0)
        return;
    largest = look.max > -look.min ? look.max : -look.min;
    if (dtype == STK_F64 && (largest > too_large || largest < too_small)) {
        exponent = largest > too_large ? RESCALE : -RESCALE;
        pivot = look_at(loops, dtype, x, n, ldexp(1, -exponent), &look);
    }
    widen(moments, look.min, look.max);
    moments->count += n;
    moments->zeros += look.zeros;
    add_run(moments, n, pivot, &look, exponent);
}

/* ---- integers ---- */

/* Squares of 64-bit integers: upper and lower halves are summed separately, so that neither overflows. */
#define ADD_64(type, wide)                                                       \
    do {                                                                         \
        const stki_##type *at = x;                                               \
        stki_i128 sum = 0, least = at[0], most = at[0];                          \
        stki_u128_word low = 0, high = 0;                                        \
        for (int64_t i = 0; i < n; i++) {                                        \
            const stki_u128_word square = (stki_u128_word)((wide)at[i] * at[i]); \
            sum += at[i];                                                        \
            low += (uint64_t)square;                                             \
            high += square >> 64;                                                \
            least = at[i] < least ? at[i] : least;                               \
            most = at[i] > most ? at[i] : most;                                  \
            moments->zeros += at[i] == 0;                                        \
        }                                                                        \
        widen_whole(moments, least, most);                                       \
        stki_exact_add_whole(&moments->sum, sum, 0);                             \
        stki_exact_add_whole(&moments->squares, (stki_i128)low, 0);              \
        stki_exact_add_whole(&moments->squares, (stki_i128)high, 64);            \
    } while (0)

static void add_whole(stki_moments *moments, const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n)
{
    stki_run_whole run;

    if (dtype == STK_I64) {
        ADD_64(i64, stki_i128);
    } else if (dtype == STK_U64) {
        ADD_64(u64, stki_u128_word);
    } else {
        (dtype == STK_I32 ? loops->whole_i32 : loops->whole_u32)(x, n, &run);
        widen_whole(moments, run.min, run.max);
        moments->zeros += run.zeros;
        stki_exact_add_whole(&moments->sum, run.sum, 0);
        stki_exact_add_whole(&moments->squares, (stki_i128)run.square_low, 0);
        stki_exact_add_whole(&moments->squares, (stki_i128)run.square_high, 32);
    }
    moments->count += n;
}

void stki_moments_add(stki_moments *moments, const stki_stats_loops *loops, stk_dtype dtype, const void *x, int64_t n,
                      stki_run_room *room, const void **finite, int64_t *finite_count)
{
    if (dtype == STK_F32 || dtype == STK_F64) {
        add_floats(moments, loops, dtype, x, n, room, finite, finite_count);
        return;
    }
    *finite = x;
    *finite_count = n;
    if (n > 0)
        add_whole(moments, loops, dtype, x, n);
}

/* ---- totals ---- */

void stki_moments_add_value(stki_moments *moments, double value, int64_t count)
{
    const stki_i128 whole_value = value == floor(value) && fabs(value) < 0x1p62 ? (stki_i128)value : 0;
    int64_t whole;
    int place;

    if (count == 0)
        return;
    widen(moments, value, value);
    widen_whole(moments, whole_value, whole_value);
    moments->count += count;
    moments->zeros += value == 0 ? count : 0;
    whole = stki_exact_split(value, &place);
    for (; whole && !(whole & 1); place++) /* limited to 16 bits, so that its square times the count cannot overflow */
        whole /= 2;
    stki_exact_add_whole(&moments->sum, (stki_i128)whole * count, place);
    stki_exact_add_whole(&moments->squares, (stki_i128)(whole * whole) * count, 2 * place);
}

void stki_moments_merge(stki_moments *into, const stki_moments *from)
{
    if (from->count) {
        widen(into, from->min, from->max);
        widen_whole(into, from->least, from->most);
    }
    into->count += from->count;
    into->nan += from->nan;
    into->zeros += from->zeros;
    for (int i = 0; i < 2; i++)
        into->infinite[i] += from->infinite[i];
    stki_exact_merge(&into->sum, &from->sum);
    stki_exact_merge(&into->squares, &from->squares);
}

/* Σ (x - m)^2 = squares - 2 m sum + count m^2 is exact for m, the mean rounded to double. The rounding error d adds
 * count d^2, which is (sum - count m)^2 / count and is subtracted. */
static stki_exact spread_around(const stki_moments *moments, double mean)
{
    stki_exact total = moments->squares, rest = moments->sum, count = {{0}, 0}, product = {{0}, 0};
    double off;
    int exponent;

    stki_exact_add_product(&total, &moments->sum, -mean);
    stki_exact_add_product(&total, &moments->sum, -mean);
    stki_exact_add_whole(&count, moments->count, 0);
    stki_exact_add_product(&product, &count, mean);
    stki_exact_add_product(&total, &product, mean);
    stki_exact_add_product(&rest, &count, -mean);
    off = stki_exact_fraction(&rest, &exponent);
    stki_exact_add(&total, -(off * off / (double)moments->count), 2 * exponent);
    return total;
}

/* Divides mantissas and exponents separately, because sums and squares may exceed the range of double although their
 * quotients and roots do not. */
static double divide(const stki_exact *sum, int64_t count)
{
    int exponent;
    const double fraction = stki_exact_fraction(sum, &exponent);

    return ldexp(fraction / (double)count, exponent);
}

static double root_of_quotient(const stki_exact *sum, int64_t count)
{
    int exponent;
    const double fraction = stki_exact_fraction(sum, &exponent) / (double)count;
    const int odd = exponent & 1;

    return fraction > 0 ? ldexp(sqrt(odd ? 2 * fraction : fraction), (exponent - odd) / 2) : 0;
}

void stki_moments_numbers(const stki_moments *moments, bool whole, stki_numbers *out)
{
    stki_exact spread;

    *out = (stki_numbers){.count = moments->count,
                          .nan = moments->nan,
                          .infinite = {moments->infinite[0], moments->infinite[1]},
                          .zeros = moments->zeros,
                          .whole = whole};
    if (!moments->count)
        return;
    out->least = moments->least;
    out->most = moments->most;
    out->min = whole ? (double)moments->least : moments->min;
    out->max = whole ? (double)moments->most : moments->max;
    out->mean = divide(&moments->sum, moments->count);
    spread = spread_around(moments, out->mean);
    out->std = root_of_quotient(&spread, moments->count);
}
