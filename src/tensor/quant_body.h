/* quant_body.h: quantization and dequantization of rows, included once per instruction set. The including file defines,
 * in addition to the names of its vector_*.h:
 *
 *     load_integers(from, src, first, valid)   WIDTH elements from `first` on as i32. Those after `valid` may have any
 *                                              value and are read only without STKI_MASKED
 *     HOLDS                                    whether there are enough registers for the pairs of a whole unit
 *
 * The unit of work is a unit of the destination. A row starts with a partial unit up to the next boundary, continues
 * with whole units and ends with a partial one. Partial units use the same code, with masks or through a small buffer.
 */
#include <string.h>

/* The position in the arrays of pairs. Their elements repeat after `period`. */
struct phase {
    int64_t at, advance, period;
};

INLINE struct phase phase_at(const stki_quant_lane *lane, int64_t channel)
{
    return (struct phase){.at = channel, .advance = lane->period ? WIDTH % lane->period : 0, .period = lane->period};
}

INLINE void step(struct phase *phase, int64_t elements)
{
    phase->at += elements == WIDTH ? phase->advance : elements % phase->period;
    if (phase->at >= phase->period)
        phase->at -= phase->period;
}

/* How many of the `n` elements of `size` bytes precede the next unit boundary. */
INLINE int64_t before_boundary(const char *dst, int64_t size, int64_t n)
{
    const int64_t behind = (int64_t)((uintptr_t)dst % UNIT);
    int64_t i = 0;

    if (behind && behind % size == 0)
        i = (UNIT - behind) / size;
    return i < n ? i : n;
}

/* ---- to integers ---- */

/* Where the pairs of a vector come from. Loading two vectors of pairs per vector of elements costs 20 % of the
 * memory bandwidth, so if the channels repeat in every unit and there are enough registers, the pairs are kept in
 * registers.
 */
enum pairs { ONE_PAIR, HELD, LOADED };

enum { HELD_VECTORS = 4 };

struct quantizer {
    vf inverse, zero, high;
    vf held_inverse[HELD_VECTORS], held_zero[HELD_VECTORS];
    struct phase phase;
};

INLINE void hold(struct quantizer *q, const stki_quant_lane *lane)
{
    struct phase phase = q->phase;

    for (int k = 0; k < HELD_VECTORS; k++) {
        q->held_inverse[k] = vf_load(lane->inverse + phase.at);
        q->held_zero[k] = vf_load(lane->zero_float + phase.at);
        step(&phase, WIDTH);
    }
}

/* rint(x * inverse) + zero as i32. NaN is treated as 0 before the zero point is added. Values below -2^31 become -2^31;
 * packing saturates. */
INLINE vi whole(stk_qdtype to, vf x, const struct quantizer *q)
{
    vf y = vf_add(vf_rint(vf_mul(x, q->inverse)), q->zero);

    return to == STK_QINT32 ? vi_of_f32_saturated(y) : vi_of_f32(vf_min(y, q->high));
}

/* Quantizes elements [first, first + valid) as one unit. */
INLINE vunit quantized(stk_qdtype to, enum pairs pairs, const stki_quant_lane *lane, struct quantizer *q,
                       const char *src, int64_t first, int64_t valid)
{
    const int groups = to == STK_QINT32 ? 1 : 4;
    vi y[4];

    for (int k = 0; k < groups; k++) {
        int64_t here = valid - k * WIDTH < WIDTH ? valid - k * WIDTH : WIDTH;
        const char *at = src + 4 * (first + k * WIDTH);
        y[k] = vi_zero();
        if (here <= 0)
            continue;
        vf x = here == WIDTH ? vf_load(at) : vf_load_some(at, here);
        if (pairs == HELD) {
            q->inverse = q->held_inverse[k];
            q->zero = q->held_zero[k];
        } else if (pairs == LOADED) {
            q->inverse = vf_load(lane->inverse + q->phase.at);
            q->zero = vf_load(lane->zero_float + q->phase.at);
            step(&q->phase, here);
        }
        y[k] = whole(to, x, q);
    }
    return to == STK_QINT32 ? pack_i32(y) : pack_bytes(to == STK_QINT8, y);
}

/* Processes `n` elements, fewer than a unit. */
INLINE void quantize_some(stk_qdtype to, enum pairs pairs, const stki_quant_lane *lane, struct quantizer *q, char *dst,
                          const char *src, int64_t n)
{
    const int64_t size = to == STK_QINT32 ? 4 : 1;
#if STKI_MASKED
    store_some(dst, quantized(to, pairs, lane, q, src, 0, n), n * size);
#else
    struct phase phase = q->phase;
    char in[4 * UNIT] = {0}, out[UNIT];

    memcpy(in, src, (size_t)(4 * n));
    store_unit(out, quantized(to, pairs, lane, q, in, 0, PER_UNIT(size)), UNIT, false);
    memcpy(dst, out, (size_t)(n * size));
    q->phase = phase;
    if (pairs == LOADED)
        q->phase.at = (phase.at + n) % phase.period;
#endif
}

INLINE void quantize(stk_qdtype to, enum pairs pairs, const stki_quant_lane *lane, char *dst, const char *src,
                     int64_t n, int64_t channel)
{
    const int size = to == STK_QINT32 ? 4 : 1;
    const int64_t per_unit = PER_UNIT(size);
    const bool aligned = (uintptr_t)dst % (uintptr_t)size == 0;
    const enum pairs at_edges = pairs == ONE_PAIR ? ONE_PAIR : LOADED;
    struct quantizer q = {.high = vf_all(to == STK_QUINT8 ? 255 : 127), .phase = phase_at(lane, channel)};
    int64_t i = before_boundary(dst, size, n);

    if (pairs == ONE_PAIR) {
        q.inverse = vf_all(lane->inverse[channel]);
        q.zero = vf_all(lane->zero_float[channel]);
    }
    if (i > 0)
        quantize_some(to, at_edges, lane, &q, dst, src, i);
    if (pairs == HELD)
        hold(&q, lane); /* a whole unit leaves the phase unchanged */
    if (lane->streaming && aligned)
        for (; i + per_unit <= n; i += per_unit)
            store_unit(dst + i * size, quantized(to, pairs, lane, &q, src, i, per_unit), UNIT, true);
    else
        for (; i + per_unit <= n; i += per_unit)
            store_unit(dst + i * size, quantized(to, pairs, lane, &q, src, i, per_unit), UNIT, false);
    if (i < n)
        quantize_some(to, at_edges, lane, &q, dst + i * size, src + 4 * i, n - i);
}

/* ---- from integers ---- */

enum product {
    IN_FLOAT, /* one pair, or f32 scales */
    CHANNELS, /* in f64, as defined */
    PROVEN    /* in f32 with a scale split in two parts */
};

struct dequantizer {
    vf scale_float, scale_rest, zero_float;
    vd scale[2], zero[2]; /* lower and upper half of the lanes */
    struct phase phase;
};

/* Dequantizes one vector. Differences of 8-bit integers are exact in f32, so only those of i32 need f64. */
INLINE vf dequantized(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane,
                      struct dequantizer *d, const char *src, int64_t first, int64_t valid)
{
    vi q = load_integers(from, src, first, valid);

    if (from != STK_QINT32 && product != CHANNELS) {
        if (pattern) {
            d->scale_float = vf_load(lane->scale_float + d->phase.at);
            d->zero_float = vf_load(lane->zero_float + d->phase.at);
            if (product == PROVEN)
                d->scale_rest = vf_load(lane->scale_rest + d->phase.at);
            step(&d->phase, valid);
        }
        vf difference = vf_sub(vf_of_i32(q), d->zero_float);
        if (product == IN_FLOAT)
            return vf_mul(difference, d->scale_float);
        return vf_fma(difference, d->scale_float, vf_mul(difference, d->scale_rest));
    }
    if (pattern) {
        for (int k = 0; k < 2; k++) {
            d->scale[k] = vd_load(lane->scale + d->phase.at + WIDTH / 2 * k);
            d->zero[k] = vd_load(lane->zero_double + d->phase.at + WIDTH / 2 * k);
        }
        step(&d->phase, valid);
    }
    vd low = vd_sub(vd_of_lower_i32(q), d->zero[0]), high = vd_sub(vd_of_upper_i32(q), d->zero[1]);
    if (product == IN_FLOAT)
        return vf_mul(vf_of_f64(low, high), d->scale_float);
    return vf_of_f64(vd_mul(low, d->scale[0]), vd_mul(high, d->scale[1]));
}

/* Processes `n` elements, fewer than a unit. */
INLINE void dequantize_some(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane,
                            struct dequantizer *d, char *dst, const char *src, int64_t n)
{
#if STKI_MASKED
    vf_store_some(dst, dequantized(from, product, pattern, lane, d, src, 0, n), n);
#else
    struct phase phase = d->phase;
    char in[4 * WIDTH] = {0};
    float out[WIDTH];

    memcpy(in, src, (size_t)n * (from == STK_QINT32 ? 4 : 1));
    vf_store(out, dequantized(from, product, pattern, lane, d, in, 0, WIDTH));
    memcpy(dst, out, (size_t)(4 * n));
    d->phase = phase;
    if (pattern)
        d->phase.at = (phase.at + n) % phase.period;
#endif
}

INLINE void dequantize(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane, char *dst,
                       const char *src, int64_t n, int64_t channel)
{
    const int64_t size = from == STK_QINT32 ? 4 : 1;
    const bool aligned = (uintptr_t)dst % 4 == 0;
    struct dequantizer d = {.phase = phase_at(lane, channel)};
    int64_t i = before_boundary(dst, 4, n);

    if (!pattern) {
        d.scale_float = vf_all(lane->scale_float[channel]);
        d.scale_rest = vf_all(lane->scale_rest[channel]);
        d.zero_float = vf_all(lane->zero_float[channel]);
        d.scale[0] = d.scale[1] = vd_all(lane->scale[channel]);
        d.zero[0] = d.zero[1] = vd_all(lane->zero_double[channel]);
    }
    if (i > 0)
        dequantize_some(from, product, pattern, lane, &d, dst, src, i);
    if (lane->streaming && aligned)
        for (; i + WIDTH <= n; i += WIDTH)
            vf_stream(dst + 4 * i, dequantized(from, product, pattern, lane, &d, src, i, WIDTH));
    else
        for (; i + WIDTH <= n; i += WIDTH)
            vf_store(dst + 4 * i, dequantized(from, product, pattern, lane, &d, src, i, WIDTH));
    if (i < n)
        dequantize_some(from, product, pattern, lane, &d, dst + 4 * i, src + size * i, n - i);
}

/* ---- the table ---- */

#define ROWS(name, qdtype)                                                                                             \
    static void quantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel)   \
    {                                                                                                                  \
        if (HOLDS && lane->period && qdtype != STK_QINT32 && UNIT % lane->period == 0)                                 \
            quantize(qdtype, HELD, lane, dst, src, n, channel);                                                        \
        else if (lane->period)                                                                                         \
            quantize(qdtype, LOADED, lane, dst, src, n, channel);                                                      \
        else                                                                                                           \
            quantize(qdtype, ONE_PAIR, lane, dst, src, n, channel);                                                    \
    }                                                                                                                  \
    static void dequantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel) \
    {                                                                                                                  \
        const bool in_float = lane->exact || !lane->per_channel;                                                       \
        if (lane->period && in_float)                                                                                  \
            dequantize(qdtype, IN_FLOAT, true, lane, dst, src, n, channel);                                            \
        else if (in_float)                                                                                             \
            dequantize(qdtype, IN_FLOAT, false, lane, dst, src, n, channel);                                           \
        else if (lane->period && lane->proven)                                                                         \
            dequantize(qdtype, PROVEN, true, lane, dst, src, n, channel);                                              \
        else if (lane->proven)                                                                                         \
            dequantize(qdtype, PROVEN, false, lane, dst, src, n, channel);                                             \
        else if (lane->period)                                                                                         \
            dequantize(qdtype, CHANNELS, true, lane, dst, src, n, channel);                                            \
        else                                                                                                           \
            dequantize(qdtype, CHANNELS, false, lane, dst, src, n, channel);                                           \
    }

ROWS(i8, STK_QINT8)
ROWS(u8, STK_QUINT8)
ROWS(i32, STK_QINT32)

#define STKI_QUANT_BODY                                                                                           \
    {                                                                                                             \
        .quantize = {[STK_QINT8] = quantize_i8, [STK_QUINT8] = quantize_u8, [STK_QINT32] = quantize_i32},         \
        .dequantize = {[STK_QINT8] = dequantize_i8, [STK_QUINT8] = dequantize_u8, [STK_QINT32] = dequantize_i32}, \
    }
