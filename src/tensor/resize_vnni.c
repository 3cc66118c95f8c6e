/* resize_vnni.c: both passes with products of unsigned and signed bytes: one VNNI instruction multiplies four pairs of
 * them and adds the products to a 32-bit lane. A coefficient of 22 bits is three signed bytes; the three sums are
 * combined at the end, so the result is exact.
 *
 * Horizontal: a lane is one byte of the output, with four inputs per step. If the bytes that 16 lanes need are within
 * 64 bytes of the row (when shrinking to a third or more of the size), one load and one byte permute (VBMI) move them
 * to their lanes. Otherwise the four quarters of a register hold one output pixel each, loaded separately. Coefficients
 * and permutations are tables, computed once per box and read once for four rows.
 *
 * Vertical: the bytes of four rows are interleaved, 64 output bytes at a time. */
#include "resize_internal.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = 16,
    BYTES = 64,
    QUARTER = 16,
    ROWS = STKI_RESIZE_ROWS,
    STEP = 4,               /* inputs per instruction */
    BLOCK_WORDS = 4 * LANES /* one step of a group of lanes: permutation, high, middle and low bytes of coefficients */
};

/* ---- coefficients ---- */

typedef struct pieces {
    uint32_t high, middle, low; /* the bytes of four coefficients, with the first coefficient in the lowest byte */
} pieces;

INLINE uint32_t low_bytes(__m128i words)
{
    const __m128i pick = _mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 12, 8, 4, 0);

    return (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(words, pick));
}

/* k = high * 65536 + middle * 256 + low; middle and low are -128 to 127. */
INLINE pieces cut(const int32_t *k)
{
    const __m128i half = _mm_set1_epi32(128), low = _mm_loadu_si128((const __m128i *)(const void *)k);
    const __m128i middle = _mm_srai_epi32(_mm_add_epi32(low, half), 8);
    const __m128i high = _mm_srai_epi32(_mm_add_epi32(middle, half), 8);

    return (pieces){low_bytes(high), low_bytes(middle), low_bytes(low)};
}

INLINE __m512i load(const void *from)
{
    return _mm512_loadu_si512(from);
}

INLINE __m512i put_together(__m512i high, __m512i middle, __m512i low)
{
    return _mm512_add_epi32(_mm512_slli_epi32(high, 16), _mm512_add_epi32(_mm512_slli_epi32(middle, 8), low));
}

/* ---- tables of the horizontal pass ---- */

/* The table is an array of blocks, one per group and step, followed by the offset of every load in the row. */
static uint32_t *block_of(const stki_resizer *resizer, int64_t group, int64_t step)
{
    return (uint32_t *)resizer->tables.data + (group * resizer->table_taps + step) * BLOCK_WORDS;
}

static int32_t *offsets_of(const stki_resizer *resizer)
{
    return (int32_t *)(void *)block_of(resizer, resizer->table_groups, 0);
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static void write_lane(uint32_t *block, int64_t lane, uint32_t picks, pieces k)
{
    block[lane] = picks;
    block[lane + LANES] = k.high;
    block[lane + 2 * LANES] = k.middle;
    block[lane + 3 * LANES] = k.low;
}

/* The permutation that selects four inputs of one channel; `at` is the offset of the first one in the loaded bytes. */
static uint32_t picks_of(int64_t at, int channels)
{
    return (uint32_t)at * 0x01010101u + (uint32_t)channels * 0x03020100u;
}

/* Computes the offsets of the loads that a group of lanes shares. False: a step needs more than 64 bytes. */
static bool place_spread(const stki_resizer *resizer, int32_t *offsets)
{
    const stki_resize_axis *x = &resizer->x;
    const int64_t channels = resizer->channels, bytes = x->support_length * channels, out = x->out * channels;
    const int64_t steps = resizer->table_taps;

    for (int64_t g = 0; g < resizer->table_groups; g++) {
        const int64_t low = g * LANES / channels, high = at_most(g * LANES + LANES - 1, out - 1) / channels;

        for (int64_t s = 0; s < steps; s++) {
            const int64_t offset = at_most((x->first[low] + s * STEP) * channels, bytes - BYTES);

            offsets[g * steps + s] = (int32_t)offset;
            for (int64_t p = low; p <= high; p++) {
                int64_t last = at_most(s * STEP + STEP, x->count[p]);

                if (last > s * STEP && (x->first[p] + last) * channels - offset > BYTES)
                    return false;
            }
        }
    }
    return true;
}

static void fill_spread(const stki_resizer *resizer, const int32_t *offsets)
{
    const stki_resize_axis *x = &resizer->x;
    const int channels = resizer->channels;
    const int64_t steps = resizer->table_taps;

    for (int64_t p = 0; p < x->out; p++)
        for (int64_t s = 0; s < steps; s++) {
            const pieces k = cut(x->k + p * x->taps + s * STEP);
            const bool used = s * STEP < x->count[p];

            for (int c = 0; c < channels; c++) {
                const int64_t byte = p * channels + c, group = byte / LANES;
                const int64_t at = (x->first[p] + s * STEP) * channels + c - offsets[group * steps + s];

                write_lane(block_of(resizer, group, s), byte % LANES, used ? picks_of(at, channels) : 0, k);
            }
        }
}

static void fill_quarters(const stki_resizer *resizer, int32_t *offsets)
{
    const stki_resize_axis *x = &resizer->x;
    const int channels = resizer->channels;
    const int64_t steps = resizer->table_taps, bytes = x->support_length * channels;

    for (int64_t p = 0; p < resizer->table_groups * 4; p++)
        for (int64_t s = 0; s < steps; s++) {
            uint32_t *block = block_of(resizer, p / 4, s);
            int32_t *offset = &offsets[(p / 4 * steps + s) * 4 + p % 4];
            const bool used = p < x->out && s * STEP < x->count[p];
            const int64_t at = used ? (x->first[p] + s * STEP) * channels : 0;
            const pieces k = used ? cut(x->k + p * x->taps + s * STEP) : (pieces){0};

            *offset = (int32_t)at_most(at, bytes - QUARTER);
            for (int c = 0; c < 4; c++)
                write_lane(block, p % 4 * 4 + c, c < channels && used ? picks_of(at + c - *offset, channels) : 0, k);
        }
}

static stk_status prepare(stki_resizer *resizer, bool *usable, stk_error *err)
{
    const stki_resize_axis *x = &resizer->x;
    const int channels = resizer->channels;
    const int64_t steps = (x->most + STEP - 1) / STEP, groups = (x->out * channels + LANES - 1) / LANES;
    const int64_t quarters = (x->out + 3) / 4, most = groups > quarters ? groups : quarters;
    stk_status status;

    *usable = x->support_length * channels >= BYTES;
    if (!*usable)
        return STK_OK;
    status = stki_resize_grow(&resizer->tables, most * steps * (BLOCK_WORDS + 4) * (int64_t)sizeof(uint32_t), err);
    if (status != STK_OK)
        return status;
    resizer->table_taps = steps;
    resizer->table_groups = groups;
    resizer->table_spread = place_spread(resizer, offsets_of(resizer));
    if (resizer->table_spread) {
        memset(block_of(resizer, groups - 1, 0), 0, (size_t)(steps * BLOCK_WORDS) * sizeof(uint32_t));
        fill_spread(resizer, offsets_of(resizer));
        return STK_OK;
    }
    *usable = channels >= 3;
    resizer->table_groups = quarters;
    if (*usable)
        fill_quarters(resizer, offsets_of(resizer));
    return STK_OK;
}

/* ---- horizontal ---- */

/* Shifts and clamps the sums of four rows to bytes: 16 per row, in the quarters of the result. */
INLINE __m512i bytes_of(const __m512i *sums)
{
    const __m512i by_row = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    __m512i shifted[ROWS];

    for (int r = 0; r < ROWS; r++)
        shifted[r] = _mm512_srai_epi32(sums[r], STKI_RESIZE_BITS);
    return _mm512_permutexvar_epi32(by_row, _mm512_packus_epi16(_mm512_packs_epi32(shifted[0], shifted[1]),
                                                                _mm512_packs_epi32(shifted[2], shifted[3])));
}

INLINE void store_rows(uint8_t *const *out, int64_t at, __m512i bytes)
{
    _mm_storeu_si128((__m128i *)(void *)(out[0] + at), _mm512_castsi512_si128(bytes));
    _mm_storeu_si128((__m128i *)(void *)(out[1] + at), _mm512_extracti32x4_epi32(bytes, 1));
    _mm_storeu_si128((__m128i *)(void *)(out[2] + at), _mm512_extracti32x4_epi32(bytes, 2));
    _mm_storeu_si128((__m128i *)(void *)(out[3] + at), _mm512_extracti32x4_epi32(bytes, 3));
}

/* With one or two steps, the permuted bytes stay in registers, and a single sum is shifted left between the parts of
 * the coefficients. */
INLINE void spread_few(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out, int steps)
{
    const uint32_t *block = resizer->tables.data;
    const int32_t *offset = offsets_of(resizer);

    for (int64_t g = 0; g < resizer->table_groups; g++, block += steps * BLOCK_WORDS, offset += steps) {
        __m512i bytes[2][ROWS], sums[ROWS];

        for (int s = 0; s < steps; s++)
            for (int r = 0; r < ROWS; r++)
                bytes[s][r] = _mm512_permutexvar_epi8(load(block + s * BLOCK_WORDS), load(in[r] + offset[s]));
        for (int r = 0; r < ROWS; r++)
            sums[r] = _mm512_set1_epi32(STKI_RESIZE_HALF >> 16);
        for (int piece = 1; piece <= 3; piece++) {
            for (int s = 0; s < steps; s++) {
                const __m512i k = load(block + s * BLOCK_WORDS + piece * LANES);

                for (int r = 0; r < ROWS; r++)
                    sums[r] = _mm512_dpbusd_epi32(sums[r], bytes[s][r], k);
            }
            for (int r = 0; r < ROWS && piece < 3; r++)
                sums[r] = _mm512_slli_epi32(sums[r], 8);
        }
        store_rows(out, g * LANES, bytes_of(sums));
    }
}

typedef struct triple {
    __m512i high[ROWS], middle[ROWS], low[ROWS];
} triple;

INLINE void triple_init(triple *sums)
{
    for (int r = 0; r < ROWS; r++) {
        sums->high[r] = sums->middle[r] = _mm512_setzero_si512();
        sums->low[r] = _mm512_set1_epi32(STKI_RESIZE_HALF);
    }
}

INLINE void triple_add(triple *sums, int row, __m512i bytes, const uint32_t *block)
{
    sums->high[row] = _mm512_dpbusd_epi32(sums->high[row], bytes, load(block + LANES));
    sums->middle[row] = _mm512_dpbusd_epi32(sums->middle[row], bytes, load(block + 2 * LANES));
    sums->low[row] = _mm512_dpbusd_epi32(sums->low[row], bytes, load(block + 3 * LANES));
}

INLINE __m512i triple_bytes(const triple *sums)
{
    __m512i whole[ROWS];

    for (int r = 0; r < ROWS; r++)
        whole[r] = put_together(sums->high[r], sums->middle[r], sums->low[r]);
    return bytes_of(whole);
}

INLINE void spread_many(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    const int64_t steps = resizer->table_taps;
    const uint32_t *block = resizer->tables.data;
    const int32_t *offset = offsets_of(resizer);

    for (int64_t g = 0; g < resizer->table_groups; g++) {
        triple sums;

        triple_init(&sums);
        for (int64_t s = 0; s < steps; s++, block += BLOCK_WORDS, offset++)
            for (int r = 0; r < ROWS; r++)
                triple_add(&sums, r, _mm512_permutexvar_epi8(load(block), load(in[r] + *offset)), block);
        store_rows(out, g * LANES, triple_bytes(&sums));
    }
}

INLINE __m512i load_quarters(const uint8_t *row, const int32_t *offset)
{
    __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(row + offset[0])));

    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(const void *)(row + offset[1])), 1);
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(const void *)(row + offset[2])), 2);
    return _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i *)(const void *)(row + offset[3])), 3);
}

INLINE void quarters(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    const __m512i three_of_four =
        _mm512_broadcast_i32x4(_mm_set_epi8(-1, -1, -1, -1, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0));
    const int channels = resizer->channels;
    const int64_t steps = resizer->table_taps;
    const uint32_t *block = resizer->tables.data;
    const int32_t *offset = offsets_of(resizer);

    for (int64_t g = 0; g < resizer->table_groups; g++) {
        __m512i bytes;
        triple sums;

        triple_init(&sums);
        for (int64_t s = 0; s < steps; s++, block += BLOCK_WORDS, offset += 4)
            for (int r = 0; r < ROWS; r++)
                triple_add(&sums, r, _mm512_shuffle_epi8(load_quarters(in[r], offset), load(block)), block);
        bytes = triple_bytes(&sums);
        if (channels == 3)
            bytes = _mm512_shuffle_epi8(bytes, three_of_four);
        store_rows(out, g * 4 * channels, bytes); /* excess bytes are overwritten by the next pixels */
    }
}

static void horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    if (!resizer->table_spread)
        quarters(resizer, in, out);
    else if (resizer->table_taps == 1)
        spread_few(resizer, in, out, 1);
    else if (resizer->table_taps == 2)
        spread_few(resizer, in, out, 2);
    else
        spread_many(resizer, in, out);
}

/* ---- vertical ---- */

enum { MOST_TAPS = 256 };

/* Interleaves the bytes of four rows. Packing restores the order of the lanes. */
INLINE void interleave(const uint8_t *const *rows, int64_t at, __mmask64 mask, __m512i *lanes)
{
    const __m512i a = _mm512_maskz_loadu_epi8(mask, rows[0] + at), b = _mm512_maskz_loadu_epi8(mask, rows[1] + at);
    const __m512i c = _mm512_maskz_loadu_epi8(mask, rows[2] + at), d = _mm512_maskz_loadu_epi8(mask, rows[3] + at);
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);

    lanes[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
    lanes[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
    lanes[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
    lanes[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

INLINE __m512i broadcast(uint32_t word)
{
    return _mm512_set1_epi32((int32_t)word);
}

INLINE void column_block(uint8_t *out, const uint8_t *const *rows, const pieces *k, int64_t taps, int64_t at,
                         __mmask64 mask)
{
    __m512i lanes[4], sums[4];

    if (taps == STEP) {
        interleave(rows, at, mask, lanes);
        for (int i = 0; i < 4; i++) {
            sums[i] = _mm512_dpbusd_epi32(_mm512_set1_epi32(STKI_RESIZE_HALF >> 16), lanes[i], broadcast(k->high));
            sums[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(sums[i], 8), lanes[i], broadcast(k->middle));
            sums[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(sums[i], 8), lanes[i], broadcast(k->low));
        }
    } else {
        triple all;

        triple_init(&all);
        for (int64_t t = 0; t < taps; t += STEP, k++) {
            interleave(rows + t, at, mask, lanes);
            for (int i = 0; i < 4; i++) {
                all.high[i] = _mm512_dpbusd_epi32(all.high[i], lanes[i], broadcast(k->high));
                all.middle[i] = _mm512_dpbusd_epi32(all.middle[i], lanes[i], broadcast(k->middle));
                all.low[i] = _mm512_dpbusd_epi32(all.low[i], lanes[i], broadcast(k->low));
            }
        }
        for (int i = 0; i < 4; i++)
            sums[i] = put_together(all.high[i], all.middle[i], all.low[i]);
    }
    for (int i = 0; i < 4; i++)
        sums[i] = _mm512_srai_epi32(sums[i], STKI_RESIZE_BITS);
    _mm512_mask_storeu_epi8(
        out + at, mask,
        _mm512_packus_epi16(_mm512_packs_epi32(sums[0], sums[1]), _mm512_packs_epi32(sums[2], sums[3])));
}

INLINE void columns(uint8_t *out, const uint8_t *const *rows, const pieces *k, int64_t taps, int64_t n)
{
    int64_t at = 0;

    for (; at + BYTES <= n; at += BYTES)
        column_block(out, rows, k, taps, at, ~UINT64_C(0));
    if (at < n)
        column_block(out, rows, k, taps, at, (UINT64_C(1) << (n - at)) - 1);
}

static void vertical(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n)
{
    pieces all[MOST_TAPS / STEP];

    if (taps > MOST_TAPS) {
        stki_resize_ref_column(out, rows, k, taps, 0, n);
        return;
    }
    for (int64_t s = 0; s < taps / STEP; s++)
        all[s] = cut(k + s * STEP);
    if (taps == STEP)
        columns(out, rows, all, STEP, n);
    else
        columns(out, rows, all, taps, n);
}

const stki_resize_kernels stki_resize_vnni = {
    .prepare = prepare, .horizontal = horizontal, .vertical = vertical, .needs_narrow = true};
