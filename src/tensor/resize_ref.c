/* resize_ref.c: the two passes as plain loops. All other variants must produce bit-identical results. */
#include "resize_internal.h"

void stki_resize_ref_row(const stki_resizer *resizer, const uint8_t *in, uint8_t *out, int64_t from)
{
    const stki_resize_axis *x = &resizer->x;
    const int channels = resizer->channels;

    for (int64_t i = from; i < x->out; i++) {
        const uint8_t *pixel = in + (int64_t)x->first[i] * channels;
        const int32_t *k = x->k + i * x->taps;

        for (int c = 0; c < channels; c++) {
            int32_t sum = STKI_RESIZE_HALF;

            for (int32_t t = 0; t < x->count[i]; t++)
                sum += pixel[t * channels + c] * k[t];
            out[i * channels + c] = stki_resize_store(sum);
        }
    }
}

void stki_resize_ref_column(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t from,
                            int64_t n)
{
    for (int64_t i = from; i < n; i++) {
        int32_t sum = STKI_RESIZE_HALF;

        for (int64_t t = 0; t < taps; t++)
            sum += rows[t][i] * k[t];
        out[i] = stki_resize_store(sum);
    }
}

static void horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    for (int r = 0; r < STKI_RESIZE_ROWS; r++)
        if (r == 0 || out[r] != out[r - 1])
            stki_resize_ref_row(resizer, in[r], out[r], 0);
}

static void vertical(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n)
{
    stki_resize_ref_column(out, rows, k, taps, 0, n);
}

const stki_resize_kernels stki_resize_ref = {.horizontal = horizontal, .vertical = vertical};
