/* color.h: the color steps that a conversion applies to the bytes of an image before the multiply-add. They work in
 * f32, in the range of the bytes, 0 to 255 (docs/internals/convert.md, "Colors", defines them). The loops are plain C
 * over planes, compiled for each instruction set. Each statement is one IEEE operation, so that all variants produce
 * bit-identical results. */
#ifndef STKI_COLOR_H
#define STKI_COLOR_H

#include "convert.h"

enum stki_color_kind {
    STKI_COLOR_BRIGHTNESS, /* x f */
    STKI_COLOR_CONTRAST,   /* x f + mean (1 - f), where mean is that of the image's gray values */
    STKI_COLOR_SATURATION, /* x f + gray (1 - f) */
    STKI_COLOR_HUE,        /* hue rotated by f turns */
    STKI_COLOR_GRAY,       /* every channel becomes the gray value */
    STKI_COLOR_PERMUTE     /* channel c is taken from channel from[c] */
};

typedef struct stki_color_step {
    enum stki_color_kind kind;
    float factor, rest; /* rest: 1 - f, rounded once */
    uint8_t from[3];
} stki_color_step;

enum { STKI_COLOR_STEPS = 32 };

/* The sum of gray values in units of 2^-16; exact, so that the order of additions does not matter. */
typedef int64_t stki_color_sum;

typedef struct stki_color_loops {
    /* Loads `n` pixels of `channels` (1 or 3) bytes into planes. Pixels are `step` bytes apart, channels `apart` bytes.
     * `backwards`: the first pixel in the planes is the last one in memory. */
    void (*load)(float *const *planes, const uint8_t *src, int64_t step, int64_t apart, int channels, int64_t n,
                 bool backwards);
    void (*scale)(float *x, int64_t n, float factor);
    void (*blend)(float *x, int64_t n, float factor, float add);
    void (*saturate)(float *r, float *g, float *b, int64_t n, float factor, float rest);
    void (*turn)(float *r, float *g, float *b, int64_t n, float turns);
    void (*gray)(float *r, float *g, float *b, int64_t n);
    stki_color_sum (*sum)(const float *r, const float *g, const float *b,
                          int64_t n); /* g and b NULL: the sum of r only */
} stki_color_loops;

const stki_color_loops *stki_color_loops_of(enum stki_isa isa);
extern const stki_color_loops stki_color_loops_ref, stki_color_loops_avx2, stki_color_loops_avx512;

/* Applies steps [0, count) to `n` pixels. `means`: one per contrast step, in order. With one channel, hue, saturation,
 * gray and permute have no effect. */
void stki_color_run(const stki_color_loops *loops, const stki_color_step *steps, int count, const float *means,
                    float *const *planes, int channels, int64_t n);
float stki_color_mean(stki_color_sum sum, int64_t pixels);

#endif
