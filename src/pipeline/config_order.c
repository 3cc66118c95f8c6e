/* config_order.c: reads the keys of the loader section about selection and order that need more than an option row.
 * selection.c applies them to the data. */
#include "allocate.h"
#include "config.h"
#include "error.h"
#include <string.h>

static const char *const part_words[] = {"train", "val", NULL};
const char *const stki_split_methods[] = {"exact", "contiguous", "hash",
                                          NULL}; /* same values as enum stki_split_method */
static const char *const contiguous_words[] = {"contiguous", NULL};
static const char *const gap_words[] = {"auto", NULL};
const char *const stki_stop_words[] = {"first_exhausted", "all_exhausted", NULL};

static const char *const drawn_words[] = {"exact", "hash", NULL};

static const stki_need needs_drawn = {.key = "method", .words = drawn_words};
static const stki_need needs_hash = {.key = "method", .words = &stki_split_methods[STKI_SPLIT_HASH]};
static const stki_need needs_contiguous = {.key = "method", .words = contiguous_words};

static const stki_option split_rows[] = {
    STKI_ENUM(stki_split_config, part, train, part_words, "The part to load"),
    STKI_DOUBLE(stki_split_config, fraction, 0.1, 0, 1, "", "Fraction of the samples in val; the others are in train"),
    STKI_ENUM(stki_split_config, method, exact, stki_split_methods,
              "exact: exactly that fraction, drawn at random; contiguous: the last samples of each group of windows, "
              "or of the data set if there are no windows; hash: by the hash of each sample's key, so that adding "
              "samples does not move others"),
    STKI_INT(stki_split_config, seed, 0, 0, INT64_MAX, "", "Seed of the split", .need = &needs_drawn),
    STKI_STRING(stki_split_config, key, "index",
                "With method: hash, the key of a sample: index, path (the name of the sample's file), or a field; "
                "samples with equal values stay in the same part",
                .need = &needs_hash, .examples = STKI_EXAMPLES("index", "path")),
    STKI_INT_WORDS(stki_split_config, gap, auto, 0, INT64_C(1) << 40, gap_words, -1, "samples",
                   "With method: contiguous, the number of samples before val in which no window of train may begin; "
                   "auto: just enough that no sample is in windows of both parts",
                   .need = &needs_contiguous),
};
const stki_option_table stki_split_table = STKI_OPTION_TABLE_WITH("loader.split", split_rows, .shorthand = "part");

typedef struct weights_options {
    const char *path, *field, *name;
} weights_options;

static const stki_need needs_path = {.key = "path"};

static const stki_option weights_rows[] = {
    STKI_STRING(weights_options, path, NULL, "A file with one number per sample", .flags = STKI_PATH),
    STKI_STRING(weights_options, name, NULL, "The member of the file", .need = &needs_path,
                .examples = STKI_EXAMPLES("a", "b")),
    STKI_STRING(weights_options, field, NULL, "Instead of a file, a field with one number per sample",
                .instead_of = "path", .examples = STKI_EXAMPLES("x", "y")),
};
const stki_option_table stki_weights_table =
    STKI_OPTION_TABLE_WITH("loader.weights", weights_rows, .shorthand = "path");

stk_status stki_config_indices(const stki_node *list, int64_t **out, int64_t *count, stk_error *err)
{
    stk_status status = STK_OK;

    if (!list)
        return STK_OK;
    if (list->kind != STKI_NODE_LIST)
        return stki_fail_value(err, list, "a list of sample numbers");
    *out = stki_zalloc_array(list->count, sizeof **out);
    if (!*out)
        return stki_fail_memory(err, list->count * (int64_t)sizeof **out, "indices");
    *count = list->count;
    for (int i = 0; i < list->count && status == STK_OK; i++)
        status = stki_node_int(list->items[i], &(*out)[i], err);
    return status;
}

static stk_status read_split(stki_loader_config *config, stk_error *err)
{
    stki_split_config *split = &config->split_config;

    if (!config->split)
        return STK_OK;
    stki_options_defaults(&stki_split_table, split);
    split->section = config->section;
    return stki_config_options(config, &stki_split_table, config->split, split, err);
}

static stk_status read_weight_list(stki_loader_config *config, const stki_node *list, stk_error *err)
{
    stk_status status = STK_OK;

    config->weight_list = stki_zalloc_array(list->count, sizeof *config->weight_list);
    if (!config->weight_list)
        return stki_fail_memory(err, list->count * (int64_t)sizeof *config->weight_list, "weights");
    config->weight_count = list->count;
    for (int i = 0; i < list->count && status == STK_OK; i++)
        status = stki_node_double(list->items[i], &config->weight_list[i], err);
    return status;
}

static stk_status read_weights(stki_loader_config *config, stk_error *err)
{
    const stki_node *node = config->weights;
    weights_options o = {0};
    stk_status status;

    if (!node)
        return STK_OK;
    if (node->kind == STKI_NODE_LIST)
        return read_weight_list(config, node, err);
    stki_options_defaults(&stki_weights_table, &o);
    status = stki_config_options(config, &stki_weights_table, node, &o, err);
    if (status == STK_OK && !o.path && !o.field)
        return stki_fail_node(err, node, "expected either path or field");
    config->weights_path = o.path;
    config->weights_field = o.field;
    config->weights_name = o.name;
    return status;
}

stk_status stki_config_order(stki_loader_config *config, const stki_node *section, stk_error *err)
{
    stk_status status;

    config->indices = stki_node_is_null(config->indices) ? NULL : config->indices;
    config->split = stki_node_is_null(config->split) ? NULL : config->split;
    if (stki_node_is_null(config->weights) || config->order != STK_ORDER_WEIGHTED)
        config->weights = NULL;

    if ((status = stki_config_indices(config->indices, &config->index_list, &config->index_count, err)) != STK_OK ||
        (status = read_split(config, err)) != STK_OK || (status = read_weights(config, err)) != STK_OK)
        return status;
    if (config->epoch_length > 0 && config->order == STK_ORDER_BLOCK)
        return stki_fail_node(err, stki_node_get(section, "epoch_length"),
                              "found epoch_length with order: block, which uses every sample once per epoch");
    return STK_OK;
}
