/* calibrate.h: ranges for quantisation from how often values occur. docs/reference/statistics.md defines them; the
 * ideas are
 *
 *   minmax       smallest and largest element, as torch.ao.quantization.MinMaxObserver
 *   percentile   what holds a given share of the elements, as onnxruntime.quantization.calibrate.PercentileCalibrater:
 *                asymmetric ranges leave half of the rest out on either side, symmetric ones take it off the magnitudes
 *   mse          the range whose quantised elements are nearest to the elements, by mean squared error over a
 * histogram: Sung, Shin and Hwang, Resiliency of deep neural networks under quantization, arXiv:1511.06488, as in
 *                torch.ao.quantization.HistogramObserver and the "mse" of TensorRT's pytorch-quantization
 *
 * A range becomes scale and zero point as <stoker/quant.h> says.
 */
#ifndef STKI_CALIBRATE_H
#define STKI_CALIBRATE_H

#include "quant_internal.h"
#include "stats_counts.h"

enum stki_calibration { STKI_CALIBRATE_MINMAX, STKI_CALIBRATE_PERCENTILE, STKI_CALIBRATE_MSE, STKI_CALIBRATIONS };
extern const char *const stki_calibration_words[]; /* ended by NULL */

typedef struct stki_calibrate_opts {
    int method; /* enum stki_calibration */
    stk_qdtype qdtype;
    stk_qscheme scheme;
    double percent; /* of the elements that are inside */
} stki_calibrate_opts;

/* `bins` of finite values, not empty; min and max are the smallest and the largest of them. *error: the mean squared
 * error of the bins' middles, for every method. */
stk_status stki_calibrate(const stki_calibrate_opts *opts, const stki_bins *bins, double min, double max,
                          stki_qrange *out, double *error, stk_error *err);

#endif
