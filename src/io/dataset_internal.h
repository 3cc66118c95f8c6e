/* dataset_internal.h: a data set consists of named fields that share a common index. A field has one reader, or several
 * consecutive shards. Immutable after open; thread-safe. Reference-counted, because an abandoned worker may outlive its
 * loader. */
#ifndef STKI_DATASET_INTERNAL_H
#define STKI_DATASET_INTERNAL_H

#include "bisect.h"
#include "reader.h"
#include "windows.h"

typedef struct stki_field {
    char *name;
    int shard_count;
    stki_reader **shards;
    int64_t *first;  /* shard_count + 1 prefix sums of the counts, less `ahead` */
    int64_t ahead;   /* number i refers to sample i + ahead; > 0 if windows deliver a sample after their first one */
    stk_dtype dtype; /* dtype, ndim and shape (the largest one if variable) apply to all shards, whose byte order may
                        differ */
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    bool variable;
    int64_t max_bytes;
} stki_field;

typedef struct stki_dataset stki_dataset;

struct stki_dataset {
    int field_count;
    stki_field *fields;
    int64_t count;         /* number of samples or windows */
    stki_windows *windows; /* NULL: no windows; each number is a sample number of the fields */
};

stk_status stki_dataset_create(stki_dataset **out, stk_error *err);
/* Takes ownership of the readers, even on failure. STK_E_MISMATCH: shards differ in dtype or shape; the message names
 * both files. STK_E_CONFIG: the name already exists. */
stk_status stki_dataset_add(stki_dataset *dataset, const char *name, stki_reader **shards, int count, stk_error *err);
/* Checks that shards of two data sets can be combined in one field. STK_E_MISMATCH names both data sets and files. */
stk_status stki_dataset_go_together(const char *field, const char *first_name, const stki_reader *first,
                                    const char *name, const stki_reader *shard, stk_error *err);
/* Checks that all fields have the same count (STK_E_MISMATCH names two fields with their files and counts), and sets
 * it. */
stk_status stki_dataset_finish(stki_dataset *dataset, stk_error *err);
/* Makes the numbers of the data set refer to windows. Takes ownership of `windows`. */
void stki_dataset_use_windows(stki_dataset *dataset, stki_windows *windows);
/* Makes number i of the field refer to its sample i + ahead. Must be called before any numbers are used. */
void stki_field_look_ahead(stki_field *field, int64_t ahead);
/* Units for `order: block`, which never cross shards. They are the chunks or pages of one field: the one with the
 * largest samples among the fields that have chunks or pages. If no field has any, they are runs of about a megabyte of
 * the field with the largest samples. */
typedef struct stki_units {
    const char *field;
    int64_t *first; /* count + 1 sample numbers; free with stki_free */
    int64_t count;
    int64_t largest_bytes; /* size of one decompressed unit */
} stki_units;

stk_status stki_dataset_units(const stki_dataset *dataset, stki_units *out, stk_error *err);
void stki_dataset_destroy(stki_dataset *dataset); /* NULL is allowed */

/* Returns the shard of a sample, and sets *within to its index in the shard. `index` must be in [0, count). */
static inline int stki_field_shard(const stki_field *field, int64_t index, int64_t *within)
{
    int shard = 0;

    if (field->shard_count > 16)
        shard = (int)stki_bisect(field->first, 0, field->shard_count - 1, index);
    else
        for (int i = 1; i < field->shard_count; i++) /* branch-free, because the outcome is unpredictable */
            shard += field->first[i] <= index;
    *within = index - field->first[shard];
    return shard;
}

/* Returns the total number of samples in all shards. */
static inline int64_t stki_field_count(const stki_field *field)
{
    return field->first[field->shard_count] + field->ahead;
}

/* Converts a number of the data set to a sample number of the fields: for a window, that of its first sample. */
static inline int64_t stki_dataset_sample(const stki_dataset *dataset, int64_t number)
{
    return dataset->windows ? stki_windows_first(dataset->windows, number) : number;
}

static inline const stki_reader *stki_field_locate(const stki_field *field, int64_t index, int64_t *within)
{
    return field->shards[stki_field_shard(field, index, within)];
}

#endif
