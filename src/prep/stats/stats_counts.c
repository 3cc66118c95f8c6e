/* stats_counts.c: see stats_counts.h. */
#include "stats_counts.h"
#include "allocate.h"
#include "error.h"
#include "ops_unaligned.h"
#include "small_float.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_BITS = 8, F32_FRACTION = 23, F64_FRACTION = 52, FIRST_PAGES = 16 };

bool stki_counts_are_exact(stk_dtype dtype)
{
    return stk_dtype_size(dtype) <= 2;
}

/* Fewer channels get finer bins, which limits memory. */
static int fraction_bits(int64_t channels)
{
    return channels <= 16 ? 10 : channels <= 256 ? 8 : 7;
}

stk_status stki_counts_init(stki_counts *counts, stk_dtype dtype, int64_t channels, int64_t most_bytes, stk_error *err)
{
    const int64_t size = stk_dtype_size(dtype);

    *counts = (stki_counts){.dtype = dtype, .channels = channels, .exact = stki_counts_are_exact(dtype)};
    counts->bits = counts->exact ? EXACT_BITS : fraction_bits(channels);
    counts->page_count = size == 1 ? 1 : size == 2 ? 256 : dtype == STK_F32 ? 512 : 4096;
    counts->most_pages = most_bytes >> (counts->bits + 3);
    if (counts->most_pages > INT32_MAX - 1)
        counts->most_pages = INT32_MAX - 1;
    counts->page_of = stki_zalloc_array(channels, counts->page_count * (int64_t)sizeof *counts->page_of);
    if (!counts->page_of)
        return stki_fail_memory(err, channels * counts->page_count * (int64_t)sizeof *counts->page_of,
                                "counts of values");
    return STK_OK;
}

void stki_counts_fini(stki_counts *counts)
{
    stki_free(counts->page_of);
    stki_free(counts->bins);
    stki_free(counts->flat);
    *counts = (stki_counts){0};
}

const uint64_t *stki_counts_look(const stki_counts *counts, int64_t channel, int page)
{
    const int32_t at = counts->page_of[channel * counts->page_count + page];

    return at ? counts->bins + ((int64_t)(at - 1) << counts->bits) : NULL;
}

static stk_status grow(stki_counts *counts, stk_error *err)
{
    int64_t room = counts->room ? 2 * counts->room : FIRST_PAGES;
    uint64_t *bins;

    if (room > counts->most_pages)
        room = counts->most_pages;
    if (room <= counts->pages)
        return stki_fail(err, STK_E_LIMIT,
                         "counting the values of %" PRId64 " channel%s needs more than %" PRId64
                         " bytes; remove histogram and calibration, or set per: tensor",
                         counts->channels, counts->channels == 1 ? "" : "s", counts->most_pages << (counts->bits + 3));
    bins = stki_resize(counts->bins, room << (counts->bits + 3));
    if (!bins)
        return stki_fail_memory(err, room << (counts->bits + 3), "counts of values");
    counts->bins = bins;
    counts->room = room;
    return STK_OK;
}

stk_status stki_counts_page(stki_counts *counts, int64_t channel, int page, uint64_t **out, stk_error *err)
{
    int32_t *at = &counts->page_of[channel * counts->page_count + page];
    const int64_t size = INT64_C(1) << counts->bits;
    stk_status status;

    if (!*at) {
        if (counts->pages == counts->room && (status = grow(counts, err)) != STK_OK)
            return status;
        memset(counts->bins + counts->pages * size, 0, (size_t)size * sizeof *counts->bins);
        *at = (int32_t)++counts->pages;
    }
    *out = counts->bins + (*at - 1) * size;
    return STK_OK;
}

/* Defines a counting loop; `KEY` combines the element's page and bin. */
#define COUNT(type, KEY)                                                                 \
    do {                                                                                 \
        const type *at = x;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                \
            const uint64_t key = KEY;                                                    \
            const int page = (int)(key >> bits);                                         \
            int32_t slot = pages[page];                                                  \
            if (__builtin_expect(!slot, 0)) {                                            \
                uint64_t *made;                                                          \
                stk_status status = stki_counts_page(counts, channel, page, &made, err); \
                if (status != STK_OK)                                                    \
                    return status;                                                       \
                slot = pages[page];                                                      \
                bins = counts->bins;                                                     \
            }                                                                            \
            bins[((int64_t)(slot - 1) << bits) + (int64_t)(key & inside)]++;             \
        }                                                                                \
    } while (0)

static inline uint64_t f64_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void add_flat(const stki_counts *counts, int64_t channel, const void *x, int64_t n);
static void make_flat(stki_counts *counts, int64_t n);

stk_status stki_counts_add(stki_counts *counts, const stki_stats_loops *loops, int64_t channel, const void *x,
                           int64_t n, stk_error *err)
{
    const int32_t *pages = counts->page_of + channel * counts->page_count;
    const int bits = counts->bits, f32_shift = F32_FRACTION - bits, f64_shift = F64_FRACTION - bits;
    const uint64_t inside = (UINT64_C(1) << bits) - 1;
    uint64_t *bins = counts->bins;

    if (stk_dtype_size(counts->dtype) == 1) {
        stk_status status = stki_counts_page(counts, channel, 0, &bins, err);

        if (status == STK_OK)
            loops->count_u8(x, n, bins);
        return status;
    }
    if (counts->hurry_in > 0)
        make_flat(counts, n);
    if (counts->flat) {
        add_flat(counts, channel, x, n);
        return STK_OK;
    }
    switch (counts->dtype) {
    case STK_F32:
        COUNT(stki_u32, at[i] >> f32_shift);
        break;
    case STK_F64:
        COUNT(stki_u64, at[i] >> f64_shift);
        break;
    case STK_I32:
        COUNT(stki_i32, f64_bits((double)at[i]) >> f64_shift);
        break;
    case STK_U32:
        COUNT(stki_u32, f64_bits((double)at[i]) >> f64_shift);
        break;
    case STK_I64:
        COUNT(stki_i64, f64_bits((double)at[i]) >> f64_shift);
        break;
    case STK_U64:
        COUNT(stki_u64, f64_bits((double)at[i]) >> f64_shift);
        break;
    default:
        COUNT(stki_u16, at[i]);
    }
    return STK_OK;
}

/* ---- a flat table ---- */

enum { HURRIED_CHANNELS = 4 };

static int64_t flat_bins(const stki_counts *counts)
{
    return (int64_t)counts->page_count << counts->bits;
}

void stki_counts_hurry(stki_counts *counts, int64_t after)
{
    if (counts->dtype == STK_F32 && counts->channels <= HURRIED_CHANNELS)
        counts->hurry_in = after + 1;
}

static void make_flat(stki_counts *counts, int64_t n)
{
    counts->hurry_in = counts->hurry_in > n ? counts->hurry_in - n : 0;
    if (counts->hurry_in == 0)
        counts->flat = stki_zalloc_array(counts->channels, flat_bins(counts) * (int64_t)sizeof *counts->flat);
}

static stk_status settle_page(stki_counts *counts, int64_t channel, int page, const uint64_t *from, stk_error *err)
{
    const int64_t size = INT64_C(1) << counts->bits;
    uint64_t any = 0, *bins;
    stk_status status;

    for (int64_t i = 0; i < size; i++)
        any |= from[i];
    if (!any)
        return STK_OK;
    status = stki_counts_page(counts, channel, page, &bins, err);
    for (int64_t i = 0; i < size && status == STK_OK; i++)
        bins[i] += from[i];
    return status;
}

stk_status stki_counts_settle(stki_counts *counts, stk_error *err)
{
    stk_status status = STK_OK;

    counts->hurry_in = 0;
    if (!counts->flat)
        return STK_OK;
    for (int64_t c = 0; c < counts->channels; c++)
        for (int page = 0; page < counts->page_count && status == STK_OK; page++)
            status = settle_page(counts, c, page,
                                 counts->flat + c * flat_bins(counts) + ((int64_t)page << counts->bits), err);
    stki_free(counts->flat);
    counts->flat = NULL;
    return status;
}

static void add_flat(const stki_counts *counts, int64_t channel, const void *x, int64_t n)
{
    uint64_t *bins = counts->flat + channel * flat_bins(counts);
    const stki_u32 *at = x;
    const int shift = F32_FRACTION - counts->bits;

    for (int64_t i = 0; i < n; i++)
        bins[at[i] >> shift]++;
}

stk_status stki_counts_merge(stki_counts *into, const stki_counts *from, stk_error *err)
{
    const int64_t size = INT64_C(1) << into->bits;

    for (int64_t c = 0; c < from->channels; c++)
        for (int page = 0; page < from->page_count; page++) {
            const uint64_t *more = stki_counts_look(from, c, page);
            uint64_t *bins;
            stk_status status;

            if (!more)
                continue;
            if ((status = stki_counts_page(into, into->channels == 1 ? 0 : c, page, &bins, err)) != STK_OK)
                return status;
            for (int64_t i = 0; i < size; i++)
                bins[i] += more[i];
        }
    return STK_OK;
}

/* ---- bins as values ---- */

static double value_of(stk_dtype dtype, unsigned key)
{
    switch (dtype) {
    case STK_BOOL:
        return key != 0;
    case STK_I8:
        return (double)(int8_t)key;
    case STK_I16:
        return (double)(int16_t)key;
    case STK_F16:
        return (double)stki_f16_decode((uint16_t)key);
    case STK_BF16:
        return (double)stki_bf16_decode((uint16_t)key);
    case STK_F8_E4M3FN:
        return (double)stki_f8_e4m3fn_decode((uint8_t)key);
    case STK_F8_E5M2:
        return (double)stki_f8_e5m2_decode((uint8_t)key);
    default:
        return key;
    }
}

/* Returns the lower edge of the values with this sign, exponent and fraction. */
static double edge(stk_dtype dtype, uint64_t key, int bits)
{
    double x;
    uint64_t word;

    if (dtype == STK_F32)
        return (double)stki_f32_of_bits((uint32_t)(key << (F32_FRACTION - bits)));
    word = key << (F64_FRACTION - bits);
    memcpy(&x, &word, sizeof x);
    return x;
}

static void set_bin(const stki_counts *counts, uint64_t key, uint64_t count, stki_bins *out)
{
    stki_bin bin = {.count = count};

    if (counts->exact) {
        bin.low = bin.high = bin.middle = value_of(counts->dtype, (unsigned)key) + 0.0; /* 0 instead of -0 */
    } else {
        const double start = edge(counts->dtype, key, counts->bits), end = edge(counts->dtype, key + 1, counts->bits);
        const bool negative = signbit(start);

        bin.low = negative ? end : start;
        bin.high = negative ? start : end;
        bin.middle = isfinite(end) ? start + (end - start) / 2 : start;
        if (!isfinite(end)) /* the last bin before infinity */
            bin.low = negative ? -DBL_MAX : bin.low, bin.high = negative ? bin.high : DBL_MAX;
    }
    if (isnan(bin.middle)) {
        out->nan += (int64_t)count;
    } else if (isinf(bin.middle)) {
        out->infinite[bin.middle > 0] += (int64_t)count;
    } else {
        out->total += (int64_t)count;
        out->bin[out->count++] = bin;
    }
}

static int by_value(const void *a, const void *b)
{
    const stki_bin *p = a, *q = b;

    return p->middle < q->middle ? -1 : p->middle > q->middle;
}

/* Merges bins with equal values: 0 and -0. */
static void join_equal(stki_bins *bins)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < bins->count; i++) {
        if (kept && bins->bin[kept - 1].middle == bins->bin[i].middle)
            bins->bin[kept - 1].count += bins->bin[i].count;
        else
            bins->bin[kept++] = bins->bin[i];
    }
    bins->count = kept;
}

static int64_t used_bins(const stki_counts *counts, int64_t channel)
{
    int64_t used = 0;

    for (int page = 0; page < counts->page_count; page++) {
        const uint64_t *bins = stki_counts_look(counts, channel, page);

        for (int64_t i = 0; bins && i < INT64_C(1) << counts->bits; i++)
            used += bins[i] != 0;
    }
    return used;
}

static stk_status list_channel(const stki_counts *counts, int64_t channel, stki_bins *out, stk_error *err)
{
    const int64_t used = used_bins(counts, channel);

    *out = (stki_bins){0};
    out->bin = stki_zalloc_array(used ? used : 1, sizeof *out->bin);
    if (!out->bin)
        return stki_fail_memory(err, used * (int64_t)sizeof *out->bin, "a histogram");
    for (int page = 0; page < counts->page_count; page++) {
        const uint64_t *bins = stki_counts_look(counts, channel, page);

        for (int64_t i = 0; bins && i < INT64_C(1) << counts->bits; i++)
            if (bins[i])
                set_bin(counts, (uint64_t)page << counts->bits | (uint64_t)i, bins[i], out);
    }
    qsort(out->bin, (size_t)out->count, sizeof *out->bin, by_value);
    join_equal(out);
    return STK_OK;
}

stk_status stki_counts_bins(const stki_counts *counts, int64_t channel, stki_bins *out, stk_error *err)
{
    stki_counts all;
    stk_status status;

    if (channel >= 0 || counts->channels == 1)
        return list_channel(counts, channel < 0 ? 0 : channel, out, err);
    *out = (stki_bins){0};
    status = stki_counts_init(&all, counts->dtype, 1, INT64_MAX, err);
    all.bits = counts->bits;
    status = status != STK_OK ? status : stki_counts_merge(&all, counts, err);
    status = status != STK_OK ? status : list_channel(&all, 0, out, err);
    stki_counts_fini(&all);
    return status;
}

void stki_bins_fini(stki_bins *bins)
{
    stki_free(bins->bin);
    *bins = (stki_bins){0};
}
