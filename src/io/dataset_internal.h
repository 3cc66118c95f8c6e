/* dataset_internal.h: a data set is named fields over one index space. A field is one reader, or several as shards one
 * after the other. Immutable after open; any thread. The handle is counted, since an abandoned worker may outlive its
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
    int64_t ahead;   /* number i stands for sample i + ahead: what windows take is not their first sample */
    stk_dtype dtype; /* of every shard; so are ndim, shape (where variable: the largest), swapped may differ by shard */
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    bool variable;
    int64_t max_bytes;
} stki_field;

typedef struct stki_dataset stki_dataset;

struct stki_dataset {
    int field_count;
    stki_field *fields;
    int64_t count;         /* samples, or windows over them */
    stki_windows *windows; /* NULL: none; then sample numbers are those of the fields */
};

stk_status stki_dataset_create(stki_dataset **out, stk_error *err);
/* Takes over the readers (also when it fails). STK_E_MISMATCH: shards that differ in dtype or shape, naming both files;
 * a name that is taken: STK_E_CONFIG. */
stk_status stki_dataset_add(stki_dataset *dataset, const char *name, stki_reader **shards, int count, stk_error *err);
/* Whether shards of two data sets may follow each other in one field. STK_E_MISMATCH names both data sets and files. */
stk_status stki_dataset_go_together(const char *field, const char *first_name, const stki_reader *first,
                                    const char *name, const stki_reader *shard, stk_error *err);
/* Checks that all fields have the same count (STK_E_MISMATCH names two fields, their files and counts) and sets it. */
stk_status stki_dataset_finish(stki_dataset *dataset, stk_error *err);
/* From here on numbers are those of windows; takes them over. */
void stki_dataset_use_windows(stki_dataset *dataset, stki_windows *windows);
/* Number i of the field stands for its sample i + ahead. Before the number is asked for. */
void stki_field_look_ahead(stki_field *field, int64_t ahead);
/* What is best read together, for `order: block`: the chunks or pages of the field whose samples are largest among
 * those that have some, else runs of about a megabyte of the largest field; never across shards. */
typedef struct stki_units {
    const char *field;
    int64_t *first; /* count + 1 sample numbers; stki_free */
    int64_t count;
    int64_t largest_bytes; /* of one unit, unpacked */
} stki_units;

stk_status stki_dataset_units(const stki_dataset *dataset, stki_units *out, stk_error *err);
void stki_dataset_destroy(stki_dataset *dataset); /* NULL is fine */

/* The number of the shard that holds a sample, and the sample's index inside it. `index` must be inside [0, count). */
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

/* Samples of all shards. */
static inline int64_t stki_field_count(const stki_field *field)
{
    return field->first[field->shard_count] + field->ahead;
}

/* The number in the fields of what has this number in the data set: of a window, its first sample's. */
static inline int64_t stki_dataset_sample(const stki_dataset *dataset, int64_t number)
{
    return dataset->windows ? stki_windows_first(dataset->windows, number) : number;
}

static inline const stki_reader *stki_field_locate(const stki_field *field, int64_t index, int64_t *within)
{
    return field->shards[stki_field_shard(field, index, within)];
}

#endif
