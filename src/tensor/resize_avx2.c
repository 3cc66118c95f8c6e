/* resize_avx2.c: both passes with products of 16-bit integers, added in pairs (madd). A coefficient is split into its
 * low 12 bits and the rest, which both fit in 16 bits; the two sums are combined at the end, so the result is exact.
 *
 * Horizontal: one output pixel at a time with one channel per lane (three or four channels) and four inputs per step.
 * The halves of a register hold two rows, and each coefficient is loaded once for four rows. One channel is in
 * resize_gray_avx2.c, two channels use the plain loops. Vertical: 32 bytes at a time, two rows per step. */
#include "resize_internal.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LOW_BITS = 12, LOW_MASK = (1 << LOW_BITS) - 1, BYTES = 32, QUARTER = 16, MOST_TAPS = 256 };

/* Two coefficients, each split into its upper bits (`high`) and its lower LOW_BITS bits (`low`). Each member holds a
 * pair of 16-bit integers, the first coefficient in the lower half. */
typedef struct pair {
    int32_t high, low;
} pair;

INLINE pair cut(const int32_t *k)
{
    return (pair){(int32_t)((uint32_t)(k[0] >> LOW_BITS) & 0xffff) | (int32_t)((uint32_t)(k[1] >> LOW_BITS) << 16),
                  (k[0] & LOW_MASK) | (k[1] & LOW_MASK) << 16};
}

typedef struct sums {
    __m256i high, low;
} sums;

INLINE void add_pair(sums *s, __m256i words, const pair *k)
{
    s->high = _mm256_add_epi32(s->high, _mm256_madd_epi16(words, _mm256_set1_epi32(k->high)));
    s->low = _mm256_add_epi32(s->low, _mm256_madd_epi16(words, _mm256_set1_epi32(k->low)));
}

INLINE __m256i put_together(const sums *s)
{
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(s->high, LOW_BITS), s->low);

    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(STKI_RESIZE_HALF)), STKI_RESIZE_BITS);
}

/* ---- horizontal ---- */

INLINE __m256i load_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                   _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

/* The shuffle that selects inputs `t` and `t + 1` of each channel from 16 bytes, as 16-bit integers. */
INLINE __m256i pick(int channels, int t)
{
    char at[QUARTER];

    for (int c = 0; c < 4; c++) {
        at[4 * c] = (char)(c < channels ? t * channels + c : -1);
        at[4 * c + 2] = (char)(c < channels ? (t + 1) * channels + c : -1);
        at[4 * c + 1] = at[4 * c + 3] = -1;
    }
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)at));
}

/* Every pixel uses the number of pairs of the widest window; coefficients after a narrower window are 0. */
static int64_t pairs_of(const stki_resize_axis *x)
{
    return (x->most + 1) / 2;
}

/* The number of leading output pixels whose steps of 16 bytes are entirely inside the row. */
static int64_t pixels_inside(const stki_resizer *resizer)
{
    const stki_resize_axis *x = &resizer->x;
    const int64_t channels = resizer->channels, bytes = x->support_length * channels;
    const int64_t last_step = (pairs_of(x) - 1) / 2 * STKI_RESIZE_TAPS;
    int64_t n = 0;

    while (n < x->out && (x->first[n] + last_step) * channels + QUARTER <= bytes)
        n++;
    return n;
}

static stk_status prepare(stki_resizer *resizer, bool *usable, stk_error *err)
{
    const stki_resize_axis *x = &resizer->x;
    const int64_t pairs = pairs_of(x);
    stk_status status = STK_OK;
    pair *table;

    if (resizer->channels == 1)
        return stki_resize_gray_prepare(resizer, usable, err);
    *usable = resizer->channels >= 3;
    if (!*usable ||
        (status = stki_resize_grow(&resizer->tables, x->out * pairs * (int64_t)sizeof(pair), err)) != STK_OK)
        return status;
    table = resizer->tables.data;
    for (int64_t i = 0; i < x->out; i++)
        for (int64_t t = 0; t < pairs; t++)
            *table++ = cut(x->k + i * x->taps + 2 * t);
    resizer->table_groups = pixels_inside(resizer);
    resizer->table_taps = pairs;
    return STK_OK;
}

/* Stores four bytes. With three channels, the fourth is overwritten by the next pixel or lies after the row's end. */
INLINE void store_pixel(uint8_t *out, __m128i bytes)
{
    const int32_t word = _mm_cvtsi128_si32(bytes);

    memcpy(out, &word, sizeof word);
}

/* Computes output pixels [from, to); byte 0 of the input rows is byte `origin` of the support. */
INLINE void pixels_of_four_rows(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out,
                                int64_t from, int64_t to, int64_t origin, int channels, int64_t pairs)
{
    const int32_t *first = resizer->x.first;
    const pair *k = (const pair *)resizer->tables.data + from * pairs;
    const __m256i pick_0 = pick(channels, 0), pick_2 = pick(channels, 2);

    for (int64_t i = from; i < to; i++, k += pairs) {
        const int64_t byte = i * channels;
        sums s[2];

        memset(s, 0, sizeof s);
        for (int64_t t = 0; t < pairs; t += 2) {
            const int64_t at = ((int64_t)first[i] + 2 * t) * channels - origin;

            for (int r = 0; r < 2; r++) {
                const __m256i bytes = load_rows(in[2 * r] + at, in[2 * r + 1] + at);

                add_pair(&s[r], _mm256_shuffle_epi8(bytes, pick_0), k + t);
                if (t + 1 < pairs)
                    add_pair(&s[r], _mm256_shuffle_epi8(bytes, pick_2), k + t + 1);
            }
        }
        const __m256i words = _mm256_packs_epi32(put_together(&s[0]), put_together(&s[1]));
        const __m256i bytes = _mm256_packus_epi16(words, words);
        store_pixel(out[0] + byte, _mm256_castsi256_si128(bytes));
        store_pixel(out[1] + byte, _mm256_extracti128_si256(bytes, 1));
        store_pixel(out[2] + byte, _mm_srli_si128(_mm256_castsi256_si128(bytes), 4));
        store_pixel(out[3] + byte, _mm_srli_si128(_mm256_extracti128_si256(bytes, 1), 4));
    }
}

INLINE void pixels_of_channels(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out, int64_t from,
                               int64_t to, int64_t origin, int channels)
{
    switch (resizer->table_taps) {
    case 2:
        pixels_of_four_rows(resizer, in, out, from, to, origin, channels, 2);
        break;
    case 3:
        pixels_of_four_rows(resizer, in, out, from, to, origin, channels, 3);
        break;
    case 4:
        pixels_of_four_rows(resizer, in, out, from, to, origin, channels, 4);
        break;
    default:
        pixels_of_four_rows(resizer, in, out, from, to, origin, channels, resizer->table_taps);
    }
}

static void pixels(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out, int64_t from, int64_t to,
                   int64_t origin)
{
    if (resizer->channels == 3)
        pixels_of_channels(resizer, in, out, from, to, origin, 3);
    else
        pixels_of_channels(resizer, in, out, from, to, origin, 4);
}

/* Computes the last pixels, whose steps would read past the end of the row, from a zero-padded copy of that end. */
static void last_pixels(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    enum { ROOM = 512 };
    uint8_t ends[STKI_RESIZE_ROWS][ROOM];
    const uint8_t *rows[STKI_RESIZE_ROWS];
    const int64_t from = resizer->table_groups, to = resizer->x.out;
    const int64_t origin = resizer->x.first[from] * resizer->channels;
    const int64_t bytes = resizer->x.support_length * resizer->channels - origin;
    const int64_t reach = (resizer->x.first[to - 1] + 2 * resizer->table_taps) * resizer->channels - origin + QUARTER;

    for (int r = 0; r < STKI_RESIZE_ROWS; r++) {
        rows[r] = ends[r];
        if (reach <= ROOM) {
            memcpy(ends[r], in[r] + origin, (size_t)bytes);
            memset(ends[r] + bytes, 0, (size_t)(ROOM - bytes));
        } else {
            stki_resize_ref_row(resizer, in[r], out[r], from);
        }
    }
    if (reach <= ROOM)
        pixels(resizer, rows, out, from, to, origin);
}

static void horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    if (resizer->channels == 1) {
        stki_resize_gray_horizontal(resizer, in, out);
        return;
    }
    pixels(resizer, in, out, 0, resizer->table_groups, 0);
    if (resizer->table_groups < resizer->x.out)
        last_pixels(resizer, in, out);
}

/* ---- vertical ---- */

/* Unpacking and packing both work within the halves of a register, so the order of the bytes is restored. */
INLINE void column_block(uint8_t *out, const uint8_t *const *rows, const pair *k, int64_t taps, int64_t at)
{
    const __m256i zero = _mm256_setzero_si256();
    sums s[4];

    memset(s, 0, sizeof s);
    for (int64_t t = 0; t < taps; t += 2, k++) {
        const __m256i one = _mm256_loadu_si256((const __m256i *)(const void *)(rows[t] + at));
        const __m256i two = _mm256_loadu_si256((const __m256i *)(const void *)(rows[t + 1] + at));
        const __m256i left = _mm256_unpacklo_epi8(one, two), right = _mm256_unpackhi_epi8(one, two);

        add_pair(&s[0], _mm256_unpacklo_epi8(left, zero), k);
        add_pair(&s[1], _mm256_unpackhi_epi8(left, zero), k);
        add_pair(&s[2], _mm256_unpacklo_epi8(right, zero), k);
        add_pair(&s[3], _mm256_unpackhi_epi8(right, zero), k);
    }
    _mm256_storeu_si256((__m256i *)(void *)(out + at),
                        _mm256_packus_epi16(_mm256_packs_epi32(put_together(&s[0]), put_together(&s[1])),
                                            _mm256_packs_epi32(put_together(&s[2]), put_together(&s[3]))));
}

static void vertical(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n)
{
    pair pairs[MOST_TAPS / 2];
    int64_t at = 0;

    if (n < BYTES || taps > MOST_TAPS) {
        stki_resize_ref_column(out, rows, k, taps, 0, n);
        return;
    }
    for (int64_t t = 0; t < taps / 2; t++)
        pairs[t] = cut(k + 2 * t);
    for (; at + BYTES <= n; at += BYTES)
        if (taps == STKI_RESIZE_TAPS)
            column_block(out, rows, pairs, STKI_RESIZE_TAPS, at);
        else
            column_block(out, rows, pairs, taps, at);
    if (at < n)
        column_block(out, rows, pairs, taps, n - BYTES); /* overlaps the previous block */
}

const stki_resize_kernels stki_resize_avx2 = {
    .prepare = prepare, .horizontal = horizontal, .vertical = vertical, .needs_narrow = true};
