/* field_classes.h: the classes of a field: one table of names for all its shards, in all data sets, so that a class has
 * one number. Shards whose labels are names, or numbers with names of their own (class folders), are renumbered when
 * they are opened; labels that are plain numbers stay as they are, and have the names that the manifest of their
 * preparation job gives them. Everything happens at open, by one thread. */
#ifndef STKI_FIELD_CLASSES_H
#define STKI_FIELD_CLASSES_H

#include "classes.h"
#include "container.h"
#include "plan.h"

struct stki_core;

typedef struct stki_field_classes {
    stki_classes names; /* none: the field's labels have no names */
    const char **list;  /* of the same, for callers; NULL: none */
    char *origin;       /* "sorted", "as listed", or "from PATH"; NULL: none */
    bool assigned;      /* the numbers come from this table; else the files have them */
} stki_field_classes;

void stki_field_classes_fini(stki_field_classes *classes);

/* A shard that has names, until the field's table is known. */
typedef struct stki_class_shard {
    int number; /* of the shard in its field */
    stki_classes names;
    int64_t *numbers;          /* places in names; belongs to the storage that the shard's reader keeps */
    int64_t count;             /* of them */
    char *path;                /* for messages */
    stki_reader *texts;        /* what they were read from, for messages; NULL: class folders … */
    stki_container *container; /* … which know the samples' files; NULL: texts */
} stki_class_shard;

/* The shards of a field while its files are opened. Starts as {0}. */
typedef struct stki_class_shards {
    stki_class_shard *shards;
    int count;
    char *inferred; /* a file whose labels are numbers only because each of its texts is one; NULL: there is none */
} stki_class_shards;

void stki_class_shards_fini(stki_class_shards *shards);
/* Opens a member as stki_token_source_open does; where its samples are classes by name, *out has numbers that are final
 * once stki_classes_settle has returned. `number`: of the shard. */
stk_status stki_class_shard_open(stki_class_shards *shards, const stki_field_config *asked,
                                 const stki_field_config *field, const stki_container *container, int64_t member,
                                 const stki_reader_opts *opts, int number, stki_reader **out, stk_error *err);
/* Makes the field's table in core->classes and gives all shards its numbers. `first`: the first shard of each data set.
 * Samples that unknown_class: skip leaves out are noted in the core. */
stk_status stki_classes_settle(struct stki_core *core, int field, stki_class_shards *shards,
                               stki_reader *const *readers, int reader_count, const int *first, stk_error *err);
/* The samples so noted leave the lists of indices of their data sets. */
stk_status stki_classes_leave_out(struct stki_core *core, stk_error *err);

/* class_manifest.c: the names that manifests have for the numbers of a field's files; none found: *out stays empty.
 * `plain` (NULL: not needed): a flag a reader, that its numbers have no names. STK_E_MISMATCH: files of the field whose
 * manifests number their classes differently. */
stk_status stki_classes_of_manifests(const struct stki_core *core, int field, const stki_class_shards *shards,
                                     stki_reader *const *readers, int reader_count, const int *first, stki_classes *out,
                                     char **origin, bool *plain, stk_error *err);
/* The table of a field in the manifest at `path`. STK_E_NOT_FOUND: it has none. */
stk_status stki_classes_of_manifest(const char *path, const char *member, const char *field, stki_classes *out,
                                    stk_error *err);
/* STK_E_CONFIG: rows that are numbers of classes have a dtype that does not hold all of them, or not the number of
 * unknown classes. Of a plan that is resolved. */
stk_status stki_classes_check_rows(const struct stki_core *core, int field, stk_error *err);
/* As new JSON, a list of names. NULL: no memory. */
json_t *stki_classes_json(const stki_classes *classes);
/* Adds the names to a report of statistics (docs/reference/statistics.md) that counts the values of the field's rows.
 */
void stki_classes_report(const struct stki_core *core, int field, json_t *report);
/* The table of the rows that are delivered, if they still are the numbers of classes; NULL: they are something else. */
const stki_classes *stki_classes_of_rows(const struct stki_core *core, int field);

#endif
