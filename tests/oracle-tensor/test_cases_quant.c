/* test_cases_quant.c: quantization: parameters, quantized tensors and their checks. */
#include "test_cases.h"
#include <inttypes.h>
#include <math.h>

enum { MAX_CHANNELS = 64 };

static void destroy_parameters(void *object)
{
    stk_quant_release(object);
}

static void destroy_quantized(void *object)
{
    stk_qtensor_release(object);
    free(object);
}

static const tc_type parameters_type = {"parameters", destroy_parameters};
static const tc_type quantized_type = {"quantised tensor", destroy_quantized};

/* ---- arguments ---- */

static stk_qdtype qdtype_of(tc *m, const char *text)
{
    for (stk_qdtype qdtype = STK_QINT8; qdtype <= STK_QINT32; qdtype++)
        if (!strcmp(text, stk_qdtype_name(qdtype)))
            return qdtype;
    tc_bad(m, "unknown quantized type %s", text);
    return STK_QINT8;
}

static stk_qscheme scheme_of(tc *m, const char *text)
{
    if (strcmp(text, "affine") != 0 && strcmp(text, "symmetric") != 0)
        tc_bad(m, "unknown scheme %s", text);
    return text[0] == 'a' ? STK_QUANT_AFFINE : STK_QUANT_SYMMETRIC;
}

static int reals_of(tc *m, const char *text, double *out)
{
    int count = 0;
    char *end;

    for (const char *at = text; count < MAX_CHANNELS; at = end + 1) {
        out[count++] = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            tc_bad(m, "not a list of numbers: %s", text);
        if (*end != ',')
            break;
    }
    return count;
}

static const stk_quant *parameters_of(tc *m, const char *name)
{
    return tc_object(m, name, &parameters_type);
}

static const stk_qtensor *quantized_of(tc *m, const char *name)
{
    return tc_object(m, name, &quantized_type);
}

/* ---- operations ---- */

/* Takes over one reference to the parameters. */
static stk_status quantize(tc *m, const char *name, stk_quant *quant, tc_value *out, stk_error *err)
{
    stk_qtensor *made = calloc(1, sizeof *made);
    stk_status status;

    if (!made)
        abort();
    status = stk_quantize(tc_tensor(m, name), quant, made, err);
    stk_quant_release(quant);
    if (status) {
        free(made);
        return status;
    }
    *out = (tc_value){.type = &quantized_type, .object = made};
    return STK_OK;
}

static stk_status op_quantize(tc *m, char **arg, tc_value *out, stk_error *err)
{
    double scale = tc_real(m, arg[1]);
    int64_t zero_point = tc_int(m, arg[2]);
    stk_quant *quant;
    stk_status status =
        stk_quant_create(qdtype_of(m, arg[3]), STK_QUANT_PER_TENSOR, 1, &scale, &zero_point, &quant, err);

    return status ? status : quantize(m, arg[0], quant, out, err);
}

static stk_status op_quantize_ch(tc *m, char **arg, tc_value *out, stk_error *err)
{
    double scales[MAX_CHANNELS];
    int64_t zero_points[MAX_CHANNELS];
    int count = reals_of(m, arg[1], scales);
    stk_quant *quant;
    stk_status status;

    if (tc_list(m, arg[2], zero_points, MAX_CHANNELS) != count) {
        stk_error *made = err; /* the library takes a single count for both lists */
        made->status = STK_E_BAD_SHAPE;
        strcpy(made->message, "as many scales as zero points");
        return STK_E_BAD_SHAPE;
    }
    status = stk_quant_create(qdtype_of(m, arg[4]), (int)tc_int(m, arg[3]), count, scales, zero_points, &quant, err);
    return status ? status : quantize(m, arg[0], quant, out, err);
}

static stk_status op_quantize_p(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_quant *quant = tc_object(m, arg[1], &parameters_type);

    if (!quant)
        return STK_E_BAD_ARG;
    stk_quant_retain(quant);
    return quantize(m, arg[0], quant, out, err);
}

static stk_status op_dequantize(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_qtensor *from = quantized_of(m, arg[0]);
    return from ? stk_dequantize(from, &out->tensor, err) : STK_E_BAD_ARG;
}

static stk_status op_int_repr(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_qtensor *from = quantized_of(m, arg[0]);
    return from ? stk_int_repr(from, &out->tensor, err) : STK_E_BAD_ARG;
}

static stk_status parameters(stk_status status, stk_quant *quant, tc_value *out)
{
    if (!status)
        *out = (tc_value){.type = &parameters_type, .object = quant};
    return status;
}

static stk_status op_minmax(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_quant *quant = NULL;
    stk_status status = stk_quant_minmax(tc_tensor(m, arg[0]), qdtype_of(m, arg[1]), scheme_of(m, arg[2]), &quant, err);

    return parameters(status, quant, out);
}

static stk_status op_minmax_ch(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_quant *quant = NULL;
    stk_status status = stk_quant_minmax_channels(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), qdtype_of(m, arg[2]),
                                                  scheme_of(m, arg[3]), &quant, err);

    return parameters(status, quant, out);
}

static stk_status op_percentile(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_quant *quant = NULL;
    stk_status status = stk_quant_percentile(tc_tensor(m, arg[0]), qdtype_of(m, arg[1]), scheme_of(m, arg[2]),
                                             tc_real(m, arg[3]), tc_real(m, arg[4]), &quant, err);

    return parameters(status, quant, out);
}

static stk_status op_histogram(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_quant *quant = NULL;
    stk_status status = stk_quant_histogram(tc_tensor(m, arg[0]), qdtype_of(m, arg[1]), scheme_of(m, arg[2]),
                                            tc_int(m, arg[3]), tc_real(m, arg[4]), tc_real(m, arg[5]), &quant, err);

    return parameters(status, quant, out);
}

/* ---- checks ---- */

static bool check_qmeta(tc *m, char **arg)
{
    const stk_qtensor *got = quantized_of(m, arg[0]);
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[2], shape, STK_MAX_DIMS);

    if (!got)
        return false;
    if (stk_quant_dtype(got->quant) == qdtype_of(m, arg[1]) && got->integers.ndim == ndim &&
        (ndim == 0 || !memcmp(got->integers.shape, shape, sizeof shape[0] * (size_t)ndim)))
        return true;
    return tc_say(m, "got %s %s", stk_qdtype_name(stk_quant_dtype(got->quant)),
                  tc_list_text(got->integers.ndim, got->integers.shape));
}

static bool check_qp(tc *m, char **arg)
{
    const stk_quant *got = parameters_of(m, arg[0]);
    double scales[MAX_CHANNELS], tolerance = tc_real(m, arg[2]);
    int64_t zero_points[MAX_CHANNELS];
    int count = reals_of(m, arg[1], scales), zeros = tc_list(m, arg[3], zero_points, MAX_CHANNELS);

    if (!got)
        return false;
    if (stk_quant_count(got) != count || zeros != count)
        return tc_say(m, "got %" PRId64 " pairs", stk_quant_count(got));
    for (int i = 0; i < count; i++)
        if (!(fabs(stk_quant_scale(got, i) - scales[i]) <= tolerance * fabs(scales[i])) ||
            stk_quant_zero_point(got, i) != zero_points[i])
            return tc_say(m, "pair %d: got %.17g and %" PRId64, i, stk_quant_scale(got, i),
                          stk_quant_zero_point(got, i));
    return true;
}

static bool check_qrange(tc *m, char **arg)
{
    const stk_quant *got = parameters_of(m, arg[0]);
    double lows[MAX_CHANNELS], highs[MAX_CHANNELS], tolerance = tc_real(m, arg[3]) + 1e-12;
    int count = reals_of(m, arg[1], lows);

    if (!got)
        return false;
    if (reals_of(m, arg[2], highs) != count || stk_quant_count(got) != count)
        return tc_say(m, "got %" PRId64 " ranges", stk_quant_count(got));
    for (int i = 0; i < count; i++)
        if (!(fabs(stk_quant_low(got, i) - lows[i]) <= tolerance &&
              fabs(stk_quant_high(got, i) - highs[i]) <= tolerance))
            return tc_say(m, "range %d: got %.17g to %.17g", i, stk_quant_low(got, i), stk_quant_high(got, i));
    return true;
}

static const tc_op tc_ops[] = {
    {"quantize", 4, 1, op_quantize},     {"quantize_ch", 5, 1, op_quantize_ch}, {"quantize_p", 2, 1, op_quantize_p},
    {"dequantize", 1, 1, op_dequantize}, {"int_repr", 1, 1, op_int_repr},       {"minmax", 3, 1, op_minmax},
    {"minmax_ch", 4, 1, op_minmax_ch},   {"percentile", 5, 1, op_percentile},   {"histogram", 6, 1, op_histogram},
};

static const tc_check tc_checks[] = {
    {"qmeta", 3, check_qmeta},
    {"qp", 4, check_qp},
    {"qrange", 4, check_qrange},
};

TC_REGISTER
