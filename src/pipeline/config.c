/* config.c: see config.h. Contains the option tables of the sections `loader` and `dataset`. */
#include "config.h"
#include "allocate.h"
#include "checked.h"
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

static const char *const order_words[] = {"sequential", "random", "block", "weighted", NULL};
static const char *const last_batch_words[] = {"partial", "drop", "pad", NULL};
static const char *const access_words[] = {"auto", "mmap", "pread", NULL};
static const char *const stores_words[] = {"auto", "cached", "streaming", NULL};
static const char *const pin_words[] = {"auto", "true", "false", NULL};
static const char *const unlimited_words[] = {"unlimited", NULL};
static const char *const digest_words[] = {"none", "order", "bytes", NULL};
static const char *const resume_words[] = {"strict", "force", NULL};
static const char *const launcher_words[] = {"auto", "none", NULL};
static const char *const convert_words[] = {"auto", "host", "device", NULL};
static const char *const auto_words[] = {"auto", NULL};
static const char *const infinite_words[] = {"infinite", NULL};
static const char *const shuffle_words[] = {"sequential", "random", NULL};
static const char *const block_rows_words[] = {"shuffled", "in_order", NULL}; /* same values as stk_block_rows */
static const char *const drop_words[] = {"partial", "drop", NULL};

static const stki_need needs_survival = {
    .key = "on_error",
    .words = &stki_on_error_words[STK_ON_ERROR_SKIP],
    .otherwise = &(const stki_need){.key = "/datasets.*.on_error", .words = &stki_on_error_words[STK_ON_ERROR_SKIP]}};
static const stki_need needs_block = {.key = "order", .words = (const char *const[]){"block", NULL}};
static const stki_need needs_weighted = {.key = "order", .words = (const char *const[]){"weighted", NULL}};
static const stki_need needs_weights = {.key = "weights", .when = (const char *const[]){"weighted", NULL}};
static const stki_need needs_bucket = {.key = "bucket_by"};
static const stki_need needs_datasets = {.key = "/datasets"};
/* a note instead of an error, because programs set it for every device */
static const stki_need needs_device = {.key = "device", .note = true};

/* In a config, num_workers is auto (stored as -1) or a number, where 0 means the calling thread. stki_config_read_as
 * converts -1 and 0 to the values used in the C struct. */
static const stki_option loader_rows[] = {
    STKI_INT(stki_loader_config, batch_size, 1, 1, 1 << 30, "rows", "Rows in a batch of this rank",
             .flags = STKI_BY_VALUE, STKI_C(stk_loader_opts, batch_size)),
    STKI_INT(stki_loader_config, global_batch_size, 0, 0, MOST, "rows",
             "Rows in a step, summed over all ranks, instead of batch_size; 0: batch_size times world_size",
             .flags = STKI_BY_VALUE, .instead_of = "batch_size", STKI_C(stk_loader_opts, global_batch_size)),
    STKI_ENUM(stki_loader_config, order, sequential, order_words, "Order of the samples in an epoch",
              .flags = STKI_BY_VALUE | STKI_IN_JOB, .need = &needs_weights, STKI_C(stk_loader_opts, order)),
    STKI_INT_WORDS(stki_loader_config, block_window, auto, 1, MOST, auto_words, 0, "blocks",
                   "With order: block, the number of chunks, pages or shards whose samples are shuffled together; "
                   "auto: as many as fit in half of cache_bytes, at most 64",
                   .flags = STKI_BY_VALUE | STKI_IN_JOB, .need = &needs_block, STKI_C(stk_loader_opts, block_window)),
    STKI_ENUM(
        stki_loader_config, block_rows, shuffled, block_rows_words,
        "With order: block, whether to shuffle the samples of several blocks together (shuffled) or only the order "
        "of the blocks (in_order: faster, because neighboring samples are copied together, but mixes less)",
        .flags = STKI_BY_VALUE | STKI_IN_JOB, .need = &needs_block, STKI_C(stk_loader_opts, block_rows)),
    STKI_ALIAS(shuffle, order, STKI_OPT_BOOL, "true means order: random", .words = shuffle_words),
    STKI_INT(stki_loader_config, epoch_length, 0, 0, MOST, "positions",
             "Positions in an epoch, independent of the number of samples; 0: the number of samples "
             "(docs/internals/order.md)",
             .flags = STKI_BY_VALUE, STKI_C(stk_loader_opts, epoch_length)),
    STKI_NODE(stki_loader_config, weights,
              "With order: weighted, the weight of each sample: a list of numbers, a file of them, or {field: NAME}",
              .flags = STKI_BY_VALUE, .inner = &stki_weights_table, .need = &needs_weighted,
              STKI_C_PARSED(stk_loader_opts, weights_from)),
    STKI_NODE(stki_loader_config, split,
              "Use a part of the samples: train, val, or {part, fraction, method, seed, key}; applied before shuffling",
              .flags = STKI_GIVEN | STKI_BY_VALUE | STKI_IN_JOB, .inner = &stki_split_table,
              STKI_C_PARSED(stk_loader_opts, split)),
    STKI_ENUM(
        stki_loader_config, mixture_stop, first_exhausted, stki_stop_words,
        "With several data sets and no epoch_length, whether an epoch ends when the first or the last one is exhausted",
        .flags = STKI_BY_VALUE, .need = &needs_datasets, STKI_C(stk_loader_opts, mixture_stop)),
    STKI_STRING(stki_loader_config, bucket_by, NULL,
                "Name of a ragged field: samples of similar length are batched together (docs/internals/order.md)",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("x", "text"), STKI_C(stk_loader_opts, bucket_by)),
    STKI_INT(stki_loader_config, bucket_window, 100, 1, 1 << 30, "batches",
             "Number of global batches whose samples bucket_by sorts together", .flags = STKI_BY_VALUE,
             .need = &needs_bucket, STKI_C(stk_loader_opts, bucket_window)),
    STKI_INT(stki_loader_config, seed, 0, 0, INT64_MAX, "",
             "Seed of the random order and transforms, which differ in each epoch; at most 2^63 - 1",
             .flags = STKI_BY_VALUE | STKI_IN_JOB, STKI_C(stk_loader_opts, seed)),
    STKI_INT_WORDS(stki_loader_config, num_workers, auto, 0, STKI_MAX_WORKERS, auto_words, -1, "threads",
                   "Worker threads; auto: one per available processor; 0: none, the calling thread does the work",
                   .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, num_workers), STKI_C_ZERO(STK_WORKERS_INLINE),
                   .flags = STKI_IN_JOB),
    STKI_INT_WORDS(
        stki_loader_config, prefetch, auto, 1, STKI_MAX_SLOTS, auto_words, 0, "slots",
        "Batch slots, including leased ones; auto: 4, or up to 16 if they fit in half of the processors' L2 caches",
        .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, prefetch)),
    STKI_ENUM(stki_loader_config, consumer_helps, auto, pin_words,
              "Whether the thread that calls next also makes rows while it waits, if they come from memory or mapped "
              "local files; auto: only if the data is in memory and a tile takes less than 200 us",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, consumer_helps)),
    STKI_ENUM(stki_loader_config, last_batch, partial, last_batch_words,
              "What to do with the last samples of an epoch if they do not fill a batch", .flags = STKI_BY_VALUE,
              STKI_C(stk_loader_opts, last_batch)),
    STKI_ALIAS(drop_last, last_batch, STKI_OPT_BOOL, "true means last_batch: drop", .words = drop_words),
    STKI_INT(stki_loader_config, num_epochs, 1, 0, MOST, "epochs", "Number of epochs; 0: unlimited",
             .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, num_epochs), STKI_C_ZERO(STK_EPOCHS_ENDLESS)),
    STKI_STRING(stki_loader_config, device, "cpu", "Where batches are delivered: cpu, cuda, cuda:N or host",
                .effect = STKI_ON_NOTHING, .examples = STKI_EXAMPLES("cpu", "host"), STKI_C(stk_loader_opts, device)),
    STKI_INT(stki_loader_config, device_prefetch, 2, 1, STKI_PREFETCH_MAX_DEPTH, "batches",
             "Batch slots on the device, including leased ones", .effect = STKI_ON_NOTHING, .need = &needs_device,
             STKI_C(stk_loader_opts, device_prefetch)),
    STKI_ENUM(stki_loader_config, convert, auto, convert_words,
              "Where rows for a device are converted: by the workers (host) or by the device, from the stored samples; "
              "auto: the faster one, as measured at open",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, convert)),
    STKI_ENUM(stki_loader_config, pin_memory, auto, pin_words,
              "Allocate slots in page-locked memory, for copies to a GPU; auto: if device is a GPU",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, pin_memory)),
    STKI_SIZE_WORDS(stki_loader_config, memory_budget, auto, 1, INT64_MAX, auto_words, 0,
                    "Memory limit for all slots and the indexes of text files, tables and HDF5 chunks; auto: half of "
                    "the free memory",
                    .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, memory_budget), .flags = STKI_IN_JOB),
    STKI_TIME_WORDS(stki_loader_config, timeout, 60s, 0, INT64_MAX, infinite_words, -1,
                    "How long next waits for a batch before it returns a timeout error", .effect = STKI_ON_NOTHING,
                    STKI_C(stk_loader_opts, timeout_ns)),
    STKI_TIME_WORDS(stki_loader_config, close_timeout, 1s, 0, INT64_MAX, infinite_words, -1,
                    "How long close waits for workers that are stuck in system calls, and for copies and streams",
                    .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, close_timeout_ns)),
    STKI_INT_WORDS(stki_loader_config, rank, auto, 0, MOST, auto_words, -1, "",
                   "Rank of this process; auto: from the launcher, otherwise 0", .effect = STKI_ON_RANKS,
                   STKI_C(stk_loader_opts, rank)),
    STKI_INT_WORDS(stki_loader_config, world_size, auto, 1, MOST, auto_words, 0, "ranks",
                   "Number of processes that share the data set; auto: from the launcher, otherwise 1",
                   .effect = STKI_ON_RANKS, STKI_C(stk_loader_opts, world_size)),
    STKI_ENUM(stki_loader_config, launcher, auto, launcher_words,
              "Whether rank and world_size are taken from the environment of torchrun, Open MPI, MPICH or Slurm "
              "(docs/reference/ranks.md)",
              .effect = STKI_ON_RANKS, STKI_C(stk_loader_opts, launcher)),
    STKI_INT(stki_loader_config, replication, 1, 1, 1 << 20, "ranks",
             "Number of neighboring ranks that read the same data (tensor parallel)", .effect = STKI_ON_RANKS,
             STKI_C(stk_loader_opts, replication)),
    STKI_INT(stki_loader_config, replication_blocks, 1, 1, 1 << 20, "blocks",
             "Number of equal blocks of ranks that read the same data (pipeline parallel)", .effect = STKI_ON_RANKS,
             STKI_C(stk_loader_opts, replication_blocks)),
    STKI_ENUM(stki_loader_config, access, auto, access_words, "How files are read; auto: mapped if possible",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, access), .flags = STKI_IN_JOB),
    STKI_BOOL(stki_loader_config, sigbus_guard, true,
              "Report files that are truncated or changed during the run as errors in their records; false: changes "
              "are not detected, and reading a truncated mapped file may end the process with SIGBUS",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, sigbus_guard)),
    STKI_SIZE(stki_loader_config, cache_bytes, 256MiB, 0, INT64_MAX,
              "Memory for decompressed chunks, shared by all workers, fields and loaders of the process",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, cache_bytes), .flags = STKI_IN_JOB),
    STKI_ENUM(stki_loader_config, stores, auto, stores_words,
              "Whether batches are written with non-temporal (streaming) stores; auto: if the slots together take "
              "more than 80 % of the last-level cache, except in conversions for which ordinary stores are faster",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, stores)),
    STKI_SIZE_WORDS(stki_loader_config, tile_bytes, auto, 1024, 1 << 30, auto_words, 0,
                    "Bytes of output that a worker produces at a time; auto: 512KiB", .effect = STKI_ON_NOTHING,
                    STKI_C(stk_loader_opts, tile_bytes)),
    STKI_ENUM(stki_loader_config, on_error, fail, stki_on_error_words,
              "What to do if a sample cannot be read or converted: end the run, skip its row, or substitute another "
              "sample (docs/reference/errors.md)",
              .effect = STKI_ON_FAILURES, STKI_C(stk_loader_opts, on_error)),
    STKI_INT_WORDS(stki_loader_config, max_errors, unlimited, 0, MOST, unlimited_words, -1, "samples",
                   "With skip and substitute, the run ends if more samples than this fail", .effect = STKI_ON_NOTHING,
                   .need = &needs_survival, STKI_C(stk_loader_opts, max_errors), STKI_C_ZERO(STK_NO_ERRORS)),
    STKI_DOUBLE(
        stki_loader_config, max_error_fraction, 0.01, 0, 1, "",
        "With skip and substitute, the run ends if more than this fraction of this rank's samples in an epoch fails",
        .effect = STKI_ON_NOTHING, .need = &needs_survival, STKI_C(stk_loader_opts, max_error_fraction),
        STKI_C_ZERO(STK_NO_ERRORS)),
    STKI_STRING(stki_loader_config, error_list, NULL, "A file to which failed samples are written, as JSON Lines",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH, .need = &needs_survival,
                STKI_C(stk_loader_opts, error_list)),
    STKI_STRING(stki_loader_config, resume_from, NULL,
                "Resume at the position stored in this file (stk_loader_save_file; docs/reference/resume.md)",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH, STKI_C(stk_loader_opts, resume_from)),
    STKI_ENUM(stki_loader_config, resume, strict, resume_words,
              "Whether a position that was saved with another data set, seed, batch, order or transform is rejected "
              "(strict) or used anyway (force)",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, resume)),
    STKI_ENUM(stki_loader_config, digest, none, digest_words,
              "Compute a digest of the delivered samples: of positions and sample numbers (order), or also of the "
              "rows' bytes (bytes)",
              .effect = STKI_ON_NOTHING, STKI_C(stk_loader_opts, digest)),
    STKI_BOOL(stki_loader_config, allow_empty, false, "Accept an epoch without batches", .effect = STKI_ON_NOTHING,
              STKI_C(stk_loader_opts, allow_empty)),
    STKI_NODE(stki_loader_config, indices, "A list of sample numbers: use only these, in this order before shuffling",
              .flags = STKI_BY_VALUE | STKI_IN_JOB, .examples = STKI_EXAMPLES("[0, 1, 2, 3]", "[3, 1, 0, 2]")),
};
static const stki_option_table loader_table = STKI_OPTION_TABLE("loader", loader_rows);

typedef struct dataset_options {
    const stki_node *fields, *pair;
    const char *manifest;
} dataset_options;

static const stki_option dataset_rows[] = {
    STKI_NODE(dataset_options, fields, "The fields of a sample: a map of names to files and transforms",
              .flags = STKI_NAMED, .inner = &stki_field_table),
    STKI_STRING(dataset_options, manifest, NULL,
                "The manifest (NAME.manifest.json) of the preparation job that wrote the files; their names and "
                "sizes are compared with it at open",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH, STKI_C(stk_loader_opts, manifest)),
    STKI_NODE(dataset_options, pair,
              "How the files of several fields are paired: auto, name (paths without the extension), position, or {by, "
              "strip: [_image, _mask]}; docs/reference/files.md",
              .flags = STKI_BY_VALUE, .inner = &stki_pair_table, .examples = STKI_PAIR_EXAMPLES,
              STKI_C_PARSED(stk_loader_opts, pair)),
};
static const stki_option_table dataset_table =
    STKI_OPTION_TABLE_WITH("dataset", dataset_rows, .about = stki_source_about);

const stki_option_table *const stki_config_sections[] = {&loader_table, &dataset_table, &stki_datasets_table, NULL};

const char *const *stki_config_words(const char *key)
{
    return stki_options_find(&loader_table, key)->words;
}

json_t *stki_config_json(const stki_loader_config *config)
{
    return stki_options_json(&loader_table, config);
}

static void fields_free(stki_field_config *fields, int count)
{
    for (int i = 0; i < count; i++) {
        stki_free(fields[i].paths);
        stki_free(fields[i].classes.paths);
    }
    stki_free(fields);
}

void stki_config_destroy(stki_loader_config *config)
{
    if (!config)
        return;
    stki_notes_fini(&config->notes);
    for (int d = 1; d < config->dataset_count; d++)
        fields_free(config->datasets[d].fields, config->datasets[d].field_count);
    for (int d = 0; d < config->dataset_count; d++)
        stki_free(config->datasets[d].index_list);
    stki_free(config->datasets);
    fields_free(config->fields, config->field_count);
    for (int i = 0; i < config->text_count; i++)
        stki_free(config->texts[i]);
    stki_free(config->texts);
    stki_free(config->index_list);
    stki_free(config->weight_list);
    stki_free(config->base_dir);
    stki_document_destroy(config->document);
    stki_free(config);
}

/* ---- the dataset section ---- */

static stk_status read_dataset(stki_loader_config *config, const stki_node *root, stk_error *err)
{
    const stki_node *dataset = stki_node_get(root, "dataset"), *several = stki_node_get(root, "datasets");
    dataset_options options = {0};
    stk_status status;

    if (dataset && several)
        return stki_fail_key(err, several, "found both dataset and datasets, expected only one of them");
    if (several)
        return stki_config_datasets(config, several, err);
    if (dataset && (status = stki_config_options(config, &dataset_table, dataset, &options, err)) != STK_OK)
        return status;
    config->manifest = options.manifest;
    if ((status = stki_pair_read(options.pair, &config->pair, err)) != STK_OK)
        return status;
    if (!options.fields)
        return stki_fail_node(err, dataset ? dataset : root, "dataset.fields is missing: it lists the data to load");
    return stki_config_fields(config, options.fields, &config->fields, &config->field_count, err);
}

/* ---- the loader section ---- */

static stk_status read_loader(stki_loader_config *config, const stki_config_form *form, const stki_node *root,
                              stk_error *err)
{
    const stki_node *section = stki_node_get(root, form->table->section);
    const stki_option_part parts[] = {{form->table, config, NULL}, {form->other, form->other_values, NULL}};
    stk_status status;

    stki_options_defaults(&loader_table, config);
    if (form->preset)
        form->preset(config, form->context);
    if ((status = stki_options_read_parts(parts, form->other ? 2 : 1, section,
                                          &(stki_option_notes){stki_config_add_note, config}, err)) != STK_OK ||
        (status = stki_config_order(config, section, err)) != STK_OK)
        return status;
    return stki_config_ranks(config, section, err);
}

stk_status stki_config_read(stki_document *document, const char *base_dir, stki_loader_config **out, stk_error *err)
{
    static const char *const others[] = {"bench", "prep", "output", "stats", NULL};
    static const stki_config_form loader = {
        .table = &loader_table, .sections = stki_config_sections, .other_sections = others};

    return stki_config_read_as(&loader, document, base_dir, out, err);
}

stk_status stki_config_read_as(const stki_config_form *form, stki_document *document, const char *base_dir,
                               stki_loader_config **out, stk_error *err)
{
    stki_loader_config *config = stki_zalloc(sizeof *config);
    const stki_node *root = stki_document_root(document);
    stk_status status = STK_OK;

    if (!config) {
        stki_document_destroy(document);
        return stki_fail_memory(err, sizeof *config, "a config");
    }
    config->document = document;
    config->section = form->table->section;
    if (base_dir && !(config->base_dir = stki_strdup(base_dir)))
        status = stki_fail_memory(err, (int64_t)strlen(base_dir), "a path");
    if (status == STK_OK && (status = stki_sections_check(form->sections, form->other_sections, root, err)) == STK_OK &&
        (status = stki_sections_prepare(form->sections, document, base_dir, err)) == STK_OK &&
        (status = read_loader(config, form, root, err)) == STK_OK &&
        (status = read_dataset(config, root, err)) == STK_OK) {
        if (config->num_workers <= 0) /* -1 is auto, 0 is the caller's thread */
            config->num_workers = config->num_workers < 0 ? STK_WORKERS_AUTO : STK_WORKERS_INLINE;
        *out = config;
        return STK_OK;
    }
    stki_config_destroy(config);
    return status;
}
