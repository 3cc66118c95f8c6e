/* quant_internal.h: the parameters of quantised tensors as the rows want them, and the rows themselves: runs of
 * adjacent elements, float to integers and back. quant_ref.c is their definition; the AVX2 and AVX-512 files give the
 * same bits.
 *
 * Element i of a run takes pair `channel` where the period is 0, else pair (channel + i) mod period. The arrays of
 * pairs are repeated behind their end, so that a kernel may load a vector from any pair on.
 */
#ifndef STKI_QUANT_INTERNAL_H
#define STKI_QUANT_INTERNAL_H

#include "convert.h"
#include "counter.h"
#include "device_tables.h"
#include <stoker/quant.h>

enum { STKI_QUANT_PAD = 16 };

typedef struct stki_quant_lane {
    const float *inverse, *zero_float; /* quantising: 1.0f / (float)scale, (float)zero_point */
    const float *scale_float; /* dequantising with one pair; the upper part of the scale with proven channels */
    const float *scale_rest;  /* what scale_float leaves of the scale */
    const double *scale, *zero_double; /* dequantising with a pair for each channel; whole numbers to f32 */
    const int32_t *zero;
    int64_t period;
    bool per_channel;
    bool exact;     /* 8 bits: every scale is an f32 number, so that an f32 product is the double one rounded */
    bool proven;    /* 8 bits: fmaf(d, scale_float, d * scale_rest) has been seen to give the same as the double product
                       for every difference d of every channel */
    bool streaming; /* non-temporal stores */
} stki_quant_lane;

/* No alignment is assumed. */
typedef void (*stki_quant_fn)(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel);

typedef struct stki_quant_kernels {
    stki_quant_fn quantize[STK_QINT32 + 1]; /* by stk_qdtype; f32 to integers */
    stki_quant_fn dequantize[STK_QINT32 + 1];
} stki_quant_kernels;

extern const stki_quant_kernels stki_quant_ref, stki_quant_avx2, stki_quant_avx512;
/* Those of `isa`, or the plain ones where it has none of its own. */
const stki_quant_kernels *stki_quant_kernels_of(enum stki_isa isa);

struct stk_quant {
    stki_counter refs;
    stk_qdtype qdtype;
    int axis;
    int64_t count, bytes;
    double *low, *high; /* NaN: not calibrated */
    int64_t *zero_points;
    stki_quant_lane lane; /* period 0, neither proven nor streaming */
    stki_counter proof;   /* of lane.proven: enum stki_quant_proof */
    stki_device_tables device_tables;
};

enum stki_quant_proof { STKI_PROOF_NONE, STKI_PROOF_HOLDS, STKI_PROOF_FAILS };

typedef struct stki_qrange {
    double low, high;
} stki_qrange;

int64_t stki_quant_min(stk_qdtype qdtype);
int64_t stki_quant_max(stk_qdtype qdtype);
/* Parameters from a range; between stki_float_enter and leave. */
void stki_quant_parameters(stk_qdtype qdtype, stk_qscheme scheme, stki_qrange range, double *scale,
                           int64_t *zero_point);
/* Parameters from ranges, one a channel. */
stk_status stki_quant_from_ranges(stk_qdtype qdtype, stk_qscheme scheme, int axis, int64_t count,
                                  const stki_qrange *ranges, stk_quant **out, stk_error *err);
/* STK_E_BAD_ARG: not one of the list. */
stk_status stki_quant_check(stk_qdtype qdtype, stk_qscheme scheme, stk_error *err);

/* quant_run.c: the whole tensor with the kernels of `isa`, nothing checked, ordinary memory. */
void stki_quantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa);
void stki_dequantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa);

#endif
