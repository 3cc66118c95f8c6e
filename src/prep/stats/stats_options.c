/* stats_options.c: see stats_options.h. */
#include "stats_options.h"
#include "error.h"
#include <string.h>

enum { QINT8, QUINT8 };

static const char *const per_words[] = {"auto", "tensor", "channel", NULL},
                         *const dtype_words[] = {"int8", "uint8", NULL},
                         *const symmetric_words[] = {"auto", "true", "false", NULL},
                         *const histogram_words[] = {"auto", NULL};

static const stki_need needs_percentile = {.key = "calibrate", .words = (const char *const[]){"percentile", NULL}};
static const stki_need needs_calibrate = {.key = "calibrate", .words = stki_calibration_words};

static const stki_option field_rows[] = {
    STKI_ENUM(stki_stats_opts, per, auto, per_words,
              "One result for all elements, or one per channel; auto: per channel if the field has a layout"),
    STKI_INT_WORDS(stki_stats_opts, histogram, auto, 0, 4096, histogram_words, -1, "bins",
                   "Number of bins from the smallest to the largest element; 0: none; auto: the 256 values of 8-bit "
                   "integers, none otherwise"),
    STKI_BOOL(stki_stats_opts, classes, false, "Count how often each value occurs; for labels"),
    STKI_NODE(
        stki_stats_opts, calibrate,
        "Compute quantization parameters: minmax, percentile or mse, or a list of them (docs/reference/statistics.md)",
        .examples = STKI_EXAMPLES("minmax", "[percentile, mse]")),
    STKI_DOUBLE(stki_stats_opts, percentile, 99.99, 50, 100, "percent",
                "With calibrate: percentile, the percentage of the elements inside the range",
                .need = &needs_percentile),
    STKI_ENUM(stki_stats_opts, dtype, int8, dtype_words, "Target dtype of the calibration", .need = &needs_calibrate),
    STKI_ENUM(stki_stats_opts, symmetric, auto, symmetric_words,
              "Symmetric range around zero; auto: for int8, not for uint8", .need = &needs_calibrate),
};
const stki_option_table stki_stats_field_table = STKI_OPTION_TABLE("stats.fields.NAME", field_rows);

static const stki_option rows[] = {
    STKI_STRING(
        stki_stats_section, path, NULL,
        "Path of the file, only in a job without output; with output, the file is NAME.stats.json next to the data",
        .effect = STKI_ON_NOTHING, .flags = STKI_PATH),
    STKI_NODE(stki_stats_section, fields, "Statistics by field: {NAME: {…}}; by default, all fields",
              .flags = STKI_NAMED | STKI_GIVEN, .inner = &stki_stats_field_table),
};
const stki_option_table stki_stats_table = STKI_OPTION_TABLE("stats", rows);

static stk_status read_method(const stki_node *node, unsigned *methods, stk_error *err)
{
    int method;
    const stk_status status = stki_node_word(node, stki_calibration_words, &method, err);

    if (status == STK_OK)
        *methods |= 1U << method;
    return status;
}

static stk_status read_methods(stki_stats_opts *out, stk_error *err)
{
    stk_status status = STK_OK;

    if (stki_node_is_null(out->calibrate))
        return STK_OK;
    if (out->calibrate->kind == STKI_NODE_SCALAR)
        return read_method(out->calibrate, &out->methods, err);
    if (out->calibrate->kind != STKI_NODE_LIST || out->calibrate->count == 0)
        return stki_fail_value(err, out->calibrate, "minmax, percentile or mse, or a list of them");
    for (int i = 0; i < out->calibrate->count && status == STK_OK; i++)
        status = read_method(out->calibrate->items[i], &out->methods, err);
    return status;
}

stk_status stki_stats_opts_read(const stki_node *map, stki_stats_opts *out, stk_error *err)
{
    stk_status status;

    *out = (stki_stats_opts){0};
    stki_options_defaults(&stki_stats_field_table, out);
    status = stki_options_read(&stki_stats_field_table, map, out, NULL, err);
    return status == STK_OK ? read_methods(out, err) : status;
}

stk_status stki_stats_section_read(const stki_node *stats, stki_stats_section *out, stk_error *err)
{
    stk_status status;

    *out = (stki_stats_section){0};
    status = stki_options_read(&stki_stats_table, stats, out, NULL, err);
    if (status == STK_OK && !stki_node_is_null(out->fields) && out->fields->kind != STKI_NODE_MAP)
        status = stki_fail_value(err, out->fields, "a map of fields");
    return status;
}

bool stki_stats_only_method(const stki_stats_opts *opts)
{
    return opts->methods && !(opts->methods & (opts->methods - 1));
}

bool stki_stats_calibrates_channels(const stki_stats_opts *opts)
{
    return opts->per == STKI_PER_CHANNEL || stki_stats_scheme(opts) == STK_QUANT_SYMMETRIC;
}

stk_qdtype stki_stats_qdtype(const stki_stats_opts *opts)
{
    return opts->dtype == QINT8 ? STK_QINT8 : STK_QUINT8;
}

stk_qscheme stki_stats_scheme(const stki_stats_opts *opts)
{
    return opts->symmetric == 1 || (opts->symmetric == 0 && opts->dtype == QINT8) ? STK_QUANT_SYMMETRIC
                                                                                  : STK_QUANT_AFFINE;
}

/* ---- fields ---- */

static int64_t product(const int64_t *shape, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to; i++)
        n *= shape[i];
    return n;
}

static stk_status fail(const stki_node *map, stk_error *err, const char *field, const char *what)
{
    if (map)
        return stki_fail_node(err, map, "%s", what);
    return stki_fail(err, STK_E_CONFIG, "statistics of field %s: %s", field, what);
}

/* Returns the channel axis; -1: none. For images of varying shape it must be the last one, with known size. */
static int channel_axis(const stki_sink_field *field)
{
    if (field->kind == STKI_SINK_IMAGE)
        return field->channel_axis == 3 && field->shape[2] > 0 ? 2 : -1;
    return field->channel_axis > 0 && field->channel_axis <= field->ndim ? field->channel_axis - 1 : -1;
}

stk_status stki_stats_form(const stki_stats_opts *opts, const stki_sink_field *field, const stki_node *map,
                           stki_tally_form *out, stk_error *err)
{
    const int axis = channel_axis(field);
    const bool varying = field->kind != STKI_SINK_ARRAY,
               channels = opts->per != STKI_PER_TENSOR && axis >= 0 &&
                          field->shape[axis] > 0; /* without an axis: one channel */

    *out = (stki_tally_form){.dtype = field->dtype,
                             .channels = 1,
                             .inner = 1,
                             .outer = 1,
                             .ragged = varying,
                             .opaque = field->kind == STKI_SINK_BYTES,
                             .counts = opts->histogram > 0 || opts->methods & ~(1U << STKI_CALIBRATE_MINMAX),
                             .classes = opts->classes,
                             .most_bytes = INT64_C(1) << 30};
    if (out->opaque)
        out->dtype = STK_U8;
    if (out->opaque && (opts->methods || opts->classes || opts->per == STKI_PER_CHANNEL))
        return fail(map, err, field->name, "the rows are files, and only their lengths are counted");
    if (opts->per == STKI_PER_CHANNEL && axis < 0)
        return fail(
            map, err, field->name,
            "per: channel requires a channel axis: specify the layout of the samples: source: {layout: nhwc} or "
            "{layout: nchw}");
    if (channels) {
        out->channels = field->shape[axis];
        out->outer = varying ? 1 : product(field->shape, 0, axis);
        out->inner = product(field->shape, axis + 1, field->ndim);
    } else if (!varying) {
        out->inner = product(field->shape, 0, field->ndim);
    }
    stki_tally_form_blocks(out, out->opaque ? 0 : field->largest_bytes / stk_dtype_size(out->dtype));
    return stki_tally_form_check(out, field->name, err);
}
