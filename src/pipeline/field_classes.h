/* field_classes.h: the classes of a field. One table of names covers all shards in all data sets, so that a class has
 * the same number everywhere. Shards whose labels are names, or numbers with their own names (class folders), are
 * renumbered when they are opened. Labels that are plain numbers keep their values; their names come from the manifest
 * of their preparation job. All of this happens in one thread, while the loader is opened. */
#ifndef STKI_FIELD_CLASSES_H
#define STKI_FIELD_CLASSES_H

#include "classes.h"
#include "container.h"
#include "plan.h"

struct stki_core;

typedef struct stki_field_classes {
    stki_classes names; /* empty: the field's labels have no names */
    const char **list;  /* the same names for callers; NULL: none */
    char *origin;       /* "sorted", "as listed", or "from PATH"; NULL: none */
    bool assigned;      /* labels are renumbered by this table; false: they keep the numbers in the files */
} stki_field_classes;

void stki_field_classes_fini(stki_field_classes *classes);

/* A shard with named classes, kept until the field's table is complete. */
typedef struct stki_class_shard {
    int number; /* index of the shard in its field */
    stki_classes names;
    int64_t *numbers;          /* indices into `names`; the memory belongs to the shard's reader */
    int64_t count;             /* number of labels */
    char *path;                /* for messages */
    stki_reader *texts;        /* reads the labels if they are texts, for messages; otherwise NULL */
    stki_container *container; /* provides the file names of the samples for messages; NULL if the labels are texts */
} stki_class_shard;

/* The shards of a field while its files are opened. Starts as {0}. */
typedef struct stki_class_shards {
    stki_class_shard *shards;
    int count;
    char *inferred; /* a file whose labels are numbers only because every text in it is a number; NULL: none */
} stki_class_shards;

void stki_class_shards_fini(stki_class_shards *shards);
/* Like stki_token_source_open. If the samples are class names, *out returns class numbers, which change until
 * stki_classes_settle. `number`: index of the shard. */
stk_status stki_class_shard_open(stki_class_shards *shards, const stki_field_config *asked,
                                 const stki_field_config *field, const stki_container *container, int64_t member,
                                 const stki_reader_opts *opts, int number, stki_reader **out, stk_error *err);
/* Builds the field's table in core->classes and renumbers all shards. `first`: index of the first shard of each data
 * set. Samples excluded by unknown_class: skip are recorded in the core. */
stk_status stki_classes_settle(struct stki_core *core, int field, stki_class_shards *shards,
                               stki_reader *const *readers, int reader_count, const int *first, stk_error *err);
/* Removes the samples excluded by unknown_class: skip from the index lists of their data sets. */
stk_status stki_classes_leave_out(struct stki_core *core, stk_error *err);

/* class_manifest.c: finds the class names that manifests give to the numbers in a field's files. If there are none,
 * *out is not changed. `plain` (may be NULL): one flag per reader, set if its numbers have no names. STK_E_MISMATCH:
 * manifests of the field's files number the classes differently. */
stk_status stki_classes_of_manifests(const struct stki_core *core, int field, const stki_class_shards *shards,
                                     stki_reader *const *readers, int reader_count, const int *first, stki_classes *out,
                                     char **origin, bool *plain, stk_error *err);
/* Reads a field's class names from the manifest at `path`. STK_E_NOT_FOUND: the manifest contains no names for this
 * field. */
stk_status stki_classes_of_manifest(const char *path, const char *member, const char *field, stki_classes *out,
                                    stk_error *err);
/* Checks that the dtype of rows that are class numbers can represent all classes and the number of unknown classes.
 * STK_E_CONFIG: it cannot. The plan must have been resolved. */
stk_status stki_classes_check_rows(const struct stki_core *core, int field, stk_error *err);
/* Returns a new JSON list of the names. NULL: out of memory. */
json_t *stki_classes_json(const stki_classes *classes);
/* Adds the names, and classes without rows, to a statistics report (docs/reference/statistics.md) that counts the values
 * of the field's rows. */
void stki_classes_report(const struct stki_core *core, int field, json_t *report);
/* The class table of the delivered rows; NULL: the rows are not (or no longer) class numbers. */
const stki_classes *stki_classes_of_rows(const struct stki_core *core, int field);

#endif
