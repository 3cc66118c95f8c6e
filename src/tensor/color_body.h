/* color_body.h: the loops of color.h, for whatever instruction set the including file is compiled for. Every line is
 * one operation of the definition; nothing is fused. */
#include "color.h"
#include <math.h>

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
    if (step == 3)
        for (int64_t i = 0; i < n; i++)
            to[n - 1 - i] = (float)src[3 * i];
    else
        for (int64_t i = 0; i < n; i++)
            to[n - 1 - i] = (float)src[step * i];
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

/* To hue, saturation and value, the hue turned, and back. */
static void turn(float *restrict r, float *restrict g, float *restrict b, int64_t n, float turns)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = r[i], y = g[i], z = b[i];
        const float xy = x > y ? x : y, v = xy > z ? xy : z, low = x < y ? x : y, least = low < z ? low : z;
        const float range = v - least, gray = range == 0.0f, divisor = range + gray;
        const float s = range / (v + (v == 0.0f));
        const float rc = (v - x) / divisor, gc = (v - y) / divisor, bc = (v - z) / divisor;
        const float of_r = bc - gc, of_g = 2.0f + rc - bc, of_b = 4.0f + gc - rc;
        float h = v == x ? of_r : v == y ? of_g : of_b;

        h = h / 6.0f + 1.0f;
        h = h - floorf(h);
        h = h + turns;
        h = h - floorf(h);
        h = h * 6.0f;

        const float whole = floorf(h), f = h - whole, sector = whole >= 6.0f ? 0.0f : whole;
        const float p = clamped(v * (1.0f - s)), q = clamped(v * (1.0f - s * f)),
                    t = clamped(v * (1.0f - s * (1.0f - f)));

        r[i] = sector == 0.0f || sector == 5.0f ? v : sector == 1.0f ? q : sector == 4.0f ? t : p;
        g[i] = sector == 1.0f || sector == 2.0f ? v : sector == 0.0f ? t : sector == 3.0f ? q : p;
        b[i] = sector == 3.0f || sector == 4.0f ? v : sector == 2.0f ? t : sector == 5.0f ? q : p;
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
