/* quant_samples.h: the elements of a tensor of samples as blocks of doubles, for calibration. */
#ifndef STKI_QUANT_SAMPLES_H
#define STKI_QUANT_SAMPLES_H

#include "cast.h"
#include "stage.h"
#include "strided.h"

enum { STKI_SAMPLES_BLOCK = 512 };

typedef struct stki_samples {
    stki_stage stage;
    stki_strided plan; /* the tensor, and the channel's index */
    stki_cast cast;
    int64_t element_bytes, count, channels;
} stki_samples;

/* `n` elements; element i belongs to channel `channel` + i * `channel_step`. */
typedef void (*stki_samples_fn)(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step);

/* Channels along `axis`, or one for all (STK_QUANT_PER_TENSOR). STK_E_BAD_DTYPE: not real. STK_E_BAD_DIM: no such axis.
 * STK_E_EMPTY_REDUCE: no element. */
stk_status stki_samples_begin(stki_samples *samples, const stk_tensor *tensor, int axis, stk_error *err);
void stki_samples_each(const stki_samples *samples, stki_samples_fn visit, void *context);
void stki_samples_end(stki_samples *samples);

/* Smallest and largest of each channel. STK_E_BAD_VALUE: infinite or NaN. */
struct stki_qrange;
stk_status stki_samples_range(const stki_samples *samples, struct stki_qrange *ranges, stk_error *err);

#endif
