/* quant_internal.h: the parameters of quantized tensors in the form that the kernels use, and the kernels: runs of
 * contiguous elements, float to integer and back. quant_ref.c defines the result; the AVX2 and AVX-512 files produce
 * bit-identical results. Element i of a run uses pair `channel` if the period is 0, otherwise pair (channel + i) mod
 * period. The arrays of pairs are repeated after their end, so that a kernel may load a vector at any pair. */
#ifndef STKI_QUANT_INTERNAL_H
#define STKI_QUANT_INTERNAL_H

#include "convert.h"
#include "counter.h"
#include "device_tables.h"
#include <stoker/quant.h>

enum { STKI_QUANT_PAD = 16 };

typedef struct stki_quant_lane {
    const float *inverse, *zero_float; /* quantizing: 1.0f / (float)scale, (float)zero_point */
    const float *scale_float;          /* dequantizing with one pair; the high part of the scale if proven */
    const float *scale_rest;           /* scale minus scale_float */
    const double *scale, *zero_double; /* dequantizing with a pair per channel; integers to f32 */
    const int32_t *zero;
    int64_t period;
    bool per_channel;
    bool exact;     /* 8 bits: every scale is an f32 number, so the f32 product equals the rounded f64 product */
    bool proven;    /* 8 bits: verified that fmaf(d, scale_float, d * scale_rest) equals the f64 product for every
                       difference d of every channel */
    bool streaming; /* non-temporal stores */
} stki_quant_lane;

/* No alignment is required. */
typedef void (*stki_quant_fn)(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel);

typedef struct stki_quant_kernels {
    stki_quant_fn quantize[STK_QINT32 + 1]; /* by stk_qdtype; f32 to integers */
    stki_quant_fn dequantize[STK_QINT32 + 1];
} stki_quant_kernels;

extern const stki_quant_kernels stki_quant_ref, stki_quant_avx2, stki_quant_avx512;
/* The kernels of `isa`, or the reference if it has none. */
const stki_quant_kernels *stki_quant_kernels_of(enum stki_isa isa);

struct stk_quant {
    stki_counter refs;
    stk_qdtype qdtype;
    int axis;
    int64_t count, bytes;
    double *low, *high; /* NaN: not calibrated */
    int64_t *zero_points;
    stki_quant_lane lane; /* period 0, neither proven nor streaming */
    stki_counter proof;   /* state of lane.proven: enum stki_quant_proof */
    stki_device_tables device_tables;
};

enum stki_quant_proof { STKI_PROOF_NONE, STKI_PROOF_HOLDS, STKI_PROOF_FAILS };

typedef struct stki_qrange {
    double low, high;
} stki_qrange;

int64_t stki_quant_min(stk_qdtype qdtype);
int64_t stki_quant_max(stk_qdtype qdtype);
/* Computes parameters from a range; call between stki_float_enter and stki_float_leave. */
void stki_quant_parameters(stk_qdtype qdtype, stk_qscheme scheme, stki_qrange range, double *scale,
                           int64_t *zero_point);
/* Computes parameters from ranges, one per channel. */
stk_status stki_quant_from_ranges(stk_qdtype qdtype, stk_qscheme scheme, int axis, int64_t count,
                                  const stki_qrange *ranges, stk_quant **out, stk_error *err);
/* Fails with STK_E_BAD_ARG if the qdtype or qscheme is invalid. */
stk_status stki_quant_check(stk_qdtype qdtype, stk_qscheme scheme, stk_error *err);

/* quant_run.c: processes the whole tensor with the kernels of `isa`. Arguments are not checked; host memory only. */
void stki_quantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa);
void stki_dequantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa);

#endif
