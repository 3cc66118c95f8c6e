/* resize_gray_avx2.c: the horizontal pass for one channel: eight inputs per step in each half of a register, with two
 * rows in the halves. Coefficients are split as in resize_avx2.c; the table has eight upper and eight lower parts per
 * step. The sums of four pixels and four rows are reduced together. */
#include "resize_internal.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LOW_BITS = 12, LOW_MASK = (1 << LOW_BITS) - 1, STEP = 8, PIXELS = 4, ROOM = 512 };

typedef struct eight {
    int16_t high[STEP], low[STEP];
} eight;

/* The number of leading output pixels whose steps are entirely inside the row: all of them, or a multiple of PIXELS. */
static int64_t pixels_inside(const stki_resizer *resizer, int64_t steps)
{
    const stki_resize_axis *x = &resizer->x;
    int64_t n = 0;

    while (n < x->out && x->first[n] + steps * STEP <= x->support_length)
        n++;
    return n == x->out ? n : n / PIXELS * PIXELS;
}

stk_status stki_resize_gray_prepare(stki_resizer *resizer, bool *usable, stk_error *err)
{
    const stki_resize_axis *x = &resizer->x;
    const int64_t steps = (x->most + STEP - 1) / STEP;
    stk_status status = stki_resize_grow(&resizer->tables, x->out * steps * (int64_t)sizeof(eight), err);
    eight *table = resizer->tables.data;

    *usable = true;
    if (status != STK_OK)
        return status;
    memset(table, 0, (size_t)(x->out * steps) * sizeof *table);
    for (int64_t i = 0; i < x->out; i++, table += steps)
        for (int64_t t = 0; t < x->count[i]; t++) {
            const int32_t k = x->k[i * x->taps + t];

            table[t / STEP].high[t % STEP] = (int16_t)(k >> LOW_BITS);
            table[t / STEP].low[t % STEP] = (int16_t)(k & LOW_MASK);
        }
    resizer->table_groups = pixels_inside(resizer, steps);
    resizer->table_taps = steps;
    return STK_OK;
}

INLINE __m128i widen(const uint8_t *bytes)
{
    return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}

INLINE __m256i both_halves(const int16_t *words)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)words));
}

/* Computes one pixel of two rows: four partial sums of `a` in the lower half, and of `b` in the upper half. */
INLINE __m256i parts_of(const uint8_t *a, const uint8_t *b, const eight *k, int64_t steps)
{
    __m256i high = _mm256_setzero_si256(), low = high;

    for (int64_t s = 0; s < steps; s++) {
        const __m256i words =
            _mm256_inserti128_si256(_mm256_castsi128_si256(widen(a + s * STEP)), widen(b + s * STEP), 1);

        high = _mm256_add_epi32(high, _mm256_madd_epi16(words, both_halves(k[s].high)));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(words, both_halves(k[s].low)));
    }
    return _mm256_add_epi32(_mm256_slli_epi32(high, LOW_BITS), low);
}

/* Computes one pixel of four rows: two partial sums per row, of rows 0 and 2 in the lower half, 1 and 3 in the upper.
 */
INLINE __m256i halves_of(const uint8_t *const *in, int64_t at, const eight *k, int64_t steps)
{
    return _mm256_hadd_epi32(parts_of(in[0] + at, in[1] + at, k, steps), parts_of(in[2] + at, in[3] + at, k, steps));
}

INLINE __m256i shifted(__m256i sums)
{
    return _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(STKI_RESIZE_HALF)), STKI_RESIZE_BITS);
}

INLINE void store_four(uint8_t *to, __m128i bytes, int at)
{
    const int32_t word = at ? _mm_extract_epi32(bytes, 1) : _mm_cvtsi128_si32(bytes);

    memcpy(to, &word, sizeof word);
}

/* Computes output pixels [from, to), and up to three after them, for which rows have room. Byte 0 of the input rows is
 * byte `origin` of the support. */
INLINE void pixels(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out, int64_t from, int64_t to,
                   int64_t origin, int64_t steps)
{
    /* in each half: the pixels of row 0 or 1, then those of row 2 or 3 */
    const __m256i by_row =
        _mm256_broadcastsi128_si256(_mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 7, 5, 3, 1, 6, 4, 2, 0));
    const int32_t *first = resizer->x.first;
    const eight *table = resizer->tables.data;

    for (int64_t i = from; i < to; i += PIXELS) {
        __m256i halves[PIXELS];

        for (int p = 0; p < PIXELS; p++) {
            const int64_t pixel = i + p < to ? i + p : to - 1;

            halves[p] = halves_of(in, first[pixel] - origin, table + pixel * steps, steps);
        }
        const __m256i words = _mm256_packs_epi32(shifted(_mm256_hadd_epi32(halves[0], halves[1])),
                                                 shifted(_mm256_hadd_epi32(halves[2], halves[3])));
        const __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), by_row);
        store_four(out[0] + i, _mm256_castsi256_si128(bytes), 0);
        store_four(out[2] + i, _mm256_castsi256_si128(bytes), 1);
        store_four(out[1] + i, _mm256_extracti128_si256(bytes, 1), 0);
        store_four(out[3] + i, _mm256_extracti128_si256(bytes, 1), 1);
    }
}

static void pixels_of_steps(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out, int64_t from,
                            int64_t to, int64_t origin)
{
    if (resizer->table_taps == 1)
        pixels(resizer, in, out, from, to, origin, 1);
    else
        pixels(resizer, in, out, from, to, origin, resizer->table_taps);
}

/* Computes the last pixels, whose steps would read past the end of the row, from a zero-padded copy of that end. */
static void last_pixels(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    uint8_t ends[STKI_RESIZE_ROWS][ROOM];
    const uint8_t *rows[STKI_RESIZE_ROWS];
    const int64_t from = resizer->table_groups, to = resizer->x.out, origin = resizer->x.first[from];
    const int64_t bytes = resizer->x.support_length - origin;
    const int64_t reach = resizer->x.first[to - 1] + STEP * resizer->table_taps - origin;

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
        pixels_of_steps(resizer, rows, out, from, to, origin);
}

void stki_resize_gray_horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    pixels_of_steps(resizer, in, out, 0, resizer->table_groups, 0);
    if (resizer->table_groups < resizer->x.out)
        last_pixels(resizer, in, out);
}
