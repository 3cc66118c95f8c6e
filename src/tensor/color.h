/* color.h: what is done to the colours of an image between its bytes and the multiply-add of a conversion, in f32 and
 * in the units of the bytes, 0 to 255 (docs/internals/convert.md, "Colours", is the definition). The loops are plain C
 * over planes, compiled for each instruction set: one IEEE operation after the other, so that all give the same bits.
 */
#ifndef STKI_COLOR_H
#define STKI_COLOR_H

#include "convert.h"

enum stki_color_kind {
    STKI_COLOR_BRIGHTNESS, /* x f */
    STKI_COLOR_CONTRAST,   /* x f + mean (1 - f), the mean of the grey values of the image */
    STKI_COLOR_SATURATION, /* x f + grey (1 - f) */
    STKI_COLOR_HUE,        /* turned by f, in turns */
    STKI_COLOR_GRAY,       /* every channel the grey value */
    STKI_COLOR_PERMUTE     /* channel c is channel from[c] */
};

typedef struct stki_color_step {
    enum stki_color_kind kind;
    float factor, rest; /* rest: 1 - f, rounded once */
    uint8_t from[3];
} stki_color_step;

enum { STKI_COLOR_STEPS = 32 };

/* The sum of grey values in units of 2^-16, exact, so that the order of adding does not matter. */
typedef int64_t stki_color_sum;

typedef struct stki_color_loops {
    /* `n` pixels of `channels` (1 or 3) bytes, `step` bytes apart, channels `apart` bytes apart, to planes; backwards:
     * the first pixel of the planes is the last one in memory. */
    void (*load)(float *const *planes, const uint8_t *src, int64_t step, int64_t apart, int channels, int64_t n,
                 bool backwards);
    void (*scale)(float *x, int64_t n, float factor);
    void (*blend)(float *x, int64_t n, float factor, float add);
    void (*saturate)(float *r, float *g, float *b, int64_t n, float factor, float rest);
    void (*turn)(float *r, float *g, float *b, int64_t n, float turns);
    void (*gray)(float *r, float *g, float *b, int64_t n);
    stki_color_sum (*sum)(const float *r, const float *g, const float *b, int64_t n); /* g, b NULL: of r alone */
} stki_color_loops;

const stki_color_loops *stki_color_loops_of(enum stki_isa isa);
extern const stki_color_loops stki_color_loops_ref, stki_color_loops_avx2, stki_color_loops_avx512;

/* Steps [0, count) over `n` pixels. `means`: of each contrast step, in their order. One channel has no colours: hue,
 * saturation, gray and permute leave it alone. */
void stki_color_run(const stki_color_loops *loops, const stki_color_step *steps, int count, const float *means,
                    float *const *planes, int channels, int64_t n);
float stki_color_mean(stki_color_sum sum, int64_t pixels);

#endif
