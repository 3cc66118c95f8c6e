/* color.c: see color.h. */
#include "color.h"
#include <string.h>

const stki_color_loops *stki_color_loops_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX2)
        return &stki_color_loops_avx2;
    if (isa == STKI_ISA_AVX512)
        return &stki_color_loops_avx512;
#endif
    (void)isa;
    return &stki_color_loops_ref;
}

float stki_color_mean(stki_color_sum sum, int64_t pixels)
{
    return pixels > 0 ? (float)((double)sum / ((double)pixels * 65536)) : 0.0f;
}

static void permute(float *const *planes, const uint8_t *from, int64_t n)
{
    enum { BLOCK = 256 };
    float block[3][BLOCK];

    for (int64_t first = 0; first < n; first += BLOCK) {
        const size_t bytes = (size_t)(n - first < BLOCK ? n - first : BLOCK) * sizeof(float);

        for (int c = 0; c < 3; c++)
            memcpy(block[c], planes[from[c]] + first, bytes);
        for (int c = 0; c < 3; c++)
            memcpy(planes[c] + first, block[c], bytes);
    }
}

void stki_color_run(const stki_color_loops *loops, const stki_color_step *steps, int count, const float *means,
                    float *const *planes, int channels, int64_t n)
{
    for (int i = 0; i < count; i++) {
        const stki_color_step *s = &steps[i];

        if (s->kind == STKI_COLOR_BRIGHTNESS) {
            for (int c = 0; c < channels; c++)
                loops->scale(planes[c], n, s->factor);
        } else if (s->kind == STKI_COLOR_CONTRAST) {
            const float add = *means++ * s->rest;

            for (int c = 0; c < channels; c++)
                loops->blend(planes[c], n, s->factor, add);
        } else if (channels != 3) {
            continue;
        } else if (s->kind == STKI_COLOR_SATURATION) {
            loops->saturate(planes[0], planes[1], planes[2], n, s->factor, s->rest);
        } else if (s->kind == STKI_COLOR_HUE) {
            loops->turn(planes[0], planes[1], planes[2], n, s->factor);
        } else if (s->kind == STKI_COLOR_GRAY) {
            loops->gray(planes[0], planes[1], planes[2], n);
        } else {
            permute(planes, s->from, n);
        }
    }
}
