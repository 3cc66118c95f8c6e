/* config_opts.c: the C structs written as a config document, so that everything is read and checked in one place and
 * errors read alike: "options: loader.prefetch: found 5000, expected 1 to 1024 slots". */
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

static void STK_PRINTF(3, 4) put(writer *w, const char *path, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    if (w->status != STK_OK)
        return;
    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        w->status = stki_fail_memory(w->err, 0, "options");
    else
        w->status = stki_document_set_value(w->document, path, text, "options", w->err);
    free(text);
}

static void put_int(writer *w, const char *key, int64_t value)
{
    char path[64];

    snprintf(path, sizeof path, "loader.%s", key);
    if (value != 0)
        put(w, path, "%lld", (long long)value);
}

static void put_word(writer *w, const char *key, int value, const char *const *words, int count)
{
    char path[64];

    if (w->status != STK_OK || value == 0)
        return;
    snprintf(path, sizeof path, "loader.%s", key);
    if (value < 0 || value >= count)
        w->status = stki_fail(w->err, STK_E_CONFIG, "options: loader.%s: found the value %d, expected 0 to %d", key,
                              value, count - 1);
    else
        put(w, path, "%s", words[value]);
}

/* 0 is the default, -1 means for ever. */
static void put_time(writer *w, const char *key, int64_t ns)
{
    char path[64];

    snprintf(path, sizeof path, "loader.%s", key);
    if (ns < STK_TIMEOUT_INFINITE && w->status == STK_OK)
        w->status = stki_fail(w->err, STK_E_CONFIG,
                              "options: loader.%s: found %lld ns, expected 0 (the default), more, or "
                              "STK_TIMEOUT_INFINITE (-1)",
                              key, (long long)ns);
    else if (ns < 0)
        put(w, path, "infinite");
    else if (ns > 0)
        put(w, path, "%lldns", (long long)ns);
}

/* A text that the config language reads back as itself: JSON's quotes, and $ doubled. */
static void put_text(writer *w, const char *path, const char *text)
{
    json_t *json;
    char *quoted, *escaped;
    size_t used = 0;

    if (!text || w->status != STK_OK)
        return;
    json = json_string(text);
    quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;
    json_decref(json);
    escaped = quoted ? malloc(2 * strlen(quoted) + 1) : NULL;
    for (const char *from = quoted; escaped && *from; from++) {
        if (*from == '$')
            escaped[used++] = '$';
        escaped[used++] = *from;
    }
    if (!escaped) {
        w->status = json ? stki_fail_memory(w->err, 0, "options")
                         : stki_fail(w->err, STK_E_CONFIG, "options: %s: found a text that is no UTF-8", path);
    } else {
        escaped[used] = '\0';
        put(w, path, "%s", escaped);
    }
    free(quoted);
    free(escaped);
}

static void put_loader(writer *w, const stk_loader_opts *o)
{
    static const char *const orders[] = {"sequential", "random", "block", "weighted"},
                             *const lasts[] = {"partial", "drop", "pad"}, *const accesses[] = {"auto", "mmap", "pread"},
                             *const stores[] = {"auto", "cached", "streaming"},
                             *const pins[] = {"auto", "true", "false"}, *const launchers[] = {"auto", "none"},
                             *const on_errors[] = {"fail", "skip", "substitute"},
                             *const digests[] = {"none", "order", "bytes"}, *const resumes[] = {"strict", "force"},
                             *const guards[] = {"true", "false"};

    put_int(w, "batch_size", o->batch_size);
    put_int(w, "global_batch_size", o->global_batch_size);
    put_word(w, "order", (int)o->order, orders, 4);
    if (o->seed > INT64_MAX && w->status == STK_OK)
        w->status = stki_fail(w->err, STK_E_CONFIG, "options: loader.seed: found %llu, expected 0 to %lld",
                              (unsigned long long)o->seed, (long long)(INT64_MAX));
    put_int(w, "seed", (int64_t)o->seed);
    if (o->num_workers == STK_WORKERS_INLINE)
        put(w, "loader.num_workers", "0");
    else if (o->num_workers < 0 && w->status == STK_OK)
        w->status =
            stki_fail(w->err, STK_E_CONFIG,
                      "options: loader.num_workers: found %lld, expected STK_WORKERS_AUTO (0), STK_WORKERS_INLINE "
                      "(-1) or a number of threads",
                      (long long)o->num_workers);
    else
        put_int(w, "num_workers", o->num_workers); /* 0: auto */
    put_int(w, "prefetch", o->prefetch);
    put_word(w, "last_batch", (int)o->last_batch, lasts, 3);
    if (o->num_epochs == STK_EPOCHS_ENDLESS)
        put(w, "loader.num_epochs", "0");
    else
        put_int(w, "num_epochs", o->num_epochs);
    put_word(w, "pin_memory", (int)o->pin_memory, pins, 3);
    put_int(w, "memory_budget", o->memory_budget);
    put_time(w, "timeout", o->timeout_ns);
    put_time(w, "close_timeout", o->close_timeout_ns);
    put_int(w, "world_size", o->world_size);
    if (o->world_size || o->rank)
        put(w, "loader.rank", "%lld", (long long)o->rank);
    put_word(w, "launcher", (int)o->launcher, launchers, 2);
    put_word(w, "on_error", (int)o->on_error, on_errors, 3);
    if (o->max_errors == STK_NO_ERRORS)
        put(w, "loader.max_errors", "0");
    else
        put_int(w, "max_errors", o->max_errors);
    if (o->max_error_fraction == STK_NO_ERRORS)
        put(w, "loader.max_error_fraction", "0");
    else if (o->max_error_fraction != 0)
        put(w, "loader.max_error_fraction", "%.17g", o->max_error_fraction);
    put_text(w, "loader.error_list", o->error_list);
    put_word(w, "digest", (int)o->digest, digests, 3);
    put_word(w, "resume", (int)o->resume, resumes, 2);
    put_text(w, "loader.resume_from", o->resume_from);
    put_int(w, "replication", o->replication);
    put_int(w, "replication_blocks", o->replication_blocks);
    put_word(w, "access", (int)o->access, accesses, 3);
    put_word(w, "sigbus_guard", (int)o->sigbus_guard, guards, 2);
    put_word(w, "stores", (int)o->stores, stores, 3);
    put_int(w, "tile_bytes", o->tile_bytes);
    put_int(w, "block_window", o->block_window);
    put_int(w, "cache_bytes", o->cache_bytes);
    if (o->allow_empty)
        put(w, "loader.allow_empty", "true");
}

static void put_device(writer *w, const stk_loader_opts *o)
{
    static const char *const converts[] = {"auto", "host", "device"};

    put_text(w, "loader.device", o->device);
    put_int(w, "device_prefetch", o->device_prefetch);
    put_word(w, "convert", (int)o->convert, converts, 3);
}

/* `where`: "dataset", or "datasets.2". */
static void put_field(writer *w, const char *where, const stk_field_opts *given, int number)
{
    stk_field_opts f = {0};
    char path[352];

    if (w->status != STK_OK)
        return;
    if (given->struct_size < 2 * sizeof(uint32_t)) {
        w->status =
            stki_fail(w->err, STK_E_CONFIG, "options: fields[%d].struct_size: found %u, expected STK_FIELD_OPTS_INIT",
                      number, given->struct_size);
        return;
    }
    memcpy(&f, given, given->struct_size < sizeof f ? given->struct_size : sizeof f);
    if (f.path_count > 0 && !f.paths) {
        w->status = stki_fail(w->err, STK_E_BAD_ARG, "options: fields[%d].paths: found NULL and a path_count of %u",
                              number, f.path_count);
        return;
    }
    if (!f.name || !*f.name || strpbrk(f.name, ". =") || strlen(f.name) > 200) {
        w->status =
            stki_fail(w->err, STK_E_CONFIG, "options: fields[%d].name: found \"%s\", expected letters, digits, _ and -",
                      number, f.name ? f.name : "NULL");
        return;
    }
#define PATH(suffix) (snprintf(path, sizeof path, "%s.fields.%s%s", where, f.name, suffix), path)
    put(w, PATH(""), "{}");
    for (uint32_t i = 0; i < f.path_count; i++) {
        char key[32];

        snprintf(key, sizeof key, ".path.%u", i);
        put_text(w, PATH(key), f.paths[i]);
    }
    if (f.synthetic)
        put(w, PATH(".synthetic"), "%s", f.synthetic);
    if (f.source)
        put(w, PATH(".source"), "%s", f.source);
    if (f.source_dtype)
        put_text(w, PATH(".source.dtype"), stk_dtype_name(f.source_dtype));
    put_text(w, PATH(".source.layout"), f.source_layout);
    if (f.dtype)
        put_text(w, PATH(".dtype"), stk_dtype_name(f.dtype));
    put_text(w, PATH(".layout"), f.layout);
    if (f.transforms)
        put(w, PATH(".transforms"), "%s", f.transforms);
    if (f.pad)
        put(w, PATH(".pad"), "%s", f.pad);
    if (f.views)
        put(w, PATH(".views"), "%s", f.views);
    if (f.ragged)
        put(w, PATH(".ragged"), "%s", f.ragged);
#undef PATH
}

static void put_dataset(writer *w, const stk_dataset_opts *given, int number)
{
    stk_dataset_opts d = {0};
    char path[64], where[32];

    if (w->status != STK_OK)
        return;
    if (given->struct_size < 2 * sizeof(uint32_t)) {
        w->status = stki_fail(w->err, STK_E_CONFIG,
                              "options: datasets[%d].struct_size: found %u, expected STK_DATASET_OPTS_INIT", number,
                              given->struct_size);
        return;
    }
    memcpy(&d, given, given->struct_size < sizeof d ? given->struct_size : sizeof d);
    if ((d.field_count > 0 && !d.fields) || d.index_count < 0 || (d.index_count > 0 && !d.indices)) {
        w->status = stki_fail(w->err, STK_E_BAD_ARG,
                              "options: datasets[%d]: found NULL and a count above 0, or a count "
                              "below 0",
                              number);
        return;
    }
    snprintf(where, sizeof where, "datasets.%d", number);
    put(w, where, "{}");
    snprintf(path, sizeof path, "%s.name", where);
    put_text(w, path, d.name);
    snprintf(path, sizeof path, "%s.weight", where);
    put(w, path, "%.17g", d.weight);
    snprintf(path, sizeof path, "%s.manifest", where);
    put_text(w, path, d.manifest);
    snprintf(path, sizeof path, "%s.fields", where);
    put(w, path, "{}");
    for (uint32_t i = 0; i < d.field_count; i++)
        put_field(w, where, &d.fields[i], (int)i);
}

static void put_order(writer *w, const stk_loader_opts *o)
{
    static const char *const stops[] = {"first_exhausted", "all_exhausted"};

    put_int(w, "epoch_length", o->epoch_length);
    put_word(w, "mixture_stop", (int)o->mixture_stop, stops, 2);
    put_text(w, "loader.bucket_by", o->bucket_by);
    put_int(w, "bucket_window", o->bucket_window);
    if (o->split)
        put(w, "loader.split", "%s", o->split);
    if (o->weights && o->weights_from && w->status == STK_OK)
        w->status =
            stki_fail(w->err, STK_E_CONFIG, "options: found both weights and weights_from, expected one of them");
    if (o->weights)
        put(w, "loader.weights", "[]"); /* the numbers come behind */
    else if (o->weights_from)
        put(w, "loader.weights", "%s", o->weights_from);
    for (int64_t i = 0; i < o->dataset_count; i++)
        put_dataset(w, &o->datasets[i], (int)i);
}

/* A copy of `count` numbers of 8 bytes; NULL: no memory. */
static void *copy_of(const void *list, int64_t count)
{
    void *copy = stki_zalloc_array(count ? count : 1, sizeof(int64_t));

    if (copy)
        memcpy(copy, list, (size_t)count * sizeof(int64_t));
    return copy;
}

static stk_status copy_indices(const int64_t *indices, int64_t count, int64_t **list, int64_t *list_count,
                               stk_error *err)
{
    if (!indices)
        return STK_OK;
    *list = copy_of(indices, count);
    *list_count = count;
    return *list ? STK_OK : stki_fail_memory(err, count * (int64_t)sizeof **list, "indices");
}

/* Millions of numbers do not go through a document. */
static stk_status copy_lists(const stk_loader_opts *o, stki_loader_config *config, stk_error *err)
{
    stk_status status = copy_indices(o->indices, o->index_count, &config->index_list, &config->index_count, err);

    if (status == STK_OK && o->weights) {
        stki_free(config->weight_list);
        config->weight_list = copy_of(o->weights, o->weight_count);
        config->weight_count = o->weight_count;
        if (!config->weight_list)
            status = stki_fail_memory(err, o->weight_count * (int64_t)sizeof *o->weights, "weights");
    }
    for (int64_t d = 0; d < o->dataset_count && status == STK_OK; d++) {
        stk_dataset_opts given = {0};

        memcpy(&given, &o->datasets[d],
               o->datasets[d].struct_size < sizeof given ? o->datasets[d].struct_size : sizeof given);
        status = copy_indices(given.indices, given.index_count, &config->datasets[d].index_list,
                              &config->datasets[d].index_count, err);
    }
    return status;
}

stk_status stki_config_from_opts(const stk_loader_opts *given, stki_loader_config **out, stk_error *err)
{
    stk_loader_opts o = {0};
    writer w = {.err = err};
    stki_loader_config *config = NULL;
    stk_status status;

    if (!given || given->struct_size < 2 * sizeof(uint32_t))
        return stki_fail(err, STK_E_CONFIG, "options: struct_size: found %u, expected STK_LOADER_OPTS_INIT",
                         given ? given->struct_size : 0);
    memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    if (o.field_count > 0 && !o.fields)
        return stki_fail(err, STK_E_BAD_ARG, "options: fields: found NULL and a field_count of %u", o.field_count);
    if (o.index_count < 0 || (o.indices && o.index_count == 0))
        return stki_fail(err, STK_E_CONFIG, "options: index_count: found %lld, expected 1 or more",
                         (long long)o.index_count);
    if (!o.indices && o.index_count > 0)
        return stki_fail(err, STK_E_BAD_ARG, "options: indices: found NULL and an index_count of %lld",
                         (long long)o.index_count);
    if (!o.weights && o.weight_count > 0)
        return stki_fail(err, STK_E_BAD_ARG, "options: weights: found NULL and a weight_count of %lld",
                         (long long)o.weight_count);
    if (o.dataset_count < 0 || o.weight_count < 0 || (o.dataset_count > 0 && !o.datasets))
        return stki_fail(err, STK_E_BAD_ARG, "options: %s: found %lld",
                         o.weight_count < 0 ? "weight_count" : "datasets",
                         (long long)(o.weight_count < 0 ? o.weight_count : o.dataset_count));
    if (o.dataset_count > 0 && (o.field_count > 0 || o.indices))
        return stki_fail(err, STK_E_CONFIG, "options: found datasets beside %s: each data set has its own",
                         o.indices ? "indices" : "fields");
    status = stki_document_parse("", 0, "options", STKI_NO_INCLUDE, &w.document, err);
    if (status != STK_OK)
        return status;
    put_loader(&w, &o);
    put_device(&w, &o);
    for (uint32_t i = 0; i < o.field_count; i++)
        put_field(&w, "dataset", &o.fields[i], (int)i);
    put_text(&w, "dataset.manifest", o.manifest);
    put_order(&w, &o);
    if (w.status != STK_OK) {
        stki_document_destroy(w.document);
        return w.status;
    }
    status = stki_config_read(w.document, NULL, &config, err);
    if (status == STK_OK && (status = copy_lists(&o, config, err)) != STK_OK) {
        stki_config_destroy(config);
    } else if (status == STK_OK) {
        config->device_buffer = o.device_buffer;
        config->device_buffer_context = o.device_buffer_context;
        *out = config;
    }
    return status;
}
