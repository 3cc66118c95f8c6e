/* transform.c: parses a field's list of transforms and folds it. Steps that move pixels come first (geometry.c).
 * Arithmetic is affine per channel and is folded into one multiply-add and a store (docs/internals/convert.md).
 * Coefficients are kept in double until the end. */
#include "transform.h"
#include "allocate.h"
#include "error.h"
#include "first_steps.h"
#include "parameter_file.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* torchvision's constants for images scaled to 0..1 */
static const double imagenet_mean[3] = {0.485, 0.456, 0.406}, imagenet_std[3] = {0.229, 0.224, 0.225};

enum { MAX_PARAMETERS = 4096 };

typedef struct state {
    stki_fold *fold;
    const char *field, *base_dir;
    int index; /* index of the current step */
    stk_dtype source;
    int64_t sample_channels;
    bool colored;              /* there has been a color step, and no arithmetic since */
    bool real;                 /* values are real numbers, because of the source's dtype, an affine step or a cast */
    int main_steps;            /* number of steps so far, not counting those of first_steps.h */
    const stki_node *last;     /* a step that may only be followed by steps of the same kind */
    const stki_node *cast;     /* the last cast, unless another step has followed it */
    const stki_node *quantize; /* the step that ended the list */
} state;

static bool is_real(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

/* Returns the largest value of an integer dtype, by which `scale: unit` divides. */
static double largest_value(stk_dtype dtype)
{
    switch (dtype) {
    case STK_U8:
        return UINT8_MAX;
    case STK_I8:
        return INT8_MAX;
    case STK_U16:
        return UINT16_MAX;
    case STK_I16:
        return INT16_MAX;
    case STK_U32:
        return UINT32_MAX;
    case STK_I32:
        return INT32_MAX;
    case STK_U64:
        return (double)UINT64_MAX;
    case STK_I64:
        return (double)INT64_MAX;
    default:
        return 1;
    }
}

static stk_status widen(state *s, int64_t channels, const stki_node *node, stk_error *err)
{
    stki_fold *fold = s->fold;
    double *a, *b;

    if (channels == 1 || fold->channels == channels)
        return STK_OK;
    if (s->sample_channels < 0)
        s->sample_channels = channels;
    if (s->sample_channels == 0)
        return stki_fail_node(err, node,
                              "%lld values require a channel axis: specify the layout of the samples: source: {layout: "
                              "nhwc} or {layout: nchw}",
                              (long long)channels);
    if (channels != s->sample_channels)
        return stki_fail_node(err, node, "found %lld values, expected 1 or %lld, one per channel", (long long)channels,
                              (long long)s->sample_channels);
    a = stki_zalloc_array(channels, sizeof *a);
    b = stki_zalloc_array(channels, sizeof *b);
    if (!a || !b) {
        stki_free(a);
        stki_free(b);
        return stki_fail_memory(err, channels * (int64_t)sizeof *a, "coefficients");
    }
    for (int64_t c = 0; c < channels; c++) {
        a[c] = fold->a[0];
        b[c] = fold->b[0];
    }
    stki_free(fold->a);
    stki_free(fold->b);
    fold->a = a;
    fold->b = b;
    fold->channels = channels;
    return STK_OK;
}

/* Appends y = multiply * y + add to the folded arithmetic. A single value applies to all channels. */
static stk_status affine(state *s, const stki_node *node, const double *multiply, int64_t multiply_count,
                         const double *add, int64_t add_count, stk_error *err)
{
    stk_status status;

    if (s->quantize)
        return stki_fail_node(err, node, "nothing can follow quantize");
    if (s->cast && s->fold->dtype != STK_F32)
        return stki_fail_node(
            err, node,
            "found arithmetic after cast: %s, expected cast: f32 or no cast before it (arithmetic is done in f32)",
            stk_dtype_name(s->fold->dtype));
    if (multiply_count > 1 && (status = widen(s, multiply_count, node, err)) != STK_OK)
        return status;
    if (add_count > 1 && (status = widen(s, add_count, node, err)) != STK_OK)
        return status;
    for (int64_t c = 0; c < s->fold->channels; c++) {
        double m = multiply[multiply_count > 1 ? c : 0], k = add[add_count > 1 ? c : 0];

        s->fold->a[c] *= m;
        s->fold->b[c] = s->fold->b[c] * m + k;
    }
    s->fold->arithmetic = true;
    s->fold->normalized = false;
    s->fold->dtype = STK_F32;
    s->colored = false;
    s->real = true;
    s->cast = NULL;
    return STK_OK;
}

/* Parses a number or a list with one number per channel. The caller frees *out. */
static stk_status numbers(const stki_node *node, const char *what, double **out, int64_t *count, stk_error *err)
{
    stk_status status = STK_OK;
    int64_t n = node->kind == STKI_NODE_LIST ? node->count : 1;
    double *values;

    if (node->kind == STKI_NODE_MAP || n < 1 || n > MAX_PARAMETERS)
        return stki_fail_value(err, node, "a number or a list of 1 to %d numbers", MAX_PARAMETERS);
    values = stki_zalloc_array(n, sizeof *values);
    if (!values)
        return stki_fail_memory(err, n * (int64_t)sizeof *values, what);
    for (int64_t i = 0; i < n && status == STK_OK; i++) {
        const stki_node *item = node->kind == STKI_NODE_LIST ? node->items[i] : node;

        status = stki_node_double(item, &values[i], err);
        if (status == STK_OK && !isfinite(values[i]))
            status = stki_fail_value(err, item, "a finite number");
    }
    if (status != STK_OK) {
        stki_free(values);
        return status;
    }
    *out = values;
    *count = n;
    return STK_OK;
}

/* Parses `unit` or a number to multiply by. */
static stk_status scale_factor(state *s, const stki_node *node, double *out, stk_error *err)
{
    if (node->kind == STKI_NODE_SCALAR && strcmp(node->text, "unit") == 0) {
        *out = s->real ? 1 : 1 / largest_value(s->source);
        return STK_OK;
    }
    if (stki_node_double(node, out, NULL) == STK_OK && isfinite(*out))
        return STK_OK;
    return stki_fail_value(err, node, "unit (divide by the largest value of %s) or a number to multiply by",
                           stk_dtype_name(s->source));
}

static stk_status op_scale(state *s, const stki_node *node, stk_error *err)
{
    double factor;
    stk_status status = scale_factor(s, node, &factor, err);

    return status != STK_OK ? status : affine(s, node, &factor, 1, &(double){0}, 1, err);
}

static stk_status normalize_by(state *s, const stki_node *node, const double *mean, int64_t mean_count,
                               const double *std, int64_t std_count, stk_error *err)
{
    int64_t n = mean_count > std_count ? mean_count : std_count;
    double *multiply = stki_zalloc_array(2 * n, sizeof *multiply), *add = multiply ? multiply + n : NULL;
    stk_status status = STK_OK;

    if (!multiply)
        return stki_fail_memory(err, 2 * n * (int64_t)sizeof *multiply, "coefficients");
    for (int64_t c = 0; c < n && status == STK_OK; c++) {
        double m = mean[mean_count > 1 ? c : 0], d = std[std_count > 1 ? c : 0];

        if (!(d > 0))
            status = stki_fail_node(err, node, "std: found %g, expected a number above 0%s", d,
                                    d == 0 ? " (std is 0 if all values are equal)" : "");
        multiply[c] = 1 / d;
        add[c] = -m / d;
    }
    if (status == STK_OK)
        status = affine(s, node, multiply, n, add, n, err);
    s->fold->normalized = status == STK_OK;
    stki_free(multiply);
    return status;
}

/* Applies mean and std, which refer to the stored values multiplied by `scale` (NULL: 1). */
static stk_status normalize_map(state *s, const stki_node *node, const stki_node *mean_node, const stki_node *std_node,
                                const stki_node *scale_node, stk_error *err);

static stk_status op_normalize(state *s, const stki_node *node, stk_error *err);

static bool of_a_job(const stki_node *path)
{
    return path->kind == STKI_NODE_SCALAR && strcmp(path->text, "job") == 0;
}

/* `normalize: {stats: FILE}`: uses the map in the file. If it is a statistics file, `per` selects its values. */
static stk_status normalize_by_file(state *s, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"stats", "per"};
    stki_document *document;
    const stki_node *map, *from;
    stk_status status = stki_node_known_keys(node, keys, 2, NULL);

    if (status != STK_OK)
        return stki_fail_node(err, node, "found stats and other keys, expected stats alone, or stats and per");
    if (s->source == STK_DTYPE_NONE) /* only the config is being checked, without the data */
        return affine(s, node, &(double){1}, 1, &(double){0}, 1, err);
    if (of_a_job(stki_node_get(node, "stats")))
        return stki_fail_value(err, stki_node_get(node, "stats"),
                               "a file: job is only for preparation jobs (stoker prep)");
    status = stki_parameters_open(stki_node_get(node, "stats"), s->base_dir, s->field, &document, &map, err);
    if (status != STK_OK)
        return status;
    if (stki_parameters_are_stats(document)) {
        status = stki_stats_moments(map, stki_node_get(node, "per"), &from, err);
        if (status == STK_OK)
            status = normalize_map(s, from, stki_node_get(from, "mean"), stki_node_get(from, "std"),
                                   stki_node_get(map, "scale"), err);
    } else if (stki_node_get(node, "per")) {
        status = stki_fail_node(err, stki_node_get(node, "per"),
                                "%s is not a statistics file (docs/reference/statistics.md)", map->file);
    } else {
        status = stki_node_get(map, "stats") ? stki_fail_node(err, map, "a parameter file cannot refer to another one")
                                             : op_normalize(s, map, err);
    }
    stki_document_destroy(document);
    return status;
}

/* Returns the node that names a step's parameter file; NULL: none. */
static stki_node *file_of(const stki_node *map)
{
    for (int i = 0; map->kind == STKI_NODE_MAP && i < map->count; i++) {
        stki_node *item = map->items[i];

        if ((strcmp(map->keys[i], "stats") == 0 || strcmp(map->keys[i], "file") == 0) &&
            item->kind == STKI_NODE_SCALAR && !stki_node_is_null(item) && *item->text && !of_a_job(item))
            return item;
    }
    return NULL;
}

static stk_status op_normalize(state *s, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"mean", "std", "scale", "stats", "per"};
    double factor;
    stk_status status;

    if (node->kind == STKI_NODE_SCALAR && strcmp(node->text, "imagenet") == 0) {
        factor = s->real ? 1 : 1 / largest_value(s->source);
        status = affine(s, node, &factor, 1, &(double){0}, 1, err);
        return status != STK_OK ? status : normalize_by(s, node, imagenet_mean, 3, imagenet_std, 3, err);
    }
    if (node->kind != STKI_NODE_MAP)
        return stki_fail_value(err, node, "imagenet or {mean: …, std: …, scale: …}");
    if ((status = stki_node_known_keys(node, keys, 5, err)) != STK_OK)
        return status;
    if (stki_node_get(node, "stats"))
        return normalize_by_file(s, node, err);
    if (stki_node_get(node, "per"))
        return stki_fail_key(err, stki_node_get(node, "per"), "requires stats: FILE, whose statistics it selects");
    return normalize_map(s, node, stki_node_get(node, "mean"), stki_node_get(node, "std"), stki_node_get(node, "scale"),
                         err);
}

static stk_status normalize_map(state *s, const stki_node *node, const stki_node *mean_node, const stki_node *std_node,
                                const stki_node *scale_node, stk_error *err)
{
    double *mean = NULL, *std = NULL, factor;
    int64_t mean_count, std_count;
    stk_status status;

    if (!mean_node || !std_node)
        return stki_fail_node(err, node, "%s is missing", mean_node ? "std" : "mean");
    if (!scale_node && !s->real)
        return stki_fail_node(err, node,
                              "%s samples need scale: unit (mean and std are for values from 0 to 1) or a number to "
                              "multiply by (1: mean and std are for the stored values)",
                              stk_dtype_name(s->source));
    if (scale_node) {
        if ((status = scale_factor(s, scale_node, &factor, err)) != STK_OK ||
            (status = affine(s, scale_node, &factor, 1, &(double){0}, 1, err)) != STK_OK)
            return status;
    }
    status = numbers(mean_node, "mean", &mean, &mean_count, err);
    if (status == STK_OK)
        status = numbers(std_node, "std", &std, &std_count, err);
    if (status == STK_OK && mean_count > 1 && std_count > 1 && mean_count != std_count)
        status = stki_fail_node(err, node, "found %lld means and %lld stds, expected the same number",
                                (long long)mean_count, (long long)std_count);
    if (status == STK_OK)
        status = normalize_by(s, node, mean, mean_count, std, std_count, err);
    stki_free(mean);
    stki_free(std);
    return status;
}

/* Applies the scale, zero point and dtype of a map. */
static stk_status quantize_map(state *s, const stki_node *node, stk_error *err);

static stk_status op_quantize(state *s, const stki_node *node, stk_error *err);

/* `quantize: {stats: FILE, method: mse}`, `quantize: {file: FILE}` */
static stk_status quantize_by_file(state *s, const stki_node *node, const stki_node *path, stk_error *err)
{
    static const char *const keys[] = {"stats", "file", "method"};
    const stki_node *method = stki_node_get(node, "method");
    stki_document *document;
    const stki_node *map;
    stk_status status;

    if (stki_node_known_keys(node, keys, 3, NULL) != STK_OK || node->count > (method ? 2 : 1))
        return stki_fail_node(err, node, "found %s and other keys, expected %s alone, or %s and method", path->key,
                              path->key, path->key);
    if (s->source == STK_DTYPE_NONE) {
        s->quantize = node; /* the file determines the dtype, which is unknown here */
        s->fold->dtype = STK_DTYPE_NONE;
        return STK_OK;
    }
    status = stki_parameters_open(path, s->base_dir, s->field, &document, &map, err);
    if (status != STK_OK)
        return status;
    if (stki_parameters_are_stats(document)) {
        status = stki_stats_calibration(map, method ? method : node, &map, err);
        status = status != STK_OK ? status : quantize_map(s, map, err);
    } else if (method) {
        status = stki_fail_node(err, method, "%s is not a statistics file (docs/reference/statistics.md)", map->file);
    } else {
        status = stki_node_get(map, "file") || stki_node_get(map, "stats")
                     ? stki_fail_node(err, map, "a parameter file cannot refer to another one")
                     : op_quantize(s, map, err);
    }
    s->quantize = node;
    stki_document_destroy(document);
    return status;
}

/* `quantize: {calibrate: mse}` is for preparation jobs, which replace it with scale and zero point before rows are
 * made. */
static stk_status quantize_later(state *s, const stki_node *node, stk_error *err)
{
    if (s->source != STK_DTYPE_NONE)
        return stki_fail_key(err, stki_node_get(node, "calibrate"),
                             "only preparation jobs (stoker prep) compute parameters; in the config of a loader, use "
                             "the job's file: quantize: {stats: NAME.stats.json}");
    s->quantize = node;
    s->fold->dtype = STK_DTYPE_NONE;
    return STK_OK;
}

static stk_status op_quantize(state *s, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"scale", "zero_point", "dtype", "file", "stats", "method", "calibrate"};
    const stki_node *path;
    stk_status status;

    if (stki_node_get(node, "calibrate"))
        return quantize_later(s, node, err);
    if ((status = stki_node_known_keys(node, keys, 7, err)) != STK_OK)
        return status;
    path = stki_node_get(node, "stats") ? stki_node_get(node, "stats") : stki_node_get(node, "file");
    if (path)
        return quantize_by_file(s, node, path, err);
    if (stki_node_get(node, "method"))
        return stki_fail_key(err, stki_node_get(node, "method"), "requires stats: FILE, which has the parameters");
    return quantize_map(s, node, err);
}

static stk_status quantize_map(state *s, const stki_node *node, stk_error *err)
{
    const stki_node *scale_node = stki_node_get(node, "scale"), *zero_node = stki_node_get(node, "zero_point"),
                    *dtype_node = stki_node_get(node, "dtype");
    stk_dtype dtype = STK_I8;
    int64_t count, zero = 0, low, high;
    double *scale = NULL;
    stk_status status = STK_OK;

    if (!scale_node)
        return stki_fail_node(err, node, "scale is missing");
    if (dtype_node) {
        dtype = dtype_node->kind == STKI_NODE_SCALAR ? stk_dtype_find(dtype_node->text) : STK_DTYPE_NONE;
        if (dtype != STK_I8 && dtype != STK_U8 && dtype != STK_I32)
            return stki_fail_value(err, dtype_node, "int8, uint8 or int32");
    }
    low = dtype == STK_I8 ? INT8_MIN : dtype == STK_U8 ? 0 : INT32_MIN;
    high = dtype == STK_I8 ? INT8_MAX : dtype == STK_U8 ? UINT8_MAX : INT32_MAX;
    if (zero_node && zero_node->kind == STKI_NODE_LIST)
        return stki_fail_value(err, zero_node,
                               "one zero point for all channels: calibrate with symmetric: true or per: tensor");
    if (zero_node && (status = stki_node_int(zero_node, &zero, err)) != STK_OK)
        return status;
    if (zero < low || zero > high)
        return stki_fail_node(err, zero_node, "zero_point: found %lld, expected %lld to %lld", (long long)zero,
                              (long long)low, (long long)high);
    if ((status = numbers(scale_node, "scale", &scale, &count, err)) != STK_OK)
        return status;
    for (int64_t c = 0; c < count && status == STK_OK; c++) {
        if (!((float)scale[c] > 0) || !isfinite(1.0f / (float)scale[c]) || !isfinite((float)scale[c]))
            status = stki_fail_node(err, scale_node,
                                    "found %g, expected a positive number that float32 can represent, and whose "
                                    "reciprocal it can represent",
                                    scale[c]);
        scale[c] = (double)(1.0f / (float)scale[c]); /* multiplies by the f32 reciprocal, like torch */
    }
    if (status == STK_OK)
        status = affine(s, node, scale, count, &(double){0}, 1, err);
    stki_free(scale);
    s->fold->quantized = true;
    s->fold->zero_point = (int32_t)zero;
    s->fold->dtype = dtype;
    s->quantize = node;
    return status;
}

static stk_status op_cast(state *s, const stki_node *node, stk_error *err)
{
    stk_dtype dtype = node->kind == STKI_NODE_SCALAR ? stk_dtype_find(node->text) : STK_DTYPE_NONE;

    if (dtype == STK_DTYPE_NONE)
        return stki_fail_value(err, node, "a dtype such as float32 or f32");
    if (s->quantize || s->cast)
        return stki_fail_node(err, node, s->cast ? "only arithmetic can follow cast" : "nothing can follow quantize");
    s->fold->dtype = dtype;
    s->fold->cast = true;
    s->real = s->real || is_real(dtype);
    s->cast = node;
    return STK_OK;
}

enum { DRAW_NAME = 320 };

/* Returns the default name of a step's random draw: FIELD/INDEX. */
static const char *default_draw(const state *s, char *buffer)
{
    snprintf(buffer, DRAW_NAME, "%s/%d", s->field, s->index);
    return buffer;
}

static stk_status op_geometry(state *s, const stki_node *node, stk_error *err)
{
    char name[DRAW_NAME];

    if (s->fold->erase.node)
        return stki_fail_node(err, node, "found %s after %s, expected it before: steps that move pixels come first",
                              node->key, s->fold->erase.node->key);
    if (s->fold->arithmetic || s->fold->cast)
        return stki_fail_node(
            err, node, "found %s after arithmetic or cast, expected it before them: steps that move pixels come first",
            node->key);
    return stki_geometry_read(&s->fold->geometry, node->key, node, default_draw(s, name), err);
}

/* After a color step, values are f32 in the units of the stored values. */
static stk_status op_color(state *s, const stki_node *node, stk_error *err)
{
    char name[DRAW_NAME];

    if (s->fold->cast || s->fold->erase.node || (s->fold->arithmetic && !s->colored))
        return stki_fail_node(err, node, "found %s after arithmetic, erasing or cast, expected it before them",
                              node->key);
    s->fold->arithmetic = s->colored = true;
    s->fold->dtype = STK_F32;
    return stki_colors_read(&s->fold->colors, node->key, node, default_draw(s, name), err);
}

static stk_status op_erase(state *s, const stki_node *node, stk_error *err)
{
    char name[DRAW_NAME];
    stki_fold *fold = s->fold;
    stk_status status;

    if (s->quantize || s->cast)
        return stki_fail_node(err, node, "found %s after %s, expected it before", node->key,
                              s->cast ? "cast" : "quantize");
    if (fold->channels > STKI_LATE_CHANNELS)
        return stki_fail_node(err, node, "found %lld channels, expected at most %d", (long long)fold->channels,
                              STKI_LATE_CHANNELS);
    status = stki_erase_read(&fold->erase, node->key, node, default_draw(s, name), err);
    fold->erase.before_count = (int)fold->channels;
    memcpy(fold->erase.before_a, fold->a, (size_t)fold->channels * sizeof *fold->a);
    memcpy(fold->erase.before_b, fold->b, (size_t)fold->channels * sizeof *fold->b);
    return status;
}

static stk_status op_mix(state *s, const stki_node *node, stk_error *err)
{
    char name[DRAW_NAME];

    s->last = node;
    return stki_mix_read(&s->fold->mix, node->key, node, default_draw(s, name), err);
}

static stk_status op_one_hot(state *s, const stki_node *node, stk_error *err)
{
    if (s->main_steps > 1 && !s->fold->one_hot.node)
        return stki_fail_node(err, node, "found a step before %s, expected it to come first", node->key);
    s->last = node;
    return stki_one_hot_read(&s->fold->one_hot, node->key, node, err);
}

static const struct {
    stki_operation operation;
    stk_status (*read)(state *s, const stki_node *node, stk_error *err);
    bool folds;
} operations[] = {
    {{"cast", {"float32", "float16"}}, op_cast, true},
    {{"cutmix", {"{alpha: 1}", "{alpha: 1, p: 0.5}"}}, op_mix, false},
    {{"cutout", {"3", "{size: 3, fill: 9}"}}, op_erase, false},
    {{"label_smoothing", {"0.1", "0.2"}}, op_one_hot, false},
    {{"mixup", {"{alpha: 0.2}", "{alpha: 0.2, lambda: pair}"}}, op_mix, false},
    {{"normalize", {"imagenet", "{mean: [0.5, 0.5, 0.5], std: [0.2, 0.3, 0.2], scale: unit}"}}, op_normalize, true},
    {{"one_hot", {"100", "{num_classes: 100, label_smoothing: 0.1}"}}, op_one_hot, false},
    {{"quantize", {"{scale: 0.5, zero_point: 3, dtype: int8}", "{scale: 0.25, zero_point: 0, dtype: uint8}"}},
     op_quantize,
     true},
    {{"random_erasing", {"0.5", "{p: 1, value: 9}"}}, op_erase, false},
    {{"scale", {"0.5", "2"}}, op_scale, true}};
enum { OPERATIONS = sizeof operations / sizeof operations[0], MOST_NAMES = 64 };

bool stki_fold_takes(const char *operation)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(operation, operations[i].operation.name) == 0)
            return operations[i].folds;
    return false;
}

const stki_operation *stki_fold_operation(int index)
{
    const stki_operation *(*const lists[])(int) = {stki_first_steps_operation, stki_geometry_operation,
                                                   stki_colors_operation};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (int k = 0; lists[i](k); k++)
            if (index-- == 0)
                return lists[i](k);
    return index < OPERATIONS ? &operations[index].operation : NULL;
}

static int all_names(const char **names)
{
    int count = 0;

    for (; stki_fold_operation(count); count++)
        names[count] = stki_fold_operation(count)->name;
    return count;
}

static bool is_operation(const char *text)
{
    const char *names[MOST_NAMES];
    const int count = all_names(names);

    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

static stk_status unknown(const stki_node *node, stk_error *err)
{
    const char *names[MOST_NAMES], *near;
    char known[1024] = "";
    const int count = all_names(names);
    size_t used = 0;

    near = stki_nearest_word(node->keys[0], names, count);
    for (int i = 0; i < count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    return stki_fail_node(err, node, "unknown operation %s%s%s%s (known: %s)", node->keys[0],
                          near ? ", did you mean " : "", near ? near : "", near ? "?" : "", known);
}

static stk_status step(state *s, const stki_node *node, stk_error *err)
{
    if (node->kind == STKI_NODE_SCALAR && is_operation(node->text))
        return stki_fail_value(err, node, "the step with its parameters: {%s: …}, or {%s: {}} if it has none",
                               node->text, node->text);
    if (node->kind != STKI_NODE_MAP || node->count != 1)
        return stki_fail_value(err, node, "one operation with its parameters, such as normalize: imagenet");
    if (s->last && strcmp(node->keys[0], s->fold->mix.node ? "mixup" : "label_smoothing") != 0 &&
        (s->fold->one_hot.node || strcmp(node->keys[0], "cutmix") != 0))
        return stki_fail_node(err, node, "found %s after %s, which must come last", node->keys[0], s->last->key);
    if (stki_first_steps_know(node->keys[0])) {
        if (s->main_steps > 0)
            return stki_fail_node(err, node, "found %s after other steps, expected it first", node->keys[0]);
        return stki_first_steps_check(node->keys[0], node->items[0], err);
    }
    s->main_steps++;
    if (stki_geometry_knows(node->keys[0]))
        return op_geometry(s, node->items[0], err);
    if (stki_colors_know(node->keys[0]))
        return op_color(s, node->items[0], err);
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(node->keys[0], operations[i].operation.name) == 0)
            return operations[i].read(s, node->items[0], err);
    return unknown(node, err);
}

stki_node *stki_transforms_path(const stki_node *transforms, int index)
{
    for (int i = 0; transforms->kind == STKI_NODE_LIST && i < transforms->count; i++) {
        const stki_node *node = transforms->items[i];
        const bool reads = node->kind == STKI_NODE_MAP && node->count == 1 &&
                           (strcmp(node->keys[0], "normalize") == 0 || strcmp(node->keys[0], "quantize") == 0);
        stki_node *path = reads ? file_of(node->items[0]) : NULL;

        if (path && index-- == 0)
            return path;
    }
    return NULL;
}

stk_status stki_fold_create(const stki_field_config *config, stk_dtype source, int64_t channels, stki_fold **out,
                            stk_error *err)
{
    const stki_node *transforms = config->transforms;
    state s = {.field = config->name,
               .base_dir = config->base_dir,
               .source = source,
               .sample_channels = channels,
               .real = is_real(source) || source == STK_DTYPE_NONE};
    stk_status status = STK_OK;

    s.fold = stki_zalloc(sizeof *s.fold);
    if (!s.fold)
        return stki_fail_memory(err, sizeof *s.fold, "a transform list");
    s.fold->channels = 1;
    s.fold->dtype = source;
    s.fold->a = stki_zalloc(sizeof(double));
    s.fold->b = stki_zalloc(sizeof(double));
    if (!s.fold->a || !s.fold->b)
        status = stki_fail_memory(err, sizeof(double), "coefficients");
    else
        s.fold->a[0] = 1;
    if (status == STK_OK && transforms && transforms->kind != STKI_NODE_LIST &&
        !(transforms->kind == STKI_NODE_SCALAR && !*transforms->text))
        status = stki_fail_value(err, transforms, "a list of operations: [{normalize: imagenet}]");
    for (int i = 0; status == STK_OK && transforms && i < transforms->count; i++, s.index = i)
        status = step(&s, transforms->items[i], err);
    if (status == STK_OK && s.fold->geometry.box_field && !s.fold->geometry.resizes)
        status =
            stki_fail_node(err, transforms, "crop: {field: …} needs a resize after it: the boxes have different sizes");
    if (status != STK_OK) {
        stki_fold_destroy(s.fold);
        return status;
    }
    *out = s.fold;
    return STK_OK;
}

void stki_fold_destroy(stki_fold *fold)
{
    if (!fold)
        return;
    stki_free(fold->a);
    stki_free(fold->b);
    stki_free(fold);
}
