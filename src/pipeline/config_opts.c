/* config_opts.c: writes the C structs into a config document, so that both are checked by the same code and give the
 * same messages: "options: loader.prefetch: found 5000, expected 1 to 1024 slots". The rows of the option tables cover
 * most members. This file handles the others: lists, dtypes, and members for which 0 has a special meaning or which
 * depend on another member. */
#include "allocate.h"
#include "config.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    stki_document *document;
    stk_status status;
    stk_error *err;
} writer;

/* Sets an option to a value in config syntax. */
static void put(writer *w, const char *path, const char *value)
{
    if (w->status == STK_OK)
        w->status = stki_document_set_value(w->document, path, value, "options", w->err);
}

static void put_text(writer *w, const char *path, const char *text)
{
    if (w->status == STK_OK && text)
        w->status = stki_document_set_text(w->document, path, text, true, "options", w->err);
}

static void put_members(writer *w, const stki_option_table *table, const void *opts, const char *path)
{
    if (w->status == STK_OK)
        w->status = stki_options_from_struct(table, opts, w->document, path, w->err);
}

/* Element `index` of an array of structs. The stride is their struct_size, because the calling program may have been
 * compiled with fewer or more members than this library. */
static bool take_element(writer *w, const char *array, const char *init, const void *first, int64_t index, void *out,
                         size_t size)
{
    const uint32_t step = *(const uint32_t *)first;
    uint32_t own;

    if (w->status != STK_OK)
        return false;
    memcpy(&own, (const char *)first + index * step, sizeof own);
    if (step < 2 * sizeof(uint32_t) || own != step) {
        w->status = stki_fail(w->err, STK_E_CONFIG, "options: %s[%lld].struct_size: found %u, expected %s", array,
                              (long long)index, own, init);
        return false;
    }
    memset(out, 0, size);
    memcpy(out, (const char *)first + index * step, step < size ? step : size);
    return true;
}

/* Rejects a name used by an earlier field, which would replace that field. */
static stk_status check_name(const stk_field_opts *first, int64_t index, const char *name, stk_error *err)
{
    writer w = {.err = err};
    stk_field_opts f;

    for (int64_t i = 0; i < index && take_element(&w, "fields", "", first, i, &f, sizeof f); i++)
        if (strcmp(f.name, name) == 0)
            return stki_fail(err, STK_E_CONFIG,
                             "options: fields[%lld].name: found \"%.200s\", which is also the name of fields[%lld]",
                             (long long)index, name, (long long)i);
    return w.status;
}

/* `where`: "dataset", or "datasets.2". */
static void put_field(writer *w, const char *where, const stk_field_opts *first, int64_t index)
{
    stk_field_opts f;
    char path[320], below[352];

    if (!take_element(w, "fields", "the value that STK_FIELD_OPTS_INIT sets, the same in all fields", first, index, &f,
                      sizeof f))
        return;
    if (f.path_count > 0 && !f.paths) {
        w->status = stki_fail(w->err, STK_E_BAD_ARG, "options: fields[%lld].paths: found NULL and a path_count of %u",
                              (long long)index, f.path_count);
        return;
    }
    if (!f.name || !*f.name || strpbrk(f.name, ". =") || strlen(f.name) > 200) {
        w->status = stki_fail(w->err, STK_E_CONFIG,
                              "options: fields[%lld].name: found \"%.200s\", expected letters, digits, _ and -",
                              (long long)index, f.name ? f.name : "NULL");
        return;
    }
    if ((w->status = check_name(first, index, f.name, w->err)) != STK_OK)
        return;
    snprintf(path, sizeof path, "%s.fields.%s", where, f.name);
    put(w, path, "{}");
    for (uint32_t i = 0; i < f.path_count; i++) {
        snprintf(below, sizeof below, "%s.path.%u", path, i);
        put_text(w, below, f.paths[i] ? f.paths[i] : "");
    }
    put_members(w, &stki_field_table, &f, path);
    snprintf(below, sizeof below, "%s.source", path);
    put_members(w, &stki_source_table, &f, below);
    snprintf(below, sizeof below, "%s.source.dtype", path);
    put_text(w, below, f.source_dtype ? stk_dtype_name(f.source_dtype) : NULL);
    snprintf(below, sizeof below, "%s.dtype", path);
    put_text(w, below, f.dtype ? stk_dtype_name(f.dtype) : NULL);
}

static void put_dataset(writer *w, const stk_dataset_opts *first, int64_t index)
{
    stk_dataset_opts d;
    char weight[40], path[64], where[32];

    if (!take_element(w, "datasets", "the value that STK_DATASET_OPTS_INIT sets, the same in all data sets", first,
                      index, &d, sizeof d))
        return;
    if ((d.field_count > 0 && !d.fields) || d.index_count < 0 || (d.index_count > 0 && !d.indices)) {
        w->status = stki_fail(w->err, STK_E_BAD_ARG,
                              "options: datasets[%lld]: found a NULL list with a count above 0, or a negative count",
                              (long long)index);
        return;
    }
    snprintf(where, sizeof where, "datasets.%lld", (long long)index);
    put(w, where, "{}");
    put_members(w, &stki_datasets_table, &d, where);
    snprintf(weight, sizeof weight, "%.17g",
             d.weight); /* always written, because 0 is a valid weight and not the default */
    snprintf(path, sizeof path, "%s.weight", where);
    put(w, path, weight);
    snprintf(path, sizeof path, "%s.fields", where);
    put(w, path, "{}");
    for (uint32_t i = 0; i < d.field_count; i++)
        put_field(w, where, d.fields, i);
}

static void put_all(writer *w, const stk_loader_opts *o)
{
    put_members(w, stki_config_sections[0], o, "loader");
    if (o->world_size && !o->rank)
        /* 0 in the C struct means rank 0 if world_size is set; the default, auto, would use the rank set by the
         * launcher */
        put(w, "loader.rank", "0");
    if (o->weights)
        put(w, "loader.weights", "[]"); /* copy_lists() sets the numbers */
    for (uint32_t i = 0; i < o->field_count; i++)
        put_field(w, "dataset", o->fields, i);
    put_members(w, stki_config_sections[1], o, "dataset");
    for (int64_t i = 0; i < o->dataset_count; i++)
        put_dataset(w, o->datasets, i);
}

/* Copies a list of `count` 8-byte numbers. If `list` is NULL, *out does not change. */
static stk_status copy_list(const void *list, int64_t count, void *out, int64_t *out_count, stk_error *err)
{
    void *copy;

    if (!list)
        return STK_OK;
    copy = stki_zalloc_array(count ? count : 1, sizeof(int64_t));
    if (!copy)
        return stki_fail_memory(err, count * (int64_t)sizeof(int64_t), "a list of numbers");
    memcpy(copy, list, (size_t)count * sizeof(int64_t));
    memcpy(out, &copy, sizeof copy);
    *out_count = count;
    return STK_OK;
}

/* Copies the lists of numbers directly to the config. They may have millions of elements, so they are not written to
 * the document. */
static stk_status copy_lists(const stk_loader_opts *o, stki_loader_config *config, stk_error *err)
{
    stk_status status = copy_list(o->indices, o->index_count, &config->index_list, &config->index_count, err);

    if (status == STK_OK && o->weights) {
        stki_free(config->weight_list);
        config->weight_list = NULL;
        status = copy_list(o->weights, o->weight_count, &config->weight_list, &config->weight_count, err);
    }
    for (int64_t d = 0; d < o->dataset_count && status == STK_OK; d++) {
        stk_dataset_opts given;

        if (take_element(&(writer){.err = err}, "datasets", "", o->datasets, d, &given, sizeof given))
            status = copy_list(given.indices, given.index_count, &config->datasets[d].index_list,
                               &config->datasets[d].index_count, err);
    }
    return status;
}

static stk_status check_list(const char *name, const void *list, int64_t count, stk_error *err)
{
    if (count >= 0 && (list || count == 0))
        return STK_OK;
    return stki_fail(err, STK_E_BAD_ARG, "options: %s: found %s and a count of %lld", name, list ? "a list" : "NULL",
                     (long long)count);
}

static stk_status check_lists(const stk_loader_opts *o, stk_error *err)
{
    stk_status status;

    if ((status = check_list("fields", o->fields, o->field_count, err)) != STK_OK ||
        (status = check_list("indices", o->indices, o->index_count, err)) != STK_OK ||
        (status = check_list("weights", o->weights, o->weight_count, err)) != STK_OK ||
        (status = check_list("datasets", o->datasets, o->dataset_count, err)) != STK_OK)
        return status;
    if (o->indices && o->index_count == 0)
        return stki_fail(err, STK_E_CONFIG, "options: index_count: found 0, expected 1 or more");
    if (o->weights && o->weights_from)
        return stki_fail(err, STK_E_CONFIG, "options: found both weights and weights_from, expected only one of them");
    if (o->dataset_count > 0 && (o->field_count > 0 || o->indices))
        return stki_fail(err, STK_E_CONFIG, "options: datasets and %s cannot be combined: each data set has its own",
                         o->indices ? "indices" : "fields");
    return STK_OK;
}

stk_status stki_config_from_opts(const stk_loader_opts *given, stki_loader_config **out, stk_error *err)
{
    stk_loader_opts o = {0};
    writer w = {.err = err};
    stki_loader_config *config = NULL;
    stk_status status;

    if (!given || given->struct_size < 2 * sizeof(uint32_t))
        return stki_fail(err, STK_E_CONFIG,
                         "options: struct_size: found %u, expected the value that STK_LOADER_OPTS_INIT sets",
                         given ? given->struct_size : 0);
    memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    if ((status = check_lists(&o, err)) != STK_OK ||
        (status = stki_document_parse("", 0, "options", STKI_NO_INCLUDE, &w.document, err)) != STK_OK)
        return status;
    put_all(&w, &o);
    if (w.status != STK_OK) {
        stki_document_destroy(w.document);
        return w.status;
    }
    if ((status = stki_config_read(w.document, NULL, &config, err)) != STK_OK)
        return status;
    if ((status = copy_lists(&o, config, err)) != STK_OK) {
        stki_config_destroy(config);
        return status;
    }
    config->device_buffer = o.device_buffer;
    config->device_buffer_context = o.device_buffer_context;
    *out = config;
    return STK_OK;
}
