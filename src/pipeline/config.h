/* config.h: everything a loader is told, from a config document or the C structs, checked and with its defaults. There
 * is one path: the C structs are written as a document first, so that both know the same names, ranges and messages.
 */
#ifndef STKI_CONFIG_H
#define STKI_CONFIG_H

#include "document.h"
#include "launcher.h"
#include "notes.h"
#include "option.h"
#include "order.h"
#include "pairs.h"
#include "plan.h"
#include <stoker/loader.h>

enum { STKI_MAX_SLOTS = 1024, STKI_MAX_WORKERS = 1024 };

/* One of several data sets, `datasets` of the config. */
typedef struct stki_dataset_config {
    const char *name;
    double weight;
    int on_error; /* -1: as the loader says */
    const stki_node *node;
    const char *manifest; /* of a preparation job, resolved: its files are compared; or NULL */
    stki_pair_config pair;
    stki_field_config *fields; /* in the order of the first one's, which are the loader's own */
    int field_count;
    int64_t *index_list; /* a subset of its own, or NULL */
    int64_t index_count;
} stki_dataset_config;

/* `split`: the part of the samples that is used. */
typedef struct stki_split_config {
    int part, method; /* enum stki_split_part, enum stki_split_method */
    double fraction;  /* of the samples that are val */
    int64_t seed;
    const char *section; /* it stands in: "loader", "prep" */
    const char *key;     /* hash: "index", "path" or the name of a field; NULL where there is no split */
    int64_t gap;         /* contiguous: samples; -1: auto */
} stki_split_config;

struct stki_core;

typedef struct stki_loader_config {
    /* the loader section, filled by its option table */
    int64_t batch_size, global_batch_size; /* 0: not given */
    int order, last_batch, pin_memory, access, stores, convert, consumer_helps;
    const char *device;
    int64_t device_prefetch;
    int64_t seed;
    int64_t num_workers; /* as in the C struct once read */
    int64_t prefetch;
    int64_t block_window; /* 0: auto */
    int block_rows;       /* stk_block_rows */
    int64_t cache_bytes;
    int64_t num_epochs;                /* 0: endless */
    int64_t memory_budget, tile_bytes; /* bytes */
    int64_t timeout, close_timeout;    /* ns */
    int64_t rank, world_size;          /* -1, 0: as the launcher says */
    int launcher, digest, resume, on_error;
    int64_t max_errors; /* -1: unlimited */
    double max_error_fraction;
    const char *error_list;
    const char *resume_from;
    int64_t replication, replication_blocks;
    bool allow_empty, sigbus_guard;
    const stki_node *indices, *split, *weights; /* as written in the config */
    int64_t epoch_length;                       /* 0: as many as there are samples */
    int mixture_stop;
    const char *bucket_by; /* NULL: none */
    int64_t bucket_window; /* batches */

    const char *section; /* the section of the keys above, for messages: "loader", "prep" */
    stki_ranks ranks;    /* what the keys above come to */
    int64_t *index_list; /* the subset, or NULL */
    int64_t index_count;
    bool
        leaves_out; /* samples by their classes or by a filter, from the lists of indices: a split is of what is left */
    double *weight_list; /* of every sample, or NULL: they come from one of the next */
    int64_t weight_count;
    const char *weights_path, *weights_name, *weights_field;
    stki_split_config split_config;
    int field_count;
    stki_field_config *fields;
    const char *manifest;  /* as a data set's, of the only one */
    stki_pair_config pair; /* the same */
    int dataset_count;     /* 0: one, which has no name */
    stki_dataset_config *datasets;
    stki_document *document; /* owns every node and text above */
    char *base_dir;          /* relative paths of a text start here */
    char **texts;            /* names that are made here, owned */
    int text_count;
    void *(*device_buffer)(void *context, const char *field, int slot, int64_t bytes); /* of the C API */
    void *device_buffer_context;
    /* Tests: called on every reader just opened, to put a misbehaving one over it (which owns the old one from then
     * on). */
    stk_status (*wrap_reader)(void *context, const char *field, stki_reader **reader, stk_error *err);
    void *wrap_context;
    /* Preparation jobs: called when the data set is open and before anything depends on batch_size, prefetch or the
     * list of indices, which it may set. */
    stk_status (*arrange)(void *context, struct stki_core *core, stk_error *err);
    int64_t aside_bytes; /* of memory_budget, that the job needs beside the slots; set by arrange */
    /* Of each sample that is left out (`on_error: skip`), as its batch is delivered, in order; no NULL error. */
    void (*left_out)(void *context, int64_t position, int64_t sample, const stk_error *error);
    void *job_context; /* of the two */

    stki_notes notes; /* next adds some, and any thread may ask */
} stki_loader_config;

/* Takes over the document (also when it fails). Relative paths start from the file that names them; those of `--set`
 * and of texts start from base_dir (NULL: the working directory). */
stk_status stki_config_read(stki_document *document, const char *base_dir, stki_loader_config **out, stk_error *err);
/* Where a document says what is asked of the loader: in the section `loader`, unless a preparation job has some of its
 * options (those flagged STKI_IN_JOB) among its own. */
typedef struct stki_config_form {
    const stki_option_table *table; /* of stki_loader_config; its section */
    const stki_option_table *other; /* further options of that section; NULL: none */
    void *other_values;
    const stki_option_table *const *sections; /* of the whole document, ended by NULL */
    const char *const *other_sections;        /* that other programs read, ended by NULL; NULL: none */
    void (*preset)(stki_loader_config *config, const void *context); /* what the document does not say; NULL: nothing */
    const void *context;
} stki_config_form;
stk_status stki_config_read_as(const stki_config_form *form, stki_document *document, const char *base_dir,
                               stki_loader_config **out, stk_error *err);
stk_status stki_config_from_opts(const stk_loader_opts *opts, stki_loader_config **out, stk_error *err);
void stki_config_destroy(stki_loader_config *config); /* NULL is fine */

/* One sentence about what differs from what was asked for; said once (notes.h). For the thread that opens the loader,
 * or calls next. */
void stki_config_note(stki_loader_config *config, const char *format, ...) STK_PRINTF(2, 3);
/* The same for option.h, whose `context` is the config. */
void stki_config_add_note(void *config, const char *text);
extern const char *const stki_on_error_words[];
/* The loader section with the values in effect. */
json_t *stki_config_json(const stki_loader_config *config);
/* The sections that a loader reads, each with those inside it; ended by NULL. */
extern const stki_option_table *const stki_config_sections[];
/* The words of an enum of the loader section, ended by NULL. */
const char *const *stki_config_words(const char *key);

/* config_source.c: the field's `source` section. The document owns what it says. */
stk_status stki_config_source(const stki_node *node, stki_document *document, stki_field_config *field, stk_error *err);
extern const stki_option_table stki_source_table;
/* config_classes.c: what stki_config_source has left of a field's classes. */
stk_status stki_config_classes(stki_loader_config *config, const stki_node *source, stki_class_config *classes,
                               stk_error *err);
extern const stki_option_table stki_classes_table;
/* The text of `key` in `map` as a dtype; NULL leaves *out alone. */
stk_status stki_config_dtype(const stki_node *map, const char *key, const char *text, stk_dtype *out, stk_error *err);

/* A map of fields, of one data set; *out is the caller's also after a failure. */
stk_status stki_config_fields(stki_loader_config *config, const stki_node *map, stki_field_config **out, int *count,
                              stk_error *err);
/* stki_options_read, with what it notes among the config's notes. */
stk_status stki_config_options(stki_loader_config *config, const stki_option_table *table, const stki_node *map,
                               void *values, stk_error *err);

/* config_datasets.c: the list `datasets`. */
stk_status stki_config_datasets(stki_loader_config *config, const stki_node *list, stk_error *err);
extern const stki_option_table stki_datasets_table;
extern const stki_option_table stki_field_table; /* config_fields.c: of `fields` */

/* config_order.c: `split` and `weights`, and that the keys about the order go together. */
enum stki_split_part { STKI_SPLIT_TRAIN, STKI_SPLIT_VAL };
enum stki_split_method { STKI_SPLIT_EXACT, STKI_SPLIT_CONTIGUOUS, STKI_SPLIT_HASH };
extern const char *const stki_split_methods[];
stk_status stki_config_order(stki_loader_config *config, const stki_node *section, stk_error *err);
/* A list of sample numbers. */
stk_status stki_config_indices(const stki_node *list, int64_t **out, int64_t *count, stk_error *err);
extern const stki_option_table stki_split_table, stki_weights_table;
extern const char *const stki_stop_words[];

/* config_ranks.c: `ranks`, from the keys of the loader section and from the launcher. */
stk_status stki_config_ranks(stki_loader_config *config, const stki_node *section, stk_error *err);

/* synthetic.{count, shape, dtype, …} of a field. */
stk_status stki_config_synthetic(const stki_node *node, stki_synthetic_opts *out, stk_error *err);

#endif
