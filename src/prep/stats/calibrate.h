/* calibrate.h: ranges for quantization from histograms of values. docs/reference/statistics.md defines them. The
 * methods are
 *
 *     minmax       smallest and largest element, like torch.ao.quantization.MinMaxObserver
 *     percentile   the range with a given percentage of the elements, like
 *                  onnxruntime.quantization.calibrate.PercentileCalibrater: asymmetric ranges exclude half of the rest
 *                  on either side, symmetric ranges the largest magnitudes
 *     mse          the range with the smallest mean squared error of the quantized elements, over a histogram: Sung,
 *                  Shin and Hwang, Resiliency of deep neural networks under quantization, arXiv:1511.06488, as in
 *                  torch.ao.quantization.HistogramObserver and the "mse" of TensorRT's pytorch-quantization
 *
 * Ranges are converted to scale and zero point as in <stoker/quant.h>.
 */
#ifndef STKI_CALIBRATE_H
#define STKI_CALIBRATE_H

#include "quant_internal.h"
#include "stats_counts.h"

enum stki_calibration { STKI_CALIBRATE_MINMAX, STKI_CALIBRATE_PERCENTILE, STKI_CALIBRATE_MSE, STKI_CALIBRATIONS };
extern const char *const stki_calibration_words[]; /* NULL-terminated */

typedef struct stki_calibrate_opts {
    int method; /* enum stki_calibration */
    stk_qdtype qdtype;
    stk_qscheme scheme;
    double percent; /* percentage of elements inside the range */
} stki_calibrate_opts;

/* `bins`: of finite values, not empty; min and max: the smallest and largest of them. *error: the mean squared error of
 * the bin centers, for every method. */
stk_status stki_calibrate(const stki_calibrate_opts *opts, const stki_bins *bins, double min, double max,
                          stki_qrange *out, double *error, stk_error *err);

#endif
