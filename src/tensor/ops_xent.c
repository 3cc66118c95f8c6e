/* ops_xent.c: cross entropy of class scores against class indices or class probabilities. It is computed in f64, sample
 * by sample, and rounded once. With lp the log-softmax of a sample, w the weights, C classes and e the smoothing, its
 * loss is
 *
 *     (1 - e) * (-w[t] lp[t]) + e / C * (-sum_c w[c] lp[c])     for a class t
 *     -sum_c w[c] ((1 - e) p[c] + e / C) lp[c]                  for probabilities p
 */
#include "dtype.h"
#include "error.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "ops_softmax.h"
#include "profile_scope.h"
#include "strided.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DEFAULT_IGNORE = -100 };

struct call {
    stk_cross_entropy_opts opts;
    bool probabilities;
    int class_axis; /* class axis of the logits */
    int64_t classes;
    int ndim; /* ndim and shape: the logits' shape without the class axis, one element per sample */
    int64_t shape[STK_MAX_DIMS];
    /* set before the samples are processed */
    stki_scores scores;
    stki_cast index, probability, weight, store;
    int64_t probability_step, weight_step;
    const char *weights; /* NULL: all 1 */
    double sum, divisor;
};

/* ---- one sample ---- */

static double weight_of(const struct call *call, int64_t class)
{
    double weight = 1;

    if (call->weights)
        stki_cast_row(&call->weight, &weight, sizeof weight, call->weights + class * call->weight_step, 0, 1);
    return weight;
}

static void load_weights(const struct call *call, double *out, int64_t first, int64_t n)
{
    if (call->weights)
        stki_cast_row(&call->weight, out, sizeof *out, call->weights + first * call->weight_step, call->weight_step, n);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = 1;
}

/* sum_c w[c] q[c] lp[c], where q is the smoothed probability, or 1 without probabilities. */
static double weighted_sum(const struct call *call, const char *probabilities)
{
    double lp[STKI_SOFTMAX_BLOCK], w[STKI_SOFTMAX_BLOCK], q[STKI_SOFTMAX_BLOCK], sum = 0;
    double keep = 1 - call->opts.label_smoothing, spread = call->opts.label_smoothing / (double)call->classes;

    for (int64_t first = 0; first < call->classes; first += STKI_SOFTMAX_BLOCK) {
        int64_t left = call->classes - first, n = left < STKI_SOFTMAX_BLOCK ? left : STKI_SOFTMAX_BLOCK;
        stki_scores_log_softmax(&call->scores, lp, first, n);
        load_weights(call, w, first, n);
        if (probabilities)
            stki_cast_row(&call->probability, q, sizeof *q, probabilities + first * call->probability_step,
                          call->probability_step, n);
        for (int64_t i = 0; i < n; i++)
            sum += probabilities ? w[i] * (q[i] * keep + spread) * lp[i] : w[i] * lp[i];
    }
    return sum;
}

static stk_status index_loss(struct call *call, const char *logits, const char *target, double *loss, stk_error *err)
{
    double lp, smoothing = call->opts.label_smoothing;
    int64_t class;

    stki_cast_row(&call->index, &class, sizeof class, target, 0, 1);
    *loss = 0;
    if (class == call->opts.ignore_index)
        return STK_OK;
    if (class < 0 || class >= call->classes)
        return stki_fail(err, STK_E_BAD_INDEX,
                         "cross_entropy: target %" PRId64 " is outside [0, %" PRId64 "), the range of classes", class,
                         call->classes);
    stki_scores_measure(&call->scores, logits);
    stki_scores_log_softmax(&call->scores, &lp, class, 1);
    *loss = -weight_of(call, class) * lp;
    if (smoothing > 0)
        *loss = (1 - smoothing) * *loss - smoothing / (double)call->classes * weighted_sum(call, NULL);
    call->divisor += weight_of(call, class);
    return STK_OK;
}

static stk_status sample_loss(struct call *call, const char *logits, const char *target, double *loss, stk_error *err)
{
    if (!call->probabilities)
        return index_loss(call, logits, target, loss, err);
    stki_scores_measure(&call->scores, logits);
    *loss = -weighted_sum(call, target);
    call->divisor += 1;
    return STK_OK;
}

/* ---- all samples ---- */

static void prepare(struct call *call, const stk_tensor *out, const stk_tensor *logits, const stk_tensor *target,
                    const stk_tensor *weight)
{
    stki_scores_init(&call->scores, logits->dtype, call->classes, logits->strides[call->class_axis]);
    stki_cast_init(&call->index, STK_I64, target->dtype, false);
    stki_cast_init(&call->probability, STK_F64, target->dtype, false);
    call->probability_step = call->probabilities ? target->strides[call->class_axis] : 0;
    call->weights = weight ? weight->data : NULL;
    call->weight_step = weight ? weight->strides[0] : 0;
    stki_cast_init(&call->weight, STK_F64, logits->dtype, false);
    stki_cast_init(&call->store, out->dtype, STK_F64, false);
    call->sum = call->divisor = 0;
}

/* Strides over the samples; 0 for an output without axes. */
static void sample_strides(const struct call *call, const stk_tensor *tensor, bool has_classes, int64_t *strides)
{
    for (int i = 0; i < call->ndim; i++)
        strides[i] = tensor->ndim == 0 ? 0 : tensor->strides[has_classes && i >= call->class_axis ? i + 1 : i];
}

static stk_status run_samples(struct call *call, const stk_tensor *const *tensors, stk_error *err)
{
    const stk_tensor *out = tensors[0], *logits = tensors[1], *target = tensors[2];
    int64_t strides[3][STK_MAX_DIMS];
    stki_strided plan;
    stki_walk walk;

    sample_strides(call, out, false, strides[0]);
    sample_strides(call, logits, true, strides[1]);
    sample_strides(call, target, call->probabilities, strides[2]);
    stki_strided_plan(&plan, 3, (const int64_t *const[]){strides[0], strides[1], strides[2]}, call->ndim, call->shape,
                      STKI_KEEP_ORDER);
    if (!stki_walk_begin(&walk, &plan, 0, (const void *const[]){out->data, logits->data, target->data}))
        return STK_OK;
    do {
        double loss;
        stk_status status = sample_loss(call, walk.at[1], walk.at[2], &loss, err);
        if (status != STK_OK)
            return status;
        call->sum += loss;
        if (call->opts.reduction == STK_REDUCTION_NONE)
            stki_cast_row(&call->store, walk.at[0], 0, &loss, 0, 1);
    } while (stki_walk_next(&walk));
    return STK_OK;
}

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    struct call *call = context;
    double total;
    stk_status status;

    prepare(call, tensors[0], tensors[1], tensors[2], tensors[3]);
    status = run_samples(call, tensors, err);
    if (status != STK_OK || call->opts.reduction == STK_REDUCTION_NONE)
        return status;
    total = call->opts.reduction == STK_REDUCTION_MEAN ? call->sum / call->divisor : call->sum;
    stki_cast_row(&call->store, tensors[0]->data, 0, &total, 0, 1);
    return STK_OK;
}

/* ---- checks ---- */

static stk_status read_opts(struct call *call, const stk_cross_entropy_opts *opts, stk_error *err)
{
    stk_cross_entropy_opts *own = &call->opts;

    if (opts && opts->struct_size < sizeof opts->struct_size)
        return stki_fail(err, STK_E_BAD_ARG,
                         "cross_entropy: opts.struct_size: found %" PRIu32 ", expected sizeof(stk_cross_entropy_opts)",
                         opts->struct_size);
    if (opts)
        memcpy(own, opts, opts->struct_size < sizeof *own ? opts->struct_size : sizeof *own);
    if (!own->has_ignore_index)
        own->ignore_index = DEFAULT_IGNORE;
    if (!(own->label_smoothing >= 0 && own->label_smoothing <= 1))
        return stki_fail(err, STK_E_BAD_ARG, "cross_entropy: label_smoothing is %g, not in [0, 1]",
                         own->label_smoothing);
    if ((int)own->reduction < STK_REDUCTION_MEAN || own->reduction > STK_REDUCTION_NONE)
        return stki_fail(err, STK_E_BAD_ARG, "cross_entropy: invalid reduction %d", (int)own->reduction);
    return STK_OK;
}

static stk_status check_dtypes(struct call *call, const stk_tensor *logits, const stk_tensor *target, stk_error *err)
{
    const stk_tensor *weight = call->opts.weight;

    if (stki_dtype_category(logits->dtype) != STKI_CATEGORY_REAL)
        return stki_fail(err, STK_E_BAD_DTYPE, "cross_entropy: the logits are %s, expected a real dtype",
                         stk_dtype_name(logits->dtype));
    call->probabilities = stki_dtype_category(target->dtype) == STKI_CATEGORY_REAL;
    if (!call->probabilities && target->dtype != STK_I64 && target->dtype != STK_U8)
        return stki_fail(err, STK_E_BAD_DTYPE, "cross_entropy: the targets are %s, expected i64, u8 or a real dtype",
                         stk_dtype_name(target->dtype));
    if (weight && weight->dtype != logits->dtype)
        return stki_fail(err, STK_E_BAD_DTYPE,
                         "cross_entropy: the weights are %s, expected %s, the dtype of the logits",
                         stk_dtype_name(weight->dtype), stk_dtype_name(logits->dtype));
    return STK_OK;
}

static stk_status check_shapes(struct call *call, const stk_tensor *logits, const stk_tensor *target, stk_error *err)
{
    const stk_tensor *weight = call->opts.weight;
    const int64_t *wanted = call->probabilities ? logits->shape : call->shape;
    int wanted_ndim = call->probabilities ? logits->ndim : logits->ndim - 1;
    bool same = target->ndim == wanted_ndim;

    if (logits->ndim == 0)
        return stki_fail(err, STK_E_BAD_SHAPE, "cross_entropy: the logits have no class axis");
    call->class_axis = logits->ndim > 1 ? 1 : 0;
    call->classes = logits->shape[call->class_axis];
    for (int i = 0; i < logits->ndim; i++)
        if (i != call->class_axis)
            call->shape[call->ndim++] = logits->shape[i];
    if (weight && (weight->ndim != 1 || weight->shape[0] != call->classes))
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "cross_entropy: the weights have shape %s, expected [%" PRId64 "], one per class",
                         STKI_SHAPE(weight->ndim, weight->shape), call->classes);
    for (int i = 0; i < wanted_ndim && same; i++)
        same = target->shape[i] == wanted[i];
    if (!same)
        return stki_fail(err, STK_E_BAD_SHAPE, "cross_entropy: the %s have shape %s, expected %s",
                         call->probabilities ? "probabilities" : "class indices",
                         STKI_SHAPE(target->ndim, target->shape), STKI_SHAPE(wanted_ndim, wanted));
    return STK_OK;
}

static stk_status begin_call(struct call *call, const stk_tensor *logits, const stk_tensor *target,
                             const stk_cross_entropy_opts *opts, stk_error *err)
{
    stk_status status;

    *call = (struct call){.ndim = 0};
    status = read_opts(call, opts, err);
    status = status != STK_OK ? status : stki_check_computable(logits, "cross_entropy", err);
    status = status != STK_OK ? status : stki_check_computable(target, "cross_entropy", err);
    if (status == STK_OK && call->opts.weight)
        status = stki_check_computable(call->opts.weight, "cross_entropy", err);
    status = status != STK_OK
                 ? status
                 : stki_check_one_device((const stk_tensor *const[]){logits, target, call->opts.weight}, 3, err);
    status = status != STK_OK ? status : check_dtypes(call, logits, target, err);
    return status != STK_OK ? status : check_shapes(call, logits, target, err);
}

stk_status stk_tensor_cross_entropy(const stk_tensor *logits, const stk_tensor *target,
                                    const stk_cross_entropy_opts *opts, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("cross_entropy");
    struct call call;
    stk_tensor made;
    stk_status status = begin_call(&call, logits, target, opts, err);

    if (status != STK_OK)
        return status;
    status = stk_tensor_empty(logits->dtype, call.opts.reduction == STK_REDUCTION_NONE ? call.ndim : 0, call.shape,
                              stki_tensor_device(logits), &made, err);
    if (status != STK_OK)
        return status;
    status = stki_run_on_host((const stk_tensor *const[]){&made, logits, target, call.opts.weight}, 4, 1, run_call,
                              &call, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}
