/* quant.h: quantized tensors. Real numbers are stored as integers of 8 or 32 bits with a scale and a zero point, one
 * pair for the whole tensor or one for each index of one axis (the channels):
 *
 *     q = clamp(rint(x * (1.0f / (float)scale)) + zero_point, qmin, qmax)     all in f32, ties to even
 *     x = (float)(q - zero_point) * (float)scale                              per tensor
 *     x = (float)((double)(q - zero_point) * scale)                           per channel
 *
 * As in torch, values are multiplied by the reciprocal of the scale, and the zero point is added after rounding.
 * Infinities and numbers beyond the range saturate; NaN becomes the zero point. Inside the range
 * |x - dequantized| <= scale / 2, up to f32 rounding.
 *
 * A stk_quant holds the parameters. It is immutable, reference-counted, and may be used by any number of threads. A
 * stk_qtensor is a plain value: an ordinary integer tensor with its parameters.
 */
#ifndef STOKER_QUANT_H
#define STOKER_QUANT_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_quant stk_quant;

typedef enum stk_qdtype {
    STK_QINT8 = 1,  /* -128 to 127, held in i8 */
    STK_QUINT8 = 2, /* 0 to 255, held in u8 */
    STK_QINT32 = 3  /* the range of i32, held in i32 */
} stk_qdtype;

typedef enum stk_qscheme {
    STK_QUANT_AFFINE = 0,   /* maps the range [low, high], widened to include 0, to the full range of the integers */
    STK_QUANT_SYMMETRIC = 1 /* zero point in the middle (0; quint8: 128), scale from the larger of |low| and |high| */
} stk_qscheme;

#define STK_QUANT_PER_TENSOR (-1) /* passed as an axis */

/* "qint8", …; "none" for a value outside the list. Static. */
STK_API const char *stk_qdtype_name(stk_qdtype qdtype);
/* The dtype of the integers; STK_DTYPE_NONE for a value outside the list. */
STK_API stk_dtype stk_qdtype_integers(stk_qdtype qdtype);

/* ---- parameters ---- */

/* Creates parameters from `count` pairs, one for each index of `axis` (not negative), or from one pair and
 * STK_QUANT_PER_TENSOR. The arrays are copied. STK_E_BAD_ARG: a scale is not positive and finite, or is 0 as f32, or a
 * zero point is outside the range of the integers. STK_E_BAD_DIM: invalid axis. STK_E_BAD_SHAPE: invalid count. */
STK_API stk_status stk_quant_create(stk_qdtype qdtype, int axis, int64_t count, const double *scales,
                                    const int64_t *zero_points, stk_quant **out, stk_error *err);
STK_API void stk_quant_retain(stk_quant *quant);
STK_API void stk_quant_release(stk_quant *quant); /* NULL is allowed */

STK_API stk_qdtype stk_quant_dtype(const stk_quant *quant);
STK_API int stk_quant_axis(const stk_quant *quant); /* the axis of the channels, or STK_QUANT_PER_TENSOR */
STK_API int64_t stk_quant_count(const stk_quant *quant);
/* 0 <= index < count. */
STK_API double stk_quant_scale(const stk_quant *quant, int64_t index);
STK_API int64_t stk_quant_zero_point(const stk_quant *quant, int64_t index);
/* The range found by calibration, before it was widened to include 0. NaN for parameters from stk_quant_create.
 */
STK_API double stk_quant_low(const stk_quant *quant, int64_t index);
STK_API double stk_quant_high(const stk_quant *quant, int64_t index);

/* ---- calibration: parameters from samples ----
 * Samples are tensors of a real dtype (STK_E_BAD_DTYPE). STK_E_EMPTY_REDUCE: there are no elements (or none in some
 * channel). STK_E_BAD_VALUE: an element is infinite or NaN. From the range in f32, with low = min(low, 0) and
 * high = max(high, 0):
 *
 *     affine     scale = max((high - low) / (qmax - qmin), 2^-23), zero_point = clamp(qmin - rint(low / scale))
 *     symmetric  scale = max(max(-low, high) / ((qmax - qmin) / 2), 2^-23): the divisor is 127.5 for 8 bits
 */

/* From the range between the smallest and the largest element. */
STK_API stk_status stk_quant_minmax(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, stk_quant **out,
                                    stk_error *err);
/* The same for each index of `axis`. */
STK_API stk_status stk_quant_minmax_channels(const stk_tensor *samples, int axis, stk_qdtype qdtype, stk_qscheme scheme,
                                             stk_quant **out, stk_error *err);
/* From the percentiles `low` and `high` (0 to 100), interpolated linearly at position p / 100 * (n - 1) of the sorted
 * elements. Uses half a megabyte of memory, regardless of the number of elements. */
STK_API stk_status stk_quant_percentile(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, double low,
                                        double high, stk_quant **out, stk_error *err);
/* From percentiles of a histogram with `bins` equal-width bins between the smallest and the largest element,
 * interpolated linearly inside a bin: accurate to one bin, in two passes. */
STK_API stk_status stk_quant_histogram(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t bins,
                                       double low, double high, stk_quant **out, stk_error *err);
/* From the range [low * k / steps, high * k / steps], k = 1 to steps (0: 100), that gives these samples the smallest
 * mean squared error after quantizing and dequantizing. If several ranges are equally good, the widest one is used.
 * Makes `steps` passes over the samples. `mean_squared_error` may be NULL. */
STK_API stk_status stk_quant_mse(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t steps,
                                 stk_quant **out, double *mean_squared_error, stk_error *err);

/* ---- quantized tensors ---- */

typedef struct stk_qtensor {
    stk_tensor integers; /* owned; stk_qtensor_release releases it */
    stk_quant *quant;    /* a reference, released with it */
} stk_qtensor;

/* Combines an integer tensor, such as a view of `integers`, with parameters, and retains both. STK_E_BAD_DTYPE: the
 * tensor's dtype is not that of the parameters. STK_E_BAD_DIM: the tensor does not have the axis of the parameters.
 * STK_E_BAD_SHAPE: the number of channels is not the number of pairs. */
STK_API stk_status stk_qtensor_of(const stk_tensor *integers, stk_quant *quant, stk_qtensor *out, stk_error *err);
STK_API void stk_qtensor_release(stk_qtensor *qtensor); /* NULL and repeated calls are allowed */

/* Quantizes `tensor`, which must be f32 (STK_E_BAD_DTYPE) and have the axis of the parameters (STK_E_BAD_DIM), with as
 * many indices as there are pairs (STK_E_BAD_SHAPE). The integers are new memory on the tensor's device, in the
 * tensor's layout if it covers a block of memory exactly once, otherwise row-major. */
STK_API stk_status stk_quantize(const stk_tensor *tensor, stk_quant *quant, stk_qtensor *out, stk_error *err);
/* The same, written to integers of the same shape (STK_E_BAD_SHAPE) and the right dtype, with any strides.
 * STK_E_BAD_OVERLAP as in stk_tensor_copy. */
STK_API stk_status stk_quantize_into(const stk_tensor *tensor, const stk_quant *quant, stk_tensor *integers,
                                     stk_error *err);
/* Creates an f32 tensor of the real numbers. */
STK_API stk_status stk_dequantize(const stk_qtensor *qtensor, stk_tensor *out, stk_error *err);
STK_API stk_status stk_dequantize_into(const stk_tensor *integers, const stk_quant *quant, stk_tensor *out,
                                       stk_error *err);
/* Copies the integers. To read them without a copy, use the member `integers`. */
STK_API stk_status stk_int_repr(const stk_qtensor *qtensor, stk_tensor *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
