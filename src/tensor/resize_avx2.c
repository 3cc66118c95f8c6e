/* resize_avx2.c: both passes with products of 16-bit numbers, added in pairs. A coefficient is cut into its low 12 bits
 * and the rest, which both fit 16 bits; the two sums are put together at the end, so that nothing is lost.
 *
 * Horizontal: one output pixel at a time, one channel a lane (three or four channels), four inputs a step, two rows
 * side by side in the halves of a register. Vertical: 32 bytes at a time, two rows a step.
 */
#include "resize_internal.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LOW_BITS = 12, LOW_MASK = (1 << LOW_BITS) - 1, BYTES = 32 };

INLINE __m256i put_together(__m256i high, __m256i low)
{
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, LOW_BITS), low);

    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(STKI_RESIZE_HALF)), STKI_RESIZE_BITS);
}

/* Coefficients t and t + 1 as the two 16-bit numbers of every lane. */
INLINE __m256i pair_high(const int32_t *k)
{
    return _mm256_set1_epi32((int32_t)((uint32_t)(k[0] >> LOW_BITS) & 0xffff) |
                             (int32_t)((uint32_t)(k[1] >> LOW_BITS) << 16));
}

INLINE __m256i pair_low(const int32_t *k)
{
    return _mm256_set1_epi32((k[0] & LOW_MASK) | (k[1] & LOW_MASK) << 16);
}

/* ---- horizontal --------------------------------------------------------------------------------------------------
 */

INLINE __m256i load_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                   _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

/* Where in 16 bytes the inputs `t` and `t + 1` of each channel are, as 16-bit numbers. */
INLINE __m256i pick(int channels, int t)
{
    char at[16];

    for (int c = 0; c < 4; c++) {
        at[4 * c] = (char)(c < channels ? t * channels + c : -1);
        at[4 * c + 2] = (char)(c < channels ? (t + 1) * channels + c : -1);
        at[4 * c + 1] = at[4 * c + 3] = -1;
    }
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)at));
}

/* How many output pixels, from the first on, read whole steps of 16 bytes inside the row. */
static int64_t pixels_inside(const stki_resizer *resizer)
{
    const stki_resize_axis *x = &resizer->x;
    const int64_t channels = resizer->channels, bytes = x->support_length * channels;
    int64_t n = 0;

    for (; n < x->out; n++) {
        int64_t step = x->first[n] + (x->count[n] - 1) / STKI_RESIZE_TAPS * STKI_RESIZE_TAPS;

        if (step * channels + 16 > bytes)
            break;
    }
    return n;
}

INLINE void store_pixel(uint8_t *out, int channels, __m128i bytes)
{
    int32_t word = _mm_cvtsi128_si32(bytes);

    memcpy(out, &word, (size_t)channels);
}

INLINE void pixels_of_two_rows(const stki_resizer *resizer, const uint8_t *a, const uint8_t *b, uint8_t *to_a,
                               uint8_t *to_b, int64_t n, int channels)
{
    const stki_resize_axis *x = &resizer->x;
    const __m256i pick_0 = pick(channels, 0), pick_2 = pick(channels, 2);

    for (int64_t i = 0; i < n; i++) {
        const int32_t *k = x->k + i * x->taps;
        const int64_t at = (int64_t)x->first[i] * channels, count = x->count[i];
        __m256i high = _mm256_setzero_si256(), low = high;

        for (int64_t t = 0; t < count; t += STKI_RESIZE_TAPS) {
            const __m256i bytes = load_rows(a + at + t * channels, b + at + t * channels);
            const __m256i one = _mm256_shuffle_epi8(bytes, pick_0), two = _mm256_shuffle_epi8(bytes, pick_2);

            high = _mm256_add_epi32(high, _mm256_madd_epi16(one, pair_high(k + t)));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(one, pair_low(k + t)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(two, pair_high(k + t + 2)));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(two, pair_low(k + t + 2)));
        }
        __m256i words = _mm256_packs_epi32(put_together(high, low), _mm256_setzero_si256());
        words = _mm256_packus_epi16(words, words);
        store_pixel(to_a + i * channels, channels, _mm256_castsi256_si128(words));
        store_pixel(to_b + i * channels, channels, _mm256_extracti128_si256(words, 1));
    }
}

static void horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    const int channels = resizer->channels;
    const int64_t n = resizer->table_groups;

    for (int r = 0; r < STKI_RESIZE_ROWS; r += 2) {
        if (r > 0 && out[r] == out[r - 1])
            return;
        if (channels == 3)
            pixels_of_two_rows(resizer, in[r], in[r + 1], out[r], out[r + 1], n, 3);
        else
            pixels_of_two_rows(resizer, in[r], in[r + 1], out[r], out[r + 1], n, 4);
        stki_resize_ref_row(resizer, in[r], out[r], n);
        if (out[r + 1] != out[r])
            stki_resize_ref_row(resizer, in[r + 1], out[r + 1], n);
    }
}

static stk_status prepare(stki_resizer *resizer, bool *usable, stk_error *err)
{
    (void)err;
    *usable = resizer->channels >= 3;
    if (*usable)
        resizer->table_groups = pixels_inside(resizer);
    return STK_OK;
}

/* ---- vertical ----------------------------------------------------------------------------------------------------
 */

typedef struct sums {
    __m256i high[4], low[4];
} sums;

INLINE void add_rows(sums *s, __m256i one, __m256i two, const int32_t *k)
{
    const __m256i zero = _mm256_setzero_si256(), high = pair_high(k), low = pair_low(k);
    const __m256i left = _mm256_unpacklo_epi8(one, two), right = _mm256_unpackhi_epi8(one, two);
    const __m256i words[4] = {_mm256_unpacklo_epi8(left, zero), _mm256_unpackhi_epi8(left, zero),
                              _mm256_unpacklo_epi8(right, zero), _mm256_unpackhi_epi8(right, zero)};

    for (int i = 0; i < 4; i++) {
        s->high[i] = _mm256_add_epi32(s->high[i], _mm256_madd_epi16(words[i], high));
        s->low[i] = _mm256_add_epi32(s->low[i], _mm256_madd_epi16(words[i], low));
    }
}

/* Unpacking leaves in each half of a register what packing brings back to its place. */
INLINE void column_block(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t at)
{
    sums s;

    memset(&s, 0, sizeof s);
    for (int64_t t = 0; t < taps; t += 2)
        add_rows(&s, _mm256_loadu_si256((const __m256i *)(const void *)(rows[t] + at)),
                 _mm256_loadu_si256((const __m256i *)(const void *)(rows[t + 1] + at)), k + t);
    const __m256i left = _mm256_packs_epi32(put_together(s.high[0], s.low[0]), put_together(s.high[1], s.low[1]));
    const __m256i right = _mm256_packs_epi32(put_together(s.high[2], s.low[2]), put_together(s.high[3], s.low[3]));
    _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_packus_epi16(left, right));
}

static void vertical(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n)
{
    int64_t at = 0;

    for (; at + BYTES <= n; at += BYTES)
        column_block(out, rows, k, taps, at);
    if (at == n)
        return;
    if (n >= BYTES)
        column_block(out, rows, k, taps, n - BYTES); /* some of it a second time */
    else
        stki_resize_ref_column(out, rows, k, taps, 0, n);
}

const stki_resize_kernels stki_resize_avx2 = {
    .prepare = prepare, .horizontal = horizontal, .vertical = vertical, .needs_narrow = true};
