/* config_datasets.c: reads the list `datasets`, the data sets that are mixed by weight. All of them have the same field
 * names as the first one. dtype, layout and transforms of the first data set's fields apply to all; the others may
 * repeat them. */
#include "allocate.h"
#include "config.h"
#include "error.h"
#include "text_check.h"
#include <string.h>

typedef struct dataset_options {
    const char *name, *manifest;
    double weight;
    const stki_node *fields, *indices, *on_error, *pair;
} dataset_options;

static const stki_option rows[] = {
    STKI_STRING(dataset_options, name, NULL, "Name in messages and reports; by default its number",
                .effect = STKI_ON_NOTHING, .examples = STKI_EXAMPLES("photos", "drawings"),
                STKI_C(stk_dataset_opts, name)),
    STKI_DOUBLE(dataset_options, weight, 1, 0, 1e15, "",
                "Share of the samples of an epoch, relative to the other data sets", .flags = STKI_BY_VALUE),
    STKI_NODE(dataset_options, fields, "Same as dataset.fields; all data sets must have the same field names",
              .flags = STKI_NAMED, .inner = &stki_field_table),
    STKI_STRING(dataset_options, manifest, NULL, "Same as dataset.manifest", .effect = STKI_ON_NOTHING,
                .flags = STKI_PATH, STKI_C(stk_dataset_opts, manifest)),
    STKI_NODE(dataset_options, pair, "Same as dataset.pair", .flags = STKI_BY_VALUE, .inner = &stki_pair_table,
              .examples = STKI_PAIR_EXAMPLES, STKI_C_PARSED(stk_dataset_opts, pair)),
    STKI_NODE(dataset_options, indices, "A list of sample numbers of this data set: use only these",
              .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("[0, 1, 2, 3]", "[3, 1, 0, 2]")),
    STKI_NODE(dataset_options, on_error, "Overrides loader.on_error for this data set: fail, skip or substitute",
              .effect = STKI_ON_FAILURES, .examples = STKI_EXAMPLES("skip", "substitute")),
};
const stki_option_table stki_datasets_table = STKI_OPTION_TABLE("datasets", rows);

static stk_status differs(const stki_field_config *field, const stki_dataset_config *first, const char *what,
                          stk_error *err)
{
    return stki_fail_node(err, field->node, "its %s differs from that in data set %s, which applies to all data sets",
                          what, first->name);
}

/* Compares two nodes by their JSON form. */
static bool same_node(const stki_node *one, const stki_node *other)
{
    json_t *a = one ? stki_node_json(one) : NULL, *b = other ? stki_node_json(other) : NULL;
    const bool same = one == other || (a && b && json_equal(a, b));

    json_decref(a);
    json_decref(b);
    return same;
}

/* Checks that a field of another data set specifies the same dtype, layout and transforms as the first one. */
static stk_status check_field(const stki_field_config *field, const stki_field_config *first,
                              const stki_dataset_config *of, stk_error *err)
{
    if (field->dtype && field->dtype != first->dtype)
        return differs(field, of, "dtype", err);
    if (field->layout && !stki_text_equal(field->layout, first->layout))
        return differs(field, of, "layout", err);
    if (!stki_text_equal(field->source_layout, first->source_layout))
        return differs(field, of, "source.layout", err);
    if (field->views)
        return stki_fail_key(err, field->views, "views can be set only in the first data set, %s", of->name);
    if (field->pad.padded && !(first->pad.padded && field->pad.to == first->pad.to &&
                               field->pad.truncate == first->pad.truncate && field->pad.value == first->pad.value))
        return differs(field, of, "pad", err);
    if (field->ragged.asked &&
        (!first->ragged.asked || (field->ragged.max_bytes && field->ragged.max_bytes != first->ragged.max_bytes)))
        return differs(field, of, "ragged", err);
    if (field->classes.node && !same_node(field->classes.node, first->classes.node))
        return differs(field, of, "source.classes", err);
    if (field->classes.node && field->classes.unknown != first->classes.unknown)
        return differs(field, of, "source.unknown_class", err);
    return !field->transforms || same_node(field->transforms, first->transforms)
               ? STK_OK
               : differs(field, of, "list of transforms", err);
}

/* Sorts the fields into the order of the first data set. */
static stk_status match_fields(stki_dataset_config *dataset, const stki_dataset_config *first, stk_error *err)
{
    for (int i = 0; i < first->field_count; i++) {
        stki_field_config keep;
        int k = i;
        stk_status status;

        while (k < dataset->field_count && strcmp(dataset->fields[k].name, first->fields[i].name) != 0)
            k++;
        if (k == dataset->field_count)
            return stki_fail_node(err, dataset->node, "the field %s of data set %s is missing", first->fields[i].name,
                                  first->name);
        keep = dataset->fields[i];
        dataset->fields[i] = dataset->fields[k];
        dataset->fields[k] = keep;
        status = check_field(&dataset->fields[i], &first->fields[i], first, err);
        if (status != STK_OK)
            return status;
    }
    if (dataset->field_count > first->field_count)
        return stki_fail_node(err, dataset->fields[first->field_count].node,
                              "data set %s does not have this field; all data sets need the same fields", first->name);
    return STK_OK;
}

static stk_status name_dataset(stki_loader_config *config, stki_dataset_config *dataset, const char *given, int number,
                               stk_error *err)
{
    char **texts, *text;

    dataset->name = given;
    for (int d = 0; given && d < number; d++)
        if (strcmp(config->datasets[d].name, given) == 0)
            return stki_fail_value(err, stki_node_get(dataset->node, "name"), "distinct names");
    if (given)
        return STK_OK;
    texts = stki_resize(config->texts, (config->text_count + 1) * (int64_t)sizeof *texts);
    if (texts)
        config->texts = texts;
    text = texts ? stki_format("%d", number) : NULL;
    if (!text)
        return stki_fail_memory(err, (config->text_count + 1) * (int64_t)sizeof *texts, "a name");
    config->texts[config->text_count++] = text;
    dataset->name = text;
    return STK_OK;
}

static stk_status read_one(stki_loader_config *config, const stki_node *node, int number, stk_error *err)
{
    stki_dataset_config *dataset = &config->datasets[number];
    dataset_options o = {0};
    stk_status status;

    stki_options_defaults(&stki_datasets_table, &o);
    dataset->node = node;
    if ((status = stki_config_options(config, &stki_datasets_table, node, &o, err)) != STK_OK ||
        (status = name_dataset(config, dataset, o.name, number, err)) != STK_OK)
        return status;
    dataset->weight = o.weight;
    dataset->on_error = -1;
    if (o.on_error && (status = stki_node_word(o.on_error, stki_on_error_words, &dataset->on_error, err)) != STK_OK)
        return status;
    dataset->manifest = o.manifest;
    if ((status = stki_pair_read(o.pair, &dataset->pair, err)) != STK_OK)
        return status;
    if (!o.fields)
        return stki_fail_node(err, node, "fields is missing: it lists the data to load");
    if (number == 0) { /* the loader owns and frees them */
        status = stki_config_fields(config, o.fields, &config->fields, &config->field_count, err);
        dataset->fields = config->fields;
        dataset->field_count = config->field_count;
    } else {
        status = stki_config_fields(config, o.fields, &dataset->fields, &dataset->field_count, err);
        if (status == STK_OK)
            status = match_fields(dataset, &config->datasets[0], err);
    }
    return status == STK_OK ? stki_config_indices(o.indices, &dataset->index_list, &dataset->index_count, err) : status;
}

stk_status stki_config_datasets(stki_loader_config *config, const stki_node *list, stk_error *err)
{
    stk_status status = STK_OK;

    if (list->kind != STKI_NODE_LIST || list->count == 0)
        return stki_fail_value(err, list, "a list of data sets, such as [{name: a, weight: 1, fields: {…}}, …]");
    if (list->count > STKI_MAX_SOURCES)
        return stki_fail_node(err, list, "found %d data sets, expected at most %d", list->count, STKI_MAX_SOURCES);
    if (config->indices)
        return stki_fail_key(err, config->indices,
                             "indices and datasets cannot be combined: each data set has its own (datasets.0.indices)");
    config->datasets = stki_zalloc_array(list->count, sizeof *config->datasets);
    if (!config->datasets)
        return stki_fail_memory(err, list->count * (int64_t)sizeof *config->datasets, "data sets");
    for (int d = 0; d < list->count && status == STK_OK; d++) {
        config->dataset_count = d + 1;
        status = read_one(config, list->items[d], d, err);
    }
    return status;
}
