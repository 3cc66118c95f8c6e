/* color_body.h: the loops of color.h, included once per instruction set. Pixels are f32 planes, so that the compiler
 * vectorizes each loop over contiguous elements. Every statement is one operation of the definition; nothing is fused,
 * so that all instruction sets produce bit-identical results. */
#include "color.h"
#include <string.h>

/* Clamps to [0, 255]. */
static inline float clamped(float x)
{
    return x < 0.0f ? 0.0f : x > 255.0f ? 255.0f : x;
}

static inline float gray_of(float r, float g, float b)
{
    return 0.2989f * r + 0.587f * g + 0.114f * b;
}

static void load_plane(float *restrict to, const uint8_t *restrict src, int64_t step, int64_t n)
{
    if (step == 3)
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)src[3 * i];
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)src[step * i];
}

static void load_plane_backwards(float *restrict to, const uint8_t *restrict src, int64_t step, int64_t n)
{
    enum { BLOCK = 256 };
    float forwards[BLOCK];

    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t count = n - first < BLOCK ? n - first : BLOCK;
        float *restrict end = to + n - first - count;

        load_plane(forwards, src + first * step, step, count);
        for (int64_t i = 0; i < count; i++)
            end[count - 1 - i] = forwards[i];
    }
}

static void load(float *const *planes, const uint8_t *src, int64_t step, int64_t apart, int channels, int64_t n,
                 bool backwards)
{
    for (int c = 0; c < channels; c++)
        if (backwards)
            load_plane_backwards(planes[c], src + c * apart, step, n);
        else
            load_plane(planes[c], src + c * apart, step, n);
}

static void scale(float *restrict x, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = clamped(x[i] * factor);
}

static void blend(float *restrict x, int64_t n, float factor, float add)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = clamped(x[i] * factor + add);
}

static void saturate(float *restrict r, float *restrict g, float *restrict b, int64_t n, float factor, float rest)
{
    for (int64_t i = 0; i < n; i++) {
        const float add = gray_of(r[i], g[i], b[i]) * rest;

        r[i] = clamped(r[i] * factor + add);
        g[i] = clamped(g[i] * factor + add);
        b[i] = clamped(b[i] * factor + add);
    }
}

/* Selects with masks, because compilers do not vectorize loops with branches. */
static inline uint32_t mask_of(bool yes)
{
    return -(uint32_t)yes;
}

static inline float pick(uint32_t mask, float yes, float no)
{
    uint32_t x, y;

    memcpy(&x, &yes, sizeof x);
    memcpy(&y, &no, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&yes, &x, sizeof yes);
    return yes;
}

/* Computes the floor of small numbers, because compilers do not vectorize floorf. */
static inline float floor_of(float x)
{
    const float whole = (float)(int32_t)x;

    return whole - pick(mask_of(x < whole), 1.0f, 0.0f);
}

/* Converts to hue, saturation and value, rotates the hue, and converts back. */
static void turn(float *restrict r, float *restrict g, float *restrict b, int64_t n, float turns)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = r[i], y = g[i], z = b[i];
        const float xy = x > y ? x : y, v = xy > z ? xy : z, low = x < y ? x : y, least = low < z ? low : z;
        const float range = v - least, divisor = pick(mask_of(range == 0.0f), 1.0f, range);
        const float s = range / pick(mask_of(v == 0.0f), 1.0f, v);
        const float rc = (v - x) / divisor, gc = (v - y) / divisor, bc = (v - z) / divisor;
        float h = pick(mask_of(v == x), bc - gc, pick(mask_of(v == y), 2.0f + rc - bc, 4.0f + gc - rc));

        h = h / 6.0f + 1.0f;
        h = h - floor_of(h);
        h = h + turns;
        h = h - floor_of(h);
        h = h * 6.0f;

        const float whole = floor_of(h), f = h - whole, sector = pick(mask_of(whole >= 6.0f), 0.0f, whole);
        const float p = clamped(v * (1.0f - s)), q = clamped(v * (1.0f - s * f)),
                    t = clamped(v * (1.0f - s * (1.0f - f)));
        const uint32_t is0 = mask_of(sector == 0.0f), is1 = mask_of(sector == 1.0f), is2 = mask_of(sector == 2.0f),
                       is3 = mask_of(sector == 3.0f), is4 = mask_of(sector == 4.0f), is5 = mask_of(sector == 5.0f);

        r[i] = pick(is0 | is5, v, pick(is1, q, pick(is4, t, p)));
        g[i] = pick(is1 | is2, v, pick(is0, t, pick(is3, q, p)));
        b[i] = pick(is3 | is4, v, pick(is2, t, pick(is5, q, p)));
    }
}

static void gray(float *restrict r, float *restrict g, float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r[i] = g[i] = b[i] = gray_of(r[i], g[i], b[i]);
}

static stki_color_sum sum(const float *restrict r, const float *restrict g, const float *restrict b, int64_t n)
{
    stki_color_sum total = 0;

    if (!g) {
        for (int64_t i = 0; i < n; i++)
            total += (int32_t)(r[i] * 65536.0f + 0.5f);
        return total;
    }
    for (int64_t i = 0; i < n; i++)
        total += (int32_t)(gray_of(r[i], g[i], b[i]) * 65536.0f + 0.5f);
    return total;
}

#define STKI_COLOR_BODY                               \
    {                                                 \
        load, scale, blend, saturate, turn, gray, sum \
    }
