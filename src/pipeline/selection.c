/* selection.c: see selection.h. Everything here runs once, at open. */
#include "selection.h"
#include "allocate.h"
#include "error.h"
#include "format.h"
#include "order_print.h"
#include "permutation.h"
#include "sums.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 256 };

/* Not the number of any epoch, so that a split has its own permutation. */
#define SPLIT_EPOCH UINT64_MAX

const stki_field *stki_dataset_field(const stki_dataset *dataset, const char *name)
{
    for (int i = 0; i < dataset->field_count; i++)
        if (strcmp(dataset->fields[i].name, name) == 0)
            return &dataset->fields[i];
    return NULL;
}

stk_status stki_no_such_field(const stki_dataset *dataset, const char *key, const char *name, const char *others,
                              stk_error *err)
{
    char names[256] = "";
    size_t used = 0;

    for (int i = 0; i < dataset->field_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", dataset->fields[i].name);
    return stki_fail(err, STK_E_CONFIG, "%s: found %s, expected %sthe name of a field (%s)", key, name, others, names);
}

/* ---- split ---- */

typedef struct keys {
    const stki_dataset *dataset;
    int64_t first;
    const stki_split_config *split;
    const int64_t *numbers;  /* as in stki_split_groups */
    const uint8_t *divided;  /* one flag per sample, set if the split divides it; NULL: it divides all */
    const stki_field *field; /* NULL: the key is the sample number */
    bool path;
    stki_scratch scratch;
} keys;

static stk_status key_of(keys *k, int64_t index, uint64_t *out, stk_error *err)
{
    int64_t within, number;
    const stki_reader *shard;
    stk_tensor sample;
    stk_status status;

    if (!k->field) {
        *out = (uint64_t)index;
        return STK_OK;
    }
    number = k->numbers ? k->numbers[k->first + index] : k->first + index;
    shard = stki_field_locate(k->field, stki_dataset_sample(k->dataset, number), &within);
    if (k->path) {
        char buffer[STKI_RECORD_PATH];
        const char *path = stki_reader_path(shard, within, buffer), *slash = strrchr(path, '/');

        path = slash ? slash + 1 : path;
        *out = stki_order_hash(0, path, (int64_t)strlen(path));
        return STK_OK;
    }
    status = shard->ops->read(shard, within, NULL, &k->scratch, &sample, err);
    if (status != STK_OK)
        return status;
    *out = stki_sums_of(&sample);
    stki_reader_done(shard, &sample);
    return STK_OK;
}

static stk_status find_key(keys *k, stk_error *err)
{
    const char *key = k->split->key;

    if (k->split->method != STKI_SPLIT_HASH || strcmp(key, "index") == 0)
        return STK_OK;
    k->path = strcmp(key, "path") == 0;
    if (!k->path) {
        k->field = stki_dataset_field(k->dataset, key);
        return k->field ? STK_OK
                        : stki_no_such_field(k->dataset, STKI_TEXT("%s.split.key", k->split->section), key,
                                             "index, path or ", err);
    }
    for (int i = 0; i < k->dataset->field_count && !k->field; i++)
        if (k->dataset->fields[i].shards[0]->ops->path)
            k->field = &k->dataset->fields[i];
    return k->field
               ? STK_OK
               : stki_fail(err, STK_E_CONFIG,
                           "%s.split.key: found path, but no field has a file for each sample: use index or a field",
                           k->split->section);
}

/* Decides for each of n samples whether it is in val. Their numbers among the `count` samples that are divided are at,
 * at + 1, … */
static stk_status decide(keys *k, int64_t count, int64_t at, const int64_t *samples, int64_t n, bool *val,
                         stk_error *err)
{
    const stki_split_config *split = k->split;

    if (split->method == STKI_SPLIT_EXACT) {
        stki_permutation permutation;
        uint64_t images[BLOCK], below = (uint64_t)rint(split->fraction * (double)count);

        stki_permutation_init(&permutation, (uint64_t)split->seed, SPLIT_EPOCH, (uint64_t)count);
        stki_permutation_run(&permutation, (uint64_t)at, n, images);
        for (int64_t i = 0; i < n; i++)
            val[i] = images[i] < below;
        return STK_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t key, hash;
        stk_status status = key_of(k, samples[i], &key, err);

        if (status != STK_OK)
            return status;
        hash = stki_order_hash((uint64_t)split->seed, &key, sizeof key);
        val[i] = (double)(hash >> 11) * 0x1p-53 < split->fraction;
    }
    return STK_OK;
}

static int64_t divided_in(const uint8_t *divided, int64_t begin, int64_t end)
{
    int64_t count = divided ? 0 : end - begin;

    for (int64_t i = begin; divided && i < end; i++)
        count += divided[i];
    return count;
}

/* Flags the samples in `indices`. Numbers out of range are ignored here and reported by list(). */
static stk_status mark_divided(const int64_t *indices, int64_t index_count, int64_t count, uint8_t **out,
                               stk_error *err)
{
    *out = stki_zalloc(count ? count : 1);
    if (!*out)
        return stki_fail_memory(err, count, "the samples of a split");
    for (int64_t i = 0; i < index_count; i++)
        if (indices[i] >= 0 && indices[i] < count)
            (*out)[indices[i]] = 1;
    return STK_OK;
}

/* Flags the samples of the requested part; *total is their number. */
static stk_status choose(keys *k, int64_t count, uint8_t *chosen, int64_t *total, stk_error *err)
{
    const int64_t all = divided_in(k->divided, 0, count);
    int64_t samples[BLOCK], next = 0;
    bool val[BLOCK];

    *total = 0;
    for (int64_t at = 0; at < all; at += BLOCK) {
        int64_t n = 0;
        stk_status status;

        for (; n < BLOCK && at + n < all; next++)
            if (!k->divided || k->divided[next])
                samples[n++] = next;
        status = decide(k, all, at, samples, n, val, err);
        if (status != STK_OK)
            return status;
        for (int64_t i = 0; i < n; i++) {
            chosen[samples[i]] = val[i] == (k->split->part == STKI_SPLIT_VAL);
            *total += chosen[samples[i]];
        }
    }
    return STK_OK;
}

/* Like choose, for method: contiguous, where the last samples of each group are val. */
static void choose_places(const keys *k, const stki_split_groups *groups, int64_t count, uint8_t *chosen,
                          int64_t *total)
{
    const stki_split_config *split = k->split;
    const int64_t first = k->first;
    const stki_split_groups whole = {.first = (int64_t[]){first, first + count}, .count = 1, .step = 1, .span = 1};

    groups = groups->count > 0 ? groups : &whole;
    *total = 0;
    for (int64_t g = 0; g < groups->count; g++) {
        const int64_t begin = groups->first[g] - first, end = groups->first[g + 1] - first;
        const int64_t gap = (split->gap < 0 ? groups->span - 1 : split->gap) / groups->step;
        const bool is_val = split->part == STKI_SPLIT_VAL;
        int64_t val = end, left, from, to;

        if (begin < 0 || end > count)
            continue; /* the group belongs to another data set */
        left = llrint(split->fraction * (double)divided_in(k->divided, begin, end));
        while (left > 0)
            left -= divided_in(k->divided, val - 1, val), val--;
        from = is_val ? val : begin;
        to = is_val || val == end ? end : val - gap;
        for (int64_t i = from; i < to; i++)
            chosen[i] = !k->divided || k->divided[i];
        *total += to > from ? divided_in(k->divided, from, to) : 0;
    }
}

static stk_status list(const uint8_t *chosen, int64_t count, int64_t total, const int64_t *indices, int64_t index_count,
                       int64_t **out, int64_t *out_count, stk_error *err)
{
    int64_t room = indices ? index_count : total, *to = stki_zalloc_array(room ? room : 1, sizeof *to), n = 0;

    if (!to)
        return stki_fail_memory(err, room * (int64_t)sizeof *to, "the samples of a split");
    for (int64_t i = 0; !indices && i < count; i++)
        if (chosen[i])
            to[n++] = i;
    for (int64_t i = 0; indices && i < index_count; i++) {
        if (indices[i] < 0 || indices[i] >= count) {
            stki_free(to);
            return stki_fail(err, STK_E_RANGE,
                             "index %" PRId64 " of the subset: found %" PRId64 ", expected 0 to %" PRId64, i,
                             indices[i], count - 1);
        }
        if (chosen[indices[i]])
            to[n++] = indices[i];
    }
    *out = to;
    *out_count = n;
    return STK_OK;
}

stk_status stki_split_select(const stki_dataset *dataset, int64_t first, int64_t count, const stki_split_config *split,
                             const stki_split_groups *groups, const int64_t *indices, int64_t index_count,
                             int64_t **out, int64_t *out_count, stk_error *err)
{
    keys k = {.dataset = dataset, .first = first, .split = split, .numbers = groups->numbers};
    uint8_t *chosen, *divided = NULL;
    int64_t total = 0;
    stk_status status = find_key(&k, err);

    if (status != STK_OK)
        return status;
    chosen = stki_zalloc(count ? count : 1);
    if (!chosen)
        return stki_fail_memory(err, count, "the samples of a split");
    stki_scratch_init(&k.scratch);
    if (groups->of_indices)
        status = mark_divided(indices, index_count, count, &divided, err);
    k.divided = divided;
    if (status == STK_OK && split->method == STKI_SPLIT_CONTIGUOUS)
        choose_places(&k, groups, count, chosen, &total);
    else if (status == STK_OK)
        status = choose(&k, count, chosen, &total, err);
    if (status == STK_OK)
        status = list(chosen, count, total, indices, index_count, out, out_count, err);
    stki_scratch_fini(&k.scratch);
    stki_free(divided);
    stki_free(chosen);
    return status;
}

/* ---- weights ---- */

/* Reads a field of scalars as doubles. */
static stk_status read_numbers(const stki_reader *reader, double *out, stk_error *err)
{
    stki_scratch scratch;
    stk_status status = STK_OK;
    int64_t elements = 1;

    for (int i = 0; i < reader->ndim; i++)
        elements *= reader->shape[i];
    if (elements != 1 || reader->variable || reader->image || reader->dtype == STK_C64 || reader->dtype == STK_C128)
        return stki_fail_at(
            err, STK_E_MISMATCH,
            (stki_place){reader->path, -1, -1,
                         STKI_TEXT("%s %s", stk_dtype_name(reader->dtype), STKI_SHAPE(reader->ndim, reader->shape)),
                         "one real number per sample"},
            "loader.weights");
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        static const int64_t none[STK_MAX_DIMS] = {0};
        stk_tensor sample;

        status = reader->ops->read(reader, i, NULL, &scratch, &sample, err);
        if (status != STK_OK)
            break;
        stki_copy_strided(&out[i], STK_F64, none, sample.data, sample.dtype, sample.strides,
                          (sample.flags & STK_TENSOR_SWAPPED) != 0, 0, none);
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    return status;
}

static stk_status wrong_count(const char *file, int64_t found, int64_t expected, stk_error *err)
{
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){file, -1, -1, STKI_TEXT("%" PRId64, found), STKI_TEXT("%" PRId64 ", one per sample", expected)},
        "loader.weights: number of values");
}

/* Allocates one weight per sample. */
static stk_status weights_room(const stki_dataset *dataset, double **out, stk_error *err)
{
    *out = stki_zalloc_array(dataset->count ? dataset->count : 1, sizeof **out);
    return *out ? STK_OK : stki_fail_memory(err, dataset->count * (int64_t)sizeof **out, "the weights");
}

static stk_status read_list(const stki_dataset *dataset, const stki_loader_config *config, double **out, stk_error *err)
{
    stk_status status = config->weight_count == dataset->count
                            ? weights_room(dataset, out, err)
                            : wrong_count(NULL, config->weight_count, dataset->count, err);

    if (status == STK_OK)
        memcpy(*out, config->weight_list, (size_t)dataset->count * sizeof **out);
    return status;
}

static stk_status read_file(const stki_dataset *dataset, const stki_loader_config *config, double **out, stk_error *err)
{
    stki_reader_opts opts = {.name = config->weights_name, .prefer = "weights"};
    stki_reader *reader;
    stk_status status = stki_reader_open(config->weights_path, &opts, &reader, err);

    if (status != STK_OK)
        return status;
    status = reader->count == dataset->count ? weights_room(dataset, out, err)
                                             : wrong_count(config->weights_path, reader->count, dataset->count, err);
    if (status == STK_OK)
        status = read_numbers(reader, *out, err);
    stki_reader_destroy(reader);
    return status;
}

static stk_status read_field(const stki_dataset *dataset, const char *name, double **out, stk_error *err)
{
    const stki_field *field = stki_dataset_field(dataset, name);
    stk_status status = STK_OK;

    if (!field)
        return stki_no_such_field(dataset, "loader.weights.field", name, "", err);
    *out = stki_zalloc_array(stki_field_count(field) + 1, sizeof **out);
    if (!*out)
        return stki_fail_memory(err, stki_field_count(field) * (int64_t)sizeof **out, "the weights");
    for (int i = 0; i < field->shard_count && status == STK_OK; i++)
        status = read_numbers(field->shards[i], *out + field->first[i] + field->ahead, err);
    for (int64_t i = 0; dataset->windows && i < dataset->count && status == STK_OK;
         i++) /* in place, because the number of a window is never greater than that of its first sample */
        (*out)[i] = (*out)[stki_dataset_sample(dataset, i) + field->ahead];
    return status;
}

stk_status stki_weights_read(const stki_dataset *dataset, const stki_loader_config *config, double **out,
                             stk_error *err)
{
    double *weights = NULL;
    stk_status status;

    if (config->weight_list)
        status = read_list(dataset, config, &weights, err);
    else if (config->weights_path)
        status = read_file(dataset, config, &weights, err);
    else
        status = read_field(dataset, config->weights_field, &weights, err);
    if (status == STK_OK)
        *out = weights;
    else
        stki_free(weights);
    return status;
}
