/* config_fields.c: reads the fields of a data set. Contains the option tables of `dataset.fields.NAME` and of its
 * `synthetic`. */
#include "allocate.h"
#include "checked.h"
#include "config.h"
#include "error.h"
#include "format_options.h"
#include "prefetch.h"
#include "rows_images.h"
#include "rows_padded.h"
#include "views.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST (INT64_C(1) << 40)

static const char *const form_words[] = {"memory", "scratch", "block", NULL};

typedef struct synthetic_options {
    int64_t count, seed, min_length, distinct, read_time;
    const char *dtype;
    const stki_node *shape;
    int form;
} synthetic_options;

static const stki_option synthetic_rows[] = {
    STKI_INT(synthetic_options, count, 65536, 1, MOST, "samples", "Number of samples", .flags = STKI_BY_VALUE),
    STKI_NODE(synthetic_options, shape, "Shape of a sample, a list; []: one number",
              .examples = STKI_EXAMPLES("[4]", "[2, 2]"), .flags = STKI_BY_VALUE),
    STKI_STRING(synthetic_options, dtype, "u8", "Dtype of a sample", .examples = STKI_EXAMPLES("uint8", "float32"),
                .flags = STKI_BY_VALUE),
    STKI_INT(synthetic_options, seed, 0, 0, MOST, "", "Seed of the values"),
    STKI_ENUM(synthetic_options, form, memory, form_words,
              "The kind of reader to emulate: mapped memory, copies, or reference-counted blocks"),
    STKI_INT(synthetic_options, min_length, -1, -1, MOST, "",
             "Minimum length of the first axis, which varies up to its length in shape; -1: fixed"),
    STKI_INT(synthetic_options, distinct, 0, 0, MOST, "samples",
             "Number of different samples in memory; 0: as many as fit into 64 MiB"),
    STKI_TIME(synthetic_options, read_time, 0s, 0, INT64_MAX, "Duration of every read", .effect = STKI_ON_NOTHING),
};
static const stki_option_table synthetic_table = STKI_OPTION_TABLE("dataset.fields.NAME.synthetic", synthetic_rows);

typedef struct field_options {
    const stki_node *path, *synthetic, *source, *transforms, *views, *pad, *ragged;
    const char *dtype, *layout;
} field_options;

static const stki_option field_rows[] = {
    STKI_NODE(field_options, path,
              "A file, a folder, a pattern such as data/*.npy, or a list of them, whose samples are concatenated",
              .flags = STKI_PATH),
    STKI_NODE(field_options, synthetic, "Generated data instead of a file: {count, shape, dtype, …}",
              .flags = STKI_GIVEN, .inner = &synthetic_table, .instead_of = "path",
              STKI_C_PARSED(stk_field_opts, synthetic)),
    STKI_NODE(field_options, source,
              "Properties that the file does not record, and how to read it: {name: image, layout: nhwc}",
              .inner = &stki_source_table, STKI_C_PARSED(stk_field_opts, source)),
    STKI_STRING(field_options, dtype, NULL, "Dtype of the batch; by default that of the transforms' result",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("float32", "float16")),
    STKI_STRING(field_options, layout, NULL,
                "Layout of the batch: nchw, nhwc or channels_last (NCHW shape over NHWC memory)",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("nhwc", "nchw"), STKI_C(stk_field_opts, layout)),
    STKI_NODE(field_options, transforms,
              "A list of steps: geometry (crop, resize, random_horizontal_flip, …), then colors, then arithmetic "
              "(normalize, quantize, …); docs/reference/transforms.md",
              .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("[{normalize: imagenet}]", "[{scale: 0.5}]"),
              .path_in = stki_transforms_path, STKI_C_PARSED(stk_field_opts, transforms)),
    STKI_NODE(field_options, pad,
              "Pad ragged rows to one length and add a mask: batch, a number, or {to, value, truncate}",
              .flags = STKI_GIVEN, .inner = &stki_pad_table, STKI_C_PARSED(stk_field_opts, pad)),
    STKI_NODE(field_options, ragged,
              "Deliver images of different shapes as values, offsets and shapes: true, or {max_bytes}",
              .flags = STKI_GIVEN, .inner = &stki_ragged_table, STKI_C_PARSED(stk_field_opts, ragged)),
    STKI_NODE(field_options, views,
              "Additional tensors that are ranges of each row's first axis: {inputs: [0, -1], targets: [1, null]}",
              .examples = STKI_EXAMPLES("{first: [0, 1]}", "{first: [1, 2]}"), STKI_C_PARSED(stk_field_opts, views)),
};
const stki_option_table stki_field_table = STKI_OPTION_TABLE("dataset.fields.NAME", field_rows);

static stk_status read_paths(stki_field_config *field, const stki_node *node, stk_error *err)
{
    const int count = node->kind == STKI_NODE_LIST ? node->count : 1;
    const char **paths;
    stk_status status = STK_OK;

    if (node->kind == STKI_NODE_MAP || count == 0)
        return stki_fail_value(err, node, "a path or a list of paths");
    field->paths = paths = stki_zalloc_array(count, sizeof *paths);
    if (!paths)
        return stki_fail_memory(err, count * (int64_t)sizeof *paths, "a list of paths");
    for (field->path_count = 0; field->path_count < count && status == STK_OK; field->path_count++)
        status = stki_node_file(node->kind == STKI_NODE_LIST ? node->items[field->path_count] : node,
                                &paths[field->path_count], err);
    return status;
}

/* Names are restricted, because they become parts of option paths and of tensor names such as "field.part". */
static bool good_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(name);
}

static stk_status read_field(stki_loader_config *config, const char *name, const stki_node *node,
                             stki_field_config *field, stk_error *err)
{
    field_options options = {0};
    stk_status status;

    field->name = name;
    field->node = node;
    field->base_dir = config->base_dir;
    if (!good_name(name))
        return stki_fail_key(err, node, "found the field name \"%s\", expected letters, digits, _ and -", name);
    stki_options_defaults(&stki_field_table, &options);
    if ((status = stki_config_options(config, &stki_field_table, node, &options, err)) != STK_OK ||
        (status = stki_config_source(options.source, config->document, field, err)) != STK_OK ||
        (status = stki_config_classes(config, options.source, &field->classes, err)) != STK_OK ||
        (status = stki_config_dtype(node, "dtype", options.dtype, &field->dtype, err)) != STK_OK)
        return status;
    field->layout = options.layout;
    field->synthetic = options.synthetic;
    field->views = stki_node_is_null(options.views) ? NULL : options.views;
    field->transforms = stki_node_is_null(options.transforms) ? NULL : options.transforms;
    if (stki_node_is_null(options.path) && !options.synthetic)
        return stki_fail_node(err, node, "path is missing: the file that holds the field");
    if ((status = stki_plan_check(field, err)) != STK_OK ||
        (status = stki_pad_read(options.pad, &field->pad, err)) != STK_OK ||
        (status = stki_ragged_read(options.ragged, &field->ragged, err)) != STK_OK)
        return status;
    if (!options.synthetic)
        return read_paths(field, options.path, err);
    return stki_config_synthetic(options.synthetic, &(stki_synthetic_opts){0}, err);
}

/* The segments and positions of a packed field are fields too. */
static stk_status derive_fields(stki_loader_config *config, stki_field_config *fields, int from, int *count,
                                stk_error *err)
{
    static const char *const endings[] = {"segments", "positions"};
    const stki_field_config *packed = &fields[from];

    for (int part = 0; packed->tokens.packed && !packed->tokens.pack.plain && part < 2; part++) {
        char **texts = stki_resize(config->texts, (config->text_count + 1) * (int64_t)sizeof *texts);
        char *name = texts ? stki_format("%s.%s", packed->name, endings[part]) : NULL;

        if (texts)
            config->texts = texts;
        if (!name)
            return stki_fail_memory(err, (config->text_count + 1) * (int64_t)sizeof *texts, "a field's name");
        config->texts[config->text_count++] = name;
        fields[(*count)++] = (stki_field_config){.name = name,
                                                 .node = packed->node,
                                                 .derived = true,
                                                 .derived_from = from,
                                                 .derived_part = (enum stki_packed_tensor)part};
    }
    return STK_OK;
}

stk_status stki_config_fields(stki_loader_config *config, const stki_node *map, stki_field_config **out, int *count,
                              stk_error *err)
{
    stk_status status = STK_OK;

    if (map->kind != STKI_NODE_MAP)
        return stki_fail_value(err, map, "a map of fields, such as image: {path: images.npy}");
    if (map->count == 0)
        return stki_fail_node(err, map, "found no fields, expected at least one, such as image: {path: images.npy}");
    *out = stki_zalloc_array(3 * map->count, sizeof **out); /* a packed field adds two */
    if (!*out)
        return stki_fail_memory(err, 3 * map->count * (int64_t)sizeof **out, "fields");
    for (int i = 0; i < map->count && status == STK_OK; i++) {
        *count = i + 1;
        status = read_field(config, map->keys[i], map->items[i], &(*out)[i], err);
    }
    for (int i = 0; i < map->count && status == STK_OK; i++)
        status = derive_fields(config, *out, i, count, err);
    return status == STK_OK ? stki_views_check(*out, *count, err) : status;
}

stk_status stki_config_synthetic(const stki_node *node, stki_synthetic_opts *out, stk_error *err)
{
    synthetic_options options = {0};
    stk_status status;

    stki_options_defaults(&synthetic_table, &options);
    *out = (stki_synthetic_opts){0};
    if ((status = stki_options_read(&synthetic_table, node, &options, NULL, err)) != STK_OK ||
        (status = stki_config_dtype(node, "dtype", options.dtype, &out->dtype, err)) != STK_OK)
        return status;
    out->count = options.count;
    out->seed = options.seed;
    out->form = (enum stki_synthetic_form)options.form;
    out->min_length = options.min_length;
    out->distinct = options.distinct;
    out->read_ns = options.read_time;
    if (!options.shape)
        return STK_OK;
    if (options.shape->kind != STKI_NODE_LIST || options.shape->count >= STK_MAX_DIMS)
        return stki_fail_value(err, options.shape, "a list of at most %d axis lengths", STK_MAX_DIMS - 1);
    out->ndim = options.shape->count;
    for (int i = 0; i < out->ndim && status == STK_OK; i++) {
        status = stki_node_int(options.shape->items[i], &out->shape[i], err);
        if (status == STK_OK && out->shape[i] < 0)
            status = stki_fail_value(err, options.shape->items[i], "0 or more");
    }
    return status;
}
