/* convert_body.h: the kernels of convert_internal.h, included once per instruction set. The including file defines, in
 * addition to the names of its vector_*.h:
 *
 *     struct reader             the source: the members below, and those that its load needs for pixels
 *         at                        address of element 0; pixels: address of byte 0 of pixel 0, plus `lead` bytes
 *         step, size                bytes from one element to the next, and bytes that each element is known to have
 *         room                      number of elements that must follow a run so that its last elements may be read as
 *                                   whole units
 *         alone                     the first elements of a run must not be read as a whole unit, because that would
 *                                   start before the run
 *     load(…, first, k, valid, tight)   vector k of the unit at element `first` as f32. The first `valid` elements are
 *                                   used, the others may have any value. `tight`: no other byte is read (if
 *                                   STKI_MASKED)
 *     set_reader(reader, lane, channel)   for interleaved pixels
 *     has_shortcut(from, to, lane)  whether packing may use `shortcut`; it is compiled with and without
 *     F32_OF_u16(at, lanes) …       a vector of f32 from contiguous elements; where it is not defined, a plain loop is
 *                                   used
 *     ALIGNS, TURNS                 whether runs start with a partial line, so that all others are whole and aligned;
 *                                   whether coefficient patterns stay in registers if their length divides three
 *                                   vectors
 *
 * The unit of work is a unit of the destination (half a cache line or a line), made from up to four vectors of f32. A
 * run starts with a partial line up to the next line boundary, continues with whole lines, and ends with a partial one.
 * Partial lines use the same code, with masks or through a small buffer, so that the arithmetic exists only once.
 */
#include "convert_planes.h"
#include <string.h>

/* Which coefficients a vector uses: one pair for all; three vectors in rotation; or any pattern, loaded from memory. */
enum pairing { PAIR_ONE, PAIR_TURNS, PAIR_WALK };

struct levels {
    vf zero_point, low, high;
#ifdef STKI_TAME_BYTES
    struct tame_levels tame;
#endif
};

struct pairs {
    vf a[3], b[3]; /* the single pair in [0], or those of three vectors */
    const float *a_at, *b_at;
    int64_t phase, advance, period; /* repeating pairs */
};

/* Constant for all runs of a call. */
struct kernel {
    const stki_lane *lane;
    struct reader reader;
    struct pairs pairs;
    struct levels levels;
};

INLINE int source_size(enum stki_convert_src from)
{
    return from == STKI_SRC_F64 || from == STKI_SRC_I64                                                    ? 8
           : from == STKI_SRC_F32 || from == STKI_SRC_I32                                                  ? 4
           : from == STKI_SRC_U16 || from == STKI_SRC_I16 || from == STKI_SRC_F16 || from == STKI_SRC_BF16 ? 2
                                                                                                           : 1;
}

INLINE int element_size(enum stki_convert_dst to)
{
    return to == STKI_DST_U8 || to == STKI_DST_I8 ? 1 : to == STKI_DST_F16 || to == STKI_DST_BF16 ? 2 : 4;
}

/* ---- rounding and packing ---- */

/* clamp(rint(y) + zero_point, low, high); NaN is treated as 0 before the zero point is added. */
INLINE vf level(vf y, const struct levels *levels)
{
    return vf_min(vf_max(vf_add(vf_rint(y), levels->zero_point), levels->low), levels->high);
}

INLINE vunit pack(enum stki_convert_src from, enum stki_convert_dst to, const vf *y, int groups,
                  const struct levels *levels, bool shortcut)
{
    vi q[4];

    switch (to) {
    case STKI_DST_U8:
    case STKI_DST_I8:
#ifdef STKI_TAME_BYTES
        if (shortcut)
            return pack_tame_bytes(to == STKI_DST_I8, y, &levels->tame);
#endif
        for (int k = 0; k < groups; k++)
            q[k] = vi_of_f32(level(y[k], levels));
        return pack_bytes(to == STKI_DST_I8, q);
    case STKI_DST_F16:
        return pack_f16(y);
    case STKI_DST_BF16:
        return pack_bf16(y, shortcut, stki_convert_from_u8(from));
    case STKI_DST_I32:
        for (int k = 0; k < groups; k++)
            q[k] = vi_of_f32_saturated(level(y[k], levels));
        return pack_i32(q);
    default:
        for (int k = 0; k < groups; k++)
            q[k] = vi_bits_of(y[k]);
        return pack_i32(q);
    }
}

/* ---- units ---- */

INLINE void set_pairs(struct pairs *pairs, enum pairing pairing, const stki_lane *lane, int64_t channel)
{
    *pairs = (struct pairs){.a_at = lane->a, .b_at = lane->b, .phase = channel, .period = lane->period};
    if (pairing == PAIR_ONE) {
        pairs->a[0] = vf_all(lane->a[channel]);
        pairs->b[0] = vf_all(lane->b[channel]);
    } else {
        pairs->advance = WIDTH % lane->period;
    }
}

INLINE void set_turns(struct pairs *pairs)
{
    for (int k = 0; k < 3; k++) {
        int64_t phase = (pairs->phase + k * WIDTH) % pairs->period;
        pairs->a[k] = vf_load(pairs->a_at + phase);
        pairs->b[k] = vf_load(pairs->b_at + phase);
    }
}

INLINE void set_levels(struct levels *levels, const stki_lane *lane)
{
    levels->zero_point = vf_all(lane->zero_point);
    levels->low = vf_all(lane->low);
    levels->high = vf_all(lane->high);
#ifdef STKI_TAME_BYTES
    levels->tame = tame_levels(lane);
#endif
}

/* Like load, for all sources. */
INLINE vf elements(enum stki_convert_src from, const struct reader *reader, int64_t first, int k, int64_t valid,
                   bool tight)
{
#define WIDE(name) F32_OF_##name(reader->at + (first + k * WIDTH) * reader->step, tight ? low_bits(valid) : ALL_LANES)
    switch (from) {
    case STKI_SRC_U16:
        return WIDE(u16);
    case STKI_SRC_I16:
        return WIDE(i16);
    case STKI_SRC_I32:
        return WIDE(i32);
    case STKI_SRC_F16:
        return WIDE(f16);
    case STKI_SRC_BF16:
        return WIDE(bf16);
    case STKI_SRC_F64:
        return WIDE(f64);
#ifdef F32_OF_i8
    case STKI_SRC_I8:
        return WIDE(i8);
#endif
#ifdef F32_OF_i64
    case STKI_SRC_I64:
        return WIDE(i64);
#endif
    default:
        return load(from, reader, first, k, valid, tight);
    }
#undef WIDE
}

/* Converts elements [first, first + valid), at most a unit; `turn` counts vectors since set_turns. */
INLINE vunit unit(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                  struct kernel *kernel, const struct reader *reader, int64_t first, int64_t valid, bool tight,
                  int turn)
{
    const int groups = PER_UNIT(element_size(to)) / WIDTH;
    struct pairs *pairs = &kernel->pairs;
    vf y[4];

    for (int k = 0; k < groups; k++) {
        int64_t here = valid - k * WIDTH < WIDTH ? valid - k * WIDTH : WIDTH;
        int set = pairing == PAIR_TURNS ? (turn + k) % 3 : 0;
        y[k] = vf_all(0);
        if (here <= 0)
            continue;
        vf x = elements(from, reader, first, k, here, tight);
        if (pairing == PAIR_WALK) {
            pairs->a[0] = vf_load(pairs->a_at + pairs->phase);
            pairs->b[0] = vf_load(pairs->b_at + pairs->phase);
            pairs->phase += here < WIDTH ? here % pairs->period : pairs->advance;
            if (pairs->phase >= pairs->period)
                pairs->phase -= pairs->period;
        }
        y[k] = vf_fma(x, pairs->a[set], pairs->b[set]);
    }
    return pack(from, to, y, groups, &kernel->levels, shortcut);
}

/* Converts elements [first, last), less than a unit, using masks; reads and writes nothing else. */
#if STKI_MASKED
INLINE void parts(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                  struct kernel *kernel, uint8_t *dst, int64_t first, int64_t last)
{
    const int64_t size = element_size(to);

    if (first < last)
        store_some(dst + first * size,
                   unit(from, to, pairing, shortcut, kernel, &kernel->reader, first, last - first, true, 0),
                   (last - first) * size);
}
#else
INLINE void part(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                 struct kernel *kernel, uint8_t *dst, int64_t first, int64_t valid)
{
    enum { ROOM = 8 * UNIT };
    const int64_t size = element_size(to), whole = PER_UNIT(size);
    uint8_t in[ROOM + UNIT] = {0}, out[sizeof(vunit)];
    const uint8_t *at = kernel->reader.at - kernel->reader.lead + first * kernel->reader.step;
    struct reader own = kernel->reader;
    int64_t phase = kernel->pairs.phase, reach = (valid - 1) * own.step;

    if (from == STKI_SRC_PIXELS && own.step < 0) {
        own.at = in + ROOM + own.lead;
        memcpy(in + ROOM + reach, at + reach, (size_t)(own.size - reach));
    } else {
        own.at = in + own.lead;
        memcpy(in, at, (size_t)(reach + own.size));
    }
    store_unit(out, unit(from, to, pairing, shortcut, kernel, &own, 0, whole, false, 0), whole * size, false);
    if (pairing == PAIR_WALK)
        kernel->pairs.phase = (phase + valid) % kernel->pairs.period;
    memcpy(dst, out, (size_t)(valid * size));
}

INLINE void parts(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                  struct kernel *kernel, uint8_t *dst, int64_t first, int64_t last)
{
    const int64_t size = element_size(to), whole = PER_UNIT(size);

    for (; first < last; first += whole)
        part(from, to, pairing, shortcut, kernel, dst + first * size, first,
             last - first < whole ? last - first : whole);
}
#endif

/* ---- runs ---- */

/* The number of elements written at once: a line of the destination or a whole number of units. */
#define LINE_ELEMENTS(to) (LINE / UNIT * PER_UNIT(element_size(to)))

/* Converts one line of the destination, starting at element `first`. */
INLINE void line(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                 struct kernel *kernel, uint8_t *dst, int64_t first, bool tight, bool streaming, int turn)
{
    const int64_t size = element_size(to), whole = PER_UNIT(size);
    vunit units[LINE / UNIT];

    for (int k = 0; k < LINE / UNIT; k++)
        units[k] = unit(from, to, pairing, shortcut, kernel, &kernel->reader, first + k * whole, whole, tight, turn);
    for (int k = 0; k < LINE / UNIT; k++)
        store_unit(dst + (first + k * whole) * size, units[k], whole * size, streaming);
}

/* Converts whole lines from element i on, while they fit in [i, end); returns the index of the first element that was
 * not converted. */
INLINE int64_t lines(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                     struct kernel *kernel, uint8_t *dst, int64_t i, int64_t end, bool tight, bool streaming)
{
    const int groups = PER_UNIT(element_size(to)) / WIDTH;
    const int64_t whole = LINE_ELEMENTS(to);

    if (TURNS && pairing == PAIR_WALK && 3 * WIDTH % kernel->pairs.period == 0) {
        set_turns(&kernel->pairs);
        for (; i + 3 * whole <= end; i += 3 * whole)
            for (int k = 0; k < 3; k++)
                line(from, to, PAIR_TURNS, shortcut, kernel, dst, i + k * whole, tight, streaming, k * groups);
    }
    const int64_t count = end > i ? (end - i) / whole : 0;
    const bool down = from == STKI_SRC_PIXELS && kernel->lane->downwards;
    for (int64_t k = 0; k < count; k++)
        line(from, to, pairing, shortcut, kernel, dst, i + (down ? count - 1 - k : k) * whole, tight, streaming, 0);
    return i + count * whole;
}

/* After the n elements, `ahead` more of the source may be read. */
INLINE void run(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                struct kernel *kernel, uint8_t *dst, int64_t n, int64_t ahead)
{
    const int size = element_size(to);
    const int64_t whole = PER_UNIT(size), behind = (int64_t)((uintptr_t)dst % LINE);
    const bool aligned = behind % size == 0;
    int64_t i = 0;

    if (ALIGNS && aligned && behind)
        i = (LINE - behind) / size;
    else if (from == STKI_SRC_PIXELS && kernel->reader.alone)
        i = LINE / size;
    if (i > n)
        i = n;
    parts(from, to, pairing, shortcut, kernel, dst, 0, i);
    int64_t end = n, beyond = ahead - kernel->reader.room;
    if (from == STKI_SRC_PIXELS && beyond < 0)
        end = n + beyond;
    const bool streaming = ALIGNS && kernel->lane->streaming && aligned;
    if (streaming)
        i = lines(from, to, pairing, shortcut, kernel, dst, i, end, false, true);
    else
        i = lines(from, to, pairing, shortcut, kernel, dst, i, end, false, false);
    for (; UNIT < LINE && i + whole <= end; i += whole)
        store_unit(dst + i * size, unit(from, to, pairing, shortcut, kernel, &kernel->reader, i, whole, false, 0),
                   whole * size, false);
    if (STKI_MASKED && from == STKI_SRC_PIXELS)
        i = lines(from, to, pairing, shortcut, kernel, dst, i, n, true, streaming);
    parts(from, to, pairing, shortcut, kernel, dst, i, n);
}

INLINE void one_run(enum stki_convert_src from, enum stki_convert_dst to, enum pairing pairing, bool shortcut,
                    const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    const int size = source_size(from);
    struct kernel kernel = {.lane = lane, .reader = {.at = src, .step = size, .size = size}};

    set_pairs(&kernel.pairs, pairing, lane, channel);
    set_levels(&kernel.levels, lane);
    run(from, to, pairing, shortcut, &kernel, dst, n, 0);
}

INLINE void plane(enum stki_convert_dst to, bool shortcut, const stki_lane *lane, uint8_t *dst, const uint8_t *src,
                  const stki_rows *rows, int channel)
{
    struct kernel kernel = {.lane = lane};

    set_pairs(&kernel.pairs, PAIR_ONE, lane, channel);
    set_levels(&kernel.levels, lane);
    set_reader(&kernel.reader, lane, channel);
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.reader.at = src + r * rows->src_row + kernel.reader.lead;
        run(STKI_SRC_PIXELS, to, PAIR_ONE, shortcut, &kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
}

/* ---- lists of rows ---- */

/* Nothing but the destination is written between two rows: no calls, no spills. Sequential stores to whole lines are
 * write-combined without reading those lines first, and processors retire stores in order. A single store elsewhere per
 * row, even of a return address, adds 90 ns to a 2 KiB row that takes 165 ns (Zen 4). Rows of whole lines, the usual
 * case, therefore have their own loop. */

INLINE void whole_line(enum stki_convert_src from, enum stki_convert_dst to, bool shortcut, bool streaming,
                       struct kernel *kernel, uint8_t *dst, const uint8_t *next, int64_t each)
{
    for (int64_t k = 0; each >= LINE && k < each; k += LINE)
        __builtin_prefetch(next + k, 0, 2);
    line(from, to, PAIR_ONE, shortcut, kernel, dst, 0, false, streaming, 0);
}

INLINE void whole_rows(enum stki_convert_src from, enum stki_convert_dst to, bool shortcut, bool streaming,
                       struct kernel *kernel, uint8_t *dst, const stki_list *list)
{
    const int64_t each = LINE_ELEMENTS(to) * kernel->reader.step, bytes = list->n * kernel->reader.step;
    const int64_t made = LINE_ELEMENTS(to) * element_size(to);
    const int64_t together = each >= 2 * LINE ? 1 : 4;
    const uint8_t *const *row = list->rows, *const *const end = row + list->count;

    for (; row < end; row++) {
        const uint8_t *next = end - row > list->ahead ? row[list->ahead] : *row, *const stop = *row + bytes;
        kernel->reader.at = *row;
        if (each < LINE)
            stki_fetch(next, bytes);
        for (; stop - kernel->reader.at >= together * each; next += together * each)
            for (int64_t k = 0; k < together; k++) {
                whole_line(from, to, shortcut, streaming, kernel, dst, next + k * each, each);
                kernel->reader.at += each;
                dst += made;
            }
        for (; kernel->reader.at < stop; kernel->reader.at += each, next += each, dst += made)
            whole_line(from, to, shortcut, streaming, kernel, dst, next, each);
    }
}

INLINE void one_list(enum stki_convert_src from, enum stki_convert_dst to, bool shortcut, const stki_lane *lane,
                     uint8_t *dst, const stki_list *list)
{
    const int64_t size = source_size(from), n = list->n;
    struct kernel kernel = {.lane = lane, .reader = {.step = size, .size = (int)size}};

    set_pairs(&kernel.pairs, PAIR_ONE, lane, 0);
    set_levels(&kernel.levels, lane);
    stki_list_begin(list, n * size);
    if ((uintptr_t)dst % LINE == 0 && n % LINE_ELEMENTS(to) == 0) {
        if (lane->streaming)
            whole_rows(from, to, shortcut, true, &kernel, dst, list);
        else
            whole_rows(from, to, shortcut, false, &kernel, dst, list);
        return;
    }
    for (int64_t i = 0; i < list->count; i++, dst += n * element_size(to)) {
        if (i < list->count - list->ahead)
            stki_fetch(list->rows[i + list->ahead], n * size);
        kernel.reader.at = list->rows[i];
        run(from, to, PAIR_ONE, shortcut, &kernel, dst, n, 0);
    }
}

INLINE void copy_run(uint8_t *dst, const uint8_t *src, int64_t n, bool streaming)
{
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE);

    i = i < n ? i : n;
    if (i > 0)
        copy_some(dst, src, i);
    for (; i + 4 * LINE <= n; i += 4 * LINE)
        for (int k = 0; k < 4; k++)
            copy_line(dst + i + k * LINE, src + i + k * LINE, streaming);
    for (; i + LINE <= n; i += LINE)
        copy_line(dst + i, src + i, streaming);
    if (i < n)
        copy_some(dst + i, src + i, n - i);
}

INLINE void copy_list(uint8_t *dst, const stki_list *list, bool streaming)
{
    const int64_t n = list->n;

    stki_list_begin(list, n);
    for (const uint8_t *const *row = list->rows, *const *const end = row + list->count; row < end; row++) {
        const uint8_t *next = end - row > list->ahead ? row[list->ahead] : NULL, *src = *row;
        for (int64_t left = n; left > 0; left -= STKI_FETCH_PIECE) {
            const int64_t m = left < STKI_FETCH_PIECE ? left : STKI_FETCH_PIECE;
            if (next) {
                stki_fetch(next, m);
                next += m;
            }
            copy_run(dst, src, m, streaming);
            src += m;
            dst += m;
        }
    }
}

/* Rows of one number, such as labels. The processor overlaps the loads itself. */
INLINE void copy_numbers(uint8_t *dst, const stki_list *list, int64_t size)
{
    for (int64_t i = 0; i < list->count; i++)
        memcpy(dst + i * size, list->rows[i], (size_t)size);
}

static void list_bytes(const stki_lane *lane, uint8_t *dst, const stki_list *list)
{
    if (list->n == 8)
        copy_numbers(dst, list, 8);
    else if (list->n == 4)
        copy_numbers(dst, list, 4);
    else if (list->n == 1)
        copy_numbers(dst, list, 1);
    else if (lane->streaming)
        copy_list(dst, list, true);
    else
        copy_list(dst, list, false);
}

/* ---- loads ---- */

/* Loads one vector of elements per step, the last ones with a mask or through a buffer. */
#if STKI_MASKED
#define LOAD(name, bytes_each)                                                                              \
    static void load_##name(float *dst, const uint8_t *src, int64_t n)                                      \
    {                                                                                                       \
        int64_t i = 0;                                                                                      \
        for (; i + WIDTH <= n; i += WIDTH)                                                                  \
            vf_store(dst + i, F32_OF_##name(src + i * bytes_each, ALL_LANES));                              \
        if (i < n)                                                                                          \
            vf_store_some(dst + i, F32_OF_##name(src + i * bytes_each, (__mmask16)low_bits(n - i)), n - i); \
    }
#else
#define LOAD(name, bytes_each)                                                \
    static void load_##name(float *dst, const uint8_t *src, int64_t n)        \
    {                                                                         \
        int64_t i = 0;                                                        \
        for (; i + WIDTH <= n; i += WIDTH)                                    \
            vf_store(dst + i, F32_OF_##name(src + i * bytes_each, 0));        \
        if (i < n) {                                                          \
            uint8_t rest[WIDTH * bytes_each] = {0};                           \
            float last[WIDTH];                                                \
            memcpy(rest, src + i * bytes_each, (size_t)(n - i) * bytes_each); \
            vf_store(last, F32_OF_##name(rest, 0));                           \
            memcpy(dst + i, last, (size_t)(n - i) * sizeof(float));           \
        }                                                                     \
    }
#endif
#define LOAD_EACH(name, type)                                          \
    static void load_##name(float *dst, const uint8_t *src, int64_t n) \
    {                                                                  \
        for (int64_t i = 0; i < n; i++) {                              \
            type x;                                                    \
            memcpy(&x, src + i * (int64_t)sizeof x, sizeof x);         \
            dst[i] = (float)x;                                         \
        }                                                              \
    }

#ifdef F32_OF_u8
LOAD(u8, 1)
LOAD(i8, 1)
#else
LOAD_EACH(u8, uint8_t)
LOAD_EACH(i8, int8_t)
#endif
LOAD(u16, 2)
LOAD(i16, 2)
LOAD(f16, 2)
LOAD(bf16, 2)
LOAD(i32, 4)
LOAD(f32, 4)
LOAD(f64, 8)
#ifdef F32_OF_i64
LOAD(i64, 8)
#else
LOAD_EACH(i64, int64_t)
#endif

/* ---- the table ---- */

#define RUN(name, from, to, pairing)                                                                      \
    static void name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel) \
    {                                                                                                     \
        if (has_shortcut(from, to, lane))                                                                 \
            one_run(from, to, pairing, true, lane, dst, src, n, channel);                                 \
        else                                                                                              \
            one_run(from, to, pairing, false, lane, dst, src, n, channel);                                \
    }
#define LIST(name, from, to)                                                     \
    static void name(const stki_lane *lane, uint8_t *dst, const stki_list *list) \
    {                                                                            \
        if (has_shortcut(from, to, lane))                                        \
            one_list(from, to, true, lane, dst, list);                           \
        else                                                                     \
            one_list(from, to, false, lane, dst, list);                          \
    }
#define KERNELS(name, to)                                                                                    \
    LIST(list_u8_##name, STKI_SRC_U8, to)                                                                    \
    LIST(list_f32_##name, STKI_SRC_F32, to)                                                                  \
    RUN(u8_##name, STKI_SRC_U8, to, PAIR_ONE)                                                                \
    RUN(u8_##name##_pattern, STKI_SRC_U8, to, PAIR_WALK)                                                     \
    RUN(f32_##name, STKI_SRC_F32, to, PAIR_ONE)                                                              \
    RUN(f32_##name##_pattern, STKI_SRC_F32, to, PAIR_WALK)                                                   \
    static void plane_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, \
                             int channel)                                                                    \
    {                                                                                                        \
        if (has_shortcut(STKI_SRC_PIXELS, to, lane))                                                         \
            plane(to, true, lane, dst, src, rows, channel);                                                  \
        else                                                                                                 \
            plane(to, false, lane, dst, src, rows, channel);                                                 \
    }
#define WIDE(name, from)                          \
    RUN(name##_f32, from, STKI_DST_F32, PAIR_ONE) \
    LIST(list_##name##_f32, from, STKI_DST_F32)
WIDE(u16, STKI_SRC_U16)
WIDE(i16, STKI_SRC_I16)
WIDE(i32, STKI_SRC_I32)
WIDE(f16, STKI_SRC_F16)
WIDE(bf16, STKI_SRC_BF16)
WIDE(f64, STKI_SRC_F64)
#ifdef F32_OF_i8
WIDE(i8, STKI_SRC_I8)
#define WIDE_i8 i8_f32
#define WIDE_LIST_i8 list_i8_f32
#else
#define WIDE_i8 NULL
#define WIDE_LIST_i8 NULL
#endif
#ifdef F32_OF_i64
WIDE(i64, STKI_SRC_I64)
#define WIDE_i64 i64_f32
#define WIDE_LIST_i64 list_i64_f32
#else
#define WIDE_i64 NULL
#define WIDE_LIST_i64 NULL
#endif
KERNELS(u8, STKI_DST_U8)
KERNELS(i8, STKI_DST_I8)
KERNELS(i32, STKI_DST_I32)
KERNELS(f16, STKI_DST_F16)
KERNELS(bf16, STKI_DST_BF16)
KERNELS(f32, STKI_DST_F32)

/* The table entries common to all instruction sets. */
#define STKI_CONVERT_BODY                                                                                        \
    .load = {load_u8, load_i8, load_u16, load_i16, load_i32, load_i64, load_f16, load_bf16, load_f32, load_f64}, \
    .run_f32 = {{f32_u8, f32_u8_pattern},   {f32_i8, f32_i8_pattern},     {f32_i32, f32_i32_pattern},            \
                {f32_f16, f32_f16_pattern}, {f32_bf16, f32_bf16_pattern}, {f32_f32, f32_f32_pattern}},           \
    .run_u8 = {{u8_u8, u8_u8_pattern},   {u8_i8, u8_i8_pattern},     {u8_i32, u8_i32_pattern},                   \
               {u8_f16, u8_f16_pattern}, {u8_bf16, u8_bf16_pattern}, {u8_f32, u8_f32_pattern}},                  \
    .list_f32 = {list_f32_u8, list_f32_i8, list_f32_i32, list_f32_f16, list_f32_bf16, list_f32_f32},             \
    .list_u8 = {list_u8_u8, list_u8_i8, list_u8_i32, list_u8_f16, list_u8_bf16, list_u8_f32},                    \
    .run_wide = {NULL, WIDE_i8, u16_f32, i16_f32, i32_f32, WIDE_i64, f16_f32, bf16_f32, NULL, f64_f32},          \
    .list_wide = {NULL,          WIDE_LIST_i8, list_u16_f32,  list_i16_f32, list_i32_f32,                        \
                  WIDE_LIST_i64, list_f16_f32, list_bf16_f32, NULL,         list_f64_f32},                       \
    .list_bytes = list_bytes, .plane = {plane_u8, plane_i8, plane_i32, plane_f16, plane_bf16, plane_f32},        \
    .interleave = STKI_INTERLEAVES, .deinterleave = STKI_DEINTERLEAVES
