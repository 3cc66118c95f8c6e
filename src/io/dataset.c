/* dataset.c: see dataset_internal.h. */
#include "allocate.h"
#include "checked.h"
#include "dataset_internal.h"
#include "error.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

stk_status stki_dataset_create(stki_dataset **out, stk_error *err)
{
    *out = stki_zalloc(sizeof **out);
    return *out ? STK_OK : stki_fail_memory(err, sizeof **out, "a data set");
}

static void shape_text(const stki_reader *reader, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "%s [", stk_dtype_name(reader->dtype));

    for (int i = 0; i < reader->ndim && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, i ? ", " : "", reader->shape[i]);
    if (used < size)
        snprintf(buffer + used, size - used, "]");
}

static bool alike(const stki_reader *first, const stki_reader *shard)
{
    bool same = shard->dtype == first->dtype && shard->ndim == first->ndim;

    for (int i = 0; same && i < shard->ndim; i++)
        same =
            shard->variable || (shard->lists && first->lists) || first->variable || shard->shape[i] == first->shape[i];
    return same;
}

stk_status stki_dataset_go_together(const char *field, const char *first_name, const stki_reader *first,
                                    const char *name, const stki_reader *shard, stk_error *err)
{
    char found[96], expected[96];

    if (alike(first, shard))
        return STK_OK;
    shape_text(shard, found, sizeof found);
    shape_text(first, expected, sizeof expected);
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){shard->path, -1, -1, found, expected},
                        "data set %s: field %s differs from that of data set %s, %s", name, field, first_name,
                        first->path);
}

static stk_status check_shard(const char *name, const stki_reader *first, const stki_reader *shard, stk_error *err)
{
    char found[96], expected[96];

    if (alike(first, shard))
        return STK_OK;
    shape_text(shard, found, sizeof found);
    shape_text(first, expected, sizeof expected);
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){shard->path, -1, -1, found,
                                     shard->dtype != first->dtype && first->remedy && shard->remedy
                                         ? STKI_TEXT("%s%s", expected, first->remedy)
                                         : expected},
                        "a shard of field '%s' differs from the first one, %s", name, first->path);
}

/* Gives empty files, which have no dtype of their own, the dtype of the other files. */
static void type_the_untyped(stki_field *field)
{
    const stki_reader *typed = NULL;

    for (int i = 0; i < field->shard_count && !typed; i++)
        typed = field->shards[i]->untyped ? NULL : field->shards[i];
    for (int i = 0; i < field->shard_count && typed; i++) {
        stki_reader *shard = field->shards[i];

        if (!shard->untyped)
            continue;
        shard->dtype = typed->dtype;
        shard->ndim = typed->ndim;
        memcpy(shard->shape, typed->shape, sizeof shard->shape);
        memcpy(shard->strides, typed->strides, sizeof shard->strides);
        shard->max_bytes = typed->max_bytes;
        shard->variable = typed->variable;
        shard->lists = typed->lists;
    }
}

static stk_status add_shards(stki_field *field, stk_error *err)
{
    const stki_reader *first;

    type_the_untyped(field);
    first = field->shards[0];
    field->dtype = first->dtype;
    field->ndim = first->ndim;
    for (int i = 0; i < field->shard_count; i++) {
        const stki_reader *shard = field->shards[i];
        stk_status status = check_shard(field->name, first, shard, err);

        if (status != STK_OK)
            return status;
        if (!stki_add(field->first[i], shard->count, &field->first[i + 1]))
            return stki_fail_at(err, STK_E_LIMIT, (stki_place){shard->path, -1, -1, NULL, NULL},
                                "field '%s' has more samples than fit in 63 bits", field->name);
        for (int axis = 0; axis < field->ndim; axis++)
            if (shard->shape[axis] > field->shape[axis])
                field->shape[axis] = shard->shape[axis];
        field->variable = field->variable || shard->variable ||
                          memcmp(shard->shape, first->shape, (size_t)field->ndim * sizeof *shard->shape) != 0;
        field->max_bytes = shard->max_bytes > field->max_bytes ? shard->max_bytes : field->max_bytes;
    }
    return STK_OK;
}

static stk_status add_field(stki_dataset *dataset, stki_field *field, const char *name, stk_error *err)
{
    stki_field *fields;

    for (int i = 0; i < dataset->field_count; i++)
        if (!strcmp(dataset->fields[i].name, name))
            return stki_fail(err, STK_E_CONFIG, "field '%s' is given twice", name);
    if (field->shard_count < 1)
        return stki_fail(err, STK_E_CONFIG, "field '%s' has no files", name);
    field->name = stki_strdup(name);
    field->first = stki_zalloc_array((int64_t)field->shard_count + 1, sizeof *field->first);
    if (!field->name || !field->first)
        return stki_fail_memory(err, (int64_t)sizeof *field->first * (field->shard_count + 1), name);
    fields = stki_resize(dataset->fields, (int64_t)sizeof *fields * (dataset->field_count + 1));
    if (!fields)
        return stki_fail_memory(err, (int64_t)sizeof *fields * (dataset->field_count + 1), name);
    dataset->fields = fields;
    return add_shards(field, err);
}

static void field_fini(stki_field *field)
{
    for (int i = 0; i < field->shard_count; i++)
        stki_reader_destroy(field->shards[i]);
    stki_free(field->shards);
    stki_free(field->first);
    stki_free(field->name);
}

stk_status stki_dataset_add(stki_dataset *dataset, const char *name, stki_reader **shards, int count, stk_error *err)
{
    stki_field field = {.shard_count = count, .shards = stki_zalloc_array(count, sizeof *shards)};
    stk_status status;

    if (!field.shards) {
        for (int i = 0; i < count; i++)
            stki_reader_destroy(shards[i]);
        return stki_fail_memory(err, (int64_t)sizeof *shards * count, name);
    }
    if (count > 0)
        memcpy(field.shards, shards, sizeof *shards * (size_t)count);
    status = add_field(dataset, &field, name, err);
    if (status != STK_OK)
        field_fini(&field);
    else
        dataset->fields[dataset->field_count++] = field;
    return status;
}

static stk_status fail_count(const stki_field *field, int64_t count, const stki_field *other, int64_t expected,
                             stk_error *err)
{
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){field->shards[0]->path, -1, -1, STKI_TEXT("%" PRId64, count), STKI_TEXT("%" PRId64, expected)},
        "field '%s' does not have as many samples as field '%s' (%s)", field->name, other->name,
        other->shards[0]->path);
}

stk_status stki_dataset_finish(stki_dataset *dataset, stk_error *err)
{
    const stki_field *first = dataset->fields;

    if (dataset->field_count == 0)
        return stki_fail(err, STK_E_CONFIG, "a data set needs at least one field");
    for (int i = 0; i < dataset->field_count; i++) {
        const stki_field *field = &dataset->fields[i];
        int64_t found = field->first[field->shard_count], expected = first->first[first->shard_count];

        if (found > 0 && expected == 0)
            return fail_count(first, expected, field, found, err);
        if (found != expected)
            return fail_count(field, found, first, expected, err);
    }
    dataset->count = first->first[first->shard_count];
    return STK_OK;
}

void stki_dataset_use_windows(stki_dataset *dataset, stki_windows *windows)
{
    dataset->windows = windows;
    dataset->count = windows->count;
}

void stki_field_look_ahead(stki_field *field, int64_t ahead)
{
    for (int i = 0; i <= field->shard_count; i++)
        field->first[i] -= ahead - field->ahead;
    field->ahead = ahead;
}

void stki_dataset_destroy(stki_dataset *dataset)
{
    if (!dataset)
        return;
    for (int i = 0; i < dataset->field_count; i++)
        field_fini(&dataset->fields[i]);
    stki_free(dataset->fields);
    stki_windows_destroy(dataset->windows);
    stki_free(dataset);
}
