/* fast_body.h: copies and casts, included once per instruction set. The including file defines, in addition to the
 * names of its vector_*.h:
 *
 *     vlanes, lanes_of(own)         a lane mask from bits
 *     permute(size, pick, x)        elements of `size` bytes of x at the indices `pick`
 *     merge(size, y, own, pick, x)  y with the lanes `own` replaced by permute(size, pick, x)
 *     unpack_low, unpack_high(size, a, b)   interleave the elements of a and b, within each 16 bytes
 *     load_pieces(src, apart)       a vector from pieces of 16 bytes that are `apart` bytes apart
 */
#include <string.h>

static void stream(void *dst, const void *src, int64_t bytes)
{
    char *to = dst;
    const char *from = src;
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE);

    if (i > bytes)
        i = bytes;
    copy_some(to, from, i);
    for (; i + LINE <= bytes; i += LINE)
        for (int64_t k = i; k < i + LINE; k += UNIT)
            store_unit(to + k, vi_load(from + k), UNIT, true);
    copy_some(to + i, from + i, bytes - i);
}

/* ---- casts ---- */

/* The last few elements use a separate block or a mask, so that nothing after them is accessed. */
static void half_from_f32(char *dst, const char *src, int64_t count)
{
    int64_t i;

    for (i = 0; i + WIDTH <= count; i += WIDTH)
        vf_store_f16(dst + i * 2, vf_load(src + i * 4), WIDTH);
    if (i < count)
        vf_store_f16(dst + i * 2, vf_load_some(src + i * 4, count - i), count - i);
}

static void f32_from_half(char *dst, const char *src, int64_t count)
{
    int64_t i;

    for (i = 0; i + WIDTH <= count; i += WIDTH)
        vf_store(dst + i * 4, vf_load_f16(src + i * 2, WIDTH));
    if (i < count)
        vf_store_some(dst + i * 4, vf_load_f16(src + i * 2, count - i), count - i);
}

#include "fast_cast.h"

/* ---- patterns ---- */

INLINE void run_shuffle(int size, int inputs, int outputs, const stki_shuffle *shuffle, char *dst, const char *src,
                        int64_t groups, bool streaming)
{
    const char *from = src + shuffle->in_start;
    vi pick[STKI_SHUFFLE_MAX];
    vlanes own[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX];

    for (int k = 0; k < outputs; k++) {
        pick[k] = vi_load(shuffle->pick[k]);
        for (int j = 0; j < inputs; j++)
            own[k][j] = lanes_of(shuffle->own[k][j]);
    }
    for (int64_t g = 0; g < groups; g++) {
        vi x[STKI_SHUFFLE_MAX];
        for (int j = 0; j < inputs; j++)
            x[j] = vi_load(from + j * shuffle->in_stride);
        for (int k = 0; k < outputs; k++) {
            vi y = permute(size, pick[k], x[0]);
            for (int j = 1; j < inputs; j++)
                y = merge(size, y, own[k][j], pick[k], x[j]);
            store_unit(dst + k * shuffle->out_stride, y, UNIT, streaming);
        }
        from += shuffle->in_step;
        dst += shuffle->out_step;
    }
}

/* The common numbers of inputs and outputs are compile-time constants, so that all masks stay in registers. */
INLINE void shuffle(int size, const stki_shuffle *pattern, char *dst, const char *src, int64_t groups, bool streaming)
{
    int inputs = pattern->inputs, outputs = pattern->outputs;

#define CASE(in, out)                                                     \
    if (inputs == (in) && outputs == (out)) {                             \
        if (streaming)                                                    \
            run_shuffle(size, in, out, pattern, dst, src, groups, true);  \
        else                                                              \
            run_shuffle(size, in, out, pattern, dst, src, groups, false); \
        return;                                                           \
    }
    CASE(1, 1)
    CASE(2, 1)
    CASE(2, 2)
    CASE(3, 1)
    CASE(3, 3)
    CASE(4, 1)
    CASE(4, 4)
#undef CASE
    run_shuffle(size, inputs, outputs, pattern, dst, src, groups, streaming);
}

#define SHUFFLE(size)                                                                                   \
    static void shuffle_##size(const stki_shuffle *pattern, char *dst, const char *src, int64_t groups, \
                               bool streaming)                                                          \
    {                                                                                                   \
        shuffle(size, pattern, dst, src, groups, streaming);                                            \
    }

/* ---- tiles ---- */

/* A 16-byte piece of a vector holds a row of n = 16 / size elements; n pieces form a square. Interleaving rows i and i
 * + n / 2 element by element, log2 n times, transposes the square. The two or four squares that fill the vectors are
 * side by side. */
INLINE void squares(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, bool streaming)
{
    const int n = 16 / size;
    vi x[16], y[16];

    for (int i = 0; i < n; i++)
        x[i] = load_pieces(src + i * src_stride, n * src_stride);
    for (int width = 1; width < n; width *= 2) {
        for (int i = 0; i < n / 2; i++) {
            y[2 * i] = unpack_low(size, x[i], x[i + n / 2]);
            y[2 * i + 1] = unpack_high(size, x[i], x[i + n / 2]);
        }
        for (int i = 0; i < n; i++)
            x[i] = y[i];
    }
    for (int i = 0; i < n; i++)
        store_unit(dst + i * dst_stride, x[i], UNIT, streaming);
}

enum { SIDE = 64, AHEAD = 2 }; /* columns of a block; blocks fetched ahead */

/* Transposes one line from each of `columns` rows of the source into 64 / size rows of the destination. The lines are
 * packed first, because with a power-of-two stride they would evict each other from the L1 cache before they are used.
 * Meanwhile the lines of a later block are prefetched, into the L2 cache for the same reason. */
INLINE void block(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, const char *later,
                  int64_t columns, bool streaming)
{
    _Alignas(LINE) char packed[SIDE * LINE];
    const int64_t high = 16 / size, wide = UNIT / size;

    for (int64_t c = 0; c < columns; c++) {
        _mm_prefetch(later + c * src_stride, _MM_HINT_T1);
        for (int k = 0; k < LINE; k += UNIT)
            store_unit(packed + c * LINE + k, vi_load(src + c * src_stride + k), UNIT, false);
    }
    for (int64_t r = 0; r < LINE / size; r += high)
        for (int64_t c = 0; c < columns; c += wide)
            squares(size, dst + r * dst_stride + c * size, dst_stride, packed + c * LINE + r * size, LINE, streaming);
}

INLINE void tile(int size, char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows,
                 int64_t columns, int64_t reach, bool streaming)
{
    const int64_t high = LINE / size, wide = UNIT / size, down = rows / high, ahead = reach / high;
    const int64_t whole_rows = down * high, whole_columns = columns - columns % wide;

    for (int64_t c = 0; c < whole_columns; c += SIDE) {
        int64_t n = whole_columns - c < SIDE ? whole_columns - c : SIDE;
        for (int64_t r = 0; r < down; r++) {
            int64_t later_r = r + AHEAD < ahead ? r + AHEAD : r + AHEAD - ahead;
            int64_t later_c = r + AHEAD < ahead ? c : c + SIDE;
            block(size, dst + r * high * dst_stride + c * size, dst_stride, src + c * src_stride + r * LINE, src_stride,
                  src + later_c * src_stride + later_r * LINE, n, streaming);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            memcpy(dst + r * dst_stride + c * size, src + c * src_stride + r * size, (size_t)size);
}

#define TILE(size)                                                                                            \
    static void tile_##size(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows, \
                            int64_t columns, int64_t reach, bool streaming)                                   \
    {                                                                                                         \
        if (streaming)                                                                                        \
            tile(size, dst, dst_stride, src, src_stride, rows, columns, reach, true);                         \
        else                                                                                                  \
            tile(size, dst, dst_stride, src, src_stride, rows, columns, reach, false);                        \
    }
TILE(1)
TILE(2)
TILE(4)
TILE(8)

/* The table entries common to all instruction sets. */
#define STKI_FAST_BODY .stream = stream, .cast = FAST_CAST_TABLE, .tile = {tile_1, tile_2, tile_4, tile_8}
