/* config.h: the complete configuration of a loader, read from a config document or the C structs, checked and with
 * defaults applied. The C structs are first converted to a document, so that both forms use the same names, ranges and
 * messages. */
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

/* One entry of `datasets`. */
typedef struct stki_dataset_config {
    const char *name;
    double weight;
    int on_error; /* -1: inherit loader.on_error */
    const stki_node *node;
    const char *manifest; /* resolved path of a preparation job's manifest, against which the opened files are checked;
                             NULL: none */
    stki_pair_config pair;
    stki_field_config *fields; /* in the order of the first data set's fields, which are the loader's fields */
    int field_count;
    int64_t *index_list; /* a subset of this data set, or NULL: all */
    int64_t index_count;
} stki_dataset_config;

/* The section `split`, which selects a part of the samples. */
typedef struct stki_split_config {
    int part, method; /* enum stki_split_part, enum stki_split_method */
    double fraction;  /* fraction of the samples in `val` */
    int64_t seed;
    const char *section; /* the enclosing section: "loader", "prep" */
    const char *key;     /* with method hash: "index", "path" or a field name; NULL: no split */
    int64_t gap;         /* with method contiguous: number of samples; -1: auto */
} stki_split_config;

struct stki_core;

typedef struct stki_loader_config {
    /* the loader section, filled by its option table */
    int64_t batch_size, global_batch_size; /* 0: not given */
    int order, last_batch, pin_memory, access, stores, convert, consumer_helps;
    const char *device;
    int64_t device_prefetch;
    int64_t seed;
    int64_t num_workers; /* once the config has been read, as in stk_loader_opts */
    int64_t prefetch;
    int64_t block_window; /* 0: auto */
    int block_rows;       /* stk_block_rows */
    int64_t cache_bytes;
    int64_t num_epochs;                /* 0: endless */
    int64_t memory_budget, tile_bytes; /* bytes */
    int64_t timeout, close_timeout;    /* ns */
    int64_t rank, world_size;          /* -1 (rank) or 0 (world_size): taken from the launcher */
    int launcher, digest, resume, on_error;
    int64_t max_errors; /* -1: unlimited */
    double max_error_fraction;
    const char *error_list;
    const char *resume_from;
    int64_t replication, replication_blocks;
    bool allow_empty, sigbus_guard;
    const stki_node *indices, *split, *weights; /* as written in the config */
    int64_t epoch_length;                       /* 0: the number of samples */
    int mixture_stop;
    const char *bucket_by; /* NULL: none */
    int64_t bucket_window; /* batches */

    const char *section; /* section that holds the keys above, for messages: "loader", "prep" */
    stki_ranks ranks;    /* derived from the keys above */
    int64_t *index_list; /* the subset, or NULL */
    int64_t index_count;
    bool leaves_out; /* samples were removed from the index lists because of their class or a filter; a split divides
                        only the remaining ones */
    double *weight_list; /* one per sample, or NULL: read from one of the sources below */
    int64_t weight_count;
    const char *weights_path, *weights_name, *weights_field;
    stki_split_config split_config;
    int field_count;
    stki_field_config *fields;
    const char *manifest;  /* as in stki_dataset_config, for a single data set */
    stki_pair_config pair; /* as above */
    int dataset_count;     /* 0: a single unnamed data set */
    stki_dataset_config *datasets;
    stki_document *document; /* owns all nodes and strings above */
    char *base_dir;          /* folder to which relative paths in a config given as text refer */
    char **texts;            /* strings created while reading; owned */
    int text_count;
    void *(*device_buffer)(void *context, const char *field, int slot,
                           int64_t bytes); /* can be set through the C API only */
    void *device_buffer_context;
    /* For tests: called for every newly opened reader, and may replace it with a wrapper that fails. The wrapper then
     * owns the original. */
    stk_status (*wrap_reader)(void *context, const char *field, stki_reader **reader, stk_error *err);
    void *wrap_context;
    /* For preparation jobs: called after the data set has been opened and before anything depends on batch_size,
     * prefetch or the list of indices, which it may set. */
    stk_status (*arrange)(void *context, struct stki_core *core, stk_error *err);
    int64_t aside_bytes; /* part of memory_budget that the job needs besides the slots; set by arrange */
    /* For preparation jobs: called for each sample that is skipped (`on_error: skip`) when its batch is delivered, in
     * order; `error` is never NULL. */
    void (*left_out)(void *context, int64_t position, int64_t sample, const stk_error *error);
    void *job_context; /* passed to arrange and left_out */
    bool idle;         /* for preparation jobs: stki_loader_open_config does not start the workers */

    stki_notes notes; /* stk_loader_next adds notes; any thread may read them */
} stki_loader_config;

/* Takes ownership of the document, even on failure. Relative paths refer to the folder of the file that contains them,
 * in config texts to base_dir (NULL: the working directory), and in `--set` to the working directory. */
stk_status stki_config_read(stki_document *document, const char *base_dir, stki_loader_config **out, stk_error *err);
/* Specifies which section of a document contains the loader's options. It is `loader`, unless a preparation job has
 * some of them (those flagged STKI_IN_JOB) in its own section. */
typedef struct stki_config_form {
    const stki_option_table *table; /* options stored in stki_loader_config; determines the section's name */
    const stki_option_table *other; /* more options of the same section; NULL: none */
    void *other_values;
    const stki_option_table *const *sections; /* all sections of the document, terminated by NULL */
    const char *const *other_sections;        /* sections read by other programs, terminated by NULL; NULL: none */
    void (*preset)(stki_loader_config *config, const void *context); /* sets default values; NULL: none */
    const void *context;
} stki_config_form;
stk_status stki_config_read_as(const stki_config_form *form, stki_document *document, const char *base_dir,
                               stki_loader_config **out, stk_error *err);
stk_status stki_config_from_opts(const stk_loader_opts *opts, stki_loader_config **out, stk_error *err);
void stki_config_destroy(stki_loader_config *config); /* NULL is allowed. */

/* Adds a one-sentence note about a deviation from what was requested. Each note is reported once (notes.h). Only for
 * the thread that opens the loader or calls stk_loader_next. */
void stki_config_note(stki_loader_config *config, const char *format, ...) STK_PRINTF(2, 3);
/* Adds a note that requires no attention, so Python does not warn about it. */
void stki_config_fact(stki_loader_config *config, const char *format, ...) STK_PRINTF(2, 3);
/* stki_config_note as a callback for option.h; `config` is the context. */
void stki_config_add_note(void *config, const char *text);
extern const char *const stki_on_error_words[];
/* The loader section with the effective values, as a new JSON object. */
json_t *stki_config_json(const stki_loader_config *config);
/* The sections that a loader reads, each with its nested sections; terminated by NULL. */
extern const stki_option_table *const stki_config_sections[];
/* The allowed values of an enum option of the loader section, terminated by NULL. */
const char *const *stki_config_words(const char *key);

/* config_source.c: reads the field's `source` section. The document owns the strings. */
stk_status stki_config_source(const stki_node *node, stki_document *document, stki_field_config *field, stk_error *err);
extern const stki_option_table stki_source_table;
/* config_classes.c: reads the class options of a field that stki_config_source leaves unread. */
stk_status stki_config_classes(stki_loader_config *config, const stki_node *source, stki_class_config *classes,
                               stk_error *err);
extern const stki_option_table stki_classes_table;
/* Parses `text`, the value of `key` in `map`, as a dtype. NULL leaves *out unchanged. */
stk_status stki_config_dtype(const stki_node *map, const char *key, const char *text, stk_dtype *out, stk_error *err);

/* Reads the map of fields of one data set. The caller owns *out even after a failure. */
stk_status stki_config_fields(stki_loader_config *config, const stki_node *map, stki_field_config **out, int *count,
                              stk_error *err);
/* Like stki_options_read; the notes are added to the config's notes. */
stk_status stki_config_options(stki_loader_config *config, const stki_option_table *table, const stki_node *map,
                               void *values, stk_error *err);

/* config_datasets.c: the list `datasets`. */
stk_status stki_config_datasets(stki_loader_config *config, const stki_node *list, stk_error *err);
extern const stki_option_table stki_datasets_table;
extern const stki_option_table stki_field_table; /* config_fields.c: an entry of `fields` */

/* config_order.c: reads `split` and `weights`, and checks that the options that determine the order are compatible. */
enum stki_split_part { STKI_SPLIT_TRAIN, STKI_SPLIT_VAL };
enum stki_split_method { STKI_SPLIT_EXACT, STKI_SPLIT_CONTIGUOUS, STKI_SPLIT_HASH };
extern const char *const stki_split_methods[];
stk_status stki_config_order(stki_loader_config *config, const stki_node *section, stk_error *err);
/* Reads a list of sample numbers. The caller frees *out with stki_free. */
stk_status stki_config_indices(const stki_node *list, int64_t **out, int64_t *count, stk_error *err);
extern const stki_option_table stki_split_table, stki_weights_table;
extern const char *const stki_stop_words[];

/* config_ranks.c: sets `ranks` from the keys of the loader section and the launcher's environment. */
stk_status stki_config_ranks(stki_loader_config *config, const stki_node *section, stk_error *err);

/* Reads synthetic.{count, shape, dtype, …} of a field. */
stk_status stki_config_synthetic(const stki_node *node, stki_synthetic_opts *out, stk_error *err);

#endif
