/* convert_avx512.c: the kernels for AVX-512 with byte permutes (F, BW, DQ, VL, VBMI: Ice Lake, Zen 4 and later).
 *
 * Interleaved pixels: 16 pixels of at most 4 bytes fit in one register of 64 bytes. One byte permute with zeroing
 * selects the bytes of a channel and widens them to 32 bits. Mirrored rows use another permutation.
 *
 * Bytes to bytes: runs, and channels of pixels, unchanged or through a table. The 256 possible results of a channel fit
 * in four registers, and one permute looks up 64 bytes at once. */
#include "convert_internal.h"
#include "vector_avx512.h"

/* A run of bytes, or one channel of pixels. 64 pixels are the 64 * |step| bytes that start at byte 0 of the first one,
 * or, mirrored, those that end with the last byte of the first one. */
struct byte_kernel {
    const stki_lane *lane;
    __m512i table[4], pick;
    const uint8_t *at;
    bool pixels, looked_up;
};

INLINE struct byte_kernel byte_kernel(const stki_lane *lane, bool pixels, bool looked_up, int64_t channel)
{
    struct byte_kernel kernel = {.lane = lane, .pixels = pixels, .looked_up = looked_up};

    for (int k = 0; looked_up && k < 4; k++)
        kernel.table[k] = _mm512_loadu_si512(lane->table + 256 * channel + 64 * k);
    if (pixels)
        kernel.pick = _mm512_add_epi8(_mm512_loadu_si512(lane->pick), _mm512_set1_epi8((char)channel));
    return kernel;
}

/* Loads bytes [64 k, 64 k + 64) of a window; if `tight`, bytes outside [low, high) are not read. */
INLINE __m512i load_part(const uint8_t *window, int k, int64_t low, int64_t high, bool tight)
{
    int64_t from = low - 64 * k, to = high - 64 * k;

    if (!tight)
        return _mm512_loadu_si512(window + 64 * k);
    return _mm512_maskz_loadu_epi8((to <= 0 ? 0 : low_bits(to)) & ~(from <= 0 ? 0 : low_bits(from)), window + 64 * k);
}

/* Extracts one channel of pixels [first, first + valid); 1 <= valid <= 64. */
INLINE __m512i split(const struct byte_kernel *kernel, int64_t first, int64_t valid, bool tight)
{
    const int64_t step = kernel->lane->pixel_step, channels = kernel->lane->channels;
    const bool four = step == 4 || step == -4;
    const int64_t window = four ? 256 : 192;
    const int64_t low = step < 0 ? window - channels + (valid - 1) * step : 0;
    const int64_t high = step < 0 ? window : (valid - 1) * step + channels;
    const uint8_t *at = kernel->at + first * step;
    __m512i part2 = load_part(at, 2, low, high, tight);
    __m512i part3 = four ? load_part(at, 3, low, high, tight) : part2;

    return _mm512_mask_blend_epi8(
        _mm512_movepi8_mask(kernel->pick),
        _mm512_permutex2var_epi8(load_part(at, 0, low, high, tight), kernel->pick, load_part(at, 1, low, high, tight)),
        _mm512_permutex2var_epi8(part2, kernel->pick, part3));
}

INLINE __m512i byte_line(const struct byte_kernel *kernel, int64_t first, int64_t valid, bool tight)
{
    __m512i x;

    if (kernel->pixels)
        x = split(kernel, first, valid, tight);
    else
        x = tight ? _mm512_maskz_loadu_epi8(low_bits(valid), kernel->at + first)
                  : _mm512_loadu_si512(kernel->at + first);
    if (!kernel->looked_up)
        return x;
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x),
                                  _mm512_permutex2var_epi8(kernel->table[0], x, kernel->table[1]),
                                  _mm512_permutex2var_epi8(kernel->table[2], x, kernel->table[3]));
}

INLINE void bytes(const struct byte_kernel *kernel, uint8_t *dst, int64_t n, int64_t ahead)
{
    const int64_t step = kernel->lane->pixel_step;
    const bool ragged = kernel->pixels && kernel->lane->channels != (step < 0 ? -step : step) && ahead == 0;
    const int64_t free = ragged ? n - 1 : n; /* the last pixel's other bytes may be outside the buffer */
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE);

    if (i > n)
        i = n;
    if (i > 0)
        _mm512_mask_storeu_epi8(dst, low_bits(i), byte_line(kernel, 0, i, true));
    const int64_t count = free > i ? (free - i) / LINE : 0;
    const bool down = kernel->pixels && kernel->lane->downwards;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = i + (down ? count - 1 - k : k) * LINE;
        if (kernel->lane->streaming)
            store_unit(dst + at, byte_line(kernel, at, LINE, false), LINE, true);
        else
            store_unit(dst + at, byte_line(kernel, at, LINE, false), LINE, false);
    }
    i += count * LINE;
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i, low_bits(n - i), byte_line(kernel, i, n - i, true));
}

INLINE void byte_plane(bool looked_up, const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                       int channel)
{
    struct byte_kernel kernel = byte_kernel(lane, true, looked_up, channel);

    if (lane->pixel_step < 0)
        src += lane->channels + 64 * lane->pixel_step;
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.at = src + r * rows->src_row;
        bytes(&kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
}

static void table_u8(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    struct byte_kernel kernel = byte_kernel(lane, false, true, channel);

    kernel.at = src;
    bytes(&kernel, dst, n, 0);
}

static void list_table_u8(const stki_lane *lane, uint8_t *dst, const stki_list *list)
{
    struct byte_kernel kernel = byte_kernel(lane, false, true, 0);
    const int64_t n = list->n;

    stki_list_begin(list, n);
    for (const uint8_t *const *row = list->rows, *const *const end = row + list->count; row < end; row++) {
        const uint8_t *next = end - row > list->ahead ? row[list->ahead] : NULL;
        kernel.at = *row;
        for (int64_t left = n; left > 0; left -= STKI_FETCH_PIECE) {
            const int64_t m = left < STKI_FETCH_PIECE ? left : STKI_FETCH_PIECE;
            if (next) {
                stki_fetch(next, m);
                next += m;
            }
            bytes(&kernel, dst, m, 0);
            kernel.at += m;
            dst += m;
        }
    }
}

static void table_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel)
{
    byte_plane(true, lane, dst, src, rows, channel);
}

static void split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel)
{
    byte_plane(false, lane, dst, src, rows, channel);
}

enum { ALIGNS = true, TURNS = true };

/* Sixteen pixels are in the 64 bytes that start at byte 0 of the first one or, if mirrored, end with its last byte. */
struct reader {
    const uint8_t *at;
    int64_t lead, step, room;
    int size;
    bool alone;
    vi pick; /* pixels: which of the 64 bytes goes to which 32-bit lane */
};

INLINE vi load_pixels(const struct reader *reader, const uint8_t *at, int64_t valid, bool tight)
{
    const int64_t step = reader->step, size = reader->size;
    vi bytes;

    if (!tight)
        bytes = vi_load(at);
    else if (step > 0)
        bytes = _mm512_maskz_loadu_epi8(low_bits((valid - 1) * step + size), at);
    else
        bytes = _mm512_maskz_loadu_epi8(~low_bits(UNIT - size + (valid - 1) * step), at);
    return _mm512_maskz_permutexvar_epi8(0x1111111111111111, reader->pick, bytes);
}

INLINE vf load(enum stki_convert_src from, const struct reader *reader, int64_t first, int k, int64_t valid, bool tight)
{
    const uint8_t *at = reader->at + (first + k * WIDTH) * reader->step;

    if (from == STKI_SRC_PIXELS)
        return vf_of_i32(load_pixels(reader, at, valid, tight));
    if (from == STKI_SRC_F32)
        return tight ? vf_load_some(at, valid) : vf_load(at);
    return vf_of_i32(_mm512_cvtepu8_epi32(tight ? _mm_maskz_loadu_epi8((__mmask16)low_bits(valid), at) : bytes_16(at)));
}

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step, lead = step < 0 ? lane->channels - UNIT : 0;
    const vi lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    *reader = (struct reader){.step = step,
                              .size = lane->channels,
                              .room = (UNIT - lane->channels + 2 * apart - 1) / apart - WIDTH,
                              .lead = lead,
                              .pick = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step)),
                                                       _mm512_set1_epi32(channel - lead))};
}

/* The shortcut uses the processor's instruction for rounding to bf16. */
INLINE bool has_shortcut(enum stki_convert_src from, enum stki_convert_dst to, const stki_lane *lane)
{
    return to == STKI_DST_BF16 && lane->native_bf16 && (lane->tame || !stki_convert_from_u8(from));
}

/* If nothing needs a mask, `lanes` is the constant ALL_LANES, and the masked branch is removed at compile time. */
enum { ALL_LANES = 0xffff };
#define SOME(lanes, whole, masked) ((lanes) == ALL_LANES ? (whole) : (masked))
#define BYTES_16(lanes, at) SOME(lanes, bytes_16(at), _mm_maskz_loadu_epi8((__mmask16)(lanes), at))
#define BYTES_32(lanes, at)                                              \
    SOME(lanes, _mm256_loadu_si256((const __m256i *)(const void *)(at)), \
         _mm256_maskz_loadu_epi16((__mmask16)(lanes), at))
#define HALVES(convert, load, masked, at, lanes)                           \
    vf_join(convert(SOME(lanes, load(at), masked((__mmask8)(lanes), at))), \
            convert(SOME(lanes, load((at) + UNIT), masked((__mmask8)((lanes) >> 8), (at) + UNIT))))
#define F32_OF_u8(at, lanes) vf_of_i32(_mm512_cvtepu8_epi32(BYTES_16(lanes, at)))
#define F32_OF_i8(at, lanes) vf_of_i32(_mm512_cvtepi8_epi32(BYTES_16(lanes, at)))
#define F32_OF_u16(at, lanes) vf_of_i32(_mm512_cvtepu16_epi32(BYTES_32(lanes, at)))
#define F32_OF_i16(at, lanes) vf_of_i32(_mm512_cvtepi16_epi32(BYTES_32(lanes, at)))
#define F32_OF_f16(at, lanes) _mm512_cvtph_ps(BYTES_32(lanes, at))
#define F32_OF_bf16(at, lanes) vf_of_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(BYTES_32(lanes, at)), 16))
#define F32_OF_i32(at, lanes) vf_of_i32(SOME(lanes, vi_load(at), _mm512_maskz_loadu_epi32((__mmask16)(lanes), at)))
#define F32_OF_f32(at, lanes) SOME(lanes, vf_load(at), _mm512_maskz_loadu_ps((__mmask16)(lanes), at))
#define F32_OF_i64(at, lanes) HALVES(_mm512_cvtepi64_ps, vi_load, _mm512_maskz_loadu_epi64, at, lanes)
#define F32_OF_f64(at, lanes) HALVES(_mm512_cvtpd_ps, vd_load, _mm512_maskz_loadu_pd, at, lanes)

#include "convert_body.h"

/* Sixteen pixels of three elements are three vectors. This handles twice as many at once as the compiler's loop. */
static void deinterleave_32(uint8_t *const *planes, const uint8_t *from, int64_t n)
{
    const vi lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vi first = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(3));
    int64_t i = 0;

    for (; i + WIDTH <= n; i += WIDTH) {
        const vi x = vi_load(from + 12 * i), y = vi_load(from + 12 * i + UNIT), z = vi_load(from + 12 * i + 2 * UNIT);
        for (int c = 0; c < 3; c++) {
            const vi at = _mm512_add_epi32(first, _mm512_set1_epi32(c));
            const vi low = _mm512_permutex2var_epi32(x, at, y);
            _mm512_storeu_si512(planes[c] + 4 * i, _mm512_mask_permutexvar_epi32(
                                                       low, _mm512_cmpge_epi32_mask(at, _mm512_set1_epi32(32)), at, z));
        }
    }
    if (i < n)
        deinterleave3_32((uint8_t *const[3]){planes[0] + 4 * i, planes[1] + 4 * i, planes[2] + 4 * i}, from + 12 * i,
                         n - i);
}

#undef STKI_DEINTERLEAVE3_32
#define STKI_DEINTERLEAVE3_32 deinterleave_32

const stki_convert_kernels *stki_convert_kernels_avx512(void)
{
    static const stki_convert_kernels kernels = {
        STKI_CONVERT_BODY,          .table_u8 = table_u8,       .list_table_u8 = list_table_u8,
        .table_plane = table_plane, .split_plane = split_plane,
    };
    return &kernels;
}
